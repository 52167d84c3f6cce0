//! A step's gradients in one buffer, and their sums over the ranks.
//!
//! Most gradients are those of embeddings, and a step touches only the embeddings of its own words. If these words
//! are few enough, the ranks exchange only the gradients of their embeddings and the gradients of all other
//! parameters. Otherwise the whole buffer is reduced.

use std::ops::Range;

use c10d::{ProcessGroup, ReduceOp};
use tch::{Device, Kind, Tensor};

use crate::error::{Error, Result};
use crate::ffi::{numbers, numbers_mut};

/// The size of a tensor's elements in bytes.
pub(crate) fn bytes_of(tensor: &Tensor) -> usize {
    tensor.numel() * tensor.kind().elt_size_in_bytes()
}

/// Bytes that a rank sends in a ring reduction.
pub(crate) fn in_ring(bytes: u64, world_size: usize) -> u64 {
    2 * bytes * (world_size as u64 - 1) / world_size as u64
}

/// Gradients that kernels add to.
pub(super) struct Sums {
    /// All gradients, concatenated.
    all: Tensor,
    /// Views of `all`, each with its shape.
    pub(super) each: Vec<Tensor>,
    /// Range of the embeddings in `all`.
    embeddings: Range<usize>,
    /// Embedding dimension.
    width: usize,
    touched: Touched,
}

impl Sums {
    /// Zero gradients for these parameters; the one at index `embedding` is the embedding, `[V, E]`.
    pub(super) fn new(parameters: &[Tensor], embedding: usize) -> Result<Self> {
        let length: usize = parameters.iter().map(Tensor::numel).sum();
        let all = Tensor::f_zeros([length as i64], (Kind::Float, Device::Cpu))?;
        let mut each = Vec::new();
        let mut begin = 0;
        for parameter in parameters {
            let length = parameter.numel();
            each.push(all.f_narrow(0, begin as i64, length as i64)?.f_view(&parameter.size()[..])?);
            begin += length;
        }
        let (n_ids, width) = parameters[embedding].size2()?;
        let begin: usize = parameters[..embedding].iter().map(Tensor::numel).sum();
        Ok(Self {
            all,
            each,
            embeddings: begin..begin + parameters[embedding].numel(),
            width: width as usize,
            touched: Touched::new(n_ids as usize),
        })
    }

    /// Records words that now have gradients.
    pub(super) fn touch(&mut self, ids: &[u32]) {
        self.touched.add(ids);
    }

    /// Number of words with gradients.
    pub(super) fn n_touched(&self) -> usize {
        self.touched.ids.len()
    }

    /// Sums the gradients over all ranks. The result has identical bits on each rank. The number of touched words
    /// determines the method, and thereby the order of the sums: rows are added in rank order, while a ring
    /// reduction has its own order. Returns the number of bytes that this rank sends.
    pub(super) fn over_ranks(&mut self, group: &ProcessGroup, n_touched: &[usize]) -> Result<u64> {
        let n_others = group.world_size() as u64 - 1;
        if self.are_rows_less(n_touched) {
            let packed = self.packed(most(n_touched))?;
            let of_ranks = group.all_gather(&packed)?;
            let of_ranks = of_ranks.iter().map(numbers).collect::<Option<Vec<_>>>();
            self.add_up(&of_ranks.ok_or_else(not_plain)?, n_touched)?;
            self.touched.clear();
            Ok(n_others * bytes_of(&packed) as u64)
        } else {
            group.all_reduce(&mut self.all, ReduceOp::Sum)?;
            self.touched.clear();
            Ok(in_ring(bytes_of(&self.all) as u64, group.world_size()))
        }
    }

    /// Whether a rank receives less data if all ranks send their touched rows than in a ring reduction. In the ring,
    /// a rank receives two shares of all gradients per other rank.
    fn are_rows_less(&self, n_touched: &[usize]) -> bool {
        n_touched.len() * self.packed_length(most(n_touched)) < 2 * self.all.numel()
    }

    /// Number of gradients of all parameters except the embedding.
    fn n_others(&self) -> usize {
        self.all.numel() - self.embeddings.len()
    }

    fn packed_length(&self, n_rows: usize) -> usize {
        self.n_others() + n_rows * (1 + self.width)
    }

    /// The gradients of all parameters except the embedding, the touched ids as bits, and their rows, padded
    /// with zeros to `n_rows` rows.
    fn packed(&self, n_rows: usize) -> Result<Tensor> {
        let length = self.packed_length(n_rows) as i64;
        let mut packed = Tensor::f_zeros([length], (Kind::Float, Device::Cpu))?;
        let (width, begin) = (self.width, self.embeddings.start);
        let all = numbers(&self.all).ok_or_else(not_plain)?;
        let (others, rows) = numbers_mut(&mut packed).ok_or_else(not_plain)?.split_at_mut(self.n_others());
        let (before, after) = others.split_at_mut(begin);
        before.copy_from_slice(&all[..begin]);
        after.copy_from_slice(&all[self.embeddings.end..]);
        let (ids, rows) = rows.split_at_mut(n_rows);
        for ((&id, packed_id), row) in self.touched.ids.iter().zip(ids).zip(rows.chunks_exact_mut(width)) {
            *packed_id = f32::from_bits(id);
            row.copy_from_slice(&all[begin + id as usize * width..][..width]);
        }
        Ok(packed)
    }

    /// Adds the packed gradients of all ranks, each with its number of rows.
    fn add_up(&mut self, of_ranks: &[&[f32]], n_touched: &[usize]) -> Result<()> {
        let (width, n_others, Range { start, end }) = (self.width, self.n_others(), self.embeddings.clone());
        let all = numbers_mut(&mut self.all).ok_or_else(not_plain)?;
        all[..start].fill(0.0);
        all[end..].fill(0.0);
        for &id in &self.touched.ids {
            all[start + id as usize * width..][..width].fill(0.0);
        }
        for (packed, &n_rows) in of_ranks.iter().zip(n_touched) {
            let (others, rows) = packed.split_at(n_others);
            add(&mut all[..start], &others[..start]);
            add(&mut all[end..], &others[start..]);
            let (ids, rows) = rows.split_at(rows.len() / (1 + width));
            for (id, row) in ids[..n_rows].iter().zip(rows.chunks_exact(width)) {
                add(&mut all[start + id.to_bits() as usize * width..][..width], row);
            }
        }
        Ok(())
    }
}

fn most(n_touched: &[usize]) -> usize {
    n_touched.iter().copied().max().unwrap_or(0)
}

fn add(to: &mut [f32], numbers: &[f32]) {
    to.iter_mut().zip(numbers).for_each(|(to, number)| *to += number);
}

fn not_plain() -> Error {
    Error::internal(&"gradients of the kernels are not contiguous in memory")
}

/// A set of words.
struct Touched {
    is_in: Vec<bool>,
    ids: Vec<u32>,
}

impl Touched {
    fn new(n_ids: usize) -> Self {
        Self { is_in: vec![false; n_ids], ids: Vec::new() }
    }

    fn add(&mut self, ids: &[u32]) {
        for &id in ids {
            if !std::mem::replace(&mut self.is_in[id as usize], true) {
                self.ids.push(id);
            }
        }
    }

    fn clear(&mut self) {
        for id in self.ids.drain(..) {
            self.is_in[id as usize] = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use batches::random::Purpose;

    const IDS: i64 = 50;
    const WIDTH: i64 = 3;

    /// A rank's gradients after batches that touch these words, for a model whose embedding is neither the first nor
    /// the last parameter; and the same without tracking words.
    fn of_rank(rank: u64, batches: &[Vec<u32>]) -> (Sums, Vec<f32>) {
        let place = (Kind::Float, Device::Cpu);
        let parameters =
            [Tensor::zeros([7], place), Tensor::zeros([IDS, WIDTH], place), Tensor::zeros([2, 2], place)];
        let mut sums = Sums::new(&parameters, 1).unwrap();
        let mut random = Purpose::Order.stream(&[rank]);
        let mut next = || random.below(1000) as f32 / 8.0;
        for ids in batches {
            sums.touch(ids);
            let all = numbers_mut(&mut sums.all).unwrap();
            all[..7].iter_mut().for_each(|number| *number += next());
            all[7 + (IDS * WIDTH) as usize..].iter_mut().for_each(|number| *number += next());
            for &id in ids {
                let row = &mut all[7 + id as usize * WIDTH as usize..][..WIDTH as usize];
                row.iter_mut().for_each(|number| *number += next());
            }
        }
        let plain = numbers(&sums.all).unwrap().to_vec();
        (sums, plain)
    }

    #[test]
    fn sums_of_rows_are_sums_of_all_numbers() {
        let words: [&[Vec<u32>]; 3] = [
            &[vec![3, 49, 0], vec![0, 7]],
            // A rank without rows.
            &[],
            &[vec![7, 3, 11, 12, 13]],
        ];
        let (mut ranks, plain): (Vec<_>, Vec<_>) =
            words.iter().zip(0..).map(|(batches, rank)| of_rank(rank, batches)).unzip();
        let n_touched: Vec<usize> = ranks.iter().map(Sums::n_touched).collect();
        assert_eq!(n_touched, [4, 0, 5]);
        let packed: Vec<Tensor> = ranks.iter().map(|sums| sums.packed(5).unwrap()).collect();
        let packed: Vec<&[f32]> = packed.iter().map(|packed| numbers(packed).unwrap()).collect();
        let mut expected = vec![0.0; plain[0].len()];
        plain.iter().for_each(|plain| add(&mut expected, plain));
        for sums in &mut ranks {
            sums.add_up(&packed, &n_touched).unwrap();
            assert_eq!(numbers(&sums.all).unwrap(), expected);
        }
    }

    #[test]
    fn rows_are_sent_where_they_are_less_than_a_ring_brings() {
        let (sums, _) = of_rank(0, &[vec![1, 2], vec![2, 3]]);
        assert_eq!(sums.n_touched(), 3);
        // 161 gradients, 11 of which are not of the embedding. A row has 3 values and its id.
        assert!(sums.are_rows_less(&[37, 0]) && !sums.are_rows_less(&[38, 1]));
        assert!(sums.are_rows_less(&[1, 24, 2]) && !sums.are_rows_less(&[25, 1, 2]));
    }

    #[test]
    fn words_count_anew_after_a_step() {
        let (mut sums, _) = of_rank(0, &[vec![1, 2]]);
        sums.touched.clear();
        sums.touch(&[2]);
        assert_eq!(sums.touched.ids, [2]);
    }
}
