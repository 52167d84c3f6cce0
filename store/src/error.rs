//! What can go wrong with a store, and the exit code a program owes for it.

use std::io;
use std::path::PathBuf;

use corpus::exit::Exit;

use crate::key::{KEY_BYTES_MAX, SEGMENT_BYTES_MAX};

/// A store's refusal or failure. One line: the thing, the found, the expected, what to do; the operating
/// system's word, where there is one, is the source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `--run` names no place that this store can open.
    #[error("{run:?}: {found}; name a run as file:///folder or by a path")]
    BadRun {
        /// The name as given.
        run: String,
        /// What is wrong with it.
        found: &'static str,
    },

    /// `--run` names a kind of storage that this build does not have.
    #[error("{run:?}: no store for {scheme}:// is built in, only file://; name a folder")]
    NoSuchStore {
        /// The name as given.
        run: String,
        /// Its scheme.
        scheme: String,
    },

    /// A name that no object can have; it may come from a record someone else wrote.
    #[error(
        "object name {name:?}: {found}; expected segments of A-Z a-z 0-9 . _ - joined by /, none beginning with \
         a dot, each of 1 to {SEGMENT_BYTES_MAX} bytes, {KEY_BYTES_MAX} in all"
    )]
    BadKey {
        /// The name, cut where it is long.
        name: String,
        /// What is wrong with it.
        found: &'static str,
    },

    /// The object is not there.
    #[error("{object}: no such object; check the run's name, or run the job that writes it again")]
    Missing {
        /// Its URL.
        object: String,
    },

    /// Something that is not a regular file has the object's name.
    #[error("{object}: found a folder or a special file, expected an object; move it out of the run")]
    NotAnObject {
        /// Its URL.
        object: String,
    },

    /// A record or manifest is larger than any honest one.
    #[error("{object}: more than {limit_bytes} bytes, expected a small record; is this the right run?")]
    TooLarge {
        /// Its URL.
        object: String,
        /// The most that the caller reads.
        limit_bytes: u64,
    },

    /// The file system can neither rename without overwriting nor link; the promise cannot be kept there.
    #[error("{object}: this file system cannot create a name exclusively; keep the run on another one")]
    NoExclusiveCreate {
        /// Its URL.
        object: String,
        /// What it answered.
        source: io::Error,
    },

    /// The caller's own file could not be read.
    #[error("{}: cannot read the file to store as {object}", file.display())]
    Source {
        /// The local file.
        file: PathBuf,
        /// The URL it was to have.
        object: String,
        /// What the operating system said.
        source: io::Error,
    },

    /// The storage failed.
    #[error("{object}: cannot {doing}; check the folder's permissions, free space and mount")]
    Io {
        /// The object's or the run's URL.
        object: String,
        /// What was being done.
        doing: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
}

impl Error {
    /// The exit code of a program that ends because of this.
    pub fn exit(&self) -> Exit {
        match self {
            Error::BadRun { .. } | Error::NoSuchStore { .. } => Exit::Usage,
            Error::BadKey { .. } | Error::TooLarge { .. } => Exit::BadInput,
            Error::Missing { .. } | Error::NotAnObject { .. } => Exit::MissingInput,
            Error::Source { .. } | Error::Io { .. } => Exit::Io,
            Error::NoExclusiveCreate { .. } => Exit::Settings,
        }
    }
}
