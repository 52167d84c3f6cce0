//! An object as a local file of which only those bytes are present that were fetched.

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;

use program::temporary;
use program::threads::locked;
use tempfile::NamedTempFile;

use crate::{Error, Object};

/// Bytes are fetched in blocks of this size, because a request takes as long as some hundred KiB.
const BLOCK_BYTES: u64 = 1 << 20;
/// Maximum size of a request, which is in memory.
const REQUEST_BYTES_MAX: u64 = 8 << 20;

/// A sparse copy of an object, which is deleted when this value is dropped.
pub struct PartialCopy {
    object: Object,
    file: NamedTempFile,
    /// Whether each block is present.
    present: Mutex<Vec<bool>>,
}

impl fmt::Debug for PartialCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartialCopy").field("object", &self.object.url()).finish_non_exhaustive()
    }
}

impl PartialCopy {
    /// A file of the object's size in `folder`, none of whose bytes is present.
    pub fn of(object: Object, folder: &Path) -> Result<Self, Error> {
        let made = temporary::file_in(folder).and_then(|file| {
            file.as_file().set_len(object.bytes())?;
            Ok(file)
        });
        let file = made.map_err(|source| failed(&object, source))?;
        let present = Mutex::new(vec![false; object.bytes().div_ceil(BLOCK_BYTES) as usize]);
        Ok(Self { object, file, present })
    }

    /// Path of the file, valid while this value exists.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Size of the object in bytes.
    pub fn bytes(&self) -> u64 {
        self.object.bytes()
    }

    /// Fetches the blocks of these bytes that are not present. Bytes beyond the object's end are ignored.
    pub fn fetch(&self, range: Range<u64>) -> Result<(), Error> {
        let mut present = locked(&self.present);
        let blocks = range.start / BLOCK_BYTES..range.end.min(self.bytes()).div_ceil(BLOCK_BYTES);
        let mut block = blocks.start;
        while block < blocks.end {
            let most = blocks.end.min(block + REQUEST_BYTES_MAX / BLOCK_BYTES);
            let absent = (block..most).take_while(|&block| !present[block as usize]).count() as u64;
            if absent > 0 {
                let from = block * BLOCK_BYTES;
                let bytes = self.object.read_range(from, (absent * BLOCK_BYTES).min(self.bytes() - from))?;
                let written = self.file.as_file().write_all_at(&bytes, from);
                written.map_err(|source| failed(&self.object, source))?;
                present[block as usize..(block + absent) as usize].fill(true);
            }
            block += absent.max(1);
        }
        Ok(())
    }
}

fn failed(object: &Object, source: io::Error) -> Error {
    Error::Io { object: object.url(), doing: "copy it to this machine", source }
}
