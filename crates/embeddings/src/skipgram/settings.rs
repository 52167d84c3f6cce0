//! Settings of a training.

use serde::{Deserialize, Serialize};

use crate::skipgram::characters::NgramBuckets;

/// Settings that affect the vectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkipGramSettings {
    /// Dimension of the vectors.
    pub dim: usize,
    /// Maximum distance between two words of a pair. The distance of each position is drawn from 1 to this.
    pub window: u32,
    /// Number of negative samples per position. All words of its window share them.
    pub negatives: usize,
    /// Initial learning rate.
    pub rate: f32,
    /// Minimum occurrences of a word; rarer words are removed from the sentences.
    pub min_count: u64,
    /// Subsampling threshold: words with a larger share of all tokens are left out at random; 0: none are.
    pub sample: f64,
    /// Exponent of the counts in the distribution of negative samples.
    pub power: f64,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Character n-grams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub characters: Option<NgramBuckets>,
}

impl Default for SkipGramSettings {
    /// The defaults of word2vec.
    fn default() -> Self {
        Self {
            dim: 100,
            window: 5,
            negatives: 5,
            rate: 0.025,
            min_count: 5,
            sample: 1e-3,
            power: 0.75,
            seed: 1,
            characters: None,
        }
    }
}

/// Learning rate during a training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Decay {
    /// The rate decreases linearly and is 0 after this number of tokens.
    Linear {
        /// Number of tokens of all epochs.
        n_tokens: u64,
    },
    /// The rate is constant: the end of the input is unknown.
    Constant,
}

/// The smallest share of the initial rate, so that the last words still have an effect.
const SHARE_MIN: f64 = 1e-4;

impl Decay {
    /// The rate after `n_done` tokens.
    pub fn rate(self, initial: f32, n_done: u64) -> f32 {
        match self {
            Self::Linear { n_tokens } => {
                let left = 1.0 - n_done as f64 / n_tokens.max(1) as f64;
                initial * left.max(SHARE_MIN) as f32
            }
            Self::Constant => initial,
        }
    }
}
