//! Stops trials that are worse than others after the same share of their epochs.
//!
//! Asynchronous successive halving (Li et al. 2020, "A System for Massively Parallel Hyperparameter Tuning", with η = 2):
//! a trial continues only if it is in the better half of the trials that reached the same rung. Trials are compared by
//! their share of the epochs, because the learning rate falls with it.

use std::fs;
use std::path::Path;

use runs::training::{EpochLine, Line, METRICS};
use training::arguments::MetricName;
use training::autotune::Metrics;
use training::out::read_settings;

/// Shares of the epochs after which trials are compared.
const RUNGS: [f64; 2] = [0.25, 0.5];

/// The scores of all trials so far.
pub(super) struct Halving {
    metric: MetricName,
    /// Scores by rung; higher is better.
    scores: [Vec<f64>; RUNGS.len()],
}

impl Halving {
    /// No trials yet.
    pub(super) fn new(metric: MetricName) -> Self {
        Self { metric, scores: Default::default() }
    }

    /// Whether a trial may continue, by the lines in its training folder. `n_reached` is the number of rungs that it has
    /// reached; it is updated.
    pub(super) fn continues(&mut self, training: &Path, n_reached: &mut usize) -> bool {
        let Some(epochs) = epochs(training) else { return true };
        let lines = fs::read_to_string(training.join(METRICS)).unwrap_or_default();
        // The last line may be incomplete.
        let of_epochs = lines.lines().filter_map(|line| match serde_json::from_str(line) {
            Ok(Line::Epoch(EpochLine { epoch, validation: Some(of), .. })) => {
                let metrics = Metrics { accuracy: of.accuracy, f1: of.f1, loss: of.loss };
                Some((epoch, metrics.score(self.metric)))
            }
            _ => None,
        });
        let of_epochs: Vec<(u32, f64)> = of_epochs.collect();
        while let Some(rung) = RUNGS.get(*n_reached) {
            let is_reached =
                |(epoch, _): &&(u32, f64)| *epoch < epochs && f64::from(*epoch) >= rung * f64::from(epochs);
            let Some(&(_, score)) = of_epochs.iter().find(is_reached) else { return true };
            let scores = &mut self.scores[*n_reached];
            *n_reached += 1;
            scores.push(score);
            let n_better = scores.iter().filter(|other| **other > score).count();
            if n_better >= scores.len().div_ceil(2) {
                return false;
            }
        }
        true
    }
}

/// The number of epochs, if the training has begun.
fn epochs(training: &Path) -> Option<u32> {
    let settings = read_settings(training, "the settings of a training").ok()??;
    settings.recipe.get("epochs")?.as_u64()?.try_into().ok()
}
