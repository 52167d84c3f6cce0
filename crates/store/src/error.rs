//! What can go wrong with a store, and the exit code a program owes for it.

use std::io;
use std::path::PathBuf;

use program::exit::Exit;

use crate::key::{KEY_BYTES_MAX, SEGMENT_BYTES_MAX};

/// A store's refusal or failure. One line: the thing, the found, the expected, what to do; the operating
/// system's word, where there is one, is the source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `--run` names no place that this store can open.
    #[error("{run:?}: {found}; name a run as file:///folder, s3://bucket/prefix, or by a path")]
    BadRun {
        /// The name as given.
        run: String,
        /// What is wrong with it.
        found: &'static str,
    },

    /// `--run` names a kind of storage that this build does not have.
    #[error("{run:?}: no store for {scheme}:// is built in, only file:// and s3://; name a run there")]
    NoSuchStore {
        /// The name as given.
        run: String,
        /// Its scheme.
        scheme: String,
    },

    /// Keys stand in the name of a place.
    #[error(
        "{place:?}: found a user name or key before the bucket, expected none; keys come from AWS_PROFILE, ~/.aws or \
         the machine's role: take it out, and replace it, since shells and logs keep it"
    )]
    UserInfo {
        /// The name without the keys.
        place: String,
    },

    /// Something that names no objects of a bucket.
    #[error("{url:?}: {found}; name objects as s3://bucket/name")]
    BadObjects {
        /// The name as given.
        url: String,
        /// What is wrong with it.
        found: &'static str,
    },

    /// Nothing lies there.
    #[error(
        "{url}: found no object of this name or below it; check the name, of which no pattern is expanded in S3"
    )]
    NoObjects {
        /// The name as given.
        url: String,
    },

    /// An object is not the one that was listed.
    #[error("{object}: found another version than when the reading began; leave it alone while it is read")]
    Changed {
        /// Its URL.
        object: String,
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

    /// An object that was there and then was not.
    #[error("{object} was there and is gone; does somebody clean up this run while it is written?")]
    Vanished {
        /// Its URL.
        object: String,
    },

    /// A record does not read back as it was put.
    #[error(
        "{object}: found {found} on reading it back, expected the record that was put; the store damaged it and no put \
         overwrites it: start again with a new --run, in a store that keeps what it is sent"
    )]
    Damaged {
        /// Its URL.
        object: String,
        /// What was read.
        found: &'static str,
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

    /// The service takes a second put of a name, whatever the condition.
    #[error(
        "{run}: the store ignores If-None-Match, so it would let attempts overwrite each other; use one that knows \
         conditional puts"
    )]
    IgnoresCondition {
        /// The run's URL.
        run: String,
    },

    /// There is nobody to be.
    #[error(
        "{run}: no credentials; set AWS_PROFILE or AWS_ACCESS_KEY_ID, or run on a machine with a role that may use the bucket"
    )]
    NoCredentials {
        /// The run's URL.
        run: String,
        /// Where they were looked for.
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// Other puts of the same name went on and on.
    #[error("{object}: {tries} puts met another put of this name; try again")]
    Conflicts {
        /// Its URL.
        object: String,
        /// How often it was tried.
        tries: u32,
    },

    /// The service gave no answer, or none that helps.
    #[error("{object}: cannot {doing}: {found}; {}", why.remedy())]
    S3 {
        /// The object's or the run's URL.
        object: String,
        /// What was being done.
        doing: &'static str,
        /// What the service or the client said.
        found: String,
        /// What it means.
        why: S3Failure,
    },

    /// The part of this program that waits for answers failed.
    #[error("cannot talk to the store")]
    Runtime(#[source] io::Error),

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

/// What an answer of S3 that does not help means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum S3Failure {
    /// The service knows the caller or the bucket's rules, and says no.
    Refused,
    /// The bucket is not there.
    NoBucket,
    /// No answer, or one that says to come back later, after all tries.
    Unavailable,
    /// Anything else.
    Other,
}

impl S3Failure {
    fn remedy(self) -> &'static str {
        match self {
            S3Failure::Refused => {
                "check the credentials, what their policy and the bucket's allow, and the account of bucket-owner= if it \
                 is given"
            }
            S3Failure::NoBucket => "check the name of the bucket, its region and the endpoint",
            S3Failure::Unavailable => "check the network and the endpoint, or try again later",
            S3Failure::Other => "check the bucket and the endpoint",
        }
    }
}

impl Error {
    /// The exit code of a program that ends because of this.
    pub fn exit(&self) -> Exit {
        match self {
            Error::BadRun { .. }
            | Error::NoSuchStore { .. }
            | Error::UserInfo { .. }
            | Error::BadObjects { .. } => Exit::Usage,
            Error::BadKey { .. } | Error::TooLarge { .. } => Exit::BadInput,
            Error::Missing { .. }
            | Error::Vanished { .. }
            | Error::NotAnObject { .. }
            | Error::NoObjects { .. } => Exit::MissingInput,
            Error::Damaged { .. } => Exit::Internal,
            Error::Source { .. } | Error::Io { .. } => Exit::Io,
            Error::NoExclusiveCreate { .. }
            | Error::IgnoresCondition { .. }
            | Error::NoCredentials { .. }
            | Error::S3 { why: S3Failure::Refused, .. } => Exit::Settings,
            Error::S3 { why: S3Failure::NoBucket, .. } => Exit::MissingInput,
            Error::S3 { why: S3Failure::Unavailable, .. } => Exit::Unavailable,
            Error::S3 { why: S3Failure::Other, .. } | Error::Runtime(_) => Exit::Io,
            Error::Conflicts { .. } | Error::Changed { .. } => Exit::TryAgain,
        }
    }
}
