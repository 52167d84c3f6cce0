//! Errors of reading and writing files, and the exit code for each.

use std::io;
use std::path::{Path, PathBuf};

use program::exit::{Exit, Fails};
use program::system::Failure;
use thiserror::Error;

/// Why a file could not be written or read.
#[derive(Debug, Error)]
pub enum Error {
    /// The file does not exist.
    #[error("{}: no such file, expected a shard or a dataset; check the path", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The operating system returned an error.
    #[error("{}: {}", path.display(), Failure::writing(action, source, "choose another path"))]
    Io {
        /// The file.
        path: PathBuf,
        /// The failed action.
        action: &'static str,
        /// The error.
        source: io::Error,
    },
    /// The operating system returned an error for a temporary file.
    #[error("{}: {}", path.display(), Failure::writing(action, source, "set TMPDIR to a folder on another disk"))]
    Temporary {
        /// Its folder.
        path: PathBuf,
        /// The failed action.
        action: &'static str,
        /// The error.
        source: io::Error,
    },
    /// The HDF5 library returned an error.
    #[error("{}: the HDF5 library cannot {action} ({found}); check that no other program changes the file", path.display())]
    Hdf5 {
        /// The file.
        path: PathBuf,
        /// The failed action.
        action: &'static str,
        /// The error of the library.
        found: String,
    },
    /// The file has another format or version than expected.
    #[error("{}: {thing} is {found}, expected {expected}; {remedy}", path.display())]
    Unexpected {
        /// The file.
        path: PathBuf,
        /// The part that was checked.
        thing: String,
        /// The value found.
        found: String,
        /// The expected value.
        expected: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The file does not match its digests.
    #[error("{}: {part} does not match its digest: the file was damaged or altered; fetch or make it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damaged part.
        part: String,
    },
    /// The file matches its digests but violates a rule of its format, so another program wrote or altered
    /// it.
    #[error(
        "{}: {thing} is {found}, expected {expected} (FORMAT.md, {rule}); the file was altered, or made by another \
         program: fetch or make it again", path.display()
    )]
    Broken {
        /// The file.
        path: PathBuf,
        /// Number of the rule in FORMAT.md.
        rule: &'static str,
        /// The part that was checked.
        thing: Box<str>,
        /// The value found, without control characters.
        found: Box<str>,
        /// The expected value.
        expected: Box<str>,
    },
    /// An invariant between parts of this project is broken.
    #[error("{}: {promise}: this is a defect of sentimill, please report it", path.display())]
    Internal {
        /// The file.
        path: PathBuf,
        /// The invariant.
        promise: String,
    },
}

impl Error {
    /// Returns this error for a file in the folder for temporary files; the remedy is then another TMPDIR.
    pub fn in_tmpdir(self) -> Self {
        match self {
            Self::Io { path, action, source } => Self::Temporary { path, action, source },
            other => other,
        }
    }

    /// Returns this error with another name of its file: that of an object from which the file was fetched.
    pub fn of_file(mut self, name: &Path) -> Self {
        match &mut self {
            Self::Missing { path }
            | Self::Io { path, .. }
            | Self::Hdf5 { path, .. }
            | Self::Unexpected { path, .. }
            | Self::Damaged { path, .. }
            | Self::Broken { path, .. } => name.clone_into(path),
            Self::Temporary { .. } | Self::Internal { .. } => {}
        }
        self
    }

    /// Returns this error with the final name of a file that is written under a temporary name.
    pub fn named(self, name: &Path) -> Self {
        let path = name.to_owned();
        match self {
            Self::Hdf5 { action, found, .. } => Self::Hdf5 { path, action, found },
            other => other,
        }
    }
}

impl Fails for Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Io { .. } | Self::Temporary { .. } | Self::Hdf5 { .. } => Exit::Io,
            Self::Missing { .. } | Self::Unexpected { .. } | Self::Damaged { .. } | Self::Broken { .. } => {
                Exit::MissingInput
            }
            Self::Internal { .. } => Exit::Internal,
        }
    }
}

/// A violation of a rule of FORMAT.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) rule: &'static str,
    pub(crate) thing: String,
    pub(crate) found: String,
    pub(crate) expected: String,
}

impl Violation {
    pub(crate) fn new(
        rule: &'static str,
        thing: impl Into<String>,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self { rule, thing: thing.into(), found: found.into(), expected: expected.into() }
    }

    pub(crate) fn of(self, path: &Path) -> Error {
        let Self { rule, thing, found, expected } = self;
        Error::Broken {
            path: path.to_owned(),
            rule,
            thing: thing.into(),
            found: found.into(),
            expected: expected.into(),
        }
    }
}

/// Result of reading or writing a file.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Adds the path of the file to an error of the system or of the library.
pub(crate) trait At<T> {
    fn at(self, path: &Path, action: &'static str) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path, action: &'static str) -> Result<T> {
        self.map_err(|source| Error::Io { path: path.to_owned(), action, source })
    }
}

impl<T> At<T> for hdf5::Result<T> {
    fn at(self, path: &Path, action: &'static str) -> Result<T> {
        self.map_err(|error| {
            let (path, found) = (path.to_owned(), error.to_string());
            match system_error(&error) {
                Some(source) => Error::Io { path, action, source },
                // Drops addresses, times and call names of the library, which do not help a user.
                None => {
                    let found = found.rsplit(": ").next().unwrap_or_default().to_lowercase();
                    Error::Hdf5 { path, action, found }
                }
            }
        })
    }
}

/// The error of the operating system that an error message of the HDF5 library contains: `... errno = 28,
/// error message = ...`.
pub(crate) fn system_error(error: &hdf5::Error) -> Option<io::Error> {
    let text = error.to_string();
    let (_, after) = text.split_once("errno = ")?;
    let code = after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    Some(io::Error::from_raw_os_error(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_in_place_of_the_librarys_texts() {
        let text = "H5Dwrite_chunk(): can't write unprocessed chunk data: file write failed: time = Mon Nov 23 01:28:02 \
                    2026, filename = '/x/.merge-a.h5', file descriptor = 4, errno = 28, error message = 'No space left on \
                    device', buf = 0x558d6fb6b150, total write size = 4191, offset = 8575";
        let failed: hdf5::Result<()> = Err(hdf5::Error::Internal(text.to_owned()));
        let error = failed.at(Path::new("/x/.merge-a.h5"), "write a chunk").unwrap_err();
        assert_eq!(
            error.to_string(),
            "/x/.merge-a.h5: disk full while writing; free space there or choose another path"
        );
        assert_eq!(
            error.in_tmpdir().to_string(),
            "/x/.merge-a.h5: disk full while writing; free space there or set TMPDIR to a folder on another disk"
        );
    }

    #[test]
    fn another_failure_of_the_library_is_named_without_its_calls() {
        let failed: hdf5::Result<()> =
            Err(hdf5::Error::Internal("H5Fcreate(): unable to create file".to_owned()));
        let error = failed.at(Path::new("a.h5"), "create the file").unwrap_err();
        assert_eq!(
            error.to_string(),
            "a.h5: the HDF5 library cannot create the file (unable to create file); check that no other program changes \
             the file"
        );
    }
}
