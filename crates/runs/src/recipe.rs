//! The settings of a training as plain data. `training.json` of a checkpoint and `settings.json` contain them.
//!
//! [`Recipe`] is for models that train in synchronous batches. [`Family`] holds the settings of one kind of model.

mod class_weights;
pub mod limits;
mod lstm;
mod names;
mod position;
mod schedule;

use batches::{Fold, Plan, RowWeight};
use clap::ValueEnum;
use scoring::{Method, ThresholdRule};
use serde::{Deserialize, Serialize};

pub use self::class_weights::ClassWeights;
pub use self::lstm::{ClassifierSettings, Dropout, Family, LstmSettings, NextWordSettings, Objective, Pool};
pub use self::names::{OF_INPUT, SETTING_NAMES, first_difference, setting_name};
pub use self::position::Position;
pub use self::schedule::{Decay, Schedule};

/// An invalid setting: its name, its value and the valid values.
pub type InvalidSetting = (&'static str, String, String);

/// All settings that determine the saved model, except the number of ranks. A resumed training must have the
/// same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The digest of the dataset's rows.
    pub dataset: String,
    /// How the dataset is read in blocks, if it does not fit into memory.
    pub plan: Option<Plan>,
    /// Fraction of the dataset in the test split.
    pub test_fraction: f64,
    /// Fraction of the dataset in the validation split.
    pub validation_fraction: f64,
    /// The digest of the rows of the validation dataset, if the validation split is another dataset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<String>,
    /// The share of the dataset's rows that are in a split, as a decimal; `None` if all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<String>,
    /// The fold whose rows are the test split, in a cross-validation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fold: Option<Fold>,
    /// Maximum tokens per row; 0 means no limit.
    pub tokens_max: u32,
    /// Sizes of the LSTM.
    pub model: LstmSettings,
    /// Standard deviation of the initial embeddings. Recipes of older versions have none, which means 1.
    #[serde(default = "older_embedding_std")]
    pub embedding_std: f64,
    /// The kind of model, with its settings.
    pub family: Family,
    /// Weight of each row.
    pub row_weight: RowWeight,
    /// Batch size over all ranks.
    pub batch_rows: usize,
    /// Number of batches whose gradients are accumulated per step.
    pub accumulate: usize,
    /// Number of steps after which the ranks exchange their changes; with 1 they exchange the gradients of each step.
    #[serde(default = "each_step", skip_serializing_if = "is_each_step")]
    pub sync_every: usize,
    /// How changes are sent at the end of a round.
    #[serde(default, skip_serializing_if = "Wire::is_full")]
    pub wire: Wire,
    /// How batches are divided among unequal ranks; `None` divides them equally.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balance: Option<batches::balance::BalanceRule>,
    /// Number of epochs.
    pub epochs: u32,
    /// Optimizer.
    pub rule: Rule,
    /// Weight decay.
    pub weight_decay: f64,
    /// Learning rate schedule.
    pub schedule: Schedule,
    /// Maximum gradient norm.
    pub clip: Option<f64>,
    /// Dropout probabilities.
    pub dropout: Dropout,
    /// Numeric precision.
    pub precision: Precision,
    /// Seed of initial weights, row order and dropout.
    pub seed: u64,
    /// Number of epochs without a lower validation loss after which training stops.
    pub patience: Option<u32>,
    /// Training loss of an epoch at which training stops.
    pub stop_loss: Option<f64>,
    /// SHA-256 of the soft labels of the dataset, from which its training rows are learned in place of their labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soft_labels: Option<String>,
    /// A dataset without labels whose rows are also trained on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlabelled: Option<Unlabelled>,
    /// Whether n-grams are trained beside the LSTM.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_ngrams: bool,
    /// How the threshold between label 0 and label 1 is chosen after the training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<ThresholdRule>,
    /// How probabilities are calibrated after the training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Method>,
}

/// Standard deviation of the initial embeddings in older versions.
fn older_embedding_std() -> f64 {
    1.0
}

/// The steps of a round if gradients are exchanged, as in older versions.
fn each_step() -> usize {
    1
}

fn is_each_step(steps: &usize) -> bool {
    *steps == each_step()
}

/// Training rows without labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unlabelled {
    /// The digest of their dataset's rows.
    pub dataset: String,
    /// SHA-256 of their soft labels.
    pub soft_labels: String,
}

impl Recipe {
    /// Whether there is a validation split.
    pub fn has_validation(&self) -> bool {
        self.validation_fraction > 0.0 || self.validation.is_some()
    }

    /// Whether a threshold or a calibration is fitted on the validation split.
    pub fn fits_decision(&self) -> bool {
        let is_searched = matches!(self.threshold, Some(ThresholdRule::F1 | ThresholdRule::Accuracy));
        is_searched || self.calibration.is_some()
    }
}

/// Update rule of the optimizer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// v = momentum v + g; w -= rate v. Weight decay adds decay · w to g.
    Sgd {
        /// 0 means no momentum.
        momentum: f64,
    },
    /// Kingma & Ba 2015, with β = (0.9, 0.999), ε = 1e-8. Weight decay adds decay · w to g.
    Adam,
    /// Loshchilov & Hutter 2019: like Adam, but weight decay subtracts rate · decay · w from w directly.
    AdamW,
    /// LARS (You et al. 2017, "Large Batch Training of Convolutional Networks"): SGD on λ (g + decay · w), with
    /// λ = 0.001 ‖w‖ / (‖g‖ + decay ‖w‖) for matrices and 1 for biases.
    Lars {
        /// 0 means no momentum.
        momentum: f64,
    },
    /// LAMB (You et al. 2020, "Large Batch Optimization for Deep Learning"): w -= rate · ‖w‖ / ‖u‖ · u for matrices, where
    /// u is the change of Adam with ε = 1e-6 plus decay · w. Biases change by rate · u.
    Lamb,
}

/// How numbers are sent to other ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// As they are computed: 32 bits, or 64 with that precision.
    #[default]
    Full,
    /// 16 bits (bfloat16). What is lost is added to the next change.
    Bf16,
    /// 8 bits, with a scale for each embedding. What is lost is added to the next change.
    Int8,
    /// 4 bits, with a scale for each embedding. What is lost is added to the next change.
    Int4,
}

impl Wire {
    /// Whether nothing is lost.
    pub fn is_full(&self) -> bool {
        *self == Self::Full
    }
}

/// Numeric precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32 bits.
    #[default]
    F32,
    /// 64 bits: slow, for comparisons.
    F64,
    /// Mixed 32-bit and 16-bit (bfloat16) precision, as PyTorch's autocast selects; on GPUs only.
    Bf16,
}
