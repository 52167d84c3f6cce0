//! Converts a model's outputs for a row into a score or into the probabilities of classes.

use serde::{Deserialize, Serialize};

use crate::confusion::CLASSES_MAX;

/// Limit of log-odds, from a probability that a 32-bit float cannot distinguish from 0 or 1.
pub const LOG_ODDS_MAX: f64 = 16.0;

/// The meaning of a model's outputs for a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scoring {
    /// One output, the logit of label 1. Positive above 0.
    Logit,
    /// One output, a rating. The score is the rating minus (`positive_from` - 0.5). Positive above 0.
    Rating {
        /// The smallest rating with label 1.
        positive_from: u8,
    },
    /// Five outputs, the logits of ratings 1 to 5. The score is the summed probability of the ratings from
    /// `positive_from` on. Positive above 0.5.
    FiveRatings {
        /// The smallest rating with label 1.
        positive_from: u8,
    },
    /// Three or more classes: one output per class, its logit ([`Probabilities`]). A row has no score for
    /// label 1.
    Classes {
        /// Number of classes, 3 to [`CLASSES_MAX`].
        classes: u8,
    },
}

impl Scoring {
    /// Whether a row has a score for label 1, which [`Scoring::score`] and the other methods convert.
    pub fn is_of_label(self) -> bool {
        !matches!(self, Self::Classes { .. })
    }

    /// The number of outputs per row.
    pub fn n_outputs(self) -> usize {
        match self {
            Self::Logit | Self::Rating { .. } => 1,
            Self::FiveRatings { .. } => 5,
            Self::Classes { classes } => usize::from(classes),
        }
    }

    /// The score of a row with these [`Scoring::n_outputs`] outputs; NaN for three or more classes.
    pub fn score(self, outputs: &[f64]) -> f32 {
        let score = match self {
            Self::Logit => outputs[0],
            Self::Rating { positive_from } => outputs[0] - (f64::from(positive_from) - 0.5),
            Self::FiveRatings { positive_from } => probability_from(positive_from, outputs),
            Self::Classes { .. } => f64::NAN,
        };
        score as f32
    }

    /// The threshold: a greater score is predicted positive.
    pub fn threshold(self) -> f32 {
        match self {
            Self::Logit | Self::Rating { .. } | Self::Classes { .. } => 0.0,
            Self::FiveRatings { .. } => 0.5,
        }
    }

    /// The probability of label 1 for a score. A rating and three or more classes have none.
    pub fn probability(self, score: f32) -> Option<f64> {
        match self {
            Self::Logit => Some(sigmoid(f64::from(score))),
            Self::FiveRatings { .. } => Some(f64::from(score)),
            Self::Rating { .. } | Self::Classes { .. } => None,
        }
    }

    /// The log-odds of label 1 for a score. A rating and three or more classes have none.
    pub(crate) fn log_odds(self, score: f32) -> Option<f64> {
        match self {
            Self::Logit => Some(f64::from(score)),
            Self::FiveRatings { .. } => {
                let probability = f64::from(score).clamp(0.0, 1.0);
                Some((probability / (1.0 - probability)).ln().clamp(-LOG_ODDS_MAX, LOG_ODDS_MAX))
            }
            Self::Rating { .. } | Self::Classes { .. } => None,
        }
    }
}

/// The summed softmax probability of the ratings from `rating` on.
fn probability_from(rating: u8, logits: &[f64]) -> f64 {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let of = |logits: &[f64]| logits.iter().map(|logit| (logit - largest).exp()).sum::<f64>();
    of(&logits[usize::from(rating) - 1..]) / of(logits)
}

/// The logistic function.
pub(crate) fn sigmoid(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

/// Bits of a finite score that sort as scores do.
pub(crate) fn ascending(score: f32) -> u32 {
    // Negative zero equals zero.
    let bits = (score + 0.0).to_bits();
    if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
}

/// The score of [`ascending`] bits.
pub(crate) fn of_ascending(ascending: u32) -> f32 {
    f32::from_bits(if ascending >> 31 == 1 { ascending & !(1 << 31) } else { !ascending })
}

/// A model's result for one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowScore {
    /// The row's index in the dataset.
    pub row: u32,
    /// Its label.
    pub label: u8,
    /// The score, computed from the model's outputs by [`Scoring::score`].
    pub score: f32,
}

/// Probabilities of a row's classes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probabilities {
    n_classes: usize,
    all: [f32; CLASSES_MAX],
}

impl Probabilities {
    /// The softmax of at most [`CLASSES_MAX`] logits. Not finite if a logit is not.
    pub fn of_logits(logits: &[f64]) -> Self {
        let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = logits.iter().map(|logit| (logit - largest).exp()).sum();
        Self::new(logits.iter().map(|logit| {
            let is_finite = if logit.is_finite() { 1.0 } else { f64::NAN };
            (is_finite * (logit - largest).exp() / sum) as f32
        }))
    }

    /// At most [`CLASSES_MAX`] probabilities, as they are.
    pub(crate) fn new(probabilities: impl ExactSizeIterator<Item = f32>) -> Self {
        let n_classes = probabilities.len().min(CLASSES_MAX);
        let mut all = [0.0; CLASSES_MAX];
        all.iter_mut().zip(probabilities).for_each(|(one, probability)| *one = probability);
        Self { n_classes, all }
    }

    /// The probability of each class, in the order of the classes.
    pub fn all(&self) -> &[f32] {
        &self.all[..self.n_classes]
    }

    /// The predicted class: the first one with the largest probability.
    pub fn predicted(&self) -> u8 {
        let mut best = 0;
        for (class, &probability) in self.all().iter().enumerate() {
            if probability > self.all[best] {
                best = class;
            }
        }
        best as u8
    }

    /// The probability of the predicted class.
    pub fn largest(&self) -> f32 {
        self.all[usize::from(self.predicted())]
    }
}

/// A model's result for one row, for three or more classes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassScore {
    /// The row's index in the dataset.
    pub row: u32,
    /// Its label.
    pub label: u8,
    /// The probability of each class.
    pub probabilities: Probabilities,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_follow_from_the_outputs() {
        assert_eq!(Scoring::Logit.score(&[0.25]), 0.25);
        let rating = Scoring::Rating { positive_from: 4 };
        assert_eq!(rating.score(&[3.75]), 0.25);
        assert_eq!(rating.score(&[3.5]), rating.threshold());
        let five = Scoring::FiveRatings { positive_from: 4 };
        let logits = [0.1f64, 0.2, 0.3, 0.15, 0.25].map(|p| p.ln() + 800.0);
        assert!((five.score(&logits) - 0.4).abs() < 1e-6);
        assert_eq!((Scoring::Logit.threshold(), five.threshold()), (0.0, 0.5));
        assert_eq!((rating.n_outputs(), five.n_outputs()), (1, 5));
    }

    #[test]
    fn of_equal_probabilities_the_first_class_is_predicted() {
        let of = |all: [f32; 3]| Probabilities::new(all.into_iter());
        assert_eq!(Probabilities::of_logits(&[0.0, 0.0, 0.0]).predicted(), 0);
        assert_eq!(of([0.2, 0.4, 0.4]).predicted(), 1);
        assert_eq!(of([0.2, 0.3, 0.5]).largest(), 0.5);
    }

    #[test]
    fn probabilities_are_the_softmax_and_do_not_overflow() {
        let logits = [0.1f64, 0.2, 0.3, 0.15, 0.25].map(|p| p.ln() + 800.0);
        let found = Probabilities::of_logits(&logits);
        for (found, expected) in found.all().iter().zip([0.1, 0.2, 0.3, 0.15, 0.25]) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
        assert_eq!(Probabilities::of_logits(&[-1e9, 0.0, -1e9]).all(), [0.0, 1.0, 0.0]);
    }
}
