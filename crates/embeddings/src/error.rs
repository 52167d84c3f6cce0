//! Errors of word vectors, and their exit codes.

use std::io;
use std::path::{Path, PathBuf};

use program::exit::{Exit, Fails};
use thiserror::Error;

/// Why word vectors could not be trained, read, written or compared.
#[derive(Debug, Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] durable::Error),
    /// The content of a file is not text or word vectors.
    #[error("{}: {found}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What was found, what was expected, and the remedy.
        found: String,
    },
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
    /// A word has no vector.
    #[error(
        "the word {word:?} is not in the vocabulary, and the model has no character n-grams of it; choose another word"
    )]
    UnknownWord {
        /// The word.
        word: String,
    },
    /// A folder has another model.
    #[error("{}: {found}, expected word vectors; {remedy}", path.display())]
    OtherModel {
        /// The folder.
        path: PathBuf,
        /// What it has.
        found: &'static str,
        /// The remedy.
        remedy: String,
    },
    /// Two embeddings have no word in common.
    #[error("the vocabularies have no word in common; compare embeddings of the same language and case")]
    NothingInCommon,
    /// The tables of a training are larger than the address space.
    #[error("no memory for {n_rows} vectors of {dim} dimensions; lower --dim, --words-max or --buckets")]
    Memory {
        /// Number of vectors.
        n_rows: usize,
        /// Dimension.
        dim: usize,
        /// Cause.
        source: io::Error,
    },
    /// The state of a training could not be written.
    #[error("writing the state of the training: {source}")]
    WriteState {
        /// Cause.
        source: io::Error,
    },
    /// The state of a training could not be read.
    #[error("reading the state of the training")]
    ReadState {
        /// Cause.
        source: io::Error,
    },
}

/// Bytes of a line that a message shows.
const SHOWN_BYTES: usize = 60;

impl Error {
    pub(crate) fn line(path: &Path, line: usize, found: &[u8], expected: &str, remedy: &'static str) -> Self {
        let shown = String::from_utf8_lossy(&found[..found.len().min(SHOWN_BYTES)]);
        let found = match found.len() {
            0 => "empty".to_owned(),
            n if n > SHOWN_BYTES => format!("{shown:?}…"),
            _ => format!("{shown:?}"),
        };
        Self::Line { path: path.to_owned(), line, found, expected: expected.to_owned(), remedy }
    }
}

impl Fails for Error {
    fn exit(&self) -> Exit {
        match self {
            Self::File(error) => error.exit(),
            Self::Content { .. } | Self::Line { .. } | Self::NothingInCommon => Exit::BadInput,
            Self::UnknownWord { .. } => Exit::Usage,
            Self::OtherModel { .. } | Self::Memory { .. } => Exit::Settings,
            Self::WriteState { .. } | Self::ReadState { .. } => Exit::Io,
        }
    }
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;
