//! The file `synced`: how much of the log is durable.
//!
//! ```text
//! number   u64, of the file of the log
//! length   u64, of its durable part
//! check    u64: XXH3 of both
//! ```
//!
//! It is overwritten after each sync of the log and not synced itself. After a crash, it may have an older value or none:
//! it is a lower bound.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{At, Result};

pub(crate) const NAME: &str = "synced";

/// The durable part of the log: the files before this number, and of this one a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Synced {
    pub(super) number: u64,
    pub(super) length: u64,
}

/// The file.
#[derive(Debug)]
pub(super) struct Mark {
    path: PathBuf,
    file: File,
}

impl Mark {
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(NAME);
        let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        Ok(Self { file: opened.at(&path, "open it")?, path })
    }

    pub(super) fn write(&self, synced: Synced) -> Result<()> {
        self.file.write_all_at(&synced.to_bytes(), 0).at(&self.path, "write it")
    }

    /// `None` if the file is missing, or a crash has interrupted its write.
    pub(super) fn read(folder: &Path) -> Result<Option<Synced>> {
        let path = folder.join(NAME);
        match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            read => Ok(Synced::of_bytes(&read.at(&path, "read it")?)),
        }
    }
}

impl Synced {
    fn to_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.length.to_le_bytes());
        let check = xxh3_64(&bytes[..16]);
        bytes[16..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: [u8; 24] = bytes.try_into().ok()?;
        let number = |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        let synced = Self { number: number(0)?, length: number(8)? };
        (synced.to_bytes() == bytes).then_some(synced)
    }
}
