//! Mean and standard deviation of metrics over the folds of a cross-validation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Metrics;

/// An estimate of a metric from several folds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// Mean over the folds; each fold counts once.
    pub mean: f64,
    /// Sample standard deviation: the squared differences from the mean are divided by the number of folds - 1. 0 for
    /// one fold.
    pub deviation: f64,
}

impl Estimate {
    /// The estimate from the values of all folds; `None` without a value.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self { mean, deviation: (squares / (n - 1.0).max(1.0)).sqrt() })
    }
}

/// The estimate of each metric, by its name. A metric that a fold lacks is omitted.
pub fn estimates(folds: &[Metrics]) -> BTreeMap<String, Estimate> {
    let Some(first) = folds.first() else { return BTreeMap::new() };
    let names = first.named().into_iter().map(|(name, _)| name);
    let values = |name| -> Option<Vec<f64>> {
        let of = |metrics: &Metrics| metrics.named().into_iter().find(|(other, _)| *other == name)?.1;
        folds.iter().map(of).collect()
    };
    let estimate = |name: &'static str| Some((name.to_owned(), Estimate::of(&values(name)?)?));
    names.filter_map(estimate).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::{Accumulator, Scoring};

    fn metrics(rows: &[(f32, u8)]) -> Metrics {
        let mut accumulator = Accumulator::default();
        rows.iter().for_each(|&(score, label)| accumulator.add(Scoring::Logit, score, label, 0.5));
        accumulator.metrics().unwrap()
    }

    #[test]
    fn mean_and_deviation_are_those_of_a_hand_calculation() {
        // Accuracies 1, 0.5 and 0.75: mean 0.75; squared differences 0.0625 + 0.0625 + 0, divided by 2.
        let folds = [
            metrics(&[(1.0, 1), (1.0, 1), (-1.0, 0), (-1.0, 0)]),
            metrics(&[(1.0, 1), (-2.0, 1), (-1.0, 0), (2.0, 0)]),
            metrics(&[(1.0, 1), (1.0, 1), (-1.0, 0), (0.5, 0)]),
        ];
        let found = estimates(&folds);
        assert_eq!(found["accuracy"], Estimate { mean: 0.75, deviation: 0.25 });
        assert_eq!(found["loss"], Estimate { mean: 0.5, deviation: 0.0 });
        // Recalls 1, 0.5 and 1: mean 5/6; squared differences 1/36 + 1/9 + 1/36 = 1/6, divided by 2.
        let Estimate { mean, deviation } = found["recall"];
        assert!((mean - 5.0 / 6.0).abs() < 1e-15 && (deviation - (1.0f64 / 12.0).sqrt()).abs() < 1e-15);
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["accuracy", "auc", "f1", "loss", "precision", "recall"]);
    }

    #[test]
    fn a_metric_that_a_fold_lacks_has_no_estimate() {
        let one_label = metrics(&[(1.0, 1), (-1.0, 1)]);
        let found = estimates(&[metrics(&[(1.0, 1), (-1.0, 0)]), one_label]);
        assert!(found.contains_key("accuracy") && !found.contains_key("auc"));
        assert_eq!(estimates(&[]), BTreeMap::new());
    }
}
