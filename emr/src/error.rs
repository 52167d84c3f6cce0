//! Errors of `emr`. Each message is one line: the thing, what was found, what was expected, the remedy.

use std::io;
use std::path::PathBuf;

use program::exit::{Exit, Fails};
use thiserror::Error;

use crate::finding::Finding;
use crate::{client, runner, submission};

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
    /// A request to EMR failed.
    #[error(transparent)]
    Emr(#[from] client::Failure),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The job was not submitted.
    #[error(transparent)]
    Submission(#[from] submission::Error),
    /// A runner failed.
    #[error(transparent)]
    Runner(#[from] runner::Error),
    /// A file cannot be read or written.
    #[error("{}: cannot use the file", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A manifest cannot be parsed.
    #[error(
        "{place}: found something else than a manifest of merge, expected the manifest of the dataset; choose another dataset in the job file"
    )]
    BadManifest {
        /// The manifest.
        place: String,
    },
    /// A place cannot be used.
    #[error("{place}: {found}")]
    BadPlace {
        /// The path or URL.
        place: String,
        /// Why.
        found: String,
    },
    /// The job was not run.
    #[error("{run}: found no record of a run of this job; start it with emr run {}", job.display())]
    NotRun {
        /// The job file.
        job: PathBuf,
        /// Its run.
        run: String,
    },
    /// The job has no cluster.
    #[error(
        "{run}: no cluster was started for this run, expected one on EMR; start it with emr run {job}, or see emr status {job}",
        job = job.display()
    )]
    NotSubmitted {
        /// The job file.
        job: PathBuf,
        /// Its run.
        run: String,
    },
    /// A cluster without a log folder.
    #[error(
        "{cluster}: keeps no logs, expected a log folder; set cluster.log in the job file for the next cluster"
    )]
    NoLogs {
        /// The cluster.
        cluster: String,
    },
    /// EMR refused to cancel steps.
    #[error(
        "{cluster}: EMR refused to cancel {refused} steps, listed above; run the command again, or end the cluster with emr terminate"
    )]
    NotCancelled {
        /// The cluster.
        cluster: String,
        /// The number of steps.
        refused: usize,
    },
    /// Termination protection is on.
    #[error(
        "{cluster}: termination protection is on, expected it off; turn it off with aws emr modify-cluster-attributes --cluster-id {cluster} --no-termination-protected"
    )]
    Protected {
        /// The cluster.
        cluster: String,
    },
    /// A job on a cluster failed.
    #[error("{what}; emr diagnose {argument} shows the cause")]
    JobFailed {
        /// The step or the cluster, and its reason.
        what: String,
        /// The job file or the cluster, as an argument.
        argument: String,
        /// The exit code of the program that failed, if it is known.
        exit: Exit,
    },
    /// Ctrl-C cannot be caught.
    #[error("cannot handle signals; free memory, or raise the limits of this shell (ulimit -a)")]
    Signals(#[source] io::Error),
    /// The job file lacks a table.
    #[error("{thing}: no such table, {remedy}; emr plan --example prints one")]
    NoTable {
        /// The table.
        thing: String,
        /// What needs it, and what does not.
        remedy: &'static str,
    },
}

impl Error {
    /// The exit code of this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Logs(error) => error.exit(),
            Self::NoLogYet { .. } | Self::NotCancelled { .. } => Exit::TryAgain,
            Self::NoLog { .. } => Exit::MissingInput,
            Self::NoCause { .. } => Exit::BadInput,
            Self::Machine { .. } => Exit::Settings,
            Self::Output(_) | Self::File { .. } | Self::Signals(_) => Exit::Io,
            Self::Emr(failure) => failure.exit(),
            Self::Store(error) => error.exit(),
            Self::Submission(error) => error.exit(),
            Self::Runner(error) => error.exit(),
            Self::BadManifest { .. } => Exit::BadInput,
            Self::NotRun { .. } | Self::NotSubmitted { .. } | Self::NoLogs { .. } => Exit::MissingInput,
            Self::Protected { .. } | Self::BadPlace { .. } => Exit::Settings,
            Self::JobFailed { exit, .. } => *exit,
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
