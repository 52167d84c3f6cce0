//! The lines of `metrics.jsonl`.

use serde::{Deserialize, Serialize};

use super::{RankTimes, ShareTimes};
use batches::balance::Decision;
use scoring::Measured;

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
    Steps(StepsLine),
    /// An epoch has ended.
    Epoch(EpochLine),
    /// Batches are divided differently among the ranks from a later batch on.
    Shares {
        /// Number of completed steps when this was decided.
        step: u64,
        /// The first batch with these shares, counted over all epochs, the shares, and why.
        decision: Decision,
    },
    /// Ranks were lost, and the others go on. It follows the line of their start.
    Lost {
        /// Number of completed steps, from which the others go on.
        step: u64,
        /// The lost ranks, by their numbers at the start of the program.
        ranks: Vec<usize>,
        /// Number of groups before this one.
        generation: u64,
        /// Number of remaining ranks.
        world_size: usize,
        /// Number of rows that are trained again, because their step or round was not complete.
        rows: u64,
    },
    /// Ranks joined. It follows the line of the start of their group.
    Joined {
        /// Number of completed steps, from which all go on.
        step: u64,
        /// The ranks, by the numbers with which they were started.
        ranks: Vec<usize>,
        /// Number of groups before this one.
        generation: u64,
        /// Number of ranks with them.
        world_size: usize,
    },
    /// Progress of a training of word vectors.
    Tokens(TokensLine),
    /// Word vectors were compared with a file of word similarity.
    Similarity(SimilarityLine),
    /// Word vectors were compared with other ones.
    Pip(PipLine),
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
        metrics: Measured,
    },
}

/// Progress after some steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepsLine {
    /// The epoch, from 1.
    pub epoch: u32,
    /// Number of steps since the start of the training.
    pub step: u64,
    /// Mean loss of the steps since the previous line.
    pub loss: f64,
    /// Learning rate of the last step.
    pub rate: f64,
    /// Gradient norm of the last step, if gradients are clipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gradient_norm: Option<f64>,
    /// In rounds, the distance of rank 0's change in the last one from the mean of all, relative to the length of the mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<f64>,
    /// Reviews per second over all ranks.
    pub reviews_per_s: f64,
    /// Fraction of the time that rank 0 waited for batches.
    pub waited_share: f64,
    /// Seconds since this process started training.
    #[serde(default)]
    pub elapsed_s: Option<f64>,
    /// The shares by rank, if there are several ranks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<ShareTimes>,
}

/// The end of an epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochLine {
    /// The epoch, from 1.
    pub epoch: u32,
    /// Number of steps since the start of the training.
    pub step: u64,
    /// Mean training loss of the epoch, measured while the weights changed; `None` for a linear model of n-grams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Duration of the steps after `from_step`; earlier ones ran in another process.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// The step at which the measurement started. The line may be of several epochs.
    #[serde(default)]
    pub from_step: Option<u64>,
    /// Metrics of the validation split, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<Measured>,
    /// Metrics of the test split, if it is evaluated after every epoch (`--test-every`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<Measured>,
    /// Times of each rank in this period.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<RankTimes>,
}

/// Progress of a training of word vectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokensLine {
    /// Number of tokens since the start of the training.
    pub step: u64,
    /// Mean loss of a pair since the previous line, if it was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Tokens per second since the previous line.
    pub tokens_per_s: f64,
    /// Number of words in the vocabulary.
    pub words: u64,
    /// Number of lines read and skipped by all processes.
    pub lines: u64,
    /// Number of lines that were skipped.
    pub skipped_lines: u64,
    /// Seconds since this process started training.
    pub elapsed_s: f64,
}

/// A comparison of word vectors with a file of word similarity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimilarityLine {
    /// Number of tokens since the start of the training.
    pub step: u64,
    /// The file.
    pub file: String,
    /// Spearman's rank correlation; `None` if it is undefined.
    pub spearman: Option<f64>,
    /// Number of pairs.
    pub pairs: u64,
    /// Number of pairs whose words both have a vector.
    pub found: u64,
}

/// A comparison of word vectors with other ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PipLine {
    /// Number of tokens since the start of the training.
    pub step: u64,
    /// The other vectors.
    pub reference: String,
    /// Number of words that both have.
    pub words: u64,
    /// PIP loss of vectors of length 1.
    pub loss: f64,
    /// The loss of random vectors.
    pub random: f64,
}

impl Line {
    /// Number of completed steps at this event.
    pub fn step(&self) -> u64 {
        match *self {
            Self::Start { step, .. }
            | Self::Steps(StepsLine { step, .. })
            | Self::Epoch(EpochLine { step, .. })
            | Self::Shares { step, .. }
            | Self::Lost { step, .. }
            | Self::Joined { step, .. }
            | Self::Tokens(TokensLine { step, .. })
            | Self::Similarity(SimilarityLine { step, .. })
            | Self::Pip(PipLine { step, .. })
            | Self::HeldOut { step, .. }
            | Self::Test { step, .. } => step,
        }
    }
}
