//! Errors of an evaluation.

use program::exit::{Exit, Fails};
use thiserror::Error;

/// Errors of an evaluation.
#[derive(Debug, Error)]
pub enum Error {
    /// A loss or a score is not finite.
    #[error(
        "{found} of {rows} rows have a loss or a score that is not finite; the training diverged: lower the \
         learning rate or clip gradients"
    )]
    NotFinite {
        /// Number of such rows.
        found: u64,
        /// Number of all rows.
        rows: u64,
    },
    /// No rows were evaluated.
    #[error("no rows were evaluated, expected one or more; check the dataset and the fractions")]
    NothingEvaluated,
    /// Sums and ranked rows come from different evaluations.
    #[error(
        "{ranked} rows were ranked, {counted} were counted: this is a defect of sentimill, please report it"
    )]
    Uncounted {
        /// Rows with a score.
        ranked: u64,
        /// Rows in the sums.
        counted: u64,
    },
}

impl Fails for Error {
    fn exit(&self) -> Exit {
        match self {
            Self::NotFinite { .. } => Exit::Settings,
            Self::NothingEvaluated => Exit::BadInput,
            Self::Uncounted { .. } => Exit::Internal,
        }
    }
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;
