//! Why a run is not merged: one line that names the thing, the found, the expected and what to do.

use std::io;
use std::path::PathBuf;

use corpus::exit::Exit;
use corpus::ledger::Unbalanced;
use thiserror::Error;

/// Why there is no dataset.
#[derive(Debug, Error)]
pub enum Error {
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
    /// An object that is no record of ours.
    #[error("{object} is no {expected}; was it written by another version or another program?")]
    Record {
        /// The object or file.
        object: String,
        /// What it should be.
        expected: &'static str,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A record that contradicts its own name.
    #[error(
        "{object} names {what} {found}, expected {expected}; the record was altered or put in the wrong place"
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
    /// Shards that do not belong together.
    #[error(
        "partitions {one} and {other} differ in {what}: {found} and {expected}; a dataset is made of one run with one \
         set of settings, so run the reducers again into a new --run"
    )]
    Mixed {
        /// A partition.
        one: u32,
        /// Another.
        other: u32,
        /// What differs.
        what: String,
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
    /// The commits are not those of the seal.
    #[error(
        "{run} was sealed with other shards: partition {partition} is {found}, the seal says {expected}; commits of a \
         sealed run must not change"
    )]
    Unsealed {
        /// The run.
        run: String,
        /// The partition.
        partition: usize,
        /// The shard of the commit.
        found: String,
        /// The shard of the seal.
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
    /// The ledger does not balance.
    #[error("the ledger does not balance")]
    Ledger(#[from] Unbalanced),
    /// A file of counts that holds none.
    #[error("{}: found no counts, expected a mapper's --counts file or the saved output of the Hadoop job client", path.display())]
    NoCounts {
        /// The file.
        path: PathBuf,
    },
    /// Another file where the dataset should go.
    #[error("{} is there already and is {found}, expected {expected}; nothing was changed: move it away or name another --out", path.display())]
    OtherFile {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: String,
        /// What it would be.
        expected: String,
    },
    /// A shard or dataset could not be written or read.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// The store failed.
    #[error("the store")]
    Store(#[from] store::Error),
    /// A file could not be written or read.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A dataset that does not hold what was written.
    #[error("{} does not read back as written; is the disk sound?", path.display())]
    Unverified {
        /// The file.
        path: PathBuf,
    },
    /// Garbage collection while attempts may still be running.
    #[error(
        "{run}: only {found} of {partitions} partitions are committed, so an attempt that is still running may yet need its object; nothing was deleted"
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
            Self::NoCommits { .. }
            | Self::Partitions { .. }
            | Self::Record { .. }
            | Self::Contradiction { .. }
            | Self::Altered { .. }
            | Self::Unsealed { .. }
            | Self::NoCounts { .. } => Exit::MissingInput,
            Self::Mixed { .. } => Exit::Settings,
            Self::TextTwice { .. } | Self::Ledger(_) => Exit::BadInput,
            Self::OtherFile { .. } => Exit::Usage,
            Self::Dataset(error) => error.exit(),
            Self::Store(error) => error.exit(),
            Self::File { source, .. } if source.kind() == io::ErrorKind::NotFound => Exit::MissingInput,
            Self::File { .. } | Self::Unverified { .. } => Exit::Io,
            Self::StillRunning { .. } => Exit::TryAgain,
        }
    }
}

/// What a merge gives.
pub type Result<T> = std::result::Result<T, Error>;

/// Says which file an error of the system belongs to.
pub(crate) fn at<T>(path: &std::path::Path, result: io::Result<T>) -> Result<T> {
    result.map_err(|source| Error::File { path: path.to_owned(), source })
}
