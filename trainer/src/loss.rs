//! What training makes small: one loss a row, whose weighted sum is divided by the rows of the whole batch.
//!
//! B rows of a share, O outputs.

use serde::{Deserialize, Serialize};
use tch::{Kind, Reduction, Tensor};

use crate::error::Result;
use crate::metrics::Scoring;

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
