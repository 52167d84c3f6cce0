//! The result of a training: vectors, words and counts.

use embeddings::skipgram::{Training, Vocabulary};
use embeddings::spelling;

use super::progress::Speed;

/// Vectors that were trained.
pub(super) enum Vectors {
    Table(Box<Training>),
    Spelled(Box<spelling::Training>),
}

impl Vectors {
    /// Number of tokens trained on, by all processes.
    pub(super) fn n_tokens(&self) -> u64 {
        match self {
            Self::Table(training) => training.n_tokens(),
            Self::Spelled(training) => training.n_tokens(),
        }
    }
}

/// The result of a training.
pub(super) struct Trained {
    pub vectors: Vectors,
    pub vocabulary: Vocabulary,
    pub n_lines: u64,
    pub n_skipped: u64,
    pub n_lost: u64,
    /// Tokens that this process trained on.
    pub n_tokens: u64,
    pub loss: Option<f64>,
    /// The speed of this process.
    pub speed: Speed,
    /// Whether `--resume` continues with more lines, from the checkpoint.
    pub is_open: bool,
}
