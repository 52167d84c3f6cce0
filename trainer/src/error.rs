//! What can go wrong before a model sees a row and after it has answered, and the exit code that a program gives for
//! it.

use std::io;
use std::path::PathBuf;

use corpus::exit::Exit;
use thiserror::Error;

use crate::batches::Part;

/// Why there is no batch, no learning rate or no metric.
#[derive(Debug, Error)]
pub enum Error {
    /// The dataset could not be read.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// The dataset has more rows than can be numbered in 32 bits.
    #[error("{}: {found} rows, expected fewer than 4294967296; train on a part of the reviews", path.display())]
    TooManyRows {
        /// The dataset.
        path: PathBuf,
        /// Its rows.
        found: u64,
    },
    /// A part of the dataset is empty.
    #[error("{}: no rows for {part}, expected one or more; check the fractions and the dataset", path.display())]
    NoRows {
        /// The dataset.
        path: PathBuf,
        /// The part.
        part: Part,
    },
    /// All rows of a part have one label.
    #[error(
        "{}: all {rows} rows for {part} have label {label}, expected both labels; check the ratings of the reviews",
        path.display()
    )]
    OneClass {
        /// The dataset.
        path: PathBuf,
        /// The part.
        part: Part,
        /// Its rows.
        rows: u64,
        /// Their label.
        label: u8,
    },
    /// The memory that rows may take is not enough to read the dataset in blocks.
    #[error(
        "{}: {found_bytes} bytes of memory for rows, expected {expected_bytes} or more; allow more, or lower the batch",
        path.display()
    )]
    Memory {
        /// The dataset.
        path: PathBuf,
        /// What was allowed.
        found_bytes: u64,
        /// What two blocks at a time take.
        expected_bytes: u64,
    },
    /// A setting makes no sense.
    #[error("{setting} is {found}, expected {expected}")]
    Setting {
        /// Its name.
        setting: &'static str,
        /// Its value.
        found: String,
        /// What it may be.
        expected: String,
    },
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
    /// The operating system gave no thread.
    #[error("cannot start a thread that loads batches; lower the number of loaders")]
    Thread {
        /// What it said.
        source: io::Error,
    },
    /// A promise between parts of this project was not kept.
    #[error("{promise}: this is a defect of sentimill, please report it")]
    Internal {
        /// The promise.
        promise: String,
    },
}

impl Error {
    /// The exit code of a program that ends with this.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Dataset(error) => error.exit(),
            Self::TooManyRows { .. }
            | Self::NoRows { .. }
            | Self::OneClass { .. }
            | Self::NothingEvaluated => Exit::BadInput,
            Self::Memory { .. } | Self::Setting { .. } | Self::NotFinite { .. } => Exit::Settings,
            Self::Thread { .. } => Exit::Io,
            Self::Internal { .. } => Exit::Internal,
        }
    }
}

/// The result of preparing batches, rates and metrics.
pub type Result<T> = std::result::Result<T, Error>;
