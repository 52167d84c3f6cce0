//! Converts a score into a probability and a label: [`Scoring`], with a calibration and a threshold if the model has
//! them.

use crate::calibration::Calibrator;
use crate::scoring::{Probabilities, Scoring, ascending, of_ascending, sigmoid};
use crate::threshold::Threshold;

/// How a model's score becomes a probability and a label. A score above the threshold has label 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    scoring: Scoring,
    calibrator: Option<Calibrator>,
    threshold: f32,
}

impl From<Scoring> for Decision {
    /// The decision of a model without calibration and without a chosen threshold.
    fn from(scoring: Scoring) -> Self {
        Self { scoring, calibrator: None, threshold: scoring.threshold() }
    }
}

impl Decision {
    /// The decision of a model. Without a chosen threshold, label 1 has a probability above 0.5, or a score above 0 if
    /// a score has no probability.
    pub fn new(scoring: Scoring, calibrator: Option<Calibrator>, chosen: Option<Threshold>) -> Self {
        let default = Self { calibrator, ..scoring.into() };
        let threshold = match (chosen, calibrator) {
            (Some(chosen), _) => chosen.score,
            // A temperature does not move probability 0.5.
            (None, None | Some(Calibrator::Temperature(_))) => scoring.threshold(),
            (None, Some(Calibrator::Platt { .. })) => default.score_at(0.5).unwrap_or(scoring.threshold()),
        };
        Self { threshold, ..default }
    }

    /// The meaning of the model's outputs.
    pub fn scoring(self) -> Scoring {
        self.scoring
    }

    /// The calibration of probabilities, if there is one.
    pub fn calibrator(self) -> Option<Calibrator> {
        self.calibrator
    }

    /// The score of a row with these outputs.
    pub fn score(self, outputs: &[f64]) -> f32 {
        self.scoring.score(outputs)
    }

    /// The probabilities of three or more classes for these outputs.
    pub fn probabilities(self, outputs: &[f64]) -> Probabilities {
        let probabilities = Probabilities::of_logits(outputs);
        self.calibrator.map_or(probabilities, |calibrator| calibrator.classes(&probabilities))
    }

    /// Whether a row with this score has label 1.
    pub fn is_positive(self, score: f32) -> bool {
        score > self.threshold
    }

    /// The threshold: a greater score has label 1.
    pub fn threshold(self) -> f32 {
        self.threshold
    }

    /// The probability of label 1 for a score. A rating has none.
    pub fn probability(self, score: f32) -> Option<f64> {
        match self.calibrator {
            Some(calibrator) => {
                self.scoring.log_odds(score).map(|log_odds| sigmoid(calibrator.log_odds(log_odds)))
            }
            None => self.scoring.probability(score),
        }
    }

    /// The largest score whose probability is at most this value. Greater scores have greater probabilities. `None` if
    /// scores have no probability.
    pub fn score_at(self, probability: f64) -> Option<f32> {
        let is_at_most = |bits: u32| Some(self.probability(of_ascending(bits))? <= probability);
        // A search among all finite numbers, in ascending order. Probabilities do not fall as scores rise.
        let (mut at_most, mut above) = (ascending(f32::MIN), ascending(f32::MAX));
        if !is_at_most(at_most)? {
            return Some(f32::MIN);
        }
        if is_at_most(above)? {
            return Some(f32::MAX);
        }
        while above - at_most > 1 {
            let middle = at_most + (above - at_most) / 2;
            if is_at_most(middle)? {
                at_most = middle;
            } else {
                above = middle;
            }
        }
        Some(of_ascending(at_most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIVE: Scoring = Scoring::FiveRatings { positive_from: 4 };

    #[test]
    fn a_label_follows_from_the_probability() {
        let platt = Calibrator::Platt { slope: 0.5, intercept: -1.0 };
        for scoring in [Scoring::Logit, FIVE] {
            for calibrator in [None, Some(platt), Some(Calibrator::Temperature(3.0))] {
                let decision = Decision::new(scoring, calibrator, None);
                for probability in [0.01, 0.3, 0.5, 0.99] {
                    let threshold = decision.score_at(probability).unwrap();
                    let next = threshold.next_up();
                    assert!(decision.probability(threshold).unwrap() <= probability, "{decision:?}");
                    assert!(decision.probability(next).unwrap() > probability, "{decision:?} {probability}");
                }
                let default = decision.threshold();
                assert!(decision.probability(default).unwrap() <= 0.5, "{decision:?}");
                assert!(decision.probability(default.next_up()).unwrap() >= 0.5, "{decision:?}");
            }
        }
    }

    #[test]
    fn a_temperature_changes_no_label() {
        let warm = Decision::new(Scoring::Logit, Some(Calibrator::Temperature(2.0)), None);
        for score in [-8.0, -1e-20, 0.0, 1e-20, 0.5] {
            assert_eq!(warm.is_positive(score), Decision::from(Scoring::Logit).is_positive(score), "{score}");
        }
        assert_eq!(warm.probability(2.0), Some(sigmoid(1.0)));
    }

    #[test]
    fn a_rating_has_no_probability() {
        let rating = Decision::from(Scoring::Rating { positive_from: 4 });
        assert_eq!((rating.probability(1.0), rating.score_at(0.5), rating.threshold()), (None, None, 0.0));
    }
}
