//! Why no dataset is made: one line that names the thing, the found, the expected and what to do.

use std::io;
use std::path::{Path, PathBuf};

use corpus::ledger::{ReducerCounts, Unbalanced};
use program::exit::Exit;
use program::place::NoFolder;
use thiserror::Error;

/// Why there is no dataset.
#[derive(Debug, Error)]
pub enum Error {
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
    #[error(transparent)]
    NoFolder(#[from] NoFolder),
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
    /// The ledger does not balance.
    #[error("the ledger does not balance")]
    Ledger(#[from] Unbalanced),
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
}

impl Error {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Record { .. } | Self::OtherThanManifest { .. } => Exit::MissingInput,
            Self::OtherCleaning { .. } | Self::OtherRows { .. } => Exit::Settings,
            Self::Ledger(_) | Self::NoRows { .. } => Exit::BadInput,
            Self::OtherFile { .. } | Self::NoFolder(_) => Exit::Usage,
            Self::Dataset(error) => error.exit(),
            Self::File { source, .. } if source.kind() == io::ErrorKind::NotFound => Exit::MissingInput,
            Self::File { .. } | Self::Unverified { .. } => Exit::Io,
            Self::Interrupted => Exit::TryAgain,
        }
    }
}

/// What the making of a dataset gives.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Says which file an error of the system belongs to, and what was to be done.
pub fn at<T>(path: &Path, action: &'static str, result: io::Result<T>) -> Result<T> {
    result.map_err(|source| Error::File { path: path.to_owned(), action, source })
}
