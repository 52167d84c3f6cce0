//! Errors of reading or writing a training folder, and their exit codes.

use std::io;
use std::path::{Path, PathBuf};

use program::exit::{Exit, Fails};
use program::system::cause_and_remedy;
use thiserror::Error;

/// Errors of reading or writing a training folder.
#[derive(Debug, Error)]
pub enum Error {
    /// A dataset could not be read.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// The path of a result is occupied.
    #[error("{}: already exists: found {found}, expected {expected}; {remedy}", path.display())]
    Occupied {
        /// The folder or file.
        path: PathBuf,
        /// What exists at the path.
        found: String,
        /// What is allowed at the path.
        expected: &'static str,
        /// The remedy.
        remedy: String,
    },
    /// Another process is training in this folder.
    #[error(
        "{}: {holder} is training in this folder; wait until it exits, or choose another --out",
        path.display()
    )]
    Held {
        /// The folder.
        path: PathBuf,
        /// The other process.
        holder: String,
    },
    /// A checkpoint cannot be parsed.
    #[error("{}: {found}, expected a checkpoint of this version; resume from another checkpoint", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        found: String,
    },
    /// A checkpoint belongs to another training.
    #[error(
        "{}: {what} is {found} in the training and {expected} in this command; resume with the flags with which the training was started",
        path.display()
    )]
    OtherTraining {
        /// The file.
        path: PathBuf,
        /// The setting.
        what: String,
        /// Its value in the checkpoint.
        found: String,
        /// Its value in this training.
        expected: String,
    },
    /// A file of a model or a checkpoint could not be read or written, or does not have the expected content.
    #[error(transparent)]
    File(#[from] durable::Error),
    /// A file of a training folder is not usable for a report.
    #[error("{}: {found}, expected {expected}", path.display())]
    Report {
        /// The file.
        path: PathBuf,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// A file of soft labels is not usable.
    #[error("{}: {found}, expected {expected}", path.display())]
    SoftLabels {
        /// The file.
        path: PathBuf,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// Soft labels belong to another dataset.
    #[error(
        "{}: soft labels of the dataset with id digest {found}, expected {expected}; write them with \
         `trainer predict MODEL DATASET --soft`",
        path.display()
    )]
    OtherDataset {
        /// The file.
        path: PathBuf,
        /// The digest in the file.
        found: String,
        /// The digests and names of the datasets.
        expected: String,
    },
    /// Reading or writing failed.
    #[error("{}: {}", path.display(), cause_and_remedy(source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// An internal invariant is violated; this is a defect.
    #[error("{promise}: this is a defect of sentimill, please report it")]
    Internal {
        /// The violated invariant.
        promise: String,
    },
}

impl Error {
    /// The exit code of a program that fails with this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Dataset(error) => error.exit(),
            Self::Occupied { .. } => Exit::Usage,
            Self::File(error) => error.exit(),
            Self::OtherTraining { .. } | Self::OtherDataset { .. } => Exit::Settings,
            Self::SoftLabels { .. } => Exit::BadInput,
            Self::Report { .. } | Self::Unreadable { .. } => Exit::MissingInput,
            Self::Held { .. } => Exit::TryAgain,
            Self::Io { .. } => Exit::Io,
            Self::Internal { .. } => Exit::Internal,
        }
    }

    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    pub(crate) fn internal(error: &impl std::fmt::Display) -> Self {
        Self::Internal { promise: error.to_string() }
    }
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;
