//! Why a run is not merged: one line that names the thing, the found, the expected and what to do.

use std::io;
use std::path::{Path, PathBuf};

use corpus::ledger::{ReducerCounts, TooManyBad, Unbalanced};
use program::exit::Exit;
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
    #[error(
        "{object} is no {expected} ({found}), expected one of schema version {}; restore it, or use the programs that \
         wrote it",
        dataset::SCHEMA_VERSION
    )]
    Record {
        /// The object or file.
        object: String,
        /// What it should be.
        expected: &'static str,
        /// What is wrong with it.
        found: String,
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
    /// Another dataset whose texts were cleaned by other rules.
    #[error(
        "{}: {what} is {found}, that of this run {expected}; texts are cleaned differently and cannot be compared: make \
         it again", path.display()
    )]
    OtherCleaning {
        /// The other dataset.
        path: PathBuf,
        /// What differs.
        what: &'static str,
        /// Its value there.
        found: String,
        /// Its value in this run.
        expected: String,
    },
    /// Rows that were made by other settings than those of the dataset whose vocabulary they are to have.
    #[error(
        "{}: its {what} is {found}, that of this run {expected}; with one vocabulary, rows of both are read alike: run \
         the reducers with {flags}, into a new --run", path.display()
    )]
    OtherRows {
        /// The other dataset.
        path: PathBuf,
        /// What differs.
        what: &'static str,
        /// Its value there.
        found: String,
        /// Its value in this run.
        expected: String,
        /// The flags of a reducer that give the settings there.
        flags: String,
    },
    /// There is nothing to make a dataset of.
    #[error(
        "{}: not made, as no row is left: {reducer}, {left_out} left out; check the input and its format, and what \
         --stopwords and --without leave out", path.display()
    )]
    NoRows {
        /// Where the dataset was to go.
        path: PathBuf,
        /// What became of all texts.
        reducer: ReducerCounts,
        /// Rows whose texts another dataset holds.
        left_out: u64,
    },
    /// The folder above the one that a dataset goes into is not there.
    #[error("{}: no such folder, expected one to write into; make it by mkdir -p, or check --out", path.display())]
    NoFolder {
        /// The folder.
        path: PathBuf,
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
    /// A dataset that is not what its manifest says.
    #[error(
        "{} has {what} {found}, its manifest says {expected}; one of both was altered: merge the run again",
        path.display()
    )]
    OtherThanManifest {
        /// The dataset.
        path: PathBuf,
        /// What was compared.
        what: &'static str,
        /// That of the file.
        found: String,
        /// That of the manifest.
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
    /// The ledger does not balance.
    #[error("the ledger does not balance")]
    Ledger(#[from] Unbalanced),
    /// The whole run has too many bad lines.
    #[error("{0}; the mappers' logs say where, or raise --bad-lines-max")]
    BadLines(TooManyBad),
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
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A file could not be written or read.
    #[error("{}: cannot {action}; check the path, its permissions and the free space", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was to be done.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Standard output failed.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
    /// Whoever wanted the dataset wants it no longer.
    #[error("interrupted; nothing was written, start it again")]
    Interrupted,
    /// A dataset that does not hold what was written.
    #[error("{} does not read back as written ({found}); is the disk sound, and has it room?", path.display())]
    Unverified {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        found: String,
    },
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
            Self::NoCommits { .. }
            | Self::Partitions { .. }
            | Self::Record { .. }
            | Self::Contradiction { .. }
            | Self::OtherRun { .. }
            | Self::Altered { .. }
            | Self::Exchanged { .. }
            | Self::Unsealed { .. }
            | Self::OtherThanManifest { .. }
            | Self::ObjectsMissing { .. }
            | Self::NoCounts { .. } => Exit::MissingInput,
            Self::OtherSettings { .. } | Self::OtherCleaning { .. } | Self::OtherRows { .. } => {
                Exit::Settings
            }
            Self::TextTwice { .. } | Self::Ledger(_) | Self::BadLines(_) | Self::NoRows { .. } => {
                Exit::BadInput
            }
            Self::OtherFile { .. } | Self::NoFolder { .. } => Exit::Usage,
            Self::Dataset(error) => error.exit(),
            Self::Store(error) => error.exit(),
            Self::File { source, .. } if source.kind() == io::ErrorKind::NotFound => Exit::MissingInput,
            Self::File { .. } | Self::Output(_) | Self::Unverified { .. } => Exit::Io,
            Self::StillRunning { .. } | Self::Interrupted => Exit::TryAgain,
        }
    }
}

/// What a merge gives.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Says which file an error of the system belongs to, and what was to be done.
pub(crate) fn at<T>(path: &Path, action: &'static str, result: io::Result<T>) -> Result<T> {
    result.map_err(|source| Error::File { path: path.to_owned(), action, source })
}
