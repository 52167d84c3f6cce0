//! Why reviews could not be read, and the exit code that a program owes for it.

use std::io;

use corpus::format::FormatName;
use program::exit::Exit;
use thiserror::Error;

/// An input that cannot be found or read.
#[derive(Debug, Error)]
pub enum Error {
    /// Nothing has the name.
    #[error("{input}: found no such file or folder; check the name")]
    Missing {
        /// As it was given.
        input: String,
    },
    /// A pattern fits nothing.
    #[error(
        "{pattern}: found no file that fits the pattern; check it, and quote it so that no shell reads it first"
    )]
    NoMatch {
        /// As it was given.
        pattern: String,
    },
    /// A folder without files.
    #[error(
        "{folder}: found no file in the folder, expected at least one whose name does not begin with . or _; check the name"
    )]
    Empty {
        /// Its name.
        folder: String,
    },
    /// Something that is no pattern.
    #[error(
        "{pattern}: found {found} at character {at}, expected a pattern of *, ?, [...] and **; correct it"
    )]
    BadPattern {
        /// As it was given.
        pattern: String,
        /// Where it goes wrong.
        at: usize,
        /// What is wrong there.
        found: &'static str,
    },
    /// A URL of a kind that is not read.
    #[error(
        "{input}: found the scheme {scheme}, expected a file, a folder, a pattern or -; copy the data to this machine"
    )]
    NoSuchPlace {
        /// As it was given.
        input: String,
        /// What stands before `://`.
        scheme: String,
    },
    /// The same file under two names.
    #[error(
        "{second}: found the same file or folder as {first}, and its reviews would count twice; name it once"
    )]
    Twice {
        /// The name that was met first.
        first: String,
        /// The other.
        second: String,
    },
    /// The operating system, or a decoder, failed.
    #[error("{input}: cannot {doing}")]
    Read {
        /// Its name.
        input: String,
        /// What was being done.
        doing: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// A bucket could not be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Parquet where it cannot be read.
    #[error("{input}: found Parquet, which can only be read from a file; copy it to this machine")]
    NoFile {
        /// Its name.
        input: String,
    },
    /// Parquet where lines were announced.
    #[error(
        "{input}: found a file of Parquet, expected lines of the format {format}; leave --format {format} out"
    )]
    NotLines {
        /// The file's name.
        input: String,
        /// What its lines were to be.
        format: FormatName,
    },
    /// A Parquet file that is not whole.
    #[error("{input}: the file of Parquet is damaged ({found}); fetch the file again")]
    Damaged {
        /// The file's name.
        input: String,
        /// What its decoder says.
        found: String,
    },
    /// A Parquet file without a column that is needed.
    #[error("{input}: found no column {column:?} among {found}; name the right one by {option}")]
    NoColumn {
        /// The file's name.
        input: String,
        /// The column that was looked for.
        column: String,
        /// The columns that are there.
        found: String,
        /// The option that names it.
        option: &'static str,
    },
    /// A column of values that are no texts, or no ratings.
    #[error(
        "{input}: found {found} in the column {column:?}, expected {expected}; name the right one by {option}"
    )]
    BadColumn {
        /// The file's name.
        input: String,
        /// The column's.
        column: String,
        /// What it holds.
        found: String,
        /// What it should hold.
        expected: &'static str,
        /// The option that names it.
        option: &'static str,
    },
    /// A thread that read a stream broke off by a fault of this program.
    #[error("{input}: the thread that read it panicked, as is told above; report this")]
    Panicked {
        /// The stream's name.
        input: String,
    },
}

impl Error {
    /// The exit code of a program that ends because of this.
    pub fn exit(&self) -> Exit {
        match self {
            Self::BadPattern { .. }
            | Self::NoSuchPlace { .. }
            | Self::Twice { .. }
            | Self::NotLines { .. }
            | Self::NoFile { .. } => Exit::Usage,
            Self::Missing { .. } | Self::NoMatch { .. } | Self::Empty { .. } => Exit::MissingInput,
            Self::Read { source, .. } if input::fault(source).is_some() => Exit::BadInput,
            Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => Exit::MissingInput,
            Self::Store(error) => error.exit(),
            Self::Read { .. } => Exit::Io,
            Self::Damaged { .. } | Self::NoColumn { .. } | Self::BadColumn { .. } => Exit::BadInput,
            Self::Panicked { .. } => Exit::Internal,
        }
    }
}
