//! Errors of reading or writing a training folder, and their exit codes.

use std::io;
use std::path::{Path, PathBuf};

use program::exit::{Exit, Failed, Fails};
use program::system::cause_and_remedy;
use thiserror::Error;

/// Errors of reading or writing a training folder.
#[derive(Debug, Error)]
pub enum Error {
    /// A dataset could not be read.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// Another process is training in this folder.
    #[error(
        "{}: {holder} is training in this folder; wait until it exits, or choose another --out",
        path.display()
    )]
    Held {
        /// The folder.
        path: PathBuf,
        /// The other process.
        holder: String,
    },
    /// A file of a model or a checkpoint could not be read or written, or does not have the expected content.
    #[error(transparent)]
    File(#[from] durable::Error),
    /// Reading or writing failed.
    #[error("{}: {}", path.display(), cause_and_remedy(source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another error, which callers only pass on.
    #[error(transparent)]
    Failed(#[from] Failed),
}

impl Error {
    /// The exit code of a program that fails with this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Dataset(error) => error.exit(),
            Self::File(error) => error.exit(),
            Self::Held { .. } => Exit::TryAgain,
            Self::Io { .. } => Exit::Io,
            Self::Failed(failed) => failed.exit,
        }
    }

    /// The path of a result is occupied.
    pub fn occupied(path: &Path, found: &str, expected: &str, remedy: &str) -> Self {
        let path = path.display();
        let message = format!("{path}: already exists: found {found}, expected {expected}; {remedy}");
        Failed::new(Exit::Usage, message).into()
    }

    /// A checkpoint belongs to another training: a setting, its value in the checkpoint and in this training.
    pub fn other_training(path: &Path, setting: &str, found: &str, expected: &str) -> Self {
        let message = format!(
            "{}: {setting} is {found} in the training and {expected} in this command; resume with the flags with which \
             the training was started",
            path.display()
        );
        Failed::new(Exit::Settings, message).into()
    }

    /// A file of a training folder is not usable.
    pub fn unusable(path: &Path, found: &str, expected: &str) -> Self {
        let message = format!("{}: {found}, expected {expected}", path.display());
        Failed::new(Exit::MissingInput, message).into()
    }

    /// A checkpoint cannot be parsed.
    pub(crate) fn unreadable(path: &Path, found: &str) -> Self {
        Self::unusable(path, found, "a checkpoint of this version; resume from another checkpoint")
    }

    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;
