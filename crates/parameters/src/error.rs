//! Errors of this crate, and their exit codes.

use std::io;
use std::path::{Path, PathBuf};

use program::exit::{Exit, Failed};
use program::system::Failure;
use thiserror::Error;

use crate::messages::Ending;

/// Why a server or a client failed.
#[derive(Debug, Error)]
pub enum Error {
    /// A file of a snapshot could not be read or written.
    #[error(transparent)]
    File(#[from] durable::Error),
    /// A file or folder could not be read or written.
    #[error("{}: {}", path.display(), Failure::writing(action, source, "choose another path"))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The failed action.
        action: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// All ranks end.
    #[error("{}", .0.message)]
    Ended(Ending),
    /// Another error, which callers only pass on.
    #[error(transparent)]
    Failed(#[from] Failed),
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The exit code of a program that fails with this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::File(error) => error.exit(),
            Self::Io { .. } => Exit::Io,
            Self::Ended(ending) if ending.code == Exit::Settings as u32 => Exit::Settings,
            Self::Ended(_) => Exit::TryAgain,
            Self::Failed(failed) => failed.exit,
        }
    }

    pub(crate) fn failed(exit: Exit, message: impl Into<String>) -> Self {
        Self::Failed(Failed::new(exit, message))
    }

    /// Threads that could not be started.
    pub(crate) fn threads(source: &io::Error) -> Self {
        Self::Failed(Failed::caused(Exit::Io, "cannot start threads", source))
    }
}

/// Adds the path and the failed action to errors of the operating system.
pub(crate) trait At<T> {
    fn at(self, path: &Path, action: &'static str) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path, action: &'static str) -> Result<T> {
        self.map_err(|source| Error::Io { path: path.to_owned(), action, source })
    }
}
