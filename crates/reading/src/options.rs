//! Options of reading.

use std::num::NonZeroUsize;

use corpus::encoding::Encoding;
use corpus::format::Format;

/// Which columns of Parquet and Arrow files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptColumns {
    /// Those of the text and the rating.
    OfFields,
    /// Also all other columns of texts, numbers and booleans.
    All,
}

/// Options of reading.
#[derive(Clone, Debug)]
pub struct ReadingOptions {
    /// The format of lines. For Parquet and Arrow files, which are read with the format `json`, its fields name
    /// the columns.
    pub format: Format,
    /// The encoding of all sources but Parquet and Arrow files.
    pub encoding: &'static Encoding,
    /// Maximum length of a line, or of the text of a row.
    pub line_bytes_max: usize,
    /// Number of threads that will call [`Reading::each`](crate::Reading::each).
    pub threads: NonZeroUsize,
    /// Maximum number of streams that are read at once.
    pub streams_max: NonZeroUsize,
    /// Memory for the record batches and the dictionaries of Arrow files and for the pages of Parquet files, for all threads
    /// together. A record batch or pages that exceed it are read while no others are.
    pub batches_bytes: usize,
    /// The columns of Parquet and Arrow files that are read.
    pub columns: KeptColumns,
}
