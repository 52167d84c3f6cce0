//! Errors of writing and verifying a table. The caller names the file.

use std::io;

use parquet::errors::ParquetError;
use thiserror::Error;

/// Why a table was not written or not verified.
#[derive(Debug, Error)]
pub enum Error {
    /// The file could not be written or read.
    #[error("cannot {action}")]
    Io {
        /// The failed action.
        action: &'static str,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The file read back differs from the rows written, or the rows are not what they should be.
    #[error("{0}")]
    Differs(String),
}

/// Result of writing or verifying a table.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of the Parquet library during this action. It contains the system's error if there was one.
    pub(crate) fn of(action: &'static str, error: ParquetError) -> Self {
        match error {
            ParquetError::External(error) => match error.downcast::<io::Error>() {
                Ok(source) => Self::Io { action, source: *source },
                Err(error) => Self::Differs(format!("cannot {action}: {error}")),
            },
            error => Self::Differs(format!("cannot {action}: {error}")),
        }
    }
}

/// Adds the failed action to an error of the system.
pub(crate) fn io<T>(action: &'static str, result: io::Result<T>) -> Result<T> {
    result.map_err(|source| Error::Io { action, source })
}
