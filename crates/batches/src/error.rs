//! Why there is no batch, and the exit code of a program that ends with it.

use std::io;
use std::path::PathBuf;

use program::exit::Exit;
use thiserror::Error;

use crate::division::Part;

/// Why there is no batch.
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
    /// The operating system gave no thread.
    #[error("cannot start a thread that loads batches; lower the number of loaders")]
    Thread {
        /// What it said.
        source: io::Error,
    },
    /// Ids of two vocabularies mean different words.
    #[error(
        "{}: its vocabulary is not that of {}; make it by merge --vocabulary with the dataset that the model is of",
        path.display(), of.display()
    )]
    OtherVocabulary {
        /// The dataset.
        path: PathBuf,
        /// What has the other vocabulary.
        of: PathBuf,
    },
    /// The rows of two datasets were made by different settings.
    #[error(
        "{}: {setting} {found}, expected {expected} as in {}; make it by sentimill --vocabulary with the dataset that the \
         model is of, which takes over its settings",
        path.display(), of.display()
    )]
    OtherPreparation {
        /// The dataset.
        path: PathBuf,
        /// What has other settings.
        of: PathBuf,
        /// The setting.
        setting: &'static str,
        /// In the dataset.
        found: String,
        /// In the other.
        expected: String,
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
            Self::TooManyRows { .. } | Self::NoRows { .. } | Self::OneClass { .. } => Exit::BadInput,
            Self::Memory { .. }
            | Self::Setting { .. }
            | Self::OtherVocabulary { .. }
            | Self::OtherPreparation { .. } => Exit::Settings,
            Self::Thread { .. } => Exit::Io,
            Self::Internal { .. } => Exit::Internal,
        }
    }
}

/// What is asked for, or why there is no batch.
pub type Result<T> = std::result::Result<T, Error>;
