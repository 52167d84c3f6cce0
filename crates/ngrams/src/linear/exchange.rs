//! Trainings on several ranks: the exchange of updated weights, and of whole classifiers.
//!
//! A single classifier is trained as by CoCoA+ (Ma et al. 2015). In a round each rank improves the dual variables of its
//! own texts while the weights of the other ranks stay as they were. The changes of all ranks are then added. So that
//! the sum does not overshoot, a rank counts its own change of a weight as often as there are ranks whose texts have the
//! row: their values of the row are multiplied by the root of this number. A row of one rank alone is not affected, and
//! is exchanged at the end only.
//!
//! Several classifiers are divided among the ranks, and each is trained on all texts by one of them.

use super::calibration::Sigmoid;
use super::dual::Trained;
use super::matrix::Matrix;
use crate::error::Result;
use crate::ranks::{Ownership, Ranks, Reader, Traffic, Writer, gather_bits, invalid, ones};
use crate::texts::Texts;

/// The ranks of a training.
pub(super) struct Group<'a> {
    pub ranks: &'a dyn Ranks,
    pub ownership: Ownership,
    /// Number of texts per rank and round.
    pub round_texts: usize,
    pub traffic: Traffic,
}

/// The weights of all ranks after the last round.
pub(super) struct Exchange<'g, 'a> {
    group: &'g mut Group<'a>,
    /// Number of rounds per epoch.
    pub n_rounds: usize,
    /// By row: number of ranks whose texts have it.
    n_ranks: Vec<u8>,
    /// By number of ranks: the root, and its inverse.
    roots: Vec<[f32; 2]>,
    weights: Vec<f32>,
    bias: f32,
}

impl<'a> Group<'a> {
    pub fn of(texts: &Texts, ranks: &'a dyn Ranks, round_texts: usize) -> Self {
        Self { ranks, ownership: Ownership::of(texts, ranks), round_texts, traffic: Traffic::default() }
    }

    /// The numbers of the texts of this rank, and the largest number of texts of a rank.
    pub fn own_texts(&self, matrix: &Matrix) -> (Vec<u32>, usize) {
        let mut own: Vec<u32> = (0..matrix.n_texts() as u32).collect();
        let counts = self.ownership.keep_own(&mut own, |&text| {
            let (part, index) = matrix.positions[text as usize];
            self.ownership.rank_of(part as usize, index as usize)
        });
        (own, counts.into_iter().max().unwrap_or(0))
    }

    /// Gathers a value of each text from the rank that trained on it. The values of other texts are replaced.
    pub fn gather_texts(&mut self, matrix: &Matrix, values: &mut [f32]) -> Result<()> {
        let own: Vec<f32> = self.own_texts(matrix).0.iter().map(|&text| values[text as usize]).collect();
        let mut message = Writer::default();
        message.number(own.len() as u64);
        message.floats(&own);
        let gathered = self.traffic.gather(self.ranks, &message.finish())?;
        let read = |bytes| {
            let mut reader = Reader::new(bytes);
            let n = usize::try_from(reader.number()?).ok()?;
            reader.floats(n)
        };
        let of_ranks: Option<Vec<_>> = gathered.iter().map(|bytes| read(bytes)).collect();
        let mut of_ranks = of_ranks.ok_or_else(invalid)?;
        for (value, &(part, index)) in values.iter_mut().zip(&matrix.positions) {
            let rank = self.ownership.rank_of(part as usize, index as usize);
            *value = of_ranks[rank].next().ok_or_else(invalid)?;
        }
        Ok(())
    }

    /// Gathers all classifiers. This rank has those whose number, modulo the number of ranks, is its own.
    pub fn gather_classifiers(
        &mut self,
        own: &[(Trained, Sigmoid)],
        n: usize,
        n_rows: usize,
    ) -> Result<Vec<(Trained, Sigmoid)>> {
        let world_size = self.ranks.world_size();
        let mut all = Vec::with_capacity(n);
        for first in (0..n).step_by(world_size) {
            let mut message = Writer::default();
            if let Some((trained, sigmoid)) = own.get(first / world_size) {
                message.floats(&[trained.bias, sigmoid.slope, sigmoid.offset]);
                // Negative zero is kept, so that all ranks have the same bits.
                let rows = (0..).zip(&trained.weights).filter(|(_, weight)| weight.to_bits() != 0);
                let (rows, weights): (Vec<u32>, Vec<f32>) = rows.unzip();
                message.positions(&rows, n_rows);
                message.floats(&weights);
                self.traffic.n_rows += rows.len() as u64;
            }
            let message = message.finish();
            self.traffic.n_rounds += 1;
            self.traffic.round_bytes += message.len() as u64;
            let gathered = self.traffic.gather(self.ranks, &message)?;
            for bytes in gathered.iter().take(n - first) {
                all.push(read_classifier(bytes, n_rows).ok_or_else(invalid)?);
            }
        }
        Ok(all)
    }
}

fn read_classifier(bytes: &[u8], n_rows: usize) -> Option<(Trained, Sigmoid)> {
    let mut reader = Reader::new(bytes);
    let mut floats = reader.floats(3)?;
    let (bias, slope, offset) = (floats.next()?, floats.next()?, floats.next()?);
    let rows = reader.positions(n_rows)?;
    let mut weights = vec![0.0; n_rows];
    for (row, weight) in rows.iter().zip(reader.floats(rows.len())?) {
        weights[*row as usize] = weight;
    }
    Some((Trained { weights, bias }, Sigmoid { slope, offset }))
}

impl<'g, 'a> Exchange<'g, 'a> {
    /// Counts the ranks of each row.
    pub fn new(group: &'g mut Group<'a>, matrix: &Matrix, own: &[u32], most_texts: usize) -> Result<Self> {
        let mut bits = vec![0_u64; matrix.n_rows.div_ceil(64)];
        for &text in own {
            matrix
                .text(text as usize)
                .rows
                .iter()
                .for_each(|&row| bits[row as usize / 64] |= 1 << (row % 64));
        }
        let mut n_ranks = vec![0_u8; matrix.n_rows];
        for bits in gather_bits(&bits, matrix.n_rows, group.ranks, &mut group.traffic)? {
            ones(&bits).for_each(|row| n_ranks[row as usize] = n_ranks[row as usize].saturating_add(1));
        }
        let world_size = group.ranks.world_size();
        let roots = (0..=world_size).map(|n| [(n.max(1) as f32).sqrt(), (n.max(1) as f32).sqrt().recip()]);
        group.traffic.table_bytes = 4 * (matrix.n_rows as u64 + 1);
        Ok(Self {
            n_rounds: most_texts.div_ceil(group.round_texts.max(1)).max(1),
            n_ranks,
            roots: roots.collect(),
            weights: vec![0.0; matrix.n_rows],
            bias: 0.0,
            group,
        })
    }

    /// Number of ranks.
    pub fn world_size(&self) -> f32 {
        self.group.ranks.world_size() as f32
    }

    /// The factor of the values of a row.
    #[inline]
    pub fn root(&self, row: usize) -> f32 {
        self.roots[usize::from(self.n_ranks[row])][0]
    }

    #[inline]
    fn inverse_root(&self, row: usize) -> f32 {
        self.roots[usize::from(self.n_ranks[row])][1]
    }

    /// Adds the changes of all ranks. `scaled` returns and `set` replaces the weight of a row divided by its root. `bias`
    /// is that of this rank; returns the new one.
    pub fn round(
        &mut self,
        scaled: impl Fn(usize) -> f32,
        set: impl Fn(usize, f32),
        bias: f32,
    ) -> Result<f32> {
        let (mut rows, mut changes) = (Vec::new(), Vec::new());
        for (row, &n_ranks) in self.n_ranks.iter().enumerate().filter(|(_, n_ranks)| **n_ranks > 1) {
            let inverse = self.roots[usize::from(n_ranks)][1];
            let change = scaled(row) - self.weights[row] * inverse;
            if change != 0.0 {
                rows.push(row as u32);
                changes.push(change * inverse);
            }
        }
        let mut message = Writer::default();
        message.floats(&[(bias - self.bias) / self.world_size()]);
        message.positions(&rows, self.weights.len());
        message.floats(&changes);
        let message = message.finish();
        let traffic = &mut self.group.traffic;
        traffic.n_rounds += 1;
        traffic.n_rows += rows.len() as u64 + 1;
        traffic.round_bytes += message.len() as u64;
        for bytes in traffic.gather(self.group.ranks, &message)? {
            let mut reader = Reader::new(&bytes);
            let mut read = || {
                let bias = reader.floats(1)?.next()?;
                let rows = reader.positions(self.weights.len())?;
                let changes = reader.floats(rows.len())?;
                reader.end()?;
                Some((bias, rows, changes))
            };
            let (bias, of_rank, changes) = read().ok_or_else(invalid)?;
            self.bias += bias;
            for (&row, change) in of_rank.iter().zip(changes) {
                self.weights[row as usize] += change;
            }
            // Repeated for rows of several ranks; the last one counts.
            for row in of_rank {
                set(row as usize, self.weights[row as usize] * self.inverse_root(row as usize));
            }
        }
        Ok(self.bias)
    }

    /// Exchanges the rows that only one rank has. Returns the weights of all ranks.
    pub fn finish(mut self, scaled: impl Fn(usize) -> f32, own: &[u32], matrix: &Matrix) -> Result<Vec<f32>> {
        let n_rows = self.weights.len();
        let mut bits = vec![0_u64; n_rows.div_ceil(64)];
        for &text in own {
            let alone =
                matrix.text(text as usize).rows.iter().filter(|&&row| self.n_ranks[row as usize] == 1);
            alone.for_each(|&row| bits[row as usize / 64] |= 1 << (row % 64));
        }
        let (rows, weights): (Vec<u32>, Vec<f32>) =
            ones(&bits).map(|row| (row, scaled(row as usize))).filter(|(_, weight)| *weight != 0.0).unzip();
        let mut message = Writer::default();
        message.positions(&rows, n_rows);
        message.floats(&weights);
        for bytes in self.group.traffic.gather(self.group.ranks, &message.finish())? {
            let mut reader = Reader::new(&bytes);
            let rows = reader.positions(n_rows).ok_or_else(invalid)?;
            for (&row, weight) in rows.iter().zip(reader.floats(rows.len()).ok_or_else(invalid)?) {
                self.weights[row as usize] = weight;
            }
        }
        Ok(self.weights)
    }
}
