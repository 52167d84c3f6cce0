//! Errors of reading inputs, and the exit code for each.

use std::io;
use std::path::PathBuf;

use corpus::csv::{Delimiter, Dialect};
use corpus::format::FormatName;
use corpus::json_array::ArrayError;
use corpus::shell::word;
use program::exit::{Exit, Fails};
use program::system::Failure;
use thiserror::Error;

/// Why an input could not be found or read.
#[derive(Debug, Error)]
pub enum Error {
    /// The input does not exist.
    #[error("{input}: no such file or folder; check the path")]
    Missing {
        /// The input, as passed.
        input: String,
    },
    /// No file matches a pattern.
    #[error(
        "{pattern}: found no file that matches the pattern; check it, and quote it so that the shell does not expand it"
    )]
    NoMatch {
        /// The pattern, as passed.
        pattern: String,
    },
    /// A folder has no files.
    #[error(
        "{folder}: found no file in the folder, expected at least one whose name does not begin with . or _; check the name"
    )]
    Empty {
        /// Its name.
        folder: String,
    },
    /// A source has less content than an earlier process read.
    #[error(
        "{input}: found {found} bytes, expected at least {expected}, which an earlier process read; pass the same input"
    )]
    Shorter {
        /// Its name.
        input: String,
        /// Its decoded size.
        found: u64,
        /// Number of bytes that were read.
        expected: u64,
    },
    /// A line is longer than [`corpus::lines::LINE_BYTES_MAX`], and skipped.
    #[error("{input}:{line}: line_too_long")]
    LongLine {
        /// Name of the source.
        input: String,
        /// Number of the line, from 1.
        line: u64,
    },
    /// A file that is followed has other content than before.
    #[error(
        "{input}: found other content than the {lines} lines that were read of it; reading it from its start"
    )]
    Replaced {
        /// Its name.
        input: String,
        /// Number of lines that were read of the earlier content.
        lines: u64,
    },
    /// What was read of a stream could not be kept.
    #[error("{}: {}", .folder.display(), Failure::writing("keep what was read of a stream", .source, "choose another --out"))]
    Taken {
        /// The folder.
        folder: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A pattern is invalid.
    #[error(
        "{pattern}: found {found} at character {at}, expected a pattern of *, ?, [...] and **; correct it"
    )]
    BadPattern {
        /// The pattern, as passed.
        pattern: String,
        /// Position of the error.
        at: usize,
        /// What is wrong there.
        found: &'static str,
    },
    /// A URL with an unsupported scheme.
    #[error(
        "{input}: found the scheme {scheme}, expected a file, a folder, a pattern, -, s3:// or https://; {}",
        if scheme == "file" { "pass the path after file://" } else { "copy the data to this machine" }
    )]
    NoSuchPlace {
        /// The URL, as passed.
        input: String,
        /// Its scheme.
        scheme: String,
    },
    /// The same file was passed under two names.
    #[error(
        "{second}: found the same file or folder as {first}, and its reviews would count twice; name it once"
    )]
    Twice {
        /// The first name.
        first: String,
        /// The second name.
        second: String,
    },
    /// The operating system or a decoder returned an error.
    #[error("{input}: {}", Failure::reading(doing, source))]
    Read {
        /// Name of the input.
        input: String,
        /// The failed action.
        doing: &'static str,
        /// The error.
        source: io::Error,
    },
    /// A bucket could not be read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A Parquet or Arrow file was passed as a stream, in which it cannot be read.
    #[error(
        "{input}: found {kind}, which can only be read from a file that is not compressed; write it to a file on this \
         machine"
    )]
    NoFile {
        /// Name of the input.
        input: String,
        /// The kind of file.
        kind: &'static str,
    },
    /// A Parquet or Arrow file was passed with a format of lines.
    #[error("{input}: found {kind} file, expected lines of the format {format}; omit --format {format}")]
    NotLines {
        /// Name of the file.
        input: String,
        /// The kind of file, with its article.
        kind: &'static str,
        /// The format.
        format: FormatName,
    },
    /// A Parquet or Arrow file was passed with an encoding.
    #[error(
        "{input}: found a Parquet or Arrow file, whose texts are UTF-8, expected text in {encoding}; omit --encoding, and read \
         other encodings by a command of their own"
    )]
    Encoded {
        /// Name of the file.
        input: String,
        /// The encoding.
        encoding: &'static str,
    },
    /// A Parquet or Arrow file is damaged.
    #[error("{input}: the {kind} file is damaged ({found}); fetch the file again")]
    Damaged {
        /// Name of the file.
        input: String,
        /// The kind of file.
        kind: &'static str,
        /// The error of the decoder.
        found: String,
    },
    /// An Arrow stream ends without the mark of its end.
    #[error(
        "{input}: the Arrow file is damaged (no end-of-stream mark at its end, byte {end}): truncated, or its writer did \
         not close it; write it again"
    )]
    Unclosed {
        /// Name of the file.
        input: String,
        /// Size of the file.
        end: u64,
    },
    /// A record batch or the dictionaries of an Arrow file are larger than allowed.
    #[error(
        "{input}: found a record batch or a dictionary of {bytes} bytes, expected at most {most}; write the file with \
         smaller batches, or as Parquet"
    )]
    LargeBatch {
        /// Name of the file.
        input: String,
        /// The size.
        bytes: u64,
        /// The maximum size.
        most: u64,
    },
    /// The metadata or the pages of a Parquet file are larger than allowed.
    #[error("{input}: {excess}")]
    LargeTable {
        /// Name of the file.
        input: String,
        /// What is too large.
        excess: tables::foreign::Excess,
    },
    /// A JSON array cannot be read.
    #[error("{input}: {error}")]
    Array {
        /// Name of the input.
        input: String,
        /// What is wrong.
        error: ArrayError,
    },
    /// The first line of a CSV file is not a header.
    #[error(
        "{input}: found a first line with an open quote or of more than 4 MiB, expected a header with names of columns; write one"
    )]
    NoHeader {
        /// Name of the input.
        input: String,
    },
    /// The first record of a CSV file is not a header.
    #[error(
        "{input}: found a first record with the {what} {found:?}, expected a header with names of columns; write one with the \
         numbers of the columns, as in (seq {n_columns} | paste -s -d {}; cat FILE) > NEW",
        word(delimiter)
    )]
    HeaderIsRecord {
        /// Name of the input.
        input: String,
        /// `rating` or `label`.
        what: &'static str,
        /// The value in its column.
        found: String,
        /// Number of columns.
        n_columns: usize,
        /// The character between columns, as `paste` reads it.
        delimiter: String,
    },
    /// The columns of a CSV file are separated by another character.
    #[error(
        "{input}: found a header whose columns are separated by {}, expected {}; pass {}",
        found.name(), expected.name(), found.flag()
    )]
    OtherDelimiter {
        /// Name of the input.
        input: String,
        /// The delimiter.
        found: Delimiter,
        /// The expected delimiter.
        expected: Delimiter,
    },
    /// Tables are written differently.
    #[error(
        "{second}: found {second_dialect}, unlike {first} ({first_dialect}), expected one dialect; read them by separate \
         commands, or {}",
        one_dialect(*first_dialect, *second_dialect)
    )]
    Dialects {
        /// Name of an input.
        first: String,
        /// Its dialect.
        first_dialect: Dialect,
        /// Name of another input.
        second: String,
        /// Its dialect.
        second_dialect: Dialect,
    },
    /// Several columns have the required name.
    #[error(
        "{input}: found several columns {column}, expected one; select it by its number with {option}: {numbers}"
    )]
    EqualColumns {
        /// Name of the input.
        input: String,
        /// The name, in quotes.
        column: String,
        /// Their numbers, from 1.
        numbers: String,
        /// The option that selects the column.
        option: &'static str,
    },
    /// A listing has a file and its compressed copy.
    #[error(
        "{second}: found beside {first}, and their reviews would count twice if one is a compressed copy of the other; \
         remove one, or name each file"
    )]
    Copy {
        /// The file.
        first: String,
        /// The compressed file.
        second: String,
    },
    /// A table lacks a required column.
    #[error("{input}: found no column {column} among {found}; name the right column with {option}")]
    NoColumn {
        /// Name of the file.
        input: String,
        /// The required column, in quotes.
        column: String,
        /// The existing columns.
        found: String,
        /// The option that names the column.
        option: &'static str,
    },
    /// The values of a column are not texts or ratings.
    #[error(
        "{input}: found {found} in the column {column}, expected {expected}; name the right column with {option}"
    )]
    BadColumn {
        /// Name of the file.
        input: String,
        /// Name of the column, in quotes.
        column: String,
        /// The type found.
        found: String,
        /// The expected types.
        expected: &'static str,
        /// The option that names the column.
        option: &'static str,
    },
    /// A thread that read a stream panicked.
    #[error("{input}: the thread that read it panicked, see the message above; please report this defect")]
    Panicked {
        /// Name of the stream.
        input: String,
    },
}

impl Error {
    pub(crate) fn header_is_record(
        input: String,
        what: &'static str,
        found: String,
        n_columns: usize,
        dialect: Dialect,
    ) -> Self {
        let delimiter = char::from(dialect.delimiter.byte()).escape_default().to_string();
        Self::HeaderIsRecord { input, what, found, n_columns, delimiter }
    }

    /// The exit code for this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::BadPattern { .. }
            | Self::NoSuchPlace { .. }
            | Self::Twice { .. }
            | Self::Copy { .. }
            | Self::NotLines { .. }
            | Self::Encoded { .. }
            | Self::NoFile { .. } => Exit::Usage,
            Self::Missing { .. } | Self::NoMatch { .. } | Self::Empty { .. } => Exit::MissingInput,
            Self::Read { source, .. } if input::fault(source).is_some() => Exit::BadInput,
            Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => Exit::MissingInput,
            Self::Store(error) => error.exit(),
            Self::Read { .. } | Self::Taken { .. } => Exit::Io,
            Self::Damaged { .. }
            | Self::Shorter { .. }
            | Self::LongLine { .. }
            | Self::Replaced { .. }
            | Self::Unclosed { .. }
            | Self::LargeBatch { .. }
            | Self::LargeTable { .. }
            | Self::Array { .. }
            | Self::NoHeader { .. }
            | Self::HeaderIsRecord { .. }
            | Self::OtherDelimiter { .. }
            | Self::Dialects { .. }
            | Self::EqualColumns { .. }
            | Self::NoColumn { .. }
            | Self::BadColumn { .. } => Exit::BadInput,
            Self::Panicked { .. } => Exit::Internal,
        }
    }
}

impl Fails for Error {
    fn exit(&self) -> Exit {
        Self::exit(self)
    }
}

/// How tables of two dialects become tables of one.
fn one_dialect(first: Dialect, second: Dialect) -> String {
    if first.delimiter == second.delimiter {
        format!("set the dialect of all with {}", second.flags())
    } else {
        "write them with one delimiter".to_owned()
    }
}
