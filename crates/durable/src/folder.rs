//! A folder of files with their digests in `SHA256SUMS`, for `sha256sum --check`.
//!
//! The folder appears completely or not at all: files are written into a temporary folder beside it and made durable,
//! and the folder is then renamed. A killed process leaves at most a folder `.saving-…`. An existing path is refused.
//! A file is used only if it matches its digest.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use program::place::folder_of;
use tempfile::TempDir;

use crate::error::{At, Error, Result};
use crate::new_file::{check_free, sync_folder};
use crate::output::{self, Output, Summary};

/// The list of digests.
pub const SUMS: &str = "SHA256SUMS";
/// What helps against a damaged model.
pub const REMEDY: &str = "copy or train the model again";
const SUMS_BYTES_MAX: u64 = 1 << 20;

/// A folder that is being written. It is deleted unless it is finished.
#[derive(Debug)]
pub struct NewFolder {
    temporary: TempDir,
    folder: PathBuf,
    files: BTreeMap<String, Summary>,
}

impl NewFolder {
    /// Refuses an occupied path before anything is written.
    pub fn begin(folder: &Path) -> Result<Self> {
        check_free(folder)?;
        let parent = folder_of(folder);
        match fs::create_dir(parent) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => made.at(parent, "make the folder")?,
        }
        // As readable as any new folder is, by the user's umask.
        let readable = Permissions::from_mode(0o777);
        let made = tempfile::Builder::new().prefix(".saving-").permissions(readable).tempdir_in(parent);
        // tempfile's error contains the name of a random folder; the kind of the error is sufficient.
        let temporary = made.map_err(|error| error.kind().into()).at(parent, "make a folder in it")?;
        Ok(Self { temporary, folder: folder.to_owned(), files: BTreeMap::new() })
    }

    /// Writes a file that [`NewFolder::finish`] lists.
    pub fn put(&mut self, name: &str, write: impl FnOnce(&mut Output<'_>) -> io::Result<()>) -> Result<()> {
        let summary = self.create(name, write)?;
        self.list(name, summary);
        Ok(())
    }

    /// Writes a file, also in several threads at once. Only [`NewFolder::list`] adds it to the list.
    pub fn create(
        &self,
        name: &str,
        write: impl FnOnce(&mut Output<'_>) -> io::Result<()>,
    ) -> Result<Summary> {
        // Messages name the final path, because the temporary folder is deleted.
        let summary = output::create(&self.temporary.path().join(name), write);
        summary.at(&self.folder.join(name), "write it")
    }

    /// Adds a file to the list of digests.
    pub fn list(&mut self, name: &str, summary: Summary) {
        self.files.insert(name.to_owned(), summary);
    }

    /// The listed files.
    pub fn files(&self) -> &BTreeMap<String, Summary> {
        &self.files
    }

    /// Writes the list of digests and renames the folder. On return, it is durable.
    pub fn finish(mut self) -> Result<()> {
        let sums: String =
            self.files.iter().map(|(name, Summary { sha256, .. })| format!("{sha256}  {name}\n")).collect();
        self.put(SUMS, |out| out.write_all(sums.as_bytes()))?;
        sync_folder(self.temporary.path()).at(&self.folder, "write it")?;
        // Only an empty folder, created in the meantime, would be replaced.
        fs::rename(self.temporary.path(), &self.folder).at(&self.folder, "rename it")?;
        // There is nothing to remove under its former name.
        let _ = self.temporary.keep();
        sync_folder(folder_of(&self.folder)).at(folder_of(&self.folder), "sync the folder")
    }
}

/// The list of digests of a folder.
#[derive(Debug)]
pub struct Sums {
    folder: PathBuf,
    digests: BTreeMap<String, String>,
}

impl Sums {
    /// Reads the list.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(SUMS);
        let bytes = read_bounded(&path, SUMS_BYTES_MAX)?;
        let text = String::from_utf8_lossy(&bytes);
        let parsed = text.lines().map(|line| {
            let (sha256, name) = line.split_once("  ").ok_or_else(|| {
                let found = format!("{line:?}");
                Error::unexpected(&path, "a line", found, "a SHA-256, two spaces and a name", REMEDY)
            })?;
            Ok((name.to_owned(), sha256.to_owned()))
        });
        Ok(Self { folder: folder.to_owned(), digests: parsed.collect::<Result<_>>()? })
    }

    /// The content of a file of at most `bytes_max` bytes that matches its digest.
    pub fn content(&self, name: &str, bytes_max: u64) -> Result<Vec<u8>> {
        let path = self.folder.join(name);
        let bytes = read_bounded(&path, bytes_max)?;
        check_digest(&path, &output::summary_of(&bytes).sha256, self.digest(name)?)?;
        Ok(bytes)
    }

    /// Refuses a file whose summary in another list has another digest.
    pub fn check(&self, name: &str, expected: &Summary) -> Result<()> {
        let found = self.digest(name)?;
        if *found == expected.sha256 {
            return Ok(());
        }
        let field = format!("the SHA-256 of {name}");
        Err(Error::unexpected(&self.folder.join(SUMS), field, found, &expected.sha256, REMEDY))
    }

    /// The error of a file that is not listed.
    pub fn missing(&self, name: &str) -> Error {
        let field = format!("the SHA-256 of {name}");
        Error::unexpected(&self.folder.join(SUMS), field, "missing", "one", REMEDY)
    }

    fn digest(&self, name: &str) -> Result<&String> {
        self.digests.get(name).ok_or_else(|| self.missing(name))
    }
}

/// The content of a file that matches its summary.
pub fn content(path: &Path, expected: &Summary) -> Result<Vec<u8>> {
    let bytes = read_bounded(path, expected.bytes)?;
    check_digest(path, &output::summary_of(&bytes).sha256, &expected.sha256)?;
    Ok(bytes)
}

/// Reads a large file with `read` while another thread verifies its digest.
pub fn verified<T: Send>(
    path: &Path,
    expected: &Summary,
    read: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    check_regular(path)?;
    let (read, found) = std::thread::scope(|scope| {
        let read = scope.spawn(read);
        let found = output::summary(path);
        (read.join(), found)
    });
    check_digest(path, &found.at(path, "read it")?.sha256, &expected.sha256)?;
    read.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Reads a file of at most `bytes_max` bytes.
pub fn read_bounded(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    check_regular(path)?;
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes))
        .at(path, "read it")?;
    if bytes.len() as u64 > bytes_max {
        let expected = format!("at most {bytes_max}");
        return Err(Error::unexpected(path, "the number of bytes", "greater", expected, REMEDY));
    }
    Ok(bytes)
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

fn check_digest(path: &Path, found: &str, expected: &str) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Damaged { path: path.to_owned(), found: found.to_owned(), expected: expected.to_owned() })
}
