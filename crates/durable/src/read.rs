//! Reads files that may be hostile.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use program::bounded;

use crate::error::{At, Error, Result};

/// What helps against a damaged file of a model.
pub const REMEDY: &str = "copy or train the model again";

/// Reads a file of at most `bytes_max` bytes.
pub fn read_bounded(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    check_regular(path)?;
    bounded::read_up_to(path, bytes_max).at(path, "read it")?.ok_or_else(|| {
        let expected = format!("at most {bytes_max}");
        Error::unexpected(path, "the number of bytes", "greater", expected, REMEDY)
    })
}

/// Refuses a missing file, and a file that is not regular, because reading it might never end.
pub fn check_regular(path: &Path) -> Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(Error::unexpected(path, "it", "no regular file", "one", REMEDY)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(Error::Missing { path: path.to_owned(), expected: "a file of a model" })
        }
        Err(error) => Err(error).at(path, "read its metadata"),
    }
}
