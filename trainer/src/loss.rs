//! What training makes small: one loss a row, whose weighted sum is divided by the rows of the whole batch.
//!
//! B rows of a share, O outputs.

use serde::{Deserialize, Serialize};
use tch::{Kind, Reduction, Tensor};

use crate::error::Result;
use crate::limits::{self, described};
use scoring::Scoring;

/// What a training is for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Task {
    /// To tell what a row says.
    Sentiment(Objective),
    /// To tell each next word of a row; other models begin with what is learned by it.
    NextWord {
        /// How often a word is drawn, in a step, from which the next ones are told.
        candidates: u32,
    },
}

impl Task {
    /// Refuses a task that no flags ask for: the name of a setting, what it is, and what it may be.
    pub fn check(self) -> std::result::Result<(), (&'static str, String, String)> {
        match self {
            Self::Sentiment(Objective::Label { pos_weight })
                if !(pos_weight.is_finite() && pos_weight > 0.0) =>
            {
                Err(("pos_weight", pos_weight.to_string(), "a number above 0".to_owned()))
            }
            Self::NextWord { candidates } if !limits::CANDIDATES.contains(&i64::from(candidates)) => {
                Err(("candidates", candidates.to_string(), described(&limits::CANDIDATES)))
            }
            _ => Ok(()),
        }
    }

    /// How the outputs for a row are read, where there are some. `positive_from`: the dataset's.
    pub fn scoring(self, positive_from: u8) -> Option<Scoring> {
        match self {
            Self::Sentiment(objective) => Some(objective.scoring(positive_from)),
            Self::NextWord { .. } => None,
        }
    }
}

/// What the model's outputs are to be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// The label: binary cross-entropy with logits, a positive row's loss multiplied by `pos_weight`.
    Label {
        /// 1: as they come; less than 1 favours the negative rows.
        pos_weight: f64,
    },
    /// The rating: squared error.
    Rating,
    /// One of the five ratings: cross-entropy.
    FiveRatings,
}

/// What a share's rows are.
#[derive(Debug)]
pub struct Targets {
    /// 0 or 1, `[B]`.
    pub labels: Tensor,
    /// 1 to 5, `[B]`.
    pub ratings: Tensor,
}

impl Objective {
    /// How its outputs are read. `positive_from`: the dataset's.
    pub fn scoring(self, positive_from: u8) -> Scoring {
        match self {
            Self::Label { .. } => Scoring::Logit,
            Self::Rating => Scoring::Rating { positive_from },
            Self::FiveRatings => Scoring::FiveRatings { positive_from },
        }
    }

    /// The loss of one row with this label and rating, and its gradients by the outputs.
    pub fn row_loss(self, outputs: &[f32], label: u8, rating: u8, gradients: &mut [f32]) -> f64 {
        match self {
            Self::Label { pos_weight } => {
                // Of a positive row ln(1 + e^-x), of a negative one ln(1 + e^x), neither of a number that overflows.
                let x = f64::from(outputs[0]);
                let (x, sign, weight) = if label == 1 { (-x, -1.0, pos_weight) } else { (x, 1.0, 1.0) };
                gradients[0] = (weight * sign / (1.0 + (-x).exp())) as f32;
                weight * (x.max(0.0) + (-x.abs()).exp().ln_1p())
            }
            Self::Rating => {
                let difference = f64::from(outputs[0]) - f64::from(rating);
                gradients[0] = (2.0 * difference) as f32;
                difference * difference
            }
            Self::FiveRatings => {
                let largest = outputs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let above = |output: f32| f64::from(output) - f64::from(largest);
                let sum: f64 = outputs.iter().map(|&output| above(output).exp()).sum();
                let own = usize::from(rating) - 1;
                for (at, (&output, gradient)) in outputs.iter().zip(gradients).enumerate() {
                    let is_own = if at == own { 1.0 } else { 0.0 };
                    *gradient = (above(output).exp() / sum - is_own) as f32;
                }
                sum.ln() - above(outputs[own])
            }
        }
    }

    /// Each row's loss, `[B]`, of outputs `[B, O]`.
    pub fn row_losses(self, outputs: &Tensor, targets: &Targets) -> Result<Tensor> {
        let kind = outputs.kind();
        Ok(match self {
            Self::Label { pos_weight } => {
                let labels = targets.labels.f_to_kind(kind)?;
                let pos_weight = Tensor::from(pos_weight).to_kind(kind).to_device(outputs.device());
                outputs.f_squeeze_dim(1)?.f_binary_cross_entropy_with_logits(
                    &labels,
                    None::<&Tensor>,
                    Some(&pos_weight),
                    Reduction::None,
                )?
            }
            Self::Rating => {
                let ratings = targets.ratings.f_to_kind(kind)?;
                (outputs.f_squeeze_dim(1)? - ratings).f_square()?
            }
            Self::FiveRatings => {
                let classes = (&targets.ratings - 1).f_to_kind(Kind::Int64)?;
                outputs.f_cross_entropy_loss(&classes, None::<&Tensor>, Reduction::None, -100, 0.0)?
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_of_one_row_is_that_of_a_batch() {
        let objectives = [
            Objective::Label { pos_weight: 1.0 },
            Objective::Label { pos_weight: 0.2 },
            Objective::Rating,
            Objective::FiveRatings,
        ];
        for objective in objectives {
            for (label, rating) in [(0, 1), (1, 5), (1, 4), (0, 3)] {
                for scale in [0.0f32, 0.5, 9.0, 60.0] {
                    let n_outputs = objective.scoring(4).n_outputs();
                    let outputs = &[1.0, -0.25, 0.5, -1.0, 0.125].map(|number| number * scale)[..n_outputs];
                    let tensor = Tensor::from_slice(outputs).to_kind(Kind::Double).view([1, -1]);
                    let tensor = tensor.set_requires_grad(true);
                    let targets = Targets {
                        labels: Tensor::from_slice(&[label]),
                        ratings: Tensor::from_slice(&[i64::from(rating)]),
                    };
                    let expected = objective.row_losses(&tensor, &targets).unwrap();
                    expected.sum(Kind::Double).backward();
                    let mut gradients = vec![0.0; n_outputs];
                    let found = objective.row_loss(outputs, label, rating, &mut gradients);
                    let expected = expected.double_value(&[0]);
                    assert!((found - expected).abs() <= 1e-12 * expected.max(1.0), "{found} {expected}");
                    for (at, found) in gradients.iter().enumerate() {
                        let expected = tensor.grad().double_value(&[0, at as i64]);
                        assert!((f64::from(*found) - expected).abs() <= 1e-6 * expected.abs().max(1e-3));
                    }
                }
            }
        }
    }

    #[test]
    fn an_output_that_is_no_number_is_a_loss_that_is_none() {
        for objective in [Objective::Label { pos_weight: 1.0 }, Objective::Rating, Objective::FiveRatings] {
            let outputs = &[f32::NAN, 0.0, 0.0, 0.0, 0.0][..objective.scoring(4).n_outputs()];
            assert!(objective.row_loss(outputs, 1, 5, &mut [0.0; 5]).is_nan());
        }
    }
}
