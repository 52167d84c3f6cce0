//! The rows of words and n-grams that have weights, and their positions in the table.
//!
//! Only rows that occur in the training have weights. They are stored in increasing order of their numbers, so the
//! memory of a table depends on the texts and not on the number of buckets.

use std::ops::Range;

/// A set of row numbers. The position of a row is the number of smaller rows of the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowSet {
    groups: Vec<Group>,
    n_numbers: usize,
    len: usize,
}

/// 64 row numbers. Bits and position are in one cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Group {
    bits: u64,
    /// Number of rows of the groups before this one.
    before: u32,
}

impl RowSet {
    /// The set of those rows below `n_numbers` whose bit is set: bit `row % 64` of element `row / 64`.
    ///
    /// # Panics
    /// If the number of elements is wrong, or a bit at or above `n_numbers` is set.
    pub fn of_bits(bits: &[u64], n_numbers: usize) -> Self {
        assert_eq!(bits.len(), n_numbers.div_ceil(64), "one bit per number");
        let is_clean =
            n_numbers.is_multiple_of(64) || bits.last().is_none_or(|bits| bits >> (n_numbers % 64) == 0);
        assert!(is_clean, "no row at or above the number of rows");
        let mut len = 0;
        let groups = bits.iter().map(|&bits| {
            let before = len as u32;
            len += bits.count_ones() as usize;
            Group { bits, before }
        });
        let groups = groups.collect();
        Self { groups, n_numbers, len }
    }

    /// All rows below `n_numbers`.
    pub fn all(n_numbers: usize) -> Self {
        let mut bits = vec![u64::MAX; n_numbers.div_ceil(64)];
        if let (Some(last), true) = (bits.last_mut(), !n_numbers.is_multiple_of(64)) {
            *last >>= 64 - n_numbers % 64;
        }
        Self::of_bits(&bits, n_numbers)
    }

    /// Number of rows of the set.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the set has no row.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of rows including those that are not in the set.
    pub fn n_numbers(&self) -> usize {
        self.n_numbers
    }

    /// The position of a row in the table.
    #[inline]
    pub fn position(&self, row: u32) -> Option<u32> {
        let Group { bits, before } = *self.groups.get(row as usize / 64)?;
        let bit = 1 << (row % 64);
        (bits & bit != 0).then(|| before + (bits & (bit - 1)).count_ones())
    }

    /// The rows of the set in increasing order, which is the order of their positions.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.iter_groups(0..self.groups.len())
    }

    /// The bits, as in [`RowSet::of_bits`].
    pub fn bits(&self) -> impl ExactSizeIterator<Item = u64> {
        self.groups.iter().map(|group| group.bits)
    }

    /// Number of groups of 64 numbers.
    pub(super) fn n_groups(&self) -> usize {
        self.groups.len()
    }

    /// The rows of a range of groups.
    pub(super) fn iter_groups(&self, groups: Range<usize>) -> impl Iterator<Item = u32> {
        let to = groups.end.min(self.groups.len());
        let from = groups.start.min(to);
        let groups = self.groups[from..to].iter();
        groups
            .enumerate()
            .flat_map(move |(at, group)| Ones { bits: group.bits, first: 64 * (from + at) as u32 })
    }
}

/// The rows of one group.
struct Ones {
    bits: u64,
    first: u32,
}

impl Iterator for Ones {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.bits == 0 {
            return None;
        }
        let row = self.first + self.bits.trailing_zeros();
        self.bits &= self.bits - 1;
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_positions_in_increasing_order() {
        let rows = [0, 5, 63, 64, 130];
        let mut bits = [0; 3];
        rows.iter().for_each(|&row: &u32| bits[row as usize / 64] |= 1 << (row % 64));
        let set = RowSet::of_bits(&bits, 131);
        assert_eq!((set.len(), set.n_numbers(), set.iter().collect::<Vec<_>>()), (5, 131, rows.to_vec()));
        for row in 0..200 {
            let expected = rows.iter().position(|&other| other == row).map(|position| position as u32);
            assert_eq!(set.position(row), expected);
        }
        assert_eq!(set.bits().collect::<Vec<_>>(), bits);
    }

    #[test]
    fn the_full_set_has_each_row_at_its_number() {
        for n_numbers in [0, 1, 63, 64, 65] {
            let set = RowSet::all(n_numbers);
            assert_eq!(set.len(), n_numbers);
            assert!((0..n_numbers as u32).all(|row| set.position(row) == Some(row)));
            assert_eq!(set.position(n_numbers as u32), None);
        }
    }
}
