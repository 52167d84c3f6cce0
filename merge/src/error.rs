//! Errors of a merge. Each message is one line: the thing, what was found, what was expected, the remedy.

use std::io;
use std::path::PathBuf;

use corpus::ledger::TooMany;
use program::exit::Exit;
use program::location::Location;
use program::system::Failure;
use thiserror::Error;

/// Why a merge failed.
#[derive(Debug, Error)]
pub enum Error {
    /// `--run` was not passed, and the default folder does not exist.
    #[error(
        "{run}: no such folder, expected the run to merge; write one by `mapper | LC_ALL=C sort | reducer`, or pass --run"
    )]
    NoRun {
        /// The default run.
        run: String,
    },
    /// The run has no commit record.
    #[error("{run}: found no committed partition, expected all; check --run, or run the reducers first")]
    NoCommits {
        /// The run.
        run: String,
    },
    /// Commit records of partitions are missing, or there are too many.
    #[error(
        "{run} has {found} of {partitions} partitions: {wrong}; run the missing reducers, or check --run"
    )]
    Partitions {
        /// The run.
        run: String,
        /// Number of partitions with a commit record.
        found: usize,
        /// Number of partitions of the run.
        partitions: u32,
        /// The missing and the extra ones.
        wrong: String,
    },
    /// A commit record does not match its own name.
    #[error(
        "{object} names {what} {found}, expected {expected}; the record was altered or moved: restore it"
    )]
    Contradiction {
        /// The record.
        object: String,
        /// The field.
        what: &'static str,
        /// Its value.
        found: String,
        /// The value that the name requires.
        expected: String,
    },
    /// Shards belong to different runs.
    #[error(
        "partitions {one} and {other} belong to different runs, because they differ in {what}: {found} and {expected}; restore the commit record of this run"
    )]
    OtherRun {
        /// A partition.
        one: u32,
        /// Another partition.
        other: u32,
        /// The field that differs.
        what: &'static str,
        /// The value of `one`.
        found: String,
        /// The value of `other`.
        expected: String,
    },
    /// Shards have different settings.
    #[error(
        "partitions {one} and {other} differ in {what}: {found} and {expected}; run all reducers with the same \
         settings, into a new --run"
    )]
    OtherSettings {
        /// A partition.
        one: u32,
        /// Another partition.
        other: u32,
        /// The setting.
        what: &'static str,
        /// The value of `one`.
        found: String,
        /// The value of `other`.
        expected: String,
    },
    /// A shard does not match its commit record.
    #[error(
        "{object} has {what} {found}, its commit record has {expected}; the object was altered: restore it, or run its \
         reducer again into a new --run"
    )]
    Altered {
        /// The object.
        object: String,
        /// The property that differs.
        what: &'static str,
        /// Its value in the shard.
        found: String,
        /// Its value in the commit record.
        expected: String,
    },
    /// A shard was replaced after it was verified.
    #[error(
        "{}: the digests of rows and words are {found}, expected {expected} as at its verification; the file was replaced during the merge: restore it, and merge again when no program writes to the run",
        path.display()
    )]
    Exchanged {
        /// The file.
        path: PathBuf,
        /// The digests of rows and words of the new file.
        found: String,
        /// The digests at verification.
        expected: String,
    },
    /// The commit records do not match the run's manifest.
    #[error(
        "{run} was merged before: {what} is {found}, the run's manifest has {expected}; restore the commit records and the manifest of the run"
    )]
    Unsealed {
        /// The run.
        run: String,
        /// The field that differs.
        what: String,
        /// Its value in the commit records.
        found: String,
        /// Its value in the run's manifest.
        expected: String,
    },
    /// A text is in two shards.
    #[error(
        "the text with hash {hash:016x} is in {one} and in {other}, expected in one shard only; the reducers' input was not partitioned by text: run the reducers again with a partitioner that uses only the text"
    )]
    TextTwice {
        /// Hash of the text.
        hash: u64,
        /// A shard.
        one: String,
        /// Another shard.
        other: String,
    },
    /// The whole run has too many bad lines, or too many that are not UTF-8.
    #[error("{}; {}", .0, match .0 {
        TooMany::Bad(found) => format!("the logs of the mappers list the first ones{}", found.advice()),
        TooMany::InvalidUtf8(found) => format!("pass the encoding of the input to mapper with --encoding{}", found.advice()),
    })]
    TooMany(TooMany),
    /// A file of counts could not be read.
    #[error("--counts {}: {}", path.display(), Failure::reading("read the counts", source))]
    Counts {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file passed as counts contains no counts.
    #[error(
        "--counts {file}: found no counts, expected a mapper's --counts file or the saved output of the Hadoop job client"
    )]
    NoCounts {
        /// The file.
        file: Location,
    },
    /// A shard or dataset could not be written or read.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// The dataset could not be made, or is invalid.
    #[error(transparent)]
    Making(#[from] making::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Standard output could not be written.
    #[error("standard output: {}", Failure::writing("write the result", .0, "redirect it to another disk"))]
    Output(#[source] io::Error),
    /// Garbage collection was requested in a run that lacks shards.
    #[error(
        "{run}: found {found} of the {expected} objects that commit records name, expected all; nothing was deleted: restore the missing objects"
    )]
    ObjectsMissing {
        /// The run.
        run: String,
        /// Number of existing objects.
        found: usize,
        /// Number of objects that commit records name.
        expected: usize,
    },
    /// Garbage collection was requested while attempts may still be running.
    #[error(
        "{run}: {found} of {partitions} partitions are committed, and an attempt that still runs may need its object; \
         nothing is deleted until all partitions are committed"
    )]
    StillRunning {
        /// The run.
        run: String,
        /// Number of partitions with a commit record.
        found: usize,
        /// Number of partitions of the run.
        partitions: u32,
    },
}

impl Error {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::NoRun { .. }
            | Self::NoCommits { .. }
            | Self::Partitions { .. }
            | Self::Contradiction { .. }
            | Self::OtherRun { .. }
            | Self::Altered { .. }
            | Self::Exchanged { .. }
            | Self::Unsealed { .. }
            | Self::ObjectsMissing { .. }
            | Self::NoCounts { .. } => Exit::MissingInput,
            Self::OtherSettings { .. } => Exit::Settings,
            Self::TextTwice { .. } | Self::TooMany(_) => Exit::BadInput,
            Self::Making(error) => error.exit(),
            Self::Dataset(error) => error.exit(),
            Self::Store(error) => error.exit(),
            Self::Counts { source, .. } if source.kind() == io::ErrorKind::NotFound => Exit::MissingInput,
            Self::Counts { .. } | Self::Output(_) => Exit::Io,
            Self::StillRunning { .. } => Exit::TryAgain,
        }
    }
}

/// Result of a merge.
pub type Result<T, E = Error> = std::result::Result<T, E>;
