//! The quality of a model's probabilities.

use serde::{Deserialize, Serialize};

use crate::curves::calibration;
use crate::decision::Decision;
use crate::scoring::RowScore;

/// The quality of probabilities.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quality {
    /// Mean squared difference between probability and label (Brier 1950).
    pub brier: f64,
    /// Expected calibration error: the difference between mean probability and frequency of label 1, over ten bins of
    /// probability, weighted by rows.
    pub calibration_error: f64,
}

impl Quality {
    /// The quality of the probabilities of rows; `None` if scores have no probability.
    pub fn of(decision: Decision, scores: &[RowScore]) -> Option<Self> {
        let errors = squared_errors(decision, scores)?;
        let calibration_error = calibration(decision, scores)?.error;
        Some(Self { brier: errors.iter().sum::<f64>() / errors.len().max(1) as f64, calibration_error })
    }
}

/// The quality of a model's probabilities, and of those before the calibration, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbabilityQuality {
    /// The quality of the probabilities that the model predicts.
    #[serde(flatten)]
    pub quality: Quality,
    /// The quality without the calibration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncalibrated: Option<Quality>,
}

impl ProbabilityQuality {
    /// The quality of the probabilities of rows; `None` if scores have no probability.
    pub fn of(decision: Decision, scores: &[RowScore]) -> Option<Self> {
        let quality = Quality::of(decision, scores)?;
        let before = decision.calibrator().map(|_| Decision::from(decision.scoring()));
        Some(Self { quality, uncalibrated: before.and_then(|before| Quality::of(before, scores)) })
    }
}

/// The squared difference between probability and label of each row.
pub(crate) fn squared_errors(decision: Decision, scores: &[RowScore]) -> Option<Vec<f64>> {
    let of_row = |row: &RowScore| Some((decision.probability(row.score)? - f64::from(row.label)).powi(2));
    scores.iter().map(of_row).collect()
}
