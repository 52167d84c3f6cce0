//! Errors of making a dataset. Each message is one line: the thing, what was found, what was expected, the
//! remedy.

use std::io;
use std::path::{Path, PathBuf};

use corpus::ledger::{ReducerCounts, Unbalanced};
use program::exit::{Exit, Fails};
use program::place::NoFolder;
use program::system::Failure;
use thiserror::Error;

/// Why no dataset was made.
#[derive(Debug, Error)]
pub enum Error {
    /// An object is not a record of this project.
    #[error(
        "{object} is not a {expected} ({found}), expected one of schema version {}; restore it, or use the version of the programs that wrote it",
        dataset::SCHEMA_VERSION
    )]
    Record {
        /// The object or file.
        object: String,
        /// The kind of record expected.
        expected: &'static str,
        /// What is wrong with it.
        found: String,
    },
    /// The texts of another dataset were cleaned by other rules.
    #[error(
        "{}: {what} is {found}, expected {expected} as in this run; texts are cleaned differently and cannot be compared: make \
         it again", path.display()
    )]
    OtherCleaning {
        /// The other dataset.
        path: PathBuf,
        /// The property that differs.
        what: &'static str,
        /// Its value in the other dataset.
        found: String,
        /// Its value in this run.
        expected: String,
    },
    /// The rows were made with other settings than those of the dataset whose vocabulary is reused.
    #[error(
        "{}: its {what} is {found}, expected {expected} as in this run; datasets that share a vocabulary must have the same settings: run the reducers with {flags}, into a new --run", path.display()
    )]
    OtherRows {
        /// The other dataset.
        path: PathBuf,
        /// The setting that differs.
        what: &'static str,
        /// Its value in the other dataset.
        found: String,
        /// Its value in this run.
        expected: String,
        /// The flags of a reducer for the settings of the other dataset.
        flags: String,
    },
    /// No row is left for the dataset.
    #[error(
        "{}: not written, because no row remains: {reducer}, {left_out} omitted; check the input, its format, --stopwords, --sample and --without", path.display()
    )]
    NoRows {
        /// The path of the dataset.
        path: PathBuf,
        /// The counts of all texts.
        reducer: ReducerCounts,
        /// Number of rows whose texts another dataset has.
        left_out: u64,
    },
    /// The parent of the output folder does not exist.
    #[error(transparent)]
    NoFolder(#[from] NoFolder),
    /// A dataset differs from its manifest.
    #[error(
        "{}: {what} is {found}, its manifest has {expected}; one of the two was altered: merge the run again",
        path.display()
    )]
    OtherThanManifest {
        /// The dataset.
        path: PathBuf,
        /// The property that was compared.
        what: &'static str,
        /// Its value in the file.
        found: String,
        /// Its value in the manifest.
        expected: String,
    },
    /// The ledger does not balance.
    #[error("the ledger does not balance")]
    Ledger(#[from] Unbalanced),
    /// Another file has the path of the dataset.
    #[error("{}: already exists and is {found}, expected {expected}; nothing was changed: move it away, choose another --out, or replace a dataset by --force", path.display())]
    OtherFile {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// Another object has the name of the dataset or of a file beside it.
    #[error(
        "{url}: already exists and is {found}, expected {expected}; nothing in S3 is overwritten: choose another --out"
    )]
    OtherObject {
        /// The object.
        url: String,
        /// What it is.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// `--force` was passed with an output in S3.
    #[error(
        "--force: nothing in S3 is overwritten, expected no --force with --out {url}; omit it, and choose another --out if a dataset exists there"
    )]
    ForcedInS3 {
        /// The output.
        url: String,
    },
    /// The store of the output or of another dataset failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A temporary file could not be written or read.
    #[error("{}: {}", path.display(), Failure::writing(action, source, "set TMPDIR to a folder on another disk"))]
    Temporary {
        /// The file.
        path: PathBuf,
        /// The failed action.
        action: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// There is an existing file that `--force` does not replace.
    #[error(
        "{}: already exists and is not replaced: {why}; --force replaces only datasets of merge and sentimill: move it away \
         or choose another --out",
        path.display()
    )]
    NotReplaced {
        /// The file.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },
    /// A shard or dataset could not be written or read.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// A file could not be written or read.
    #[error("{}: {}", path.display(), Failure::writing(action, source, "choose another --out"))]
    File {
        /// The file.
        path: PathBuf,
        /// The failed action.
        action: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The file of texts has the name of another file of the dataset.
    #[error("--texts {name}: found the name of another file of this dataset, expected a name of its own")]
    SameName {
        /// The name.
        name: String,
    },
    /// The work was interrupted.
    #[error("interrupted; no dataset was written: run it again")]
    Interrupted,
    /// A dataset does not contain what was written.
    #[error("{}: the file read back differs from the data written ({found}); check the disk of --out", path.display())]
    Unverified {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        found: String,
    },
}

impl Error {
    /// Returns this error with the final name of a file that is written under a temporary name.
    pub(crate) fn named(self, name: &Path) -> Self {
        match self {
            Self::Dataset(dataset::Error::Io { action, source, .. }) => {
                Self::File { path: name.to_owned(), action, source }
            }
            Self::Dataset(error) => Self::Dataset(error.named(name)),
            Self::File { action, source, .. } => Self::File { path: name.to_owned(), action, source },
            Self::Unverified { found, .. } => Self::Unverified { path: name.to_owned(), found },
            other => other,
        }
    }

    /// Returns this error for a file in the folder for temporary files.
    pub(crate) fn in_tmpdir(self) -> Self {
        match self {
            Self::File { path, action, source } => Self::Temporary { path, action, source },
            Self::Dataset(error) => Self::Dataset(error.in_tmpdir()),
            other => other,
        }
    }
}

impl Fails for Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Record { .. } | Self::OtherThanManifest { .. } => Exit::MissingInput,
            Self::OtherCleaning { .. } | Self::OtherRows { .. } => Exit::Settings,
            Self::Ledger(_) | Self::NoRows { .. } => Exit::BadInput,
            Self::OtherFile { .. }
            | Self::OtherObject { .. }
            | Self::ForcedInS3 { .. }
            | Self::NotReplaced { .. }
            | Self::SameName { .. }
            | Self::NoFolder(_) => Exit::Usage,
            Self::Dataset(error) => error.exit(),
            Self::Store(error) => error.exit(),
            Self::File { source, .. } if source.kind() == io::ErrorKind::NotFound => Exit::MissingInput,
            Self::File { .. } | Self::Temporary { .. } | Self::Unverified { .. } => Exit::Io,
            Self::Interrupted => Exit::TryAgain,
        }
    }
}

/// Result of making a dataset.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of a table at this path.
pub(crate) fn of_table(path: &Path, error: tables::Error) -> Error {
    let path = path.to_owned();
    match error {
        tables::Error::Io { action, source } => Error::File { path, action, source },
        tables::Error::Differs(found) => Error::Unverified { path, found },
    }
}

/// Adds the path of the file and the failed action to an error of the system.
pub fn at<T>(path: &Path, action: &'static str, result: io::Result<T>) -> Result<T> {
    result.map_err(|source| Error::File { path: path.to_owned(), action, source })
}
