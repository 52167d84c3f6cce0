//! The calibration and the threshold of a model, chosen on the validation split after the training.

use serde::{Deserialize, Serialize};

use crate::calibration::{Calibrator, Method, calibrate, calibrate_classes};
use crate::counted::Scores;
use crate::decision::Decision;
use crate::scoring::Scoring;
use crate::threshold::{Criterion, Threshold, ThresholdRule};

/// Calibration and threshold of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The calibration of probabilities, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibrator>,
    /// The threshold, if one is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Threshold>,
}

impl Choice {
    /// Chooses by the scores of the validation split. Without a method there is no calibration, and without a rule no
    /// threshold; there is none for three or more classes.
    pub fn of(
        method: Option<Method>,
        rule: Option<ThresholdRule>,
        scoring: Scoring,
        scores: &Scores,
    ) -> Self {
        let calibration = method.and_then(|method| match scores {
            Scores::Label(scores) => calibrate(method, scoring, scores),
            Scores::Classes(scores) => Some(calibrate_classes(scores)),
        });
        let calibrated = Decision::new(scoring, calibration, None);
        let best = |by| match scores {
            Scores::Label(scores) => Some(Threshold::best(by, calibrated.threshold(), scores)),
            Scores::Classes(_) => None,
        };
        let threshold = match rule {
            None => None,
            Some(ThresholdRule::F1) => best(Criterion::F1),
            Some(ThresholdRule::Accuracy) => best(Criterion::Accuracy),
            Some(ThresholdRule::Probability(probability)) => {
                calibrated.score_at(probability).map(|score| Threshold { by: Criterion::Probability, score })
            }
        };
        Self { calibration, threshold }
    }

    /// Whether nothing is chosen.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// How scores of this meaning become probabilities and labels.
    pub fn decision(self, scoring: Scoring) -> Decision {
        Decision::new(scoring, self.calibration, self.threshold)
    }

    /// Whether a part of it was fitted on the validation split.
    pub fn is_fitted(self) -> bool {
        self.calibration.is_some()
            || self.threshold.is_some_and(|threshold| threshold.by != Criterion::Probability)
    }

    /// Refuses numbers that no choice has. A file may contain any. Returns the name, the value and the valid values.
    pub fn check(self) -> Result<(), (&'static str, f64, &'static str)> {
        self.calibration.map_or(Ok(()), Calibrator::check)?;
        self.threshold.map_or(Ok(()), Threshold::check)
    }
}
