//! The bytes of an open file, which any number of threads can read at any offset at once.

use std::fmt;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use std::os::unix::fs::FileExt;

use corpus::digest::Digest;
use program::system;

use crate::error::{At, Error, Result, Violation, system_error};
use crate::ffi;

/// Makes bytes of a file present, which is a partial copy of an object.
pub trait Fetch: fmt::Debug + Send + Sync {
    /// Fetches these bytes, unless they are present. Bytes beyond the object's end are ignored.
    fn fetch(&self, range: Range<u64>) -> io::Result<()>;
}

/// A file that the HDF5 library could open. Its bytes are read through the library's descriptor. They
/// therefore belong to the file whose structure the library reported, even if the path now names another
/// file.
#[derive(Debug)]
pub(crate) struct StoredFile {
    path: PathBuf,
    file: fs::File,
    bytes: u64,
    /// Where absent bytes come from; `None` if all are present.
    fetch: Option<Arc<dyn Fetch>>,
}

impl StoredFile {
    /// Opens a file for the library and for threads.
    pub(crate) fn open(path: &Path) -> Result<(hdf5::File, Self)> {
        // If the file is missing or unreadable, the system's error is clearer than the library's.
        match fs::File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Missing { path: path.to_owned() });
            }
            opened => {
                let kind = opened.and_then(|file| file.metadata()).at(path, "open the file")?;
                if kind.is_dir() {
                    return Err(Error::Unexpected {
                        path: path.to_owned(),
                        thing: "the path".to_owned(),
                        found: "a folder".to_owned(),
                        expected: "a dataset or a shard".to_owned(),
                        remedy: "check the path",
                    });
                }
            }
        }
        let (library, descriptor) = ffi::open(path).map_err(|error| match system_error(&error) {
            Some(source) if system::is_too_many_files(&source) => {
                Error::Io { path: path.to_owned(), action: "open the file", source }
            }
            _ => Error::Unexpected {
                path: path.to_owned(),
                thing: "the file".to_owned(),
                found: "not readable as HDF5".to_owned(),
                expected: "a complete HDF5 file of this project".to_owned(),
                remedy: "it is another file, or was cut or damaged; fetch or make it again",
            },
        })?;
        let file = descriptor.map(fs::File::from).at(path, "open the file a second time")?;
        let bytes = file.metadata().at(path, "look up the file")?.len();
        Ok((library, Self { path: path.to_owned(), file, bytes, fetch: None }))
    }

    /// Returns the file with a source of absent bytes.
    pub(crate) fn with(self, fetch: Arc<dyn Fetch>) -> Self {
        Self { fetch: Some(fetch), ..self }
    }

    /// Path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Size of the file when it was opened.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Fills `into` with the bytes from `address`. Returns `None` if the file ends before.
    pub(crate) fn read(&self, address: u64, into: &mut [u8]) -> Result<Option<()>> {
        if let Some(fetch) = &self.fetch {
            let end = address.saturating_add(into.len() as u64);
            fetch.fetch(address..end).at(&self.path, "fetch a chunk")?;
        }
        match self.file.read_exact_at(into, address) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            read => read.at(&self.path, "read a chunk").map(Some),
        }
    }

    /// The error for a part that does not match its digest.
    pub(crate) fn damaged(&self, part: &str) -> Error {
        Error::Damaged { path: self.path.clone(), part: part.to_owned() }
    }

    /// The error for a part that is intact but differs from the format.
    pub(crate) fn unexpected(&self, thing: &str, found: &str, expected: &str) -> Error {
        Error::Unexpected {
            path: self.path.clone(),
            thing: thing.to_owned(),
            found: found.to_owned(),
            expected: expected.to_owned(),
            remedy: "make the file again with this version of the programs",
        }
    }

    /// Compares a digest with the one in its attribute.
    pub(crate) fn check_digest(
        &self,
        (rule, thing): (&'static str, &str),
        found: Digest,
        claimed: Digest,
    ) -> Result<()> {
        if found == claimed {
            return Ok(());
        }
        let expected = format!("{claimed}, as in its attribute");
        Err(self.broken(Violation::new(rule, thing, found.to_string(), expected)))
    }

    /// The error for a part that matches its digest but violates a rule of the format.
    pub(crate) fn broken(&self, violation: Violation) -> Error {
        violation.of(&self.path)
    }
}
