//! Why a run is not merged: one line that names the thing, the found, the expected and what to do.

use std::io;
use std::path::PathBuf;

use corpus::ledger::TooManyBad;
use program::exit::Exit;
use thiserror::Error;

/// Why there is no dataset.
#[derive(Debug, Error)]
pub enum Error {
    /// No run was named, and the default folder does not exist.
    #[error(
        "{run}: no such folder, expected the run to merge; write one by `mapper | LC_ALL=C sort | reducer`, or pass --run"
    )]
    NoRun {
        /// The default run.
        run: String,
    },
    /// The run has no commit.
    #[error("{run} has no committed partition, expected all of them; is this the reducers' --run?")]
    NoCommits {
        /// The run.
        run: String,
    },
    /// Partitions are missing or too many.
    #[error(
        "{run} has {found} of {partitions} partitions: {wrong}; run those reducers, or name the right --run"
    )]
    Partitions {
        /// The run.
        run: String,
        /// Partitions with a commit.
        found: usize,
        /// Partitions there should be.
        partitions: u32,
        /// The missing and the extra ones.
        wrong: String,
    },
    /// A record that contradicts its own name.
    #[error(
        "{object} names {what} {found}, expected {expected}; the record was altered or is in the wrong place: restore \
         it"
    )]
    Contradiction {
        /// The record.
        object: String,
        /// What it names.
        what: &'static str,
        /// What it says.
        found: String,
        /// What it should say.
        expected: String,
    },
    /// Shards of different runs.
    #[error(
        "partitions {one} and {other} are of different runs, by their {what}: {found} and {expected}; restore the \
         commit of this run"
    )]
    OtherRun {
        /// A partition.
        one: u32,
        /// Another.
        other: u32,
        /// What differs.
        what: &'static str,
        /// The value of `one`.
        found: String,
        /// The value of `other`.
        expected: String,
    },
    /// Shards of different settings.
    #[error(
        "partitions {one} and {other} differ in {what}: {found} and {expected}; run all reducers with the same \
         settings, into a new --run"
    )]
    OtherSettings {
        /// A partition.
        one: u32,
        /// Another.
        other: u32,
        /// The setting.
        what: &'static str,
        /// The value of `one`.
        found: String,
        /// The value of `other`.
        expected: String,
    },
    /// A shard that is not what its commit says.
    #[error(
        "{object} has {what} {found}, its commit says {expected}; the object was altered: restore it, or run its \
         reducer again into a new --run"
    )]
    Altered {
        /// The object.
        object: String,
        /// What differs.
        what: &'static str,
        /// What was found.
        found: String,
        /// What the commit says.
        expected: String,
    },
    /// A shard that is another one than a moment ago.
    #[error(
        "{} has the digests of rows and words {found}, {expected} when it was verified; another file was given its name \
         meanwhile: restore it, and merge again when nobody writes to the run",
        path.display()
    )]
    Exchanged {
        /// The file.
        path: PathBuf,
        /// The digests of rows and words that it has.
        found: String,
        /// Those that it had.
        expected: String,
    },
    /// The commits are not those of the seal.
    #[error(
        "{run} was sealed: {what} is {found}, the seal says {expected}; neither commits nor seal of a sealed run may \
         change, restore them"
    )]
    Unsealed {
        /// The run.
        run: String,
        /// What differs.
        what: String,
        /// What the commits say.
        found: String,
        /// What the seal says.
        expected: String,
    },
    /// One text in two shards.
    #[error(
        "the text with hash {hash:016x} is in {one} and in {other}, expected in one of them; the reducers' input was \
         split by another rule than the text, so run them again with one splitter"
    )]
    TextTwice {
        /// The text's hash.
        hash: u64,
        /// A shard.
        one: String,
        /// Another.
        other: String,
    },
    /// The whole run has too many bad lines.
    #[error("{0}; the mappers' logs say where, or raise --bad-lines-max")]
    BadLines(TooManyBad),
    /// A file of counts that holds none.
    #[error("{}: found no counts, expected a mapper's --counts file or the saved output of the Hadoop job client", path.display())]
    NoCounts {
        /// The file.
        path: PathBuf,
    },
    /// A shard or dataset could not be written or read.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// The dataset could not be made, or is not sound.
    #[error(transparent)]
    Making(#[from] making::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Standard output failed.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
    /// Garbage collection in a run that lacks shards.
    #[error(
        "{run}: {found} of the {expected} objects that commits name are there, expected all; nothing was deleted: find \
         out what altered the run"
    )]
    ObjectsMissing {
        /// The run.
        run: String,
        /// Objects that are there.
        found: usize,
        /// Objects that are named.
        expected: usize,
    },
    /// Garbage collection while attempts may still be running.
    #[error(
        "{run}: {found} of {partitions} partitions are committed, and an attempt that still runs may need its object; \
         nothing is deleted before all are"
    )]
    StillRunning {
        /// The run.
        run: String,
        /// Partitions with a commit.
        found: usize,
        /// Partitions of the run.
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
            Self::TextTwice { .. } | Self::BadLines(_) => Exit::BadInput,
            Self::Making(error) => error.exit(),
            Self::Dataset(error) => error.exit(),
            Self::Store(error) => error.exit(),
            Self::Output(_) => Exit::Io,
            Self::StillRunning { .. } => Exit::TryAgain,
        }
    }
}

/// What a merge gives.
pub type Result<T, E = Error> = std::result::Result<T, E>;
