//! Writes a folder that appears completely or not at all, with the digest of each file.
//!
//! Files are written into a temporary folder next to the final path, and each is made durable. The folder is then
//! renamed. A killed process leaves at most a folder `.saving-…`.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use dataset::sha256;
use durable::sync_folder;
use program::place::folder_of;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::TempDir;

use super::error::{Error, Result};
use super::{CONFIG, VOCABULARY, WEIGHTS};

pub(super) const SUMS: &str = "SHA256SUMS";
/// Enough for thousands of files.
const SUMS_BYTES_MAX: u64 = 1 << 20;

/// A folder that is being written. It is deleted unless it is finished.
pub struct Unfinished {
    temporary: TempDir,
    folder: PathBuf,
    /// Whether a model folder at this path is replaced.
    replaces: bool,
    /// Names and digests.
    files: Vec<(&'static str, String)>,
}

impl Unfinished {
    /// Refuses an occupied path before anything is written.
    pub fn begin(folder: &Path) -> Result<Self> {
        if let Some(found) = occupant(folder).at(folder, "read its metadata")? {
            return Err(Error::Occupied { path: folder.to_owned(), found, expected: "a new name" });
        }
        let parent = folder_of(folder);
        match fs::create_dir(parent) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => made.at(parent, "make the folder")?,
        }
        Self::beside(folder)
    }

    /// Begins a folder as [`Self::begin`] does, but an existing model folder is replaced if its files are
    /// unchanged and it contains no others.
    pub fn replacing(folder: &Path) -> Result<Self> {
        if occupant(folder).at(folder, "read its metadata")?.is_none() {
            return Self::begin(folder);
        }
        let refused = |found: String| Error::Occupied {
            path: folder.to_owned(),
            found,
            expected: "a model folder with unchanged files, which --force replaces",
        };
        if !folder.is_dir() {
            return Err(refused("a file".to_owned()));
        }
        let listed = verify(folder).map_err(|error| refused(error.to_string()))?;
        listed.require(CONFIG).map_err(|error| refused(error.to_string()))?;
        if let Some(other) = listed.unlisted()? {
            return Err(refused(format!("a folder with {other}")));
        }
        Ok(Self { folder: folder.to_owned(), replaces: true, ..Self::beside(folder)? })
    }

    fn beside(folder: &Path) -> Result<Self> {
        let parent = folder_of(folder);
        // As readable as any new folder is, by the user's umask.
        let readable = Permissions::from_mode(0o777);
        let made = tempfile::Builder::new().prefix(".saving-").permissions(readable).tempdir_in(parent);
        // tempfile's error contains the name of a random folder; the kind of the error is sufficient.
        let temporary = made.map_err(|error| error.kind().into()).at(parent, "make a folder in it")?;
        Ok(Self { temporary, folder: folder.to_owned(), replaces: false, files: Vec::new() })
    }

    /// Writes a file with `write`, makes it durable and returns its SHA-256.
    pub fn put(&mut self, name: &'static str, write: impl FnOnce(&Path) -> io::Result<()>) -> Result<String> {
        let path = self.temporary.path().join(name);
        // Messages name the final path, because the temporary folder is deleted.
        let wanted = self.folder.join(name);
        write(&path).and_then(|()| sync(&path)).at(&wanted, "write it")?;
        let sha256 = sha256::of_file(&path).at(&wanted, "read it back")?;
        self.files.push((name, sha256.clone()));
        Ok(sha256)
    }

    /// Writes the list of digests and renames the folder to its final path.
    pub fn finish(mut self) -> Result<()> {
        self.files.sort_unstable();
        let sums: String = self.files.iter().map(|(name, sha256)| format!("{sha256}  {name}\n")).collect();
        self.put(SUMS, |path| fs::write(path, &sums))?;
        sync_folder(self.temporary.path()).at(&self.folder, "write it")?;
        if !(self.replaces && exchange(self.temporary.path(), &self.folder)) {
            // If the file system cannot exchange names, the old folder is moved aside for a moment.
            let aside = self.replaces.then(|| move_aside(&self.folder)).transpose()?;
            // At this point, only an empty folder can exist at this path, and it may be replaced.
            if let Err(error) = fs::rename(self.temporary.path(), &self.folder) {
                if let Some(aside) = aside
                    && fs::rename(aside.path().join("old"), &self.folder).is_err()
                {
                    // Not deleted: it is the only copy.
                    let _ = aside.keep();
                }
                return Err(error).at(&self.folder, "rename it");
            }
            // There is nothing to remove under its former name.
            let _ = self.temporary.keep();
            drop(aside);
        }
        sync_folder(folder_of(&self.folder)).at(folder_of(&self.folder), "sync the folder")
    }
}

/// Exchanges the names of two folders, so that the old one is deleted with the temporary folder. Returns whether the file
/// system supports it.
fn exchange(new: &Path, old: &Path) -> bool {
    renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE).is_ok()
}

/// Moves a folder into a temporary folder beside it. Both are deleted together.
fn move_aside(folder: &Path) -> Result<TempDir> {
    let parent = folder_of(folder);
    let made = tempfile::Builder::new().prefix(".replaced-").tempdir_in(parent);
    let aside = made.map_err(|error| error.kind().into()).at(parent, "make a folder in it")?;
    fs::rename(folder, aside.path().join("old")).at(folder, "move it aside")?;
    Ok(aside)
}

/// Describes the existing file or folder at a path, for a message; `None` if the path is free.
fn occupant(folder: &Path) -> io::Result<Option<String>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == ErrorKind::NotADirectory => return Ok(Some("a file".to_owned())),
        entries => entries?,
    };
    let names = entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
    let expected = [CONFIG, SUMS, VOCABULARY, WEIGHTS];
    if let Some(name) = names.iter().find(|name| !expected.iter().any(|expected| name == expected)) {
        return Ok(Some(format!("a folder with {}", name.display())));
    }
    Ok(Some(match expected.iter().find(|expected| !names.iter().any(|name| name == *expected)) {
        Some(missing) => format!("a folder without {missing}"),
        None => "a model folder".to_owned(),
    }))
}

/// The files that a folder lists, with their digests.
#[derive(Debug)]
pub struct Listed<'a> {
    folder: &'a Path,
    sums: BTreeMap<String, String>,
}

impl Listed<'_> {
    /// Whether the folder lists this file.
    pub fn has(&self, name: &str) -> bool {
        self.sums.contains_key(name)
    }

    /// Returns the name of a file that the folder contains and does not list, if any.
    pub fn unlisted(&self) -> Result<Option<String>> {
        for entry in fs::read_dir(self.folder).at(self.folder, "list it")? {
            let name = entry.at(self.folder, "list it")?.file_name().to_string_lossy().into_owned();
            if name != SUMS && !self.has(&name) {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Refuses a folder that does not list this file.
    pub fn require(&self, name: &str) -> Result<()> {
        if self.has(name) {
            return Ok(());
        }
        let file = format!("the SHA-256 of {name}");
        Err(Error::Missing { folder: self.folder.to_owned(), file })
    }
}

/// Verifies every listed file against its digest.
pub fn verify(folder: &Path) -> Result<Listed<'_>> {
    let list = folder.join(SUMS);
    let bytes = read_bounded(&list, SUMS_BYTES_MAX)?;
    let mut sums = BTreeMap::new();
    for (at, line) in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).enumerate() {
        let (expected, name) = parse(line).ok_or_else(|| Error::Unexpected {
            path: list.clone(),
            thing: format!("line {}", at + 1),
            found: "something else".to_owned(),
            expected: "a SHA-256, two spaces and the name of a file in this folder".to_owned(),
            remedy: "copy or export the model again".to_owned(),
        })?;
        let path = folder.join(name);
        check_file(&path)?;
        let found = sha256::of_file(&path).at(&path, "read it")?;
        if found != expected {
            return Err(Error::Damaged { path, found, expected: expected.to_owned() });
        }
        sums.insert(name.to_owned(), expected.to_owned());
    }
    Ok(Listed { folder, sums })
}

/// Parses a line of the list into digest and name.
fn parse(line: &[u8]) -> Option<(&str, &str)> {
    let (sha256, name) = std::str::from_utf8(line).ok()?.split_once("  ")?;
    let is_digest =
        sha256.len() == 64 && sha256.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_beside = !name.is_empty() && !name.contains(['/', '\0']) && name != "." && name != "..";
    (is_digest && is_beside).then_some((sha256, name))
}

/// Reads a file of at most `bytes_max` bytes.
pub fn read_bounded(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    check_file(path)?;
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(bytes_max + 1).read_to_end(&mut bytes));
    read.at(path, "read it")?;
    if bytes.len() as u64 <= bytes_max {
        return Ok(bytes);
    }
    Err(Error::Unexpected {
        path: path.to_owned(),
        thing: "its size".to_owned(),
        found: "greater".to_owned(),
        expected: format!("{bytes_max} bytes or less"),
        remedy: "check that this is the folder of a saved model".to_owned(),
    })
}

/// Refuses a missing file, and a file that is not regular, because reading it might never end.
fn check_file(path: &Path) -> Result<()> {
    let folder = folder_of(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(Error::Unexpected {
            path: path.to_owned(),
            thing: "it".to_owned(),
            found: "no file".to_owned(),
            expected: "one".to_owned(),
            remedy: "copy or export the model again".to_owned(),
        }),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(Error::Missing { folder: folder.to_owned(), file: name })
        }
        Err(error) => Err(error).at(path, "read its metadata"),
    }
}

fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Adds the path and the action to an error of the operating system.
pub(super) trait At<T> {
    fn at(self, path: &Path, action: &'static str) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path, action: &'static str) -> Result<T> {
        self.map_err(|source| Error::Io { path: path.to_owned(), action, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_line_outside_the_folder_is_refused() {
        let sha256 = "0".repeat(64);
        assert_eq!(parse(format!("{sha256}  a b").as_bytes()), Some((&*sha256, "a b")));
        for name in ["", ".", "..", "/etc/passwd", "../config.json", "a\0"] {
            assert_eq!(parse(format!("{sha256}  {name}").as_bytes()), None, "{name:?}");
        }
        for line in ["abc  name".to_owned(), format!("{sha256} name"), format!("{}  x", "A".repeat(64))] {
            assert_eq!(parse(line.as_bytes()), None, "{line:?}");
        }
    }
}
