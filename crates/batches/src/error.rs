//! Errors of reading batches, and their exit codes.

use std::io;
use std::path::PathBuf;

use program::exit::{Exit, Fails};
use thiserror::Error;

use crate::division::Part;

/// Errors of reading batches.
#[derive(Debug, Error)]
pub enum Error {
    /// The dataset could not be read.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// The dataset has more rows than 32-bit indices allow.
    #[error("{}: {found} rows, expected at most 4294967295; train on fewer reviews", path.display())]
    TooManyRows {
        /// The dataset.
        path: PathBuf,
        /// Number of rows.
        found: u64,
    },
    /// A split of the dataset is empty.
    #[error("{}: no rows for {part}, expected one or more; check the fractions and the dataset", path.display())]
    NoRows {
        /// The dataset.
        path: PathBuf,
        /// The split.
        part: Part,
    },
    /// All rows of a split have the same label.
    #[error(
        "{}: all {rows} rows for {part} have label {label}, expected both labels; check the ratings of the reviews, or add reviews",
        path.display()
    )]
    OneClass {
        /// The dataset.
        path: PathBuf,
        /// The split.
        part: Part,
        /// Number of rows in the split.
        rows: u64,
        /// Their label.
        label: u8,
    },
    /// No row of a split has a named class.
    #[error(
        "{}: no rows for {part} have class {class}, expected one or more; check the ratings of the reviews, or make the \
         dataset with other --labels",
        path.display()
    )]
    EmptyClass {
        /// The dataset.
        path: PathBuf,
        /// The split.
        part: Part,
        /// The name of the class.
        class: String,
    },
    /// The memory limit for rows is too low to read the dataset in blocks.
    #[error(
        "{}: {found_bytes} bytes of memory for rows, expected {expected_bytes} or more; raise the limit, or lower the batch",
        path.display()
    )]
    Memory {
        /// The dataset.
        path: PathBuf,
        /// The memory limit.
        found_bytes: u64,
        /// The memory for two windows of the fewest blocks.
        expected_bytes: u64,
    },
    /// A setting has an invalid value.
    #[error("{setting} is {found}, expected {expected}")]
    Setting {
        /// Its name.
        setting: &'static str,
        /// Its value.
        found: String,
        /// The valid values.
        expected: String,
    },
    /// A thread could not be started.
    #[error("cannot start a thread that loads batches; lower the number of loaders")]
    Thread {
        /// The error of the operating system.
        source: io::Error,
    },
    /// The datasets have different vocabularies: the same ids mean different words.
    #[error(
        "{}: its vocabulary differs from that of {}; make it again with `--vocabulary TRAINING.h5` of sentimill \
         or merge, where TRAINING.h5 is the dataset of the training",
        path.display(), of.display()
    )]
    OtherVocabulary {
        /// The dataset.
        path: PathBuf,
        /// The dataset or model with the other vocabulary.
        of: PathBuf,
    },
    /// Texts of the two datasets were prepared with different settings.
    #[error(
        "{}: {setting} {found}, expected {expected} as in {}; make it again with `sentimill --vocabulary TRAINING.h5`, which \
         also adopts the settings of TRAINING.h5, the dataset of the training",
        path.display(), of.display()
    )]
    OtherPreparation {
        /// The dataset.
        path: PathBuf,
        /// The dataset or model with the other settings.
        of: PathBuf,
        /// The setting.
        setting: &'static str,
        /// Its value in the dataset.
        found: String,
        /// Its value in the other dataset or model.
        expected: String,
    },
    /// An internal invariant is violated; this is a defect.
    #[error("{promise}: this is a defect of sentimill, please report it")]
    Internal {
        /// The violated invariant.
        promise: String,
    },
}

impl Fails for Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Dataset(error) => error.exit(),
            Self::TooManyRows { .. }
            | Self::NoRows { .. }
            | Self::OneClass { .. }
            | Self::EmptyClass { .. } => Exit::BadInput,
            Self::Memory { .. }
            | Self::Setting { .. }
            | Self::OtherVocabulary { .. }
            | Self::OtherPreparation { .. } => Exit::Settings,
            Self::Thread { .. } => Exit::Io,
            Self::Internal { .. } => Exit::Internal,
        }
    }
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;
