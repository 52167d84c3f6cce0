//! Errors of reading inputs, and the exit code for each.

use std::io;

use program::exit::{Exit, Failed, Fails};
use program::system::Failure;
use thiserror::Error;

/// Why an input could not be found or read.
#[derive(Debug, Error)]
pub enum Error {
    /// A pattern or a folder has no files.
    #[error("{0}")]
    NoFiles(String),
    /// A line is longer than [`corpus::lines::LINE_BYTES_MAX`], and skipped.
    #[error("{input}:{line}: line_too_long")]
    LongLine {
        /// Name of the source.
        input: String,
        /// Number of the line, from 1.
        line: u64,
    },
    /// The operating system or a decoder returned an error.
    #[error("{input}: {}", Failure::reading(doing, source))]
    Read {
        /// Name of the input.
        input: String,
        /// The failed action.
        doing: &'static str,
        /// The error.
        source: io::Error,
    },
    /// Another error, which callers only pass on.
    #[error(transparent)]
    Failed(#[from] Failed),
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl Fails for Error {
    fn exit(&self) -> Exit {
        match self {
            Self::NoFiles(_) => Exit::MissingInput,
            Self::LongLine { .. } => Exit::BadInput,
            Self::Read { source, .. } if input::content_error(source).is_some() => Exit::BadInput,
            Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => Exit::MissingInput,
            Self::Read { .. } => Exit::Io,
            Self::Failed(failed) => failed.exit,
        }
    }
}
