//! Divides a batch among ranks, by the part of its tokens that each takes. The compute time of a rank grows with its
//! tokens; the rows of a batch can differ in length by a multiple.

use std::ops::Range;

use crate::error::{Error, Result};

/// The part of a batch's tokens that each rank takes, in as many parts as a whole batch has rows. A share may be empty,
/// and has no rows if the longest rows of the batch have more tokens than its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    sizes: Vec<usize>,
}

impl Shares {
    /// Equal shares. The remaining parts go to the first ranks, one each.
    pub fn equal(batch_rows: usize, n_ranks: usize) -> Self {
        let sizes = (0..n_ranks).map(|rank| batch_rows / n_ranks + usize::from(rank < batch_rows % n_ranks));
        Self { sizes: sizes.collect() }
    }

    /// Shares with these sizes, by rank.
    pub fn of(sizes: Vec<usize>) -> Self {
        Self { sizes }
    }

    /// Sizes of the shares, by rank.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Refuses shares for another number of ranks, and shares whose sum is not the batch size.
    pub(crate) fn check(&self, batch_rows: usize, n_ranks: usize) -> Result<()> {
        let sum = self.sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size));
        if self.sizes.len() == n_ranks && sum == Some(batch_rows) {
            return Ok(());
        }
        let expected = format!("{n_ranks} shares with the sum {batch_rows}");
        Err(Error::setting("the list of shares", format!("{:?}", self.sizes), &expected))
    }

    /// This rank's rows of a batch whose rows have these lengths. Each rank's rows follow those of the rank before.
    pub(crate) fn range(&self, rank: usize, lengths: &[u32]) -> Range<usize> {
        let before: usize = self.sizes[..rank].iter().sum();
        self.cut(before, lengths)..self.cut(before + self.sizes[rank], lengths)
    }

    /// The number of rows whose tokens are nearest to this number of parts.
    fn cut(&self, parts: usize, lengths: &[u32]) -> usize {
        let all: usize = self.sizes.iter().sum();
        // Rows without tokens are in a share, too.
        if parts == 0 || parts == all {
            return if parts == 0 { 0 } else { lengths.len() };
        }
        let tokens: u128 = lengths.iter().map(|&length| u128::from(length)).sum();
        let mut before = 0;
        let is_nearer_with = |&&length: &&u32| {
            let middle = 2 * before + u128::from(length);
            before += u128::from(length);
            middle * all as u128 <= 2 * tokens * parts as u128
        };
        lengths.iter().take_while(is_nearer_with).count()
    }
}

/// The shares of an epoch's batches. They can change from step to step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareSchedule {
    /// Shares and the step from which they apply. Steps ascend, starting at 0.
    changes: Vec<(u64, Shares)>,
}

impl ShareSchedule {
    /// Starts with these shares.
    pub fn new(shares: Shares) -> Self {
        Self { changes: vec![(0, shares)] }
    }

    /// Applies shares from `step` on. Replaces earlier changes at this and later steps.
    pub fn change(&mut self, step: u64, shares: Shares) {
        self.changes.retain(|(from, _)| *from < step);
        self.changes.push((step, shares));
    }

    /// The shares at this step.
    pub(crate) fn at(&self, step: u64) -> &Shares {
        let next = self.changes.partition_point(|(from, _)| *from <= step);
        &self.changes[next.saturating_sub(1)].1
    }

    /// All changes, each with its first step.
    pub(crate) fn changes(&self) -> &[(u64, Shares)] {
        &self.changes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_shares_differ_by_at_most_one_part() {
        assert_eq!(Shares::equal(8, 3).sizes(), [3, 3, 2]);
        assert_eq!(Shares::equal(2, 4).sizes(), [1, 1, 0, 0]);
        assert_eq!(Shares::equal(512, 1).sizes(), [512]);
    }

    #[test]
    fn shares_are_parts_of_the_tokens() {
        let shares = Shares::of(vec![3, 0, 4, 1]);
        let cut = |lengths: &[u32]| [0, 1, 2, 3].map(|rank| shares.range(rank, lengths));
        assert_eq!(cut(&[7; 8]), [0..3, 3..3, 3..7, 7..8]);
        assert_eq!(cut(&[1, 1, 1, 1, 1, 1, 6, 12]), [0..7, 7..7, 7..8, 8..8]);
        assert_eq!(cut(&[10, 10, 10, 1, 1, 1, 1, 6]), [0..2, 2..2, 2..7, 7..8]);
        // A shorter batch, rows without tokens, and none.
        assert_eq!(cut(&[7; 4]), [0..2, 2..2, 2..4, 4..4]);
        assert_eq!(cut(&[0, 0]), [0..2, 2..2, 2..2, 2..2]);
        assert_eq!(cut(&[]), [0..0, 0..0, 0..0, 0..0]);
    }

    #[test]
    fn shares_with_a_wrong_sum_are_refused() {
        assert!(Shares::of(vec![3, 5]).check(8, 2).is_ok());
        let error = Shares::of(vec![3, 4]).check(8, 2).unwrap_err().to_string();
        assert_eq!(error, "the list of shares is [3, 4], expected 2 shares with the sum 8");
        assert!(Shares::of(vec![3, 5]).check(8, 3).is_err());
        assert!(Shares::of(vec![usize::MAX, 9]).check(8, 2).is_err());
    }

    #[test]
    fn a_change_applies_from_its_step_on() {
        let mut schedule = ShareSchedule::new(Shares::of(vec![4, 4]));
        schedule.change(10, Shares::of(vec![5, 3]));
        schedule.change(30, Shares::of(vec![1, 7]));
        schedule.change(20, Shares::of(vec![6, 2]));
        let first = [0, 9, 10, 19, 20, 99].map(|step| schedule.at(step).sizes()[0]);
        assert_eq!(first, [4, 4, 5, 5, 6, 6]);
    }

    proptest! {
        #[test]
        fn shares_have_each_row_once_and_differ_from_their_part_by_at_most_a_row(
            sizes in prop::collection::vec(0usize..9, 1..6),
            lengths in prop::collection::vec(0u32..50, 0..60),
        ) {
            let (shares, all) = (Shares::of(sizes.clone()), sizes.iter().sum::<usize>());
            prop_assume!(all > 0);
            let ranges: Vec<Range<usize>> = (0..sizes.len()).map(|rank| shares.range(rank, &lengths)).collect();
            prop_assert_eq!(ranges.iter().cloned().flatten().collect::<Vec<_>>(), (0..lengths.len()).collect::<Vec<_>>());
            let tokens = |range: Range<usize>| lengths[range].iter().sum::<u32>();
            let (longest, sum) = (lengths.iter().max().copied().unwrap_or(0), tokens(0..lengths.len()));
            for (range, size) in ranges.into_iter().zip(sizes) {
                let ideal = f64::from(sum) * size as f64 / all as f64;
                prop_assert!((f64::from(tokens(range)) - ideal).abs() <= f64::from(longest));
            }
        }
    }
}
