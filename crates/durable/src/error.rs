//! Errors of reading and writing the files of a model, and their exit codes.

use std::borrow::Cow;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use program::exit::Exit;
use program::system::Failure;
use thiserror::Error;

/// Why a file of a model could not be read or written.
#[derive(Debug, Error)]
pub enum Error {
    /// The file or folder is missing.
    #[error("{}: not found, expected {expected}; check the name", path.display())]
    Missing {
        /// The file or folder.
        path: PathBuf,
        /// What was expected at the path.
        expected: &'static str,
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
    /// A field of a file does not have a valid value.
    #[error("{}: {field} is {found}, expected {expected}; {remedy}", path.display())]
    Unexpected {
        /// The file.
        path: PathBuf,
        /// The field.
        field: String,
        /// The value found.
        found: String,
        /// The valid values.
        expected: String,
        /// The remedy.
        remedy: Cow<'static, str>,
    },
    /// A file does not match its digest.
    #[error(
        "{}: its SHA-256 is {found:.8}, expected {expected:.8}; the file was damaged or altered: copy or train the \
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
    #[error("{}: already exists: found {found}, expected a new name; move it away, or choose another path", path.display())]
    Occupied {
        /// The file or folder.
        path: PathBuf,
        /// What exists at the path.
        found: &'static str,
    },
    /// A model does not fit into a format.
    #[error("{}: {field} is {found}, but the format allows {allowed}; {remedy}", path.display())]
    Unstorable {
        /// The file.
        path: PathBuf,
        /// The part of the model.
        field: &'static str,
        /// Its value.
        found: String,
        /// The values of the format.
        allowed: String,
        /// The remedy.
        remedy: &'static str,
    },
}

impl Error {
    /// The exit code of a program that fails with this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Missing { .. } | Self::Unexpected { .. } | Self::Damaged { .. } => Exit::MissingInput,
            Self::Io { .. } => Exit::Io,
            Self::Occupied { .. } => Exit::Usage,
            Self::Unstorable { .. } => Exit::Settings,
        }
    }

    /// A field that does not have a valid value.
    pub fn unexpected(
        path: &Path,
        field: impl Display,
        found: impl Display,
        expected: impl Display,
        remedy: impl Into<Cow<'static, str>>,
    ) -> Self {
        let (field, found, expected) = (field.to_string(), found.to_string(), expected.to_string());
        Self::Unexpected { path: path.to_owned(), field, found, expected, remedy: remedy.into() }
    }
}

/// The result of reading or writing a file of a model.
pub type Result<T> = std::result::Result<T, Error>;

/// Adds the path and the action to an error of the operating system.
pub trait At<T> {
    /// Adds the path and the action.
    fn at(self, path: &Path, action: &'static str) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path, action: &'static str) -> Result<T> {
        self.map_err(|source| Error::Io { path: path.to_owned(), action, source })
    }
}
