//! Writes a file that appears completely or not at all.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use program::place::folder_of;
use program::temporary;
use tempfile::NamedTempFile;

use crate::error::{At, Error, Result};

/// Writes the file `path` with `write`. The file is written beside its final path, made durable and then renamed. An
/// existing file is not overwritten.
pub fn new_file(path: &Path, write: impl FnOnce(&File) -> io::Result<()>) -> Result<()> {
    check_free(path)?;
    let folder = folder_of(path);
    match written(path, write)?.persist_noclobber(path) {
        Ok(_) => sync_folder(folder).at(folder, "sync the folder"),
        Err(refused) if refused.error.kind() == io::ErrorKind::AlreadyExists => check_free(path),
        Err(refused) => Err(refused.error).at(path, "rename it"),
    }
}

/// As [`new_file`], but an existing file is replaced.
pub fn replace_file(path: &Path, write: impl FnOnce(&File) -> io::Result<()>) -> Result<()> {
    let folder = folder_of(path);
    written(path, write)?.persist(path).map_err(|refused| refused.error).at(path, "rename it")?;
    sync_folder(folder).at(folder, "sync the folder")
}

/// A durable file with another name beside `path`.
fn written(path: &Path, write: impl FnOnce(&File) -> io::Result<()>) -> Result<NamedTempFile> {
    let folder = folder_of(path);
    let file = temporary::file_in(folder).at(folder, "make a file in it")?;
    write(file.as_file()).and_then(|()| file.as_file().sync_all()).at(path, "write it")?;
    Ok(file)
}

/// Refuses a path at which a file or a folder exists.
pub fn check_free(path: &Path) -> Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.at(path, "read its metadata")?,
    };
    let found = if found.is_dir() { "a folder" } else { "a file" };
    Err(Error::Occupied { path: path.to_owned(), found })
}

/// Makes the entries of a folder durable.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        // Some network file systems do not support this; their entries are already on the server.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced_or_not => synced_or_not,
    }
}
