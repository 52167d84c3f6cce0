//! Why the folder of a training cannot be read or written, and the exit code of a program that ends with it.

use std::io;
use std::path::{Path, PathBuf};

use program::exit::Exit;
use thiserror::Error;

/// Why the folder of a training cannot be read or written.
#[derive(Debug, Error)]
pub enum Error {
    /// A dataset could not be read.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// Something is where a result should go.
    #[error("{}: {found} is there already, expected {expected}; {remedy}", path.display())]
    Occupied {
        /// The folder or file.
        path: PathBuf,
        /// What is there.
        found: String,
        /// What might be there.
        expected: &'static str,
        /// What to do.
        remedy: String,
    },
    /// Another process trains in this folder.
    #[error(
        "{}: {holder} is training there, expected no other; wait for its end, or choose another --out",
        path.display()
    )]
    Held {
        /// The folder.
        path: PathBuf,
        /// Who does.
        holder: String,
    },
    /// A checkpoint cannot be understood.
    #[error("{}: {found}, expected a training of this program; resume from an older checkpoint", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        found: String,
    },
    /// A checkpoint is of another training.
    #[error("{}: {what} {found}, expected {expected}; resume with the settings it was begun with", path.display())]
    OtherTraining {
        /// The file.
        path: PathBuf,
        /// The setting.
        what: String,
        /// In the checkpoint.
        found: String,
        /// Now.
        expected: String,
    },
    /// A file of a folder is not as it was written.
    #[error(transparent)]
    Saved(#[from] crate::saved::Error),
    /// Something in the folder of a training is not what a report is made of.
    #[error("{}: {found}, expected {expected}", path.display())]
    Report {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// Reading or writing failed.
    #[error("{}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
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
            Self::Occupied { .. } => Exit::Usage,
            Self::Saved(error) => error.exit(),
            Self::OtherTraining { .. } => Exit::Settings,
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

/// What is asked for, or why it cannot be read or written.
pub type Result<T> = std::result::Result<T, Error>;
