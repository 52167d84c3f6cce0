//! Errors of trainings of word vectors.

use std::io;

/// An error of a training.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The tables are larger than the address space.
    #[error("no memory for {n_rows} vectors of {dim} dimensions; lower --dim, --words-max or --buckets")]
    Memory {
        /// Number of vectors.
        n_rows: usize,
        /// Dimension.
        dim: usize,
        /// Cause.
        source: io::Error,
    },
    /// A state could not be written.
    #[error("writing the state of the training: {source}")]
    WriteState {
        /// Cause.
        source: io::Error,
    },
    /// A state could not be read.
    #[error("reading the state of the training")]
    ReadState {
        /// Cause.
        source: io::Error,
    },
}

/// A result of this module.
pub type Result<T> = std::result::Result<T, Error>;
