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
}
