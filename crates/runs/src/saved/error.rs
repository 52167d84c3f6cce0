//! What can go wrong with the folder of a saved model, and the exit code that a program gives for it.

use std::io;
use std::path::PathBuf;

use program::exit::Exit;
use thiserror::Error;

/// Why a model could not be saved or read.
#[derive(Debug, Error)]
pub enum Error {
    /// The folder, or a file of it, is not there.
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
    /// The operating system refused.
    #[error("{}: cannot {action}; check the path, its permissions and the free space", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was to be done.
        action: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// A file is something else, or of another version.
    #[error("{}: {thing} is {found}, expected {expected}; {remedy}", path.display())]
    Unexpected {
        /// The file.
        path: PathBuf,
        /// What was looked at.
        thing: String,
        /// What it is.
        found: String,
        /// What it should be.
        expected: String,
        /// What to do.
        remedy: String,
    },
    /// A file is not as it was written.
    #[error(
        "{}: its SHA-256 is {found:.8}, expected {expected:.8}; the file was damaged or altered: copy or export the \
         model again",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The digest that it has.
        found: String,
        /// The digest that it was written with.
        expected: String,
    },
    /// Something else is where the model should go.
    #[error(
        "{} is there already and is {found}, expected {expected}; nothing was changed: move it away or name another \
         folder",
        path.display()
    )]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// What it is.
        found: String,
        /// What it might be.
        expected: &'static str,
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
            Self::Missing { .. } | Self::Unexpected { .. } | Self::Damaged { .. } => Exit::MissingInput,
            Self::Io { .. } => Exit::Io,
            Self::Occupied { .. } => Exit::Usage,
            Self::Internal { .. } => Exit::Internal,
        }
    }
}

/// The result of saving or reading a model.
pub type Result<T> = std::result::Result<T, Error>;
