//! Fits the compute time of each rank to measurements.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// The mean batch of one rank in a step. Integers survive JSON without a change of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Number of rows.
    pub rows: usize,
    /// What the time grows with, for example tokens.
    pub work: u64,
    /// Compute time, without waiting for batches or for other ranks.
    pub nanoseconds: u64,
}

impl Measured {
    fn seconds(&self) -> f64 {
        self.nanoseconds as f64 / 1e9
    }
}

/// Expected compute time of a batch: `fixed + per_work · work` seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Seconds of a batch without work.
    pub fixed: f64,
    /// Seconds per unit of work.
    pub per_work: f64,
    /// Standard error of the mean time, relative to it.
    pub error: f64,
}

impl Cost {
    /// The expected seconds of a batch.
    pub fn seconds(&self, work: f64) -> f64 {
        self.fixed + self.per_work * work
    }

    /// A measured time relative to the expected one.
    fn ratio(&self, of: Measured) -> f64 {
        of.seconds() / self.seconds(of.work as f64)
    }
}

/// The latest measurements of all ranks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Costs {
    steps: VecDeque<Vec<Measured>>,
    window: usize,
}

/// Steps that are compared with those before them to detect a change of speed.
const RECENT: usize = 12;
/// Steps of the recent ones that may be noise in a change.
const NOISE: usize = 1;
/// Minimum relative difference of the time of a recent step from the expected one that is a change.
const CHANGED: f64 = 0.1;
/// Minimum of their root mean square, in standard errors of the expected time.
const CHANGED_ERRORS: f64 = 4.0;
/// Distance of an outlier from the median, in medians of this distance, 2.7 standard deviations of normal noise.
const OUTLIER: f64 = 4.0;
/// Minimum of that median, relative to the expected time: a smaller change of speed than [`CHANGED`] is no outlier.
const DEVIATION_MIN: f64 = CHANGED / OUTLIER;
/// A line is fitted only if work varies at least by this ratio of its standard deviation to its mean. Otherwise the
/// fixed time cannot be distinguished from noise.
const VARIATION_MIN: f64 = 0.1;

impl Costs {
    /// Keeps the latest `window` steps.
    pub fn new(window: usize) -> Self {
        Self { steps: VecDeque::new(), window: window.max(2 * RECENT) }
    }

    /// Number of ranks of each step that is kept.
    pub fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        self.steps.iter().map(Vec::len)
    }

    /// Adds the measurements of a step, one per rank. Drops older ones, and all before a change of speed.
    pub fn add(&mut self, step: Vec<Measured>) {
        self.steps.push_back(step);
        while self.steps.len() > self.window {
            self.steps.pop_front();
        }
        if self.has_changed() {
            // The first of the recent steps may have the speed before.
            self.steps.drain(..self.steps.len() - RECENT / 2);
        }
    }

    /// The largest mean work of a row in a step. `None` before the first row.
    pub fn work_per_row_max(&self) -> Option<f64> {
        self.steps.iter().filter_map(work_per_row).max_by(f64::total_cmp)
    }

    /// The cost of each rank, where a unit of work is the mean work of a row. `None` if a rank has no measurement with
    /// work and time.
    pub fn fit(&self) -> Option<Vec<Cost>> {
        let of_row = work_per_row(self.steps.iter().flatten())?;
        let n_ranks = self.steps.front()?.len();
        let of_rank = |rank| self.steps.iter().map(move |step: &Vec<Measured>| step[rank]);
        let cost =
            |rank| fit(of_rank(rank)).map(|fitted| Cost { per_work: fitted.per_work * of_row, ..fitted });
        (0..n_ranks).map(cost).collect()
    }

    /// Whether a rank's speed in the latest steps differs from that in the steps before.
    fn has_changed(&self) -> bool {
        let Some(n_before) = self.steps.len().checked_sub(RECENT).filter(|&n| n >= RECENT) else {
            return false;
        };
        let n_ranks = self.steps[0].len();
        (0..n_ranks).any(|rank| {
            let of_rank = || self.steps.iter().map(|step| step[rank]);
            let Some(expected) = fit(of_rank().take(n_before)) else { return false };
            let recent = of_rank().skip(n_before).filter(|of| of.work > 0);
            let ratios: Vec<f64> = recent.map(|of| expected.ratio(of) - 1.0).collect();
            let n_slower = ratios.iter().filter(|&&ratio| ratio > CHANGED).count();
            let n_faster = ratios.iter().filter(|&&ratio| ratio < -CHANGED).count();
            let deviation = (ratios.iter().map(|ratio| ratio.powi(2)).sum::<f64>() / RECENT as f64).sqrt();
            n_slower.max(n_faster) >= RECENT - NOISE && deviation > CHANGED_ERRORS * expected.error
        })
    }
}

/// The mean work of a row. `None` without rows or work.
fn work_per_row<'a>(measured: impl IntoIterator<Item = &'a Measured>) -> Option<f64> {
    let sum = |(rows, work), of: &Measured| (rows + of.rows, work + of.work);
    let (rows, work) = measured.into_iter().fold((0, 0), sum);
    (rows > 0 && work > 0).then(|| work as f64 / rows as f64)
}

/// Fits a line, and again without outliers.
fn fit(steps: impl Iterator<Item = Measured>) -> Option<Cost> {
    let mut steps: Vec<Measured> = steps.filter(|of| of.work > 0 && of.nanoseconds > 0).collect();
    let first = line(&steps)?;
    let center = median(steps.iter().map(|&of| first.ratio(of)).collect());
    let distance = |of: Measured| (first.ratio(of) - center).abs();
    let usual = median(steps.iter().map(|&of| distance(of)).collect()).max(DEVIATION_MIN);
    steps.retain(|&of| distance(of) <= OUTLIER * usual);
    line(&steps)
}

fn median(mut numbers: Vec<f64>) -> f64 {
    let middle = numbers.len() / 2;
    *numbers.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// Fits a line by least squares if work varies enough, otherwise one through the origin. Neither number is negative.
fn line(steps: &[Measured]) -> Option<Cost> {
    let n = steps.len() as f64;
    if steps.is_empty() {
        return None;
    }
    let mean = |value: &dyn Fn(&Measured) -> f64| steps.iter().map(value).sum::<f64>() / n;
    let (work, seconds) = (mean(&|of| of.work as f64), mean(&|of| of.seconds()));
    let mut cost = Cost { fixed: 0.0, per_work: seconds / work, error: 0.0 };
    let variance = mean(&|of| (of.work as f64 - work).powi(2));
    if variance.sqrt() >= VARIATION_MIN * work {
        let per_work = mean(&|of| (of.work as f64 - work) * (of.seconds() - seconds)) / variance;
        let fixed = seconds - per_work * work;
        if per_work > 0.0 && fixed >= 0.0 {
            cost = Cost { fixed, per_work, error: 0.0 };
        }
    }
    let unexplained = mean(&|of| (of.seconds() - cost.seconds(of.work as f64)).powi(2));
    // One step says nothing about its error.
    let error = if n < 2.0 { 1.0 } else { (unexplained / (n - 1.0)).sqrt() / seconds };
    Some(Cost { error, ..cost })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(work: u64, seconds: f64) -> Measured {
        Measured { rows: 10, work, nanoseconds: (seconds * 1e9).round() as u64 }
    }

    #[test]
    fn the_fixed_time_is_found_if_work_varies() {
        let mut costs = Costs::new(16);
        for step in 0..16 {
            let work = 100 + step % 4 * 30;
            costs.add(vec![measured(work, 0.5 + 0.01 * work as f64), measured(work, 0.02 * work as f64)]);
        }
        let fitted = costs.fit().unwrap();
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}");
        // A row has 14.5 units of work.
        near(fitted[0].fixed, 0.5);
        near(fitted[0].per_work, 0.145);
        near(fitted[1].fixed, 0.0);
        near(fitted[1].per_work, 0.29);
        near(costs.work_per_row_max().unwrap(), 19.0);
    }

    #[test]
    fn the_line_passes_through_the_origin_if_work_is_nearly_constant() {
        let mut costs = Costs::new(16);
        (0..16).for_each(|step| costs.add(vec![measured(100 + step % 2, 3.0)]));
        let cost = costs.fit().unwrap()[0];
        assert_eq!(cost.fixed, 0.0);
        assert!((cost.per_work - 0.3).abs() < 1e-12);
    }

    #[test]
    fn outliers_do_not_move_the_line() {
        let mut costs = Costs::new(64);
        for step in 0..40 {
            let work = 100 + step % 4 * 30;
            let slowed = if step % 8 == 7 { 3.0 } else { 1.0 };
            costs.add(vec![measured(work, slowed * (0.5 + 0.01 * work as f64))]);
        }
        let cost = costs.fit().unwrap()[0];
        assert!((cost.fixed - 0.5).abs() < 1e-6 && cost.error < 1e-6, "{cost:?}");
        assert_eq!(costs.steps.len(), 40);
    }

    #[test]
    fn steps_before_a_change_of_speed_are_dropped_and_a_single_slow_step_is_not_a_change() {
        let mut costs = Costs::new(32);
        let add = |costs: &mut Costs, seconds| costs.add(vec![measured(100, 1.0), measured(100, seconds)]);
        (0..20).for_each(|_| add(&mut costs, 1.0));
        add(&mut costs, 4.0);
        (0..8).for_each(|_| add(&mut costs, 1.0));
        assert_eq!(costs.steps.len(), 29);
        (0..RECENT).for_each(|_| add(&mut costs, 2.0));
        assert!(costs.steps.len() <= RECENT, "{}", costs.steps.len());
        assert_eq!(costs.fit().unwrap()[1].per_work, 0.2);
    }

    #[test]
    fn a_rank_without_measurements_has_no_cost() {
        let mut costs = Costs::new(16);
        assert_eq!((costs.fit(), costs.work_per_row_max()), (None, None));
        costs.add(vec![measured(1, 1.0), Measured::default()]);
        assert_eq!(costs.fit(), None);
        assert_eq!(costs.work_per_row_max(), Some(0.1));
    }
}
