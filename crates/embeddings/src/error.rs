//! Errors of word vectors, and their exit codes.

use std::path::PathBuf;

use program::exit::Exit;
use thiserror::Error;

/// Why word vectors could not be read, written or compared.
#[derive(Debug, Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] durable::Error),
    /// A line of a text file is invalid.
    #[error("{}: line {line} is {found}, expected {expected}; {remedy}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// The line, shortened.
        found: String,
        /// A valid line.
        expected: String,
        /// The remedy.
        remedy: &'static str,
    },
}

impl Error {
    /// The exit code of a program that fails with this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::File(error) => error.exit(),
            Self::Line { .. } => Exit::BadInput,
        }
    }
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;
