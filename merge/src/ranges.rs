//! Divides the rows of a run by their hashes. A thread merges the rows of one range at a time, independently of the
//! others.

use std::num::NonZeroUsize;

use dataset::{Row, RowsSize};

/// Consecutive ranges of hashes that together contain every hash. A range may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranges {
    /// The least hash of each range; that of the first is 0.
    starts: Vec<u64>,
}

/// Approximate number of rows of a range. Larger ranges take more memory, smaller ones divide more chunks.
const ROWS: u64 = 64 << 10;

/// Maximum number of sizes of ranges that are in memory, for all shards together.
const SIZES_MAX: usize = 1 << 20;

impl Ranges {
    /// This number of ranges of equal width.
    pub fn equal(n: NonZeroUsize) -> Self {
        let start = |at: usize| ((at as u128) << u64::BITS).div_ceil(n.get() as u128) as u64;
        Self { starts: (0..n.get()).map(start).collect() }
    }

    /// The first range, and one from each of these hashes, which ascend.
    pub fn starting_at(hashes: &[u64]) -> Self {
        Self { starts: [&[0], hashes].concat() }
    }

    /// As many ranges as suit this number of rows in shards. Hashes are distributed evenly.
    pub(crate) fn suiting(n_rows: u64, n_shards: usize) -> Self {
        let n = usize::try_from(n_rows / ROWS).unwrap_or(usize::MAX).min(SIZES_MAX / n_shards.max(1));
        Self::equal(NonZeroUsize::new(n).unwrap_or(NonZeroUsize::MIN))
    }

    /// Number of ranges.
    pub(crate) fn n(&self) -> usize {
        self.starts.len()
    }

    /// The least hash of a range.
    pub(crate) fn start(&self, range: usize) -> u64 {
        self.starts[range]
    }

    /// The range of a hash, which is this one or a later one.
    #[inline]
    fn range_from(&self, range: usize, hash: u64) -> usize {
        let mut range = range;
        while self.starts.get(range + 1).is_some_and(|&start| start <= hash) {
            range += 1;
        }
        range
    }

    /// The range of a hash.
    fn range(&self, hash: u64) -> usize {
        self.starts.partition_point(|&start| start <= hash) - 1
    }
}

/// The sizes of consecutive ranges, from those of the first row to those of the last one.
#[derive(Default)]
pub(crate) struct RangeSizes {
    first: usize,
    sizes: Vec<RowsSize>,
}

impl RangeSizes {
    /// Adds a row, whose hash is not less than those of the rows before.
    #[inline]
    pub(crate) fn add(&mut self, ranges: &Ranges, row: &Row) {
        if self.sizes.is_empty() {
            self.first = ranges.range(row.hash);
            self.sizes.push(RowsSize::default());
        }
        let range = ranges.range_from(self.first + self.sizes.len() - 1, row.hash) - self.first;
        self.sizes.resize(range + 1, RowsSize::default());
        self.sizes[range].add_row(row.tokens.len());
    }

    /// Adds these sizes to those of all ranges.
    pub(crate) fn add_to(&self, all: &mut [RowsSize]) {
        all[self.first..].iter_mut().zip(&self.sizes).for_each(|(sum, size)| *sum += *size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hash_is_in_one_range() {
        for (ranges, hash, range) in [
            (Ranges::equal(NonZeroUsize::MIN), u64::MAX, 0),
            (Ranges::equal(NonZeroUsize::new(2).unwrap()), (1 << 63) - 1, 0),
            (Ranges::equal(NonZeroUsize::new(2).unwrap()), 1 << 63, 1),
            (Ranges::equal(NonZeroUsize::new(3).unwrap()), 0x5555_5555_5555_5555, 0),
            (Ranges::equal(NonZeroUsize::new(3).unwrap()), 0x5555_5555_5555_5556, 1),
            // The ranges between equal starts are empty.
            (Ranges::starting_at(&[0, 5, 5, 9]), 0, 1),
            (Ranges::starting_at(&[0, 5, 5, 9]), 5, 3),
            (Ranges::starting_at(&[0, 5, 5, 9]), 8, 3),
            (Ranges::starting_at(&[0, 5, 5, 9]), 9, 4),
        ] {
            assert_eq!(ranges.range(hash), range, "{ranges:?} {hash}");
            for from in 0..=range {
                assert_eq!(ranges.range_from(from, hash), range, "{ranges:?} {hash}");
            }
        }
    }

    #[test]
    fn rows_are_counted_by_range() {
        let ranges = Ranges::starting_at(&[3, 5, 5, 9]);
        let row = |hash, n| Row { hash, tokens: vec![0; n], ..Row::default() };
        let (mut one, mut other) = (RangeSizes::default(), RangeSizes::default());
        [row(3, 1), row(4, 2), row(7, 3)].iter().for_each(|row| one.add(&ranges, row));
        [row(7, 4), row(9, 5)].iter().for_each(|row| other.add(&ranges, row));
        let mut sizes = vec![RowsSize::default(); ranges.n()];
        [one, other, RangeSizes::default()].iter().for_each(|counted| counted.add_to(&mut sizes));
        let expected = [(0, 0), (2, 3), (0, 0), (2, 7), (1, 5)];
        assert_eq!(sizes, expected.map(|(rows, tokens)| RowsSize { rows, tokens }));
    }
}
