//! Errors of making a dataset. Each message is one line: the thing, what was found, what was expected, the
//! remedy.

use std::io;
use std::path::{Path, PathBuf};

use program::exit::{Exit, Failed, Fails};
use program::place::NoFolder;
use program::system::Failure;
use thiserror::Error;

/// Why no dataset was made.
#[derive(Debug, Error)]
pub enum Error {
    /// Another file has the path of the dataset.
    #[error("{}: already exists and is {found}, expected {expected}; nothing was changed: move it away, choose another --out, or replace a dataset by --force", path.display())]
    OtherFile {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// A shard or dataset could not be written or read.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// A file could not be written or read.
    #[error("{}: {}", path.display(), Failure::writing(action, source, "choose another --out"))]
    File {
        /// The file.
        path: PathBuf,
        /// The failed action.
        action: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// Another error, which callers only pass on.
    #[error(transparent)]
    Failed(#[from] Failed),
    /// The work was interrupted.
    #[error("interrupted; no dataset was written: run it again")]
    Interrupted,
    /// A dataset does not contain what was written.
    #[error("{}: the file read back differs from the data written ({found}); check the disk of --out", path.display())]
    Unverified {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        found: String,
    },
}

impl From<NoFolder> for Error {
    fn from(error: NoFolder) -> Self {
        Self::Failed(error.into())
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl Error {
    /// Returns this error with the final name of a file that is written under a temporary name.
    pub(crate) fn named(self, name: &Path) -> Self {
        match self {
            Self::Dataset(dataset::Error::Io { action, source, .. }) => {
                Self::File { path: name.to_owned(), action, source }
            }
            Self::Dataset(error) => Self::Dataset(error.named(name)),
            Self::File { action, source, .. } => Self::File { path: name.to_owned(), action, source },
            Self::Unverified { found, .. } => Self::Unverified { path: name.to_owned(), found },
            other => other,
        }
    }

    /// Returns this error for a file in the folder for temporary files.
    pub(crate) fn in_tmpdir(self) -> Self {
        match self {
            Self::File { path, action, source } => temporary_failed(&path, action, &source),
            Self::Dataset(error) => Self::Dataset(error.in_tmpdir()),
            Self::Unverified { path, found } => {
                let found = format!("the file read back differs from the data written ({found})");
                Failed::new(Exit::Io, format!("{}: {found}; check the disk of TMPDIR", path.display())).into()
            }
            other => other,
        }
    }
}

impl Fails for Error {
    fn exit(&self) -> Exit {
        match self {
            Self::OtherFile { .. } => Exit::Usage,
            Self::Dataset(error) => error.exit(),
            Self::File { source, .. } if source.kind() == io::ErrorKind::NotFound => Exit::MissingInput,
            Self::File { .. } | Self::Unverified { .. } => Exit::Io,
            Self::Interrupted => Exit::TryAgain,
            Self::Failed(failed) => failed.exit,
        }
    }
}

/// The error of a temporary file that could not be written or read.
pub(crate) fn temporary_failed(path: &Path, action: &str, error: &io::Error) -> Error {
    let why = Failure::writing(action, error, "set TMPDIR to a folder on another disk");
    Failed::new(Exit::Io, format!("{}: {why}", path.display())).into()
}

/// The error of another object with the name of the dataset or of a file beside it.
pub(crate) fn other_object(url: &str, found: &str, expected: &str) -> Error {
    let remedy = "nothing in S3 is overwritten: choose another --out";
    Failed::new(Exit::Usage, format!("{url}: already exists and is {found}, expected {expected}; {remedy}"))
        .into()
}

/// Result of making a dataset.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of a table at this path.
pub(crate) fn of_table(path: &Path, error: tables::Error) -> Error {
    let path = path.to_owned();
    match error {
        tables::Error::Io { action, source } => Error::File { path, action, source },
        tables::Error::Differs(found) => Error::Unverified { path, found },
    }
}

/// Adds the path of the file and the failed action to an error of the system.
pub fn at<T>(path: &Path, action: &'static str, result: io::Result<T>) -> Result<T> {
    result.map_err(|source| Error::File { path: path.to_owned(), action, source })
}
