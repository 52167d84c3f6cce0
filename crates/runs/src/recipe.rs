//! What a training was told, as plain data: `training.json` of a checkpoint and `settings.json` hold it.
//!
//! [`Recipe`] is that of the models that train in synchronous batches. [`Family`] has what one of them alone has.

pub mod limits;
mod lstm;
mod position;
mod schedule;

use batches::{Plan, RowWeight};
use serde::{Deserialize, Serialize};

pub use self::lstm::{ClassifierSettings, Dropout, Family, LstmSettings, NextWordSettings, Objective, Pool};
pub use self::position::Position;
pub use self::schedule::{Decay, Schedule};

/// A setting that makes no sense: its name, what it is, and what it may be.
pub type Fault = (&'static str, String, String);

/// Everything that decides the weights that come out, but for the number of ranks. A training that goes on has the
/// same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The digest of the dataset's rows.
    pub dataset: String,
    /// How it is read in blocks, where it does not fit into memory.
    pub plan: Option<Plan>,
    /// The share of the dataset that is for testing.
    pub test_fraction: f64,
    /// The share that is for validation.
    pub validation_fraction: f64,
    /// The tokens of a row that are read.
    pub tokens_max: u32,
    /// Sizes of the LSTM.
    pub model: LstmSettings,
    /// What it is trained for.
    pub family: Family,
    /// Weight of each row.
    pub row_weight: RowWeight,
    /// Rows of a batch, on all ranks together.
    pub batch_rows: usize,
    /// Batches whose gradients make one step.
    pub accumulate: usize,
    /// Number of epochs.
    pub epochs: u32,
    /// Optimizer.
    pub rule: Rule,
    /// Weight decay.
    pub weight_decay: f64,
    /// Learning rate by step.
    pub schedule: Schedule,
    /// Maximum norm of a step's gradients.
    pub clip: Option<f64>,
    /// What is left out at random.
    pub dropout: Dropout,
    /// Numeric precision.
    pub precision: Precision,
    /// Decides the first weights, the order of rows and what is dropped.
    pub seed: u64,
    /// Epochs without a better validation loss after which it ends.
    pub patience: Option<u32>,
    /// The loss of an epoch's training rows at which it ends.
    pub stop_loss: Option<f64>,
}

/// How a gradient becomes a change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// v = momentum v + g; w -= rate v. Weight decay adds decay w to g.
    Sgd {
        /// 0: none.
        momentum: f64,
    },
    /// Kingma & Ba 2015, with β = (0.9, 0.999), ε = 1e-8. Weight decay adds decay w to g.
    Adam,
    /// Loshchilov & Hutter 2019: as Adam, but weight decay takes rate · decay w from w, beside the gradient.
    AdamW,
}

/// Numeric precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32 bits.
    #[default]
    F32,
    /// 64 bits: slow, to compare with.
    F64,
    /// 32 bits, and 16 (bfloat16) where PyTorch's autocast finds them enough; on GPUs.
    Bf16,
}
