//! Errors of this crate.

use std::io;

/// An error of a training.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Threads could not be started.
    #[error("starting {n_threads} threads; lower --threads")]
    Threads {
        /// Number of threads.
        n_threads: usize,
        /// Cause.
        source: Box<dyn std::error::Error + Send + Sync>,
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

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
