//! Why there is no dataset: one line that names the thing, the found, the expected and what to do.

use std::io;
use std::path::PathBuf;

use corpus::judgement::Refusal;
use program::exit::Exit;
use thiserror::Error;

use crate::reading;

/// Why there is no dataset.
#[derive(Debug, Error)]
pub enum Error {
    /// The input could not be found or read.
    #[error(transparent)]
    Reading(#[from] reading::Error),
    /// Too many lines of it are bad, or none is a review.
    #[error(transparent)]
    Lines(#[from] Refusal),
    /// Standard error could not be written.
    #[error("cannot write to standard error")]
    Log(#[source] io::Error),
    /// More votes than 32 bits hold.
    #[error(
        "the votes of the text with hash {hash:016x} pass 4294967295 for one rating; is the input read more than once?"
    )]
    TooManyVotes {
        /// The text's hash.
        hash: u64,
    },
    /// A temporary file could not be written or read.
    #[error(
        "{}: cannot keep reviews there for a while; set TMPDIR to a folder with room, or raise --memory",
        path.display()
    )]
    Scratch {
        /// Its folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The words or rows could not be sorted out.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// The dataset could not be made of them.
    #[error(transparent)]
    Making(#[from] making::Error),
    /// A thread could not be started.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    /// Somebody asked the program to end.
    #[error("interrupted; nothing was written, start it again")]
    Interrupted,
    /// Standard output failed.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
}

impl Error {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Reading(error) => error.exit(),
            Self::Dataset(error) => error.exit(),
            Self::Making(error) => error.exit(),
            Self::Lines(_) | Self::TooManyVotes { .. } => Exit::BadInput,
            Self::Scratch { .. } | Self::Thread(_) | Self::Log(_) | Self::Output(_) => Exit::Io,
            Self::Interrupted => Exit::TryAgain,
        }
    }
}

/// What milling gives.
pub type Result<T> = std::result::Result<T, Error>;
