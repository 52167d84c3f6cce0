//! What can go wrong with a file of ours, and the exit code that a program gives for it.

use std::io;
use std::path::{Path, PathBuf};

use program::exit::Exit;
use thiserror::Error;

/// Why a file could not be written or read.
#[derive(Debug, Error)]
pub enum Error {
    /// The file is not there.
    #[error("{}: no such file, expected a shard or a dataset; check the name", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("{}: cannot {action}; check the path, its permissions and the free space", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was to be done.
        action: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// The operating system refused a file that is kept for a while.
    #[error("{}: cannot {action}; set TMPDIR to a folder with room", path.display())]
    Temporary {
        /// Its folder.
        path: PathBuf,
        /// What was to be done.
        action: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// The HDF5 library refused.
    #[error("{}: HDF5 cannot {action}; check the permissions and the free space", path.display())]
    Hdf5 {
        /// The file.
        path: PathBuf,
        /// What was to be done.
        action: &'static str,
        /// What the library said.
        source: hdf5::Error,
    },
    /// The file is something else, or of another version.
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
        remedy: &'static str,
    },
    /// The file is not as it was written.
    #[error("{}: {part} does not match its digest: the file was damaged or altered; fetch or make it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The part.
        part: String,
    },
    /// The file is as its digests say, but breaks a rule of its format: none of ours has written it so.
    #[error(
        "{}: {thing} is {found}, expected {expected} (FORMAT.md, {rule}); the file was altered, or made by another \
         program: fetch or make it again", path.display()
    )]
    Broken {
        /// The file.
        path: PathBuf,
        /// The rule's number in FORMAT.md.
        rule: &'static str,
        /// What was looked at.
        thing: Box<str>,
        /// What it is, with nothing in it that a terminal takes for a command.
        found: Box<str>,
        /// What it should be.
        expected: Box<str>,
    },
    /// A promise between parts of this project was not kept.
    #[error("{}: {promise}: this is a defect of sentimill, please report it", path.display())]
    Internal {
        /// The file.
        path: PathBuf,
        /// The promise.
        promise: String,
    },
}

impl Error {
    /// The exit code of a program that ends with this.
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

/// A rule of FORMAT.md that is broken.
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

/// The result of reading or writing a file.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Says which file an error of the system or of the library belongs to.
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
