//! What does not fit in memory: pieces of one file without a name, which the system removes when the program ends,
//! however it ends.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::error::{Error, Result};

/// Memory that several threads share, and a file for what passes it.
pub struct Scratch {
    folder: PathBuf,
    file: OnceLock<File>,
    end: AtomicU64,
    /// Bytes that are held in memory.
    held: AtomicUsize,
    held_max: usize,
}

/// Bytes that wait: in memory, or in the file.
pub enum Stored {
    /// Here.
    Memory(Vec<u8>),
    /// There.
    File(Extent),
}

/// A part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its first byte.
    pub from: u64,
    /// Its bytes.
    pub bytes: usize,
}

impl Scratch {
    /// For a file in this folder, which is made when so many bytes of memory are held.
    pub fn new(folder: &Path, held_max: usize) -> Self {
        let (file, end, held) = (OnceLock::new(), AtomicU64::new(0), AtomicUsize::new(0));
        Self { folder: folder.to_owned(), file, end, held, held_max }
    }

    /// The most memory that is held here.
    pub fn held_max(&self) -> usize {
        self.held_max
    }

    /// Says that so many bytes are held elsewhere in memory.
    pub fn hold(&self, bytes: usize) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Says that so many bytes are held no longer.
    pub fn release(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Keeps a copy of these bytes, in memory while there is room.
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

    /// Reads what was kept into `bytes`, in place of what was there, and forgets it.
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

    /// A part of the file that nobody else writes to.
    pub fn reserve(&self, bytes: usize) -> Extent {
        Extent { from: self.end.fetch_add(bytes as u64, Ordering::Relaxed), bytes }
    }

    /// Writes to a reserved part.
    pub fn write_at(&self, bytes: &[u8], at: u64) -> Result<()> {
        self.file()?.write_all_at(bytes, at).map_err(|source| self.failed(source))
    }

    /// Reads from a part that was written.
    pub fn read_at(&self, bytes: &mut [u8], at: u64) -> Result<()> {
        self.file()?.read_exact_at(bytes, at).map_err(|source| self.failed(source))
    }

    fn file(&self) -> Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        // Of two threads that come here at once, one makes a file that goes again at once.
        let file = tempfile::tempfile_in(&self.folder).map_err(|source| self.failed(source))?;
        Ok(self.file.get_or_init(|| file))
    }

    fn failed(&self, source: std::io::Error) -> Error {
        Error::Scratch { path: self.folder.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_memory_goes_to_disk_and_comes_back() {
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
    fn a_folder_that_is_none_is_named() {
        let error = Scratch::new(Path::new("/no/such"), 0).keep(b"x").err().unwrap();
        assert!(error.to_string().starts_with("/no/such: cannot keep reviews there"), "{error}");
    }
}
