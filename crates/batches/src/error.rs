//! Errors of reading batches, and their exit codes.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use program::exit::{Exit, Failed, Fails};
use thiserror::Error;

use crate::part::Part;

/// Errors of reading batches.
#[derive(Debug, Error)]
pub enum Error {
    /// The dataset could not be read.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
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
    /// Another error, which callers only pass on.
    #[error(transparent)]
    Failed(#[from] Failed),
}

impl Error {
    /// A setting has an invalid value.
    pub(crate) fn setting(setting: &str, found: impl Display, expected: &str) -> Self {
        Failed::new(Exit::Settings, format!("{setting} is {found}, expected {expected}")).into()
    }

    /// The rows of a dataset are not usable.
    pub(crate) fn rows(path: &Path, message: &str) -> Self {
        Failed::new(Exit::BadInput, format!("{}: {message}", path.display())).into()
    }

    /// The dataset has more rows than 32-bit indices allow.
    pub(crate) fn too_many_rows(path: &Path, found: u64) -> Self {
        Self::rows(path, &format!("{found} rows, expected at most 4294967295; train on fewer reviews"))
    }

    /// A split of the dataset is empty.
    pub(crate) fn no_rows(path: &Path, part: Part) -> Self {
        let remedy = "check the fractions and the dataset";
        Self::rows(path, &format!("no rows for {part}, expected one or more; {remedy}"))
    }
}

impl Fails for Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Dataset(error) => error.exit(),
            Self::Memory { .. } | Self::OtherVocabulary { .. } => Exit::Settings,
            Self::Failed(failed) => failed.exit,
        }
    }
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;
