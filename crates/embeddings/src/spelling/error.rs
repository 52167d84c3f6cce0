//! Errors of this module.

use std::io;

/// An error of a training.
#[derive(Debug, thiserror::Error)]
pub enum Error {
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
