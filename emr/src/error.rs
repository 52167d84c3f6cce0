//! Errors of `emr`. Each message is one line: the thing, what was found, what was expected, the remedy.

use std::io;
use std::path::PathBuf;

use program::exit::Exit;
use thiserror::Error;

use crate::finding::Finding;

/// Why a command failed.
#[derive(Debug, Error)]
pub enum Error {
    /// Logs cannot be read.
    #[error(transparent)]
    Logs(#[from] crate::logs::Error),
    /// There is no log yet.
    #[error(
        "{location}: found no log{what}; EMR uploads logs about every five minutes, so run this command again after {again_at} UTC, or check --log and --cluster"
    )]
    NoLogYet {
        /// The folder of the logs.
        location: String,
        /// Which logs, such as ` of step s-1`.
        what: String,
        /// A time of day.
        again_at: String,
    },
    /// A folder or file has no log.
    #[error("{location}: found no log{what}, expected stderr, syslog, controller or *.log; check the path")]
    NoLog {
        /// The folder.
        location: String,
        /// Which logs.
        what: String,
    },
    /// A job failed, and no rule knows why.
    #[error(
        "{n_read} logs were read and no rule names the cause; the lines above are the last that report a failure"
    )]
    NoCause {
        /// Number of logs.
        n_read: usize,
    },
    /// Something without which a program cannot run is missing.
    #[error("missing on this machine: {missing}; the lines above have the remedies")]
    Machine {
        /// The names of the checks.
        missing: String,
    },
    /// The output cannot be written.
    #[error("standard output: cannot write; check the disk or the reader of the pipe")]
    Output(#[source] io::Error),
    /// The job file cannot be read.
    #[error("{}: cannot read the job file; `emr plan --example` prints one", path.display())]
    JobFile {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The job file is invalid.
    #[error("{}", listed(path, findings))]
    BadJob {
        /// The file.
        path: PathBuf,
        /// All deviations.
        findings: Vec<Finding>,
    },
    /// The job file lacks a table.
    #[error("{thing}: no such table, expected the table of a job for this command; see docs/emr.md")]
    NoTable {
        /// The table.
        thing: String,
    },
}

impl Error {
    /// The exit code of this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Logs(error) => error.exit(),
            Self::NoLogYet { .. } => Exit::TryAgain,
            Self::NoLog { .. } => Exit::MissingInput,
            Self::NoCause { .. } => Exit::BadInput,
            Self::Machine { .. } => Exit::Settings,
            Self::Output(_) => Exit::Io,
            Self::JobFile { .. } => Exit::MissingInput,
            Self::BadJob { .. } | Self::NoTable { .. } => Exit::Settings,
        }
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

/// The only finding, or the number of those that were printed before.
fn listed(path: &std::path::Path, findings: &[Finding]) -> String {
    match findings {
        [finding] => finding.to_string(),
        findings => format!("{}: {} errors, listed above; correct them", path.display(), findings.len()),
    }
}
