//! Folders that are there whole or not at all, with the digest of each of their files.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// The file of digests, as sha256sum writes and checks it.
pub(crate) const SUMS: &str = "SHA256SUMS";

/// Makes a folder: `write` puts its files into a temporary one beside it, which is then made durable and renamed.
/// Whatever goes wrong, `folder` is as it was. It must not exist.
pub(crate) fn commit(folder: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let parent = parent(folder);
    fs::create_dir_all(parent).map_err(|source| Error::io(parent, source))?;
    let temporary = tempfile::Builder::new()
        .prefix(".unfinished-")
        .tempdir_in(parent)
        .map_err(|source| Error::io(parent, source))?;
    write(temporary.path())?;
    write_sums(temporary.path())?;
    fs::rename(temporary.path(), folder).map_err(|source| Error::io(folder, source))?;
    // It has another name now; there is nothing to remove.
    let _ = temporary.keep();
    sync(parent)
}

/// Replaces a small file whole.
pub(crate) fn replace_file(path: &Path, content: &[u8]) -> Result<()> {
    let parent = parent(path);
    let failed = |source| Error::io(path, source);
    let mut temporary = tempfile::NamedTempFile::new_in(parent).map_err(failed)?;
    temporary.write_all(content).map_err(failed)?;
    temporary.as_file().sync_all().map_err(failed)?;
    temporary.persist(path).map_err(|error| failed(error.error))?;
    sync(parent)
}

/// Compares every file of a folder with its digest.
pub(crate) fn check(folder: &Path) -> Result<()> {
    let sums = folder.join(SUMS);
    let list = fs::read_to_string(&sums).map_err(|source| Error::io(&sums, source))?;
    for line in list.lines() {
        let (expected, name) = line
            .split_once("  ")
            .ok_or_else(|| Error::Damaged { path: sums.clone(), found: format!("the line {line:?}") })?;
        let path = folder.join(name);
        if name.contains('/') || digest(&path)? != expected {
            return Err(Error::Damaged { path, found: "other content than its SHA-256 says".to_owned() });
        }
    }
    Ok(())
}

fn write_sums(folder: &Path) -> Result<()> {
    let mut names: Vec<PathBuf> = fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
        .map_err(|source| Error::io(folder, source))?;
    names.sort();
    let mut sums = String::new();
    for path in &names {
        sync(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        sums.push_str(&format!("{}  {name}\n", digest(path)?));
    }
    let path = folder.join(SUMS);
    fs::write(&path, sums).map_err(|source| Error::io(&path, source))?;
    sync(&path)?;
    sync(folder)
}

fn digest(path: &Path) -> Result<String> {
    let failed = |source: io::Error| Error::io(path, source);
    let mut file = File::open(path).map_err(failed)?;
    let mut hasher = Sha256::new();
    let mut block = vec![0; 1 << 20];
    loop {
        match file.read(&mut block).map_err(failed)? {
            0 => break,
            n => hasher.update(&block[..n]),
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Makes a file's content, or a folder's list of names, durable.
fn sync(path: &Path) -> Result<()> {
    File::open(path).and_then(|file| file.sync_all()).map_err(|source| Error::io(path, source))
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => Path::new("/"),
    }
}
