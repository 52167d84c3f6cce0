//! Errors of reading and writing files, and the exit code for each.

use std::io;
use std::path::{Path, PathBuf};

use program::exit::Exit;
use thiserror::Error;

/// Why a file could not be written or read.
#[derive(Debug, Error)]
pub enum Error {
    /// The file does not exist.
    #[error("{}: no such file, expected a shard or a dataset; check the name", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The operating system returned an error.
    #[error("{}: cannot {action}; check the path, its permissions and the free space", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The failed action.
        action: &'static str,
        /// The error.
        source: io::Error,
    },
    /// The operating system returned an error for a temporary file.
    #[error("{}: cannot {action}; set TMPDIR to a folder with room", path.display())]
    Temporary {
        /// Its folder.
        path: PathBuf,
        /// The failed action.
        action: &'static str,
        /// The error.
        source: io::Error,
    },
    /// The HDF5 library returned an error.
    #[error("{}: HDF5 cannot {action}; check the permissions and the free space", path.display())]
    Hdf5 {
        /// The file.
        path: PathBuf,
        /// The failed action.
        action: &'static str,
        /// The error of the library.
        source: hdf5::Error,
    },
    /// The file is something else, or of another version.
    #[error("{}: {thing} is {found}, expected {expected}; {remedy}", path.display())]
    Unexpected {
        /// The file.
        path: PathBuf,
        /// The part that was checked.
        thing: String,
        /// The value found.
        found: String,
        /// The expected value.
        expected: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The file does not match its digests.
    #[error("{}: {part} does not match its digest: the file was damaged or altered; fetch or make it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damaged part.
        part: String,
    },
    /// The file matches its digests but violates a rule of its format, so another program wrote or altered
    /// it.
    #[error(
        "{}: {thing} is {found}, expected {expected} (FORMAT.md, {rule}); the file was altered, or made by another \
         program: fetch or make it again", path.display()
    )]
    Broken {
        /// The file.
        path: PathBuf,
        /// Number of the rule in FORMAT.md.
        rule: &'static str,
        /// The part that was checked.
        thing: Box<str>,
        /// The value found, without control characters.
        found: Box<str>,
        /// The expected value.
        expected: Box<str>,
    },
    /// An invariant between parts of this project is broken.
    #[error("{}: {promise}: this is a defect of sentimill, please report it", path.display())]
    Internal {
        /// The file.
        path: PathBuf,
        /// The invariant.
        promise: String,
    },
}

impl Error {
    /// The exit code for this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Io { .. } | Self::Temporary { .. } | Self::Hdf5 { .. } => Exit::Io,
            Self::Missing { .. } | Self::Unexpected { .. } | Self::Damaged { .. } | Self::Broken { .. } => {
                Exit::MissingInput
            }
            Self::Internal { .. } => Exit::Internal,
        }
    }
}

/// A violation of a rule of FORMAT.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) rule: &'static str,
    pub(crate) thing: String,
    pub(crate) found: String,
    pub(crate) expected: String,
}

impl Fault {
    pub(crate) fn new(
        rule: &'static str,
        thing: impl Into<String>,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self { rule, thing: thing.into(), found: found.into(), expected: expected.into() }
    }

    pub(crate) fn of(self, path: &Path) -> Error {
        let Self { rule, thing, found, expected } = self;
        Error::Broken {
            path: path.to_owned(),
            rule,
            thing: thing.into(),
            found: found.into(),
            expected: expected.into(),
        }
    }
}

/// Result of reading or writing a file.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Adds the path of the file to an error of the system or of the library.
pub(crate) trait At<T> {
    fn at(self, path: &Path, action: &'static str) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path, action: &'static str) -> Result<T> {
        self.map_err(|source| Error::Io { path: path.to_owned(), action, source })
    }
}

impl<T> At<T> for hdf5::Result<T> {
    fn at(self, path: &Path, action: &'static str) -> Result<T> {
        self.map_err(|source| Error::Hdf5 { path: path.to_owned(), action, source })
    }
}
