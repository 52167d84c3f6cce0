//! Errors of `emr`. Each message is one line: the thing, what was found, what was expected, the remedy.

use std::io;
use std::path::PathBuf;

use program::exit::{Exit, Failed, Fails};
use thiserror::Error;

use crate::client;
use crate::finding::Finding;

/// Why a command failed. Only what a caller distinguishes has a variant.
#[derive(Debug, Error)]
pub enum Error {
    /// A request to EMR failed.
    #[error(transparent)]
    Emr(#[from] client::RequestFailure),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The job file is invalid.
    #[error("{}", listed(path, findings))]
    BadJob {
        /// The file.
        path: PathBuf,
        /// All deviations.
        findings: Vec<Finding>,
    },
    /// A program failed. Unless it was killed, it has printed its message.
    #[error("{program}: {ended}")]
    Failed {
        /// The program.
        program: String,
        /// How it ended, and what to do.
        ended: String,
        /// The exit code of this program.
        exit: Exit,
    },
    /// A Hadoop job failed.
    #[error("the Hadoop job failed: {found}; {next}")]
    HadoopJob {
        /// The cause and its remedy, or the last message of the job client.
        found: String,
        /// The command that shows more.
        next: String,
        /// The application of YARN, if it was started.
        application: Option<String>,
        /// The exit code of the program that failed, or that of the cause; else 70.
        exit: Exit,
    },
    /// Ctrl-C before the job was submitted.
    #[error("interrupted before the job was submitted; no cluster was created by this command")]
    NotSubmitted,
    /// The response to a request that creates something was lost, and its result was not found.
    #[error(
        "{found}; it is unknown whether {what}: run the command again, which searches for it; emr list shows clusters"
    )]
    Unknown {
        /// What ended the search.
        found: String,
        /// What the request may have done.
        what: &'static str,
        /// The exit code of that end.
        exit: Exit,
    },
    /// Any other failure.
    #[error(transparent)]
    Other(#[from] Failed),
}

impl Error {
    /// A failure that no caller distinguishes.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self::Other(Failed::new(exit, message))
    }

    /// The same, of the operating system.
    #[expect(clippy::needless_pass_by_value, reason = "callers have it from `map_err`")]
    pub fn io(message: impl Into<String>, source: io::Error) -> Self {
        Self::Other(Failed::caused(Exit::Io, message, &source))
    }

    /// The output cannot be written.
    pub fn output(source: io::Error) -> Self {
        Self::io("standard output: cannot write; check the disk or the reader of the pipe", source)
    }

    /// Ctrl-C, with how to continue.
    pub fn interrupted(remedy: &str) -> Self {
        Self::new(Exit::TryAgain, format!("interrupted; {remedy}"))
    }

    /// Lines that are printed before the message, if it summarises several findings.
    pub fn details(&self) -> Vec<String> {
        match self {
            Self::BadJob { findings, .. } if findings.len() > 1 => {
                findings.iter().map(ToString::to_string).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Fails for Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Emr(failure) => failure.exit(),
            Self::Store(error) => error.exit(),
            Self::BadJob { .. } => Exit::Settings,
            Self::NotSubmitted => Exit::TryAgain,
            Self::Failed { exit, .. }
            | Self::HadoopJob { exit, .. }
            | Self::Unknown { exit, .. }
            | Self::Other(Failed { exit, .. }) => *exit,
        }
    }
}

/// The only finding, or the number of those that were printed before.
fn listed(path: &std::path::Path, findings: &[Finding]) -> String {
    match findings {
        [finding] => finding.to_string(),
        findings => format!("{}: {} errors, listed above; correct them", path.display(), findings.len()),
    }
}
