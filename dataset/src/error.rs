//! What can go wrong with a file of ours, and the exit code that a program gives for it.

use std::io;
use std::path::{Path, PathBuf};

use corpus::exit::Exit;
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
            Self::Missing { .. } | Self::Unexpected { .. } | Self::Damaged { .. } => Exit::MissingInput,
            Self::Internal { .. } => Exit::Internal,
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
