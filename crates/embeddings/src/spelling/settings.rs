//! Settings of a training.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Settings that affect the vectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpellingSettings {
    /// D, the dimension of the vectors.
    pub dim: usize,
    /// E, the dimension of a character's embedding.
    pub char_dim: usize,
    /// H, the hidden size of the LSTM: a multiple of [`SpellingSettings::HIDDEN_MULTIPLE`].
    pub hidden: usize,
    /// Source of the output vectors.
    pub outputs: Outputs,
    /// Number of positions per step.
    pub batch: usize,
    /// Maximum distance between two words of a pair. The distance of each position is drawn from 1 to this.
    pub window: u32,
    /// Number of negative samples per position. All words of its window share them.
    pub negatives: usize,
    /// Learning rate: of Adam, which it begins with, or of the tables' optimizer.
    pub rate: f32,
    /// Minimum occurrences of a word; rarer words are removed from the sentences.
    pub min_count: u64,
    /// Subsampling threshold: words with a larger share of all tokens are left out at random; 0: none are.
    pub sample: f64,
    /// Exponent of the counts in the distribution of negative samples.
    pub power: f64,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// Source of the output vectors, by which the words of a window predict the word at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Outputs {
    /// A table with one vector per word.
    Table,
    /// A second LSTM over characters.
    Generator,
    /// The LSTM of the input vectors.
    Shared,
}

impl SpellingSettings {
    /// The hidden size must be a multiple of this.
    pub const HIDDEN_MULTIPLE: usize = kernels::Sizes::HIDDEN_MULTIPLE;
}

impl Default for SpellingSettings {
    fn default() -> Self {
        Self {
            dim: 100,
            char_dim: 32,
            hidden: 128,
            outputs: Outputs::Table,
            batch: 1024,
            window: 5,
            negatives: 5,
            rate: 0.002,
            min_count: 5,
            sample: 1e-3,
            power: 0.75,
            seed: 1,
        }
    }
}
