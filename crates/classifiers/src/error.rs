//! Errors of reading texts and of training.

use std::io;
use std::path::PathBuf;

use program::system::Failure;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why texts were not read, or a model was not trained.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read.
    #[error("{}: {}", .path.display(), Failure::reading("read lines", .source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A line does not fit into memory.
    #[error("{}: the line at byte {from} is longer than {max} bytes; split it", .path.display())]
    LongLine {
        /// The file.
        path: PathBuf,
        /// Offset of the line.
        from: u64,
        /// Maximum length in bytes.
        max: usize,
    },
    /// Texts did not fit into memory, and the temporary file could not be written or read.
    #[error("{}: {}", .folder.display(), Failure::writing("store texts", .source, "set TMPDIR to another folder"))]
    Spill {
        /// The folder of the temporary file.
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// More distinct labels than supported.
    #[error("more than {max} distinct labels; check the label prefix")]
    TooManyLabels {
        /// Maximum number.
        max: usize,
    },
    /// There is nothing to train on.
    #[error(
        "no text with a label and a word ({n_unlabelled} lines without a label); check the input and the label prefix"
    )]
    NoTexts {
        /// Number of lines without a label.
        n_unlabelled: u64,
    },
    /// More rows than supported.
    #[error("{n_rows} words and buckets, the maximum is {max}; reduce --buckets")]
    TooManyRows {
        /// Number of words and buckets.
        n_rows: u64,
        /// Maximum number.
        max: u32,
    },
    /// The tables exceed the limit or the memory of the machine.
    #[error(
        "{n_rows} rows of dimension {dim} need {needed} bytes of memory, the limit is {max}; reduce --buckets or --dim, or raise --memory"
    )]
    TooLarge {
        /// Number of rows.
        n_rows: usize,
        /// Embedding dimension.
        dim: usize,
        /// Memory of all tables in bytes.
        needed: u64,
        /// The limit in bytes.
        max: u64,
    },
    /// The training diverged.
    #[error("the loss is not a number in epoch {epoch}; set a lower --rate than {rate:?}")]
    NotFinite {
        /// The epoch, from 1.
        epoch: u32,
        /// The learning rate.
        rate: f32,
    },
    /// A checkpoint could not be written.
    #[error("{}", Failure::writing("write the checkpoint", .source, "choose another --out"))]
    WriteState {
        /// The error of the system.
        source: io::Error,
    },
    /// A checkpoint could not be read.
    #[error("{}", Failure::reading("read the checkpoint", .source))]
    ReadState {
        /// The error of the system.
        source: io::Error,
    },
    /// A checkpoint belongs to another training.
    #[error(
        "the checkpoint is of other texts or settings; resume with the same input and flags, or start again"
    )]
    OtherState,
    /// The caller stopped the training.
    #[error("the training was stopped")]
    Stopped,
    /// A setting is out of range.
    #[error("{name}: {found}; expected {expected}")]
    Setting {
        /// Name of the setting.
        name: &'static str,
        /// Its value.
        found: String,
        /// The valid values.
        expected: &'static str,
    },
    /// The n-grams of all texts or the weights do not fit into memory.
    #[error(
        "the n-grams require more than {needed} bytes of memory, of which {max} are allowed; reduce --ngrams, or raise --min-count or --memory"
    )]
    Memory {
        /// Required memory in bytes, as far as counted.
        needed: u64,
        /// Maximum in bytes.
        max: u64,
    },
}
