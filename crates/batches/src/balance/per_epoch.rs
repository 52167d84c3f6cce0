//! The rule of an earlier system: after an epoch, shares are proportional to the previous share divided by the compute time
//! of the epoch. The epoch ends when the first rank has no whole batch left, so some rows are left out.

/// The division of an epoch.
#[derive(Debug)]
pub struct EpochDivision {
    /// Rows of a whole batch, by rank.
    pub sizes: Vec<usize>,
    /// Number of rows that no rank takes.
    pub left_out: u64,
}

/// The division of the next epoch. `shares` are those of the last epoch, relative to any whole, and `seconds` its compute
/// times, all greater than 0, by rank.
///
/// With p proportional to shares / seconds and c the sums of p up to each rank, the sizes are the differences of c ·
/// `batch_rows`, rounded half to even. A rank whose share rounds to no row takes no part.
pub fn plan(shares: &[f64], seconds: &[f64], batch_rows: usize, n_rows: u64) -> EpochDivision {
    let speeds: Vec<f64> = shares.iter().zip(seconds).map(|(share, seconds)| share / seconds).collect();
    let whole: f64 = speeds.iter().sum();
    let mut sum = 0.0;
    let mut ends: Vec<f64> = speeds
        .iter()
        .map(|speed| {
            sum += speed / whole;
            sum
        })
        .collect();
    if let Some(last) = ends.last_mut() {
        *last = 1.0;
    }
    let parts = |of: f64| {
        let mut before = 0;
        let round = |end: &f64| {
            let end = (end * of).round_ties_even() as u64;
            let part = end - before;
            before = end;
            part
        };
        ends.iter().map(round).collect::<Vec<u64>>()
    };
    let (sizes, rows) = (parts(batch_rows as f64), parts(n_rows as f64));
    let steps = sizes
        .iter()
        .zip(&rows)
        .filter(|(size, _)| **size > 0)
        .map(|(size, rows)| rows / size)
        .min()
        .unwrap_or(0);
    let left_out = n_rows - steps * batch_rows as u64;
    EpochDivision { sizes: sizes.into_iter().map(|size| size as usize).collect(), left_out }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The first row of each rank, and the end of the last one.
    fn splits(plan: &EpochDivision, n_rows: u64) -> Vec<u64> {
        let batch_rows: usize = plan.sizes.iter().sum();
        let steps = (n_rows - plan.left_out) / batch_rows as u64;
        let mut splits = vec![0];
        splits.extend(plan.sizes.iter().scan(0, |end, &size| {
            *end += steps * size as u64;
            Some(*end)
        }));
        splits
    }

    #[test]
    fn the_plan_is_that_of_the_earlier_system() {
        let found = plan(&[1.0; 4], &[1.0, 1.0, 1.0, 2.0], 512, 10_000);
        assert_eq!((&found.sizes[..], found.left_out), (&[146, 147, 146, 73][..], 272));
        assert_eq!(splits(&found, 10_000), [0, 2774, 5567, 8341, 9728]);
        let found = plan(&[0.5; 2], &[10.0; 2], 256, 100_001);
        assert_eq!(found.sizes, [128, 128]);
        assert_eq!(splits(&found, 100_001), [0, 49_920, 99_840]);
    }

    #[test]
    fn shares_of_the_epoch_before_count() {
        let found = plan(&[146.0, 147.0, 146.0, 73.0], &[1.0; 4], 512, 10_000);
        assert_eq!(found.sizes, [146, 147, 146, 73]);
    }

    #[test]
    fn a_rank_without_rows_takes_no_part() {
        let found = plan(&[1.0, 1.0], &[1.0, 1000.0], 64, 640);
        // Nine whole batches of the 639 rows of the fast rank.
        assert_eq!((&found.sizes[..], found.left_out), (&[64, 0][..], 64));
    }

    proptest! {
        #[test]
        fn every_row_is_in_one_split_or_left_out(
            seconds in prop::collection::vec(0.01f64..100.0, 1..9),
            batch_rows in 1usize..600,
            n_rows in 0u64..100_000,
        ) {
            let found = plan(&vec![1.0; seconds.len()], &seconds, batch_rows, n_rows);
            prop_assert_eq!(found.sizes.iter().sum::<usize>(), batch_rows);
            prop_assert!(found.left_out <= n_rows);
            prop_assert_eq!(splits(&found, n_rows)[seconds.len()] + found.left_out, n_rows);
        }
    }
}
