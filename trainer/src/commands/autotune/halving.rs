//! Stops trials that are worse than others after the same share of their epochs.
//!
//! Successive halving without pauses, after the stopping variant of ASHA (Li et al. 2020, "A System for Massively Parallel
//! Hyperparameter Tuning", with η = 2): at a rung, a trial continues only if it is in the better half of the trials that
//! reached it before. Trials are compared by their share of the epochs, because the learning rate falls with it.

use std::path::Path;

use runs::training::{METRICS, RunSettings, SETTINGS, read_json, validated_epochs};
use training::arguments::MetricName;
use training::autotune::Metrics;

/// Shares of the epochs after which trials are compared.
const RUNGS: [f64; 2] = [0.25, 0.5];
/// Maximum share of a trial at a rung, as a factor of the rung. A trial of few epochs has no epoch near a rung.
const TOLERANCE: f64 = 1.34;

/// The scores of all trials so far.
pub(super) struct Halving {
    metric: MetricName,
    /// Scores by rung; higher is better.
    scores: [Vec<f64>; RUNGS.len()],
}

/// How far a trial is.
#[derive(Default)]
pub(super) struct Reached {
    /// Number of epochs; `None` before the training begins.
    epochs: Option<u32>,
    /// Number of rungs that were passed, or have no epoch near them.
    n_rungs: usize,
    /// Bytes of its lines that were read.
    n_bytes: u64,
}

impl Halving {
    /// No trials yet.
    pub(super) fn new(metric: MetricName) -> Self {
        Self { metric, scores: Default::default() }
    }

    /// Whether a trial may continue, by the lines in its training folder.
    pub(super) fn continues(&mut self, training: &Path, reached: &mut Reached) -> bool {
        if reached.n_rungs == RUNGS.len() {
            return true;
        }
        let n_bytes = training.join(METRICS).metadata().map_or(0, |found| found.len());
        if n_bytes == reached.n_bytes {
            return true;
        }
        reached.n_bytes = n_bytes;
        if reached.epochs.is_none() {
            let settings = read_json::<RunSettings>(&training.join(SETTINGS));
            reached.epochs = settings.and_then(|of| of.recipe.get("epochs")?.as_u64()?.try_into().ok());
        }
        let Some(epochs) = reached.epochs else { return true };
        let score = |of: scoring::Metrics| {
            Metrics { accuracy: of.accuracy, f1: of.f1, loss: of.loss }.score(self.metric)
        };
        let scores: Vec<_> =
            validated_epochs(training).into_iter().map(|(epoch, of)| (epoch, score(of))).collect();
        self.continues_after(&scores, epochs, &mut reached.n_rungs)
    }

    /// Whether a trial of this number of epochs may continue, by its epochs so far and their scores.
    fn continues_after(&mut self, scores: &[(u32, f64)], epochs: u32, n_rungs: &mut usize) -> bool {
        while let Some(rung) = RUNGS.get(*n_rungs) {
            let Some(at) = epoch_of(*rung, epochs) else {
                *n_rungs += 1;
                continue;
            };
            let Some(&(_, score)) = scores.iter().find(|(epoch, _)| *epoch == at) else { return true };
            let of_rung = &mut self.scores[*n_rungs];
            *n_rungs += 1;
            of_rung.push(score);
            let n_better = of_rung.iter().filter(|other| **other > score).count();
            if n_better >= of_rung.len().div_ceil(2) {
                return false;
            }
        }
        true
    }
}

/// The epoch, from 1, after which a training is at a rung; `None` if it has no epoch near the rung, or it is the last.
fn epoch_of(rung: f64, epochs: u32) -> Option<u32> {
    let wanted = rung * f64::from(epochs);
    let epoch = wanted.ceil();
    (epoch < f64::from(epochs) && epoch <= TOLERANCE * wanted).then_some(epoch as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_are_compared_at_a_quarter_and_at_half_of_their_epochs() {
        let rungs = |epochs| RUNGS.map(|rung| epoch_of(rung, epochs));
        assert_eq!(rungs(1), [None, None]);
        assert_eq!(rungs(2), [None, Some(1)]);
        assert_eq!(rungs(3), [Some(1), Some(2)]);
        assert_eq!(rungs(4), [Some(1), Some(2)]);
        assert_eq!(rungs(5), [None, Some(3)]);
        assert_eq!(rungs(15), [Some(4), Some(8)]);
    }

    #[test]
    fn a_trial_continues_only_in_the_better_half_of_a_rung() {
        let mut halving = Halving::new(MetricName::Accuracy);
        let mut judged = |first: f64, second: f64| {
            let mut n_rungs = 0;
            assert!(halving.continues_after(&[], 4, &mut n_rungs) && n_rungs == 0);
            (halving.continues_after(&[(1, first), (2, second)], 4, &mut n_rungs), n_rungs)
        };
        assert_eq!(judged(0.5, 0.5), (true, 2), "the first one has no others");
        assert_eq!(judged(0.5, 0.5), (true, 2), "an equal one");
        assert_eq!(judged(0.4, 0.9), (false, 1), "worse at a quarter");
        assert_eq!(judged(0.9, 0.4), (false, 2), "worse at half");
        assert_eq!(judged(0.9, 0.9), (true, 2), "better");
    }
}
