//! Errors of a saved model's folder, and their exit codes.

use std::io;
use std::path::PathBuf;

use program::exit::Exit;
use program::system::Failure;
use thiserror::Error;

/// Why a model could not be saved or read.
#[derive(Debug, Error)]
pub enum Error {
    /// The folder or one of its files is missing.
    #[error(
        "{}: {file} is missing, expected a saved model; check the name, or copy or export the model again",
        folder.display()
    )]
    Missing {
        /// The folder.
        folder: PathBuf,
        /// The file.
        file: String,
    },
    /// A call of the operating system failed.
    #[error("{}: {}", path.display(), Failure::writing(action, source, "choose another path"))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The failed action.
        action: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file does not have the expected content or version.
    #[error("{}: {thing} is {found}, expected {expected}; {remedy}", path.display())]
    Unexpected {
        /// The file.
        path: PathBuf,
        /// What was checked.
        thing: String,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
        /// The remedy.
        remedy: String,
    },
    /// A file does not match its digest.
    #[error(
        "{}: its SHA-256 is {found:.8}, expected {expected:.8}; the file was damaged or altered: copy or export the \
         model again",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The digest of the file.
        found: String,
        /// The digest in the list.
        expected: String,
    },
    /// The path for the model is occupied.
    #[error(
        "{}: already exists: found {found}, expected {expected}; nothing was changed; move it away, or choose another \
         folder",
        path.display()
    )]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// What exists at the path.
        found: String,
        /// What is allowed at the path.
        expected: &'static str,
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
            Self::Missing { .. } | Self::Unexpected { .. } | Self::Damaged { .. } => Exit::MissingInput,
            Self::Io { .. } => Exit::Io,
            Self::Occupied { .. } => Exit::Usage,
            Self::Internal { .. } => Exit::Internal,
        }
    }
}

/// The result of saving or reading a model.
pub type Result<T> = std::result::Result<T, Error>;
