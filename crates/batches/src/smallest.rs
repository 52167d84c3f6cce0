//! The smallest hashes of a set of rows. They are sufficient to estimate how many rows of another dataset are
//! in the set.

use serde::{Deserialize, Serialize};

/// Maximum hashes: one percent of a million rows.
pub const SMALLEST_MAX: usize = 10_000;

/// Up to [`SMALLEST_MAX`] hashes, the smallest ones, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Smallest(Vec<u64>);

impl Smallest {
    /// Adds the next hash. Hashes must arrive in ascending order.
    pub fn push(&mut self, hash: u64) {
        if self.0.len() < SMALLEST_MAX {
            self.0.push(hash);
        }
    }

    /// Adds the hashes of the rows that follow.
    pub fn append(&mut self, other: &Self) {
        let n = other.0.len().min(SMALLEST_MAX - self.0.len());
        self.0.extend_from_slice(&other.0[..n]);
    }

    /// Adds hashes of other rows, which are in any place among those of this set.
    pub(crate) fn merge(&mut self, others: impl Iterator<Item = u64>) {
        self.0.extend(others);
        self.0.sort_unstable();
        self.0.truncate(SMALLEST_MAX);
    }

    /// The hashes, ascending.
    pub(crate) fn all(&self) -> &[u64] {
        &self.0
    }

    /// Whether this hash is kept.
    pub fn contains(&self, hash: u64) -> bool {
        self.0.last().is_some_and(|&largest| hash <= largest) && self.0.binary_search(&hash).is_ok()
    }

    /// Number of hashes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the hashes ascend and there are at most [`SMALLEST_MAX`]. Hashes read from a file may violate this.
    pub fn is_sound(&self) -> bool {
        self.0.len() <= SMALLEST_MAX && self.0.is_sorted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_of_many_are_kept_block_by_block() {
        let mut all = Smallest::default();
        for block in 0..30u64 {
            let mut of_block = Smallest::default();
            (0..1000).for_each(|at| of_block.push(2 * (1000 * block + at)));
            all.append(&of_block);
        }
        assert_eq!(all.len(), SMALLEST_MAX);
        assert!(all.is_sound());
        assert!(all.contains(0) && all.contains(19_998));
        assert!(!all.contains(1) && !all.contains(20_000));
        all.merge([1, 30_000].into_iter());
        assert!(all.len() == SMALLEST_MAX && all.is_sound() && all.contains(1) && !all.contains(19_998));
        assert!(!Smallest::default().contains(0));
        assert!(!Smallest(vec![2, 1]).is_sound());
        assert!(!Smallest(vec![0; SMALLEST_MAX + 1]).is_sound());
    }
}
