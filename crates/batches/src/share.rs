//! How a batch is cut among ranks: by the number of rows that each takes of a whole batch.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How many rows of a whole batch each rank takes; rank i has those between the prefix sums of its size. A share may be
/// empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shares {
    sizes: Vec<usize>,
}

impl Shares {
    /// Equal shares. What does not divide goes, a row each, to the first ranks: all remainders are equal, and of equals
    /// the lower rank comes first.
    pub fn equal(batch_rows: usize, n_ranks: usize) -> Self {
        let sizes = (0..n_ranks).map(|rank| batch_rows / n_ranks + usize::from(rank < batch_rows % n_ranks));
        Self { sizes: sizes.collect() }
    }

    /// Shares of these sizes, by rank.
    pub fn of(sizes: Vec<usize>) -> Self {
        Self { sizes }
    }

    /// The sizes, by rank.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Refuses shares of another number of ranks, and those that leave rows out or count some twice.
    pub fn check(&self, batch_rows: usize, n_ranks: usize) -> Result<()> {
        let sum = self.sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size));
        if self.sizes.len() == n_ranks && sum == Some(batch_rows) {
            return Ok(());
        }
        let expected = format!("{n_ranks} numbers of rows with the sum {batch_rows}");
        Err(Error::Setting { setting: "the list of shares", found: format!("{:?}", self.sizes), expected })
    }

    /// Which rows of a batch this rank has. The batch may have fewer rows than the shares add up to: the cuts stay
    /// where they are, so the last ranks have less, or nothing.
    pub fn range(&self, rank: usize, rows: usize) -> Range<usize> {
        let start: usize = self.sizes[..rank].iter().sum();
        start.min(rows)..(start + self.sizes[rank]).min(rows)
    }
}

/// The shares of an epoch's batches, as they change from step to step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ShareSchedule {
    /// From this step on, these; steps ascend, the first is 0.
    changes: Vec<(u64, Shares)>,
}

impl ShareSchedule {
    /// Begins with these shares.
    pub fn new(shares: Shares) -> Self {
        Self { changes: vec![(0, shares)] }
    }

    /// From this step on, these shares; what was said before of it and of later steps is forgotten.
    pub fn change(&mut self, step: u64, shares: Shares) {
        self.changes.retain(|(from, _)| *from < step);
        self.changes.push((step, shares));
    }

    /// The shares at this step.
    pub fn at(&self, step: u64) -> &Shares {
        let next = self.changes.partition_point(|(from, _)| *from <= step);
        &self.changes[next.saturating_sub(1)].1
    }

    /// All changes, with the steps from which they hold.
    pub fn changes(&self) -> &[(u64, Shares)] {
        &self.changes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_shares_differ_by_a_row_at_most() {
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
    fn shares_that_do_not_make_a_batch_are_refused() {
        assert!(Shares::of(vec![3, 5]).check(8, 2).is_ok());
        let error = Shares::of(vec![3, 4]).check(8, 2).unwrap_err().to_string();
        assert_eq!(error, "the list of shares is [3, 4], expected 2 numbers of rows with the sum 8");
        assert!(Shares::of(vec![3, 5]).check(8, 3).is_err());
        assert!(Shares::of(vec![usize::MAX, 9]).check(8, 2).is_err());
    }

    #[test]
    fn a_change_holds_from_its_step_on() {
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
