//! Errors of copying folders to a store and back, and their exit codes.

use std::io;
use std::path::{Path, PathBuf};

use program::exit::{Exit, Fails};
use program::system::Failure;
use thiserror::Error;

/// Why a folder could not be copied.
#[derive(Debug, Error)]
pub enum MirrorError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] crate::Error),
    /// An object with other content exists.
    #[error("{object}: already exists with other content; nothing in S3 is replaced: choose another --out")]
    Occupied {
        /// Its URL.
        object: String,
    },
    /// An object does not match the list of digests.
    #[error(
        "{object}: its SHA-256 is {found:.8}, expected {expected:.8}; the object was damaged or altered: put the folder \
         there again, under another name"
    )]
    Damaged {
        /// Its URL.
        object: String,
        /// The digest of the object.
        found: String,
        /// The digest in the list.
        expected: String,
    },
    /// The list of digests cannot be parsed.
    #[error(
        "{object}: line {line} is something else, expected a SHA-256, two spaces and the name of a file; put the folder \
         there again, under another name"
    )]
    BadList {
        /// Its URL.
        object: String,
        /// Line number, from 1.
        line: usize,
    },
    /// Another process trains below this prefix.
    #[error("{url}: {holder} is training below this prefix; wait until it exits, or choose another --out")]
    Held {
        /// The prefix.
        url: String,
        /// The other process.
        holder: String,
    },
    /// Another process has resumed this training.
    #[error("{url}: {holder} has resumed this training, so this process stops; nothing was replaced")]
    Taken {
        /// The prefix.
        url: String,
        /// The other process.
        holder: String,
    },
    /// A local file could not be read or written.
    #[error("{}: {}", path.display(), Failure::writing(doing, source, "choose another folder by SENTIMILL_CACHE"))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The failed action.
        doing: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl MirrorError {
    /// The exit code of a program that fails with this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Store(error) => error.exit(),
            Self::Occupied { .. } => Exit::Usage,
            Self::Damaged { .. } | Self::BadList { .. } => Exit::MissingInput,
            Self::Held { .. } | Self::Taken { .. } => Exit::TryAgain,
            Self::Io { .. } => Exit::Io,
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_worth_retrying(&self) -> bool {
        let Self::Store(error) = self else { return false };
        matches!(error.exit(), Exit::Unavailable | Exit::TryAgain)
    }

    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, doing, source }
    }
}

/// A result with this module's error.
pub type Result<T> = std::result::Result<T, MirrorError>;
