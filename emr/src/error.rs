//! Errors of `emr`. Each message is one line: the thing, what was found, what was expected, the remedy.

use program::exit::Exit;
use thiserror::Error;

/// Why a command failed.
#[derive(Debug, Error)]
pub enum Error {
    /// The output cannot be written.
    #[error("standard output: cannot write; check the disk or the reader of the pipe")]
    Output(#[source] std::io::Error),
}

impl Error {
    /// The exit code of this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Output(_) => Exit::Io,
        }
    }
}
