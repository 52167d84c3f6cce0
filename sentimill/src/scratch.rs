//! Storage for data that does not fit in memory: parts of one unnamed file. The operating system deletes the
//! file when the program exits, even if the program is killed.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use program::exit::{Exit, Failed};
use program::system::Failure;

use crate::Result;

/// Memory that several threads share, and a file for the excess.
pub struct Scratch {
    folder: PathBuf,
    file: OnceLock<File>,
    end: AtomicU64,
    /// Number of bytes in memory.
    held: AtomicUsize,
    held_max: usize,
}

/// Stored bytes: in memory, or in the file.
pub enum Stored {
    /// In memory.
    Memory(Vec<u8>),
    /// In the file.
    File(Extent),
}

/// A part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Offset of its first byte.
    pub from: u64,
    /// Number of bytes.
    pub bytes: usize,
}

impl Scratch {
    /// Creates storage with `held_max` bytes of memory. Its file is created in `folder` once the memory is
    /// used up.
    pub fn new(folder: &Path, held_max: usize) -> Self {
        let (file, end, held) = (OnceLock::new(), AtomicU64::new(0), AtomicUsize::new(0));
        Self { folder: folder.to_owned(), file, end, held, held_max }
    }

    /// Maximum memory in bytes.
    pub fn held_max(&self) -> usize {
        self.held_max
    }

    /// Counts bytes that a caller holds in memory towards the limit.
    pub fn hold(&self, bytes: usize) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Stops counting bytes that a caller has freed.
    pub fn release(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Stores a copy of these bytes, in memory if they fit.
    pub fn keep(&self, bytes: &[u8]) -> Result<Stored> {
        let held = self.held.fetch_add(bytes.len(), Ordering::Relaxed);
        if held + bytes.len() <= self.held_max {
            return Ok(Stored::Memory(bytes.to_vec()));
        }
        self.release(bytes.len());
        let extent = self.reserve(bytes.len());
        self.write_at(bytes, extent.from)?;
        Ok(Stored::File(extent))
    }

    /// Reads stored bytes into `bytes`, replacing its content, and frees their space in memory or on disk.
    pub fn take(&self, stored: Stored, bytes: &mut Vec<u8>) -> Result<()> {
        match stored {
            Stored::Memory(kept) => {
                self.release(kept.len());
                *bytes = kept;
                Ok(())
            }
            Stored::File(extent) => {
                bytes.resize(extent.bytes, 0);
                self.read_at(bytes, extent.from)
            }
        }
    }

    /// Reserves a part of the file for one writer.
    pub fn reserve(&self, bytes: usize) -> Extent {
        Extent { from: self.end.fetch_add(bytes as u64, Ordering::Relaxed), bytes }
    }

    /// Writes to a reserved part.
    pub fn write_at(&self, bytes: &[u8], at: u64) -> Result<()> {
        self.file()?.write_all_at(bytes, at).map_err(|source| self.failed(&source))
    }

    /// Reads from a part that was written.
    pub fn read_at(&self, bytes: &mut [u8], at: u64) -> Result<()> {
        self.file()?.read_exact_at(bytes, at).map_err(|source| self.failed(&source))
    }

    fn file(&self) -> Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        // If two threads create a file at the same time, one of the two files is dropped immediately.
        let file = tempfile::tempfile_in(&self.folder).map_err(|source| self.failed(&source))?;
        Ok(self.file.get_or_init(|| file))
    }

    fn failed(&self, source: &std::io::Error) -> Failed {
        let remedy = "set TMPDIR to a folder on another disk, or raise --memory";
        let why = Failure::writing("write a temporary file", source, remedy);
        Failed::new(Exit::Io, format!("{}: {why}", self.folder.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_beyond_the_memory_limit_are_written_to_disk_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(folder.path(), 10);
        let stored = [b"12345678", b"abcdefgh", b"ABCDEFGH"].map(|bytes| scratch.keep(bytes).unwrap());
        assert!(matches!(
            stored,
            [Stored::Memory(_), Stored::File(Extent { from: 0, bytes: 8 }), Stored::File(_)]
        ));
        let read = stored.map(|stored| {
            let mut bytes = vec![7];
            scratch.take(stored, &mut bytes).unwrap();
            bytes
        });
        assert_eq!(read, [b"12345678", b"abcdefgh", b"ABCDEFGH"]);
        assert!(matches!(scratch.keep(&[0; 10]).unwrap(), Stored::Memory(_)));
    }

    #[test]
    fn a_missing_folder_is_reported_by_name() {
        let error = Scratch::new(Path::new("/no/such"), 0).keep(b"x").err().unwrap();
        assert!(
            error
                .to_string()
                .starts_with("/no/such: cannot write a temporary file: no such file or folder; "),
            "{error}"
        );
    }
}
