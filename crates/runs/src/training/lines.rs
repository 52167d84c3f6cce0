//! The lines of `metrics.jsonl`.

use serde::{Deserialize, Serialize};

use super::{RankTimes, ShareTimes};
use batches::balance::Decision;
use scoring::Metrics;

/// An event; one JSON object per line. Fields that lines of older versions lack have defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
#[expect(clippy::large_enum_variant, reason = "one line at a time exists")]
pub enum Line {
    /// A process started or resumed training. Earlier lines with later steps are void.
    Start {
        /// Format version of the training folder.
        version: u32,
        /// Seconds since 1970.
        unix_s: f64,
        /// Number of completed steps.
        step: u64,
        /// World size.
        world_size: usize,
        /// Device of rank 0.
        device: String,
    },
    /// Progress after some steps.
    Steps {
        /// The epoch, from 1.
        epoch: u32,
        /// Number of steps since the start of the training.
        step: u64,
        /// Mean loss of the steps since the previous line.
        loss: f64,
        /// Learning rate of the last step.
        rate: f64,
        /// Gradient norm of the last step, if gradients are clipped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gradient_norm: Option<f64>,
        /// Reviews per second over all ranks.
        reviews_per_s: f64,
        /// Fraction of the time that rank 0 waited for batches.
        waited_share: f64,
        /// Seconds since this process started training.
        #[serde(default)]
        elapsed_s: Option<f64>,
        /// The shares by rank, if there are several ranks.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        shares: Vec<ShareTimes>,
    },
    /// An epoch has ended.
    Epoch {
        /// The epoch, from 1.
        epoch: u32,
        /// Number of steps since the start of the training.
        step: u64,
        /// Mean training loss of the epoch, measured while the weights changed.
        loss: f64,
        /// Duration of the steps after `from_step`; earlier ones ran in another process.
        #[serde(default)]
        seconds: Option<f64>,
        /// The step at which the measurement started.
        #[serde(default)]
        from_step: Option<u64>,
        /// Metrics of the validation split, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        validation: Option<Metrics>,
        /// Metrics of the test split, if it is evaluated after every epoch (`--test-every`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        test: Option<Metrics>,
        /// Times of each rank in this period.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ranks: Vec<RankTimes>,
    },
    /// Batches are divided differently among the ranks from a later batch on.
    Shares {
        /// Number of completed steps when this was decided.
        step: u64,
        /// The first batch with these shares, counted over all epochs, the shares, and why.
        decision: Decision,
    },
    /// Progress of a training of word vectors.
    Tokens {
        /// Number of tokens since the start of the training.
        step: u64,
        /// Mean loss of a pair since the previous line, if it was computed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        loss: Option<f64>,
        /// Tokens per second since the previous line.
        tokens_per_s: f64,
        /// Number of words in the vocabulary.
        words: u64,
        /// Number of lines read and skipped by all processes.
        lines: u64,
        /// Number of lines that were skipped.
        skipped_lines: u64,
        /// Seconds since this process started training.
        elapsed_s: f64,
    },
    /// Word vectors were compared with a file of word similarity.
    Similarity {
        /// Number of tokens since the start of the training.
        step: u64,
        /// The file.
        file: String,
        /// Spearman's rank correlation; `None` if it is undefined.
        spearman: Option<f64>,
        /// Number of pairs.
        pairs: u64,
        /// Number of pairs whose words both have a vector.
        found: u64,
    },
    /// Word vectors were compared with other ones.
    Pip {
        /// Number of tokens since the start of the training.
        step: u64,
        /// The other vectors.
        reference: String,
        /// Number of words that both have.
        words: u64,
        /// PIP loss of vectors of length 1.
        loss: f64,
        /// The loss of random vectors.
        random: f64,
    },
    /// The loss of held-out sentences was computed.
    #[serde(rename = "held_out")]
    HeldOut {
        /// Number of tokens since the start of the training.
        step: u64,
        /// Mean loss of a pair.
        loss: f64,
    },
    /// The test split was evaluated.
    Test {
        /// Number of steps since the start of the training.
        step: u64,
        /// Metrics of the test split.
        metrics: Metrics,
    },
}

impl Line {
    /// Number of completed steps at this event.
    pub fn step(&self) -> u64 {
        match *self {
            Self::Start { step, .. }
            | Self::Steps { step, .. }
            | Self::Epoch { step, .. }
            | Self::Shares { step, .. }
            | Self::Tokens { step, .. }
            | Self::Similarity { step, .. }
            | Self::Pip { step, .. }
            | Self::HeldOut { step, .. }
            | Self::Test { step, .. } => step,
        }
    }
}
