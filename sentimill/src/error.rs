//! Errors of the program. Each message is one line: the thing, what was found, what was expected, the remedy.

use std::io;
use std::path::PathBuf;

use corpus::judgement::Refusal;
use program::exit::Exit;
use program::place::NoFolder;
use program::system::Failure;
use thiserror::Error;

/// Why no dataset was written.
#[derive(Debug, Error)]
pub enum Error {
    /// The input could not be found or read.
    #[error(transparent)]
    Reading(#[from] reading::Error),
    /// Too many lines are bad, or none is a review.
    #[error(transparent)]
    Lines(#[from] Refusal),
    /// Standard error could not be written.
    #[error("standard error: {}", Failure::writing("write messages", .0, "redirect it to another disk"))]
    Log(#[source] io::Error),
    /// The number of votes does not fit in 32 bits.
    #[error(
        "the votes of the text with hash {hash:016x} exceed 4294967295 for one rating; check that no input is read twice"
    )]
    TooManyVotes {
        /// Hash of the text.
        hash: u64,
    },
    /// A temporary file could not be written or read.
    #[error(
        "{}: {}",
        path.display(),
        Failure::writing(
            "write a temporary file",
            source,
            "set TMPDIR to a folder on another disk, or raise --memory"
        )
    )]
    Scratch {
        /// Its folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Words or rows could not be spilled or merged.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// The dataset could not be made.
    #[error(transparent)]
    Making(#[from] making::Error),
    /// The path of a file beside the dataset is taken.
    #[error(
        "{flag} {}: already exists; nothing was changed: move it away or choose another {flag}",
        path.display()
    )]
    Occupied {
        /// The flag of the file.
        flag: &'static str,
        /// Its path.
        path: PathBuf,
    },
    /// A file beside the dataset has the path of another output.
    #[error("{flag} {}: found the path of {other}, expected a path of its own; choose another {flag}", path.display())]
    SamePath {
        /// The flag of the file.
        flag: &'static str,
        /// Its path.
        path: PathBuf,
        /// The other output.
        other: &'static str,
    },
    /// The folder of a file beside the dataset does not exist.
    #[error(transparent)]
    NoFolder(#[from] NoFolder),
    /// A file beside the dataset could not be written.
    #[error(
        "{flag} {}: {}",
        path.display(),
        Failure::writing("write the file", source, "choose a path on another disk")
    )]
    ExtraFile {
        /// The flag of the file.
        flag: &'static str,
        /// Its path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file beside the dataset is not what was written.
    #[error("{flag} {}: the file read back is damaged ({found}); check the disk", path.display())]
    ExtraFileDiffers {
        /// The flag of the file.
        flag: &'static str,
        /// Its path.
        path: PathBuf,
        /// What differs.
        found: String,
    },
    /// A thread could not be started.
    #[error("{}; or choose fewer --threads", Failure::reading("start a thread", .0))]
    Thread(#[source] io::Error),
    /// The program was interrupted.
    #[error("interrupted; no dataset was written: run it again")]
    Interrupted,
    /// Standard output could not be written.
    #[error("standard output: {}", Failure::writing("write the data card", .0, "redirect it to another disk"))]
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
            Self::Occupied { .. } | Self::SamePath { .. } | Self::NoFolder(_) => Exit::Usage,
            Self::Scratch { .. }
            | Self::ExtraFile { .. }
            | Self::ExtraFileDiffers { .. }
            | Self::Thread(_)
            | Self::Log(_)
            | Self::Output(_) => Exit::Io,
            Self::Interrupted => Exit::TryAgain,
        }
    }
}

/// Result of the program's steps.
pub type Result<T> = std::result::Result<T, Error>;
