//! Why there are no metrics.

use program::exit::Exit;
use thiserror::Error;

/// Why there are no metrics.
#[derive(Debug, Error)]
pub enum Error {
    /// The model answered with something that is no number.
    #[error(
        "{found} of {rows} rows have a loss or a score that is no finite number; the training diverged: lower the \
         learning rate or clip gradients"
    )]
    NotFinite {
        /// Rows with such an answer.
        found: u64,
        /// All rows.
        rows: u64,
    },
    /// Nothing was evaluated.
    #[error("no rows were evaluated, expected one or more; check the dataset and the fractions")]
    NothingEvaluated,
    /// Sums and rows are not of the same evaluation.
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

impl Error {
    /// The exit code of a program that ends with this.
    pub fn exit(&self) -> Exit {
        match self {
            Self::NotFinite { .. } => Exit::Settings,
            Self::NothingEvaluated => Exit::BadInput,
            Self::Uncounted { .. } => Exit::Internal,
        }
    }
}

/// The metrics, or why there are none.
pub type Result<T> = std::result::Result<T, Error>;
