//! Finds the shares with the smallest time of the slowest rank.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::balance::costs::Cost;

/// Divides the work of a batch so that the slowest rank's time is as small as possible. Returns the parts of each rank;
/// a part is the mean work of a row, and the unit of work of `costs`. Each rank gets at least one part, if there are
/// enough, and at most its limit. Parts beyond the sum of all limits are given to the ranks as if there were no limits.
///
/// The time of a rank grows with its parts, so assigning each part to the rank whose time with it is smallest gives the
/// optimum. Equal times are decided by the lower rank.
pub fn divide(batch_rows: usize, costs: &[Cost], limits: &[usize]) -> Vec<usize> {
    let mut parts: Vec<usize> = (0..costs.len()).map(|rank| usize::from(rank < batch_rows)).collect();
    let mut left = batch_rows - parts.iter().sum::<usize>();
    for is_limited in [true, false] {
        let time = |rank: usize, parts: usize| Ordered(costs[rank].seconds(parts as f64));
        let has_room = |rank: usize, parts: usize| !is_limited || parts < limits[rank];
        let mut next: BinaryHeap<_> = (0..costs.len())
            .filter(|&rank| has_room(rank, parts[rank]))
            .map(|rank| Reverse((time(rank, parts[rank] + 1), rank)))
            .collect();
        while left > 0
            && let Some(Reverse((_, rank))) = next.pop()
        {
            parts[rank] += 1;
            left -= 1;
            if has_room(rank, parts[rank]) {
                next.push(Reverse((time(rank, parts[rank] + 1), rank)));
            }
        }
    }
    parts
}

/// A time in a heap. Costs are finite.
#[derive(PartialEq)]
struct Ordered(f64);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cost(fixed: f64, per_work: f64) -> Cost {
        Cost { fixed, per_work, error: 0.0 }
    }

    const NONE: [usize; 8] = [usize::MAX; 8];

    #[test]
    fn rows_are_inverse_to_the_time_of_a_row() {
        assert_eq!(divide(279, &[cost(0.0, 1.0), cost(0.0, 1.79)], &NONE[..2]), [179, 100]);
        assert_eq!(divide(512, &[cost(0.0, 1.0); 4], &NONE[..4]), [128; 4]);
        assert_eq!(divide(1, &[cost(0.0, 2.0), cost(0.0, 1.0)], &NONE[..2]), [1, 0]);
        assert_eq!(divide(2, &[cost(0.0, 2000.0), cost(0.0, 1.0)], &NONE[..2]), [1, 1]);
    }

    #[test]
    fn a_fixed_time_lowers_a_share() {
        assert_eq!(divide(100, &[cost(20.0, 1.0), cost(0.0, 1.0)], &NONE[..2]), [40, 60]);
    }

    #[test]
    fn a_share_beyond_a_limit_goes_to_the_other_ranks() {
        let costs = [cost(0.0, 1.0), cost(0.0, 1.0), cost(0.0, 2.0)];
        assert_eq!(divide(50, &costs, &[5, 100, 100]), [5, 30, 15]);
        assert_eq!(divide(50, &costs, &[5, 5, 5]).iter().sum::<usize>(), 50);
    }

    proptest! {
        #[test]
        fn no_other_division_has_a_faster_slowest_rank(
            costs in prop::collection::vec((0.0f64..5.0, 0.1f64..4.0), 1..4),
            batch_rows in 3usize..24,
        ) {
            let costs: Vec<Cost> = costs.into_iter().map(|(fixed, per_work)| cost(fixed, per_work)).collect();
            let slowest = |sizes: &[usize]| {
                let times = sizes.iter().zip(&costs).map(|(&rows, cost)| cost.seconds(rows as f64));
                times.fold(0.0, f64::max)
            };
            let found = divide(batch_rows, &costs, &NONE[..costs.len()]);
            prop_assert_eq!(found.iter().sum::<usize>(), batch_rows);
            prop_assert!(found.iter().all(|&rows| rows > 0));
            let rest = |first: usize, second: usize| match costs.len() {
                1 => (first == batch_rows).then(|| vec![first]),
                2 => (first + second == batch_rows).then(|| vec![first, second]),
                _ => (first + second < batch_rows).then(|| vec![first, second, batch_rows - first - second]),
            };
            for first in 1..=batch_rows {
                for second in 1..=batch_rows {
                    if let Some(other) = rest(first, second) {
                        prop_assert!(slowest(&found) <= slowest(&other) + 1e-12);
                    }
                }
            }
        }
    }
}
