//! Reads the files of a folder by the list of their digests, `SHA256SUMS`. A file is used only if it matches its digest.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use program::threads::spawn;

use crate::error::{At, Error, Result};
use crate::output;
use crate::read::{REMEDY, check_regular, read_bounded};
use crate::sha256::Summary;

/// The list of digests.
pub const SUMS: &str = "SHA256SUMS";
/// Enough for thousands of files.
const SUMS_BYTES_MAX: u64 = 1 << 20;

/// The list of digests of a folder.
#[derive(Debug)]
pub struct Sums {
    folder: PathBuf,
    digests: BTreeMap<String, String>,
}

impl Sums {
    /// Reads the list, without the files.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(SUMS);
        let bytes = read_bounded(&path, SUMS_BYTES_MAX)?;
        let mut digests = BTreeMap::new();
        for (at, line) in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).enumerate() {
            let (sha256, name) = parse(line).ok_or_else(|| {
                let expected = "a SHA-256, two spaces and the name of a file in this folder";
                Error::unexpected(&path, format!("line {}", at + 1), "something else", expected, REMEDY)
            })?;
            digests.insert(name.to_owned(), sha256.to_owned());
        }
        Ok(Self { folder: folder.to_owned(), digests })
    }

    /// Reads the list, and verifies every listed file.
    pub fn verify(folder: &Path) -> Result<Self> {
        let sums = Self::read(folder)?;
        for (name, expected) in &sums.digests {
            let path = folder.join(name);
            check_regular(&path)?;
            check_digest(&path, &output::summary(&path).at(&path, "read it")?.sha256, expected)?;
        }
        Ok(sums)
    }

    /// Whether this file is listed.
    pub fn has(&self, name: &str) -> bool {
        self.digests.contains_key(name)
    }

    /// Refuses a list without this file.
    pub fn require(&self, name: &str) -> Result<()> {
        self.digest(name).map(drop)
    }

    /// The name of a file that the folder contains and does not list, if any.
    pub fn unlisted(&self) -> Result<Option<String>> {
        for entry in fs::read_dir(&self.folder).at(&self.folder, "list it")? {
            let name = entry.at(&self.folder, "list it")?.file_name().to_string_lossy().into_owned();
            if name != SUMS && !self.has(&name) {
                return Ok(Some(name));
            }
        }
        Ok(None)
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

/// Parses a line of the list into digest and name.
fn parse(line: &[u8]) -> Option<(&str, &str)> {
    let (sha256, name) = std::str::from_utf8(line).ok()?.split_once("  ")?;
    let is_digest =
        sha256.len() == 64 && sha256.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_beside = !name.is_empty() && !name.contains(['/', '\0']) && name != "." && name != "..";
    (is_digest && is_beside).then_some((sha256, name))
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
        let read = spawn(scope, read);
        let found = output::summary(path);
        (read.join(), found)
    });
    check_digest(path, &found.at(path, "read it")?.sha256, &expected.sha256)?;
    read.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn check_digest(path: &Path, found: &str, expected: &str) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Damaged { path: path.to_owned(), found: found.to_owned(), expected: expected.to_owned() })
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
