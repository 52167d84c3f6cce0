//! Divides a batch among ranks, by the number of rows that each takes of a whole batch.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Rows that each rank takes of a whole batch. Rank i takes the range between prefix sums i and i + 1. A share may be
/// empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shares {
    sizes: Vec<usize>,
}

impl Shares {
    /// Equal shares. The remaining rows go to the first ranks, one each.
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
    pub fn check(&self, batch_rows: usize, n_ranks: usize) -> Result<()> {
        let sum = self.sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size));
        if self.sizes.len() == n_ranks && sum == Some(batch_rows) {
            return Ok(());
        }
        let expected = format!("{n_ranks} shares with the sum {batch_rows}");
        Err(Error::Setting { setting: "the list of shares", found: format!("{:?}", self.sizes), expected })
    }

    /// This rank's rows of a batch. A shorter batch is cut at the same indices, so the last ranks get fewer rows or
    /// none.
    pub fn range(&self, rank: usize, rows: usize) -> Range<usize> {
        let start: usize = self.sizes[..rank].iter().sum();
        start.min(rows)..(start + self.sizes[rank]).min(rows)
    }
}

/// The shares of an epoch's batches. They can change from step to step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
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
    pub fn at(&self, step: u64) -> &Shares {
        let next = self.changes.partition_point(|(from, _)| *from <= step);
        &self.changes[next.saturating_sub(1)].1
    }

    /// All changes, each with its first step.
    pub fn changes(&self) -> &[(u64, Shares)] {
        &self.changes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_shares_differ_by_at_most_one_row() {
        assert_eq!(Shares::equal(8, 3).sizes(), [3, 3, 2]);
        assert_eq!(Shares::equal(2, 4).sizes(), [1, 1, 0, 0]);
        assert_eq!(Shares::equal(512, 1).sizes(), [512]);
    }

    #[test]
    fn a_short_batch_leaves_the_last_ranks_without_rows() {
        let shares = Shares::of(vec![3, 0, 4, 1]);
        let cut = |rows| [0, 1, 2, 3].map(|rank| shares.range(rank, rows));
        assert_eq!(cut(8), [0..3, 3..3, 3..7, 7..8]);
        assert_eq!(cut(5), [0..3, 3..3, 3..5, 5..5]);
        assert_eq!(cut(2), [0..2, 2..2, 2..2, 2..2]);
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
        fn shares_cover_each_row_of_each_batch_once(
            sizes in prop::collection::vec(0usize..9, 1..6),
            rows in 0usize..60,
        ) {
            let shares = Shares::of(sizes.clone());
            let rows = rows.min(sizes.iter().sum());
            let all: Vec<usize> = (0..sizes.len()).flat_map(|rank| shares.range(rank, rows)).collect();
            prop_assert_eq!(all, (0..rows).collect::<Vec<_>>());
        }
    }
}
