//! Which texts a rank trains on, and which rows only its own texts have.

use super::{Ranks, Reader, Traffic, Writer, invalid};
use crate::error::Result;
use crate::texts::Texts;

/// The texts of a rank: those whose number, modulo the number of ranks, is the rank.
#[derive(Debug)]
pub(crate) struct Ownership {
    pub rank: usize,
    pub world_size: usize,
    /// By block: the number of its first text.
    firsts: Vec<u64>,
}

impl Ownership {
    pub fn of(texts: &Texts, ranks: &dyn Ranks) -> Self {
        let firsts = (0..texts.n_blocks()).scan(0, |first, block| {
            let of_block = *first;
            *first += texts.block_texts(block) as u64;
            Some(of_block)
        });
        Self { firsts: firsts.collect(), rank: ranks.rank(), world_size: ranks.world_size() }
    }

    /// The rank of a text.
    #[inline]
    pub fn rank_of(&self, block: usize, text: usize) -> usize {
        ((self.firsts[block] + text as u64) % self.world_size as u64) as usize
    }

    /// Removes texts of other ranks. Returns the number of texts of each rank.
    pub fn keep_own<T>(&self, texts: &mut Vec<T>, rank_of: impl Fn(&T) -> usize) -> Vec<usize> {
        let mut counts = vec![0; self.world_size];
        texts.retain(|text| {
            let rank = rank_of(text);
            counts[rank] += 1;
            rank == self.rank
        });
        counts
    }

    /// Whether a text belongs to this rank.
    #[inline]
    pub fn is_own(&self, block: usize, text: usize) -> bool {
        self.rank_of(block, text) == self.rank
    }
}

/// The rows of the texts of all ranks. Bit `row % 64` of element `row / 64` is that of a row.
#[derive(Debug, Default)]
pub(crate) struct Met {
    /// Rows that texts of any rank have.
    pub any: Vec<u64>,
    /// Rows that texts of several ranks have.
    pub several: Vec<u64>,
    /// By rank: number of rows that its texts alone have.
    pub n_alone: Vec<usize>,
}

impl Met {
    /// Gathers the rows of all ranks from those of this one, which are below `n_rows`.
    pub fn gather(own: &[u64], n_rows: usize, ranks: &dyn Ranks, traffic: &mut Traffic) -> Result<Self> {
        let of_ranks = gather_bits(own, n_rows, ranks, traffic)?;
        let (mut any, mut several) = (vec![0; own.len()], vec![0; own.len()]);
        for bits in &of_ranks {
            for ((any, several), bits) in any.iter_mut().zip(&mut several).zip(bits) {
                *several |= *any & bits;
                *any |= bits;
            }
        }
        let alone = |bits: &Vec<u64>| -> usize {
            bits.iter()
                .zip(&several)
                .map(|(bits, several): (&u64, &u64)| (bits & !several).count_ones() as usize)
                .sum()
        };
        let n_alone = of_ranks.iter().map(alone).collect();
        Ok(Self { any, several, n_alone })
    }
}

/// Gathers the rows of each rank, by rank.
pub(crate) fn gather_bits(
    own: &[u64],
    n_rows: usize,
    ranks: &dyn Ranks,
    traffic: &mut Traffic,
) -> Result<Vec<Vec<u64>>> {
    let mut message = Writer::default();
    message.positions(&ones(own).collect::<Vec<_>>(), n_rows);
    let read = |bytes: &Vec<u8>| {
        let positions = Reader::new(bytes).positions(n_rows).ok_or_else(invalid)?;
        let mut bits = vec![0; own.len()];
        positions.iter().for_each(|&row| bits[row as usize / 64] |= 1 << (row % 64));
        Ok(bits)
    };
    traffic.gather(ranks, &message.finish())?.iter().map(read).collect()
}

/// The positions of the bits that are set.
pub(crate) fn ones(bits: &[u64]) -> impl Iterator<Item = u32> + '_ {
    (0_u32..).zip(bits).flat_map(|(at, &bits)| {
        let mut bits = bits;
        std::iter::from_fn(move || {
            let bit = (bits != 0).then(|| bits.trailing_zeros())?;
            bits &= bits - 1;
            Some(64 * at + bit)
        })
    })
}
