//! Errors of a store, and the exit code for each.

mod kinds;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use program::exit::{Exit, Fails};
use program::system::Failure;

use crate::amazon::Kind;
use crate::key::{KEY_BYTES_MAX, SEGMENT_BYTES_MAX};
pub use kinds::WebFailure;

/// An error of a store. Each message is one line: the thing, what was found, what was expected, the remedy.
/// The error of the operating system, if there is one, is the source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `--run` is not a valid path or URL of a run.
    #[error("{run:?}: {found}; name a run as file:///folder, s3://bucket/prefix, or by a path")]
    BadRun {
        /// The value of `--run`.
        run: String,
        /// What is wrong with it.
        found: &'static str,
    },

    /// `--run` names a kind of storage that this build does not support.
    #[error("{run:?}: {scheme}:// is not supported, expected a path, file:// or s3://; choose another --run")]
    NoSuchStore {
        /// The value of `--run`.
        run: String,
        /// Its scheme.
        scheme: String,
    },

    /// A URL contains credentials.
    #[error(
        "{place:?}: found a user name or key before the bucket, expected none; keys come from AWS_PROFILE, ~/.aws or \
         the machine's role; remove it from the URL, and replace the key, since shells and logs keep it"
    )]
    UserInfo {
        /// The URL without the credentials.
        place: String,
    },

    /// A URL does not name objects of a bucket.
    #[error("{url:?}: {found}; name objects as s3://bucket/name")]
    BadObjects {
        /// The URL.
        url: String,
        /// What is wrong with it.
        found: &'static str,
    },

    /// The name of an object to be written is invalid.
    #[error("{url}: {found}; expected s3://bucket/folder/name, with a name of A-Z a-z 0-9 . _ - only")]
    BadOutput {
        /// The URL.
        url: String,
        /// What is wrong with it.
        found: &'static str,
    },

    /// There is no object at this URL.
    #[error("{object}: no such object; check the name")]
    NoObject {
        /// Its URL.
        object: String,
    },

    /// The expected digest of an object is not a SHA-256.
    #[error(
        "{object}: {found:.80?} was recorded as its SHA-256, expected 64 hexadecimal digits; the record was altered: make \
         both again"
    )]
    NotASha256 {
        /// The URL of the object.
        object: String,
        /// The digest that was passed.
        found: String,
    },

    /// An object has another digest than expected.
    #[error(
        "{object}: its SHA-256 is {found}, expected {expected}; it was damaged, altered or replaced: make it again"
    )]
    OtherSha256 {
        /// Its URL.
        object: String,
        /// Its SHA-256.
        found: String,
        /// The expected SHA-256.
        expected: String,
    },

    /// The environment names no folder for the cache.
    #[error(
        "no folder for the cache: SENTIMILL_CACHE, XDG_CACHE_HOME and HOME are not set; set SENTIMILL_CACHE to a folder"
    )]
    NoCache,

    /// The cache could not be read or written.
    #[error("{}: {}", folder.display(), Failure::writing(doing, source, "set SENTIMILL_CACHE to a folder on another disk"))]
    Cache {
        /// The folder of the cache.
        folder: PathBuf,
        /// The failed action.
        doing: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },

    /// The file system of the cache has too little space for an object.
    #[error(
        "{}: {free_bytes} bytes are free, expected {needed_bytes} for {object}; free space there or set SENTIMILL_CACHE to a \
         folder on another disk",
        folder.display()
    )]
    CacheFull {
        /// The folder of the cache.
        folder: PathBuf,
        /// The URL of the object.
        object: String,
        /// Size of the object.
        needed_bytes: u64,
        /// Free space of the file system.
        free_bytes: u64,
    },

    /// Another process holds the lock of an entry and does not advance.
    #[error(
        "{object}: another process fetches it and has not advanced for {} s; end the process that has {} open, and run again",
        limit.as_secs(),
        lock.display()
    )]
    CacheBusy {
        /// The lock.
        lock: PathBuf,
        /// The URL of the object.
        object: String,
        /// Time without progress.
        limit: Duration,
    },

    /// There are no objects at this URL.
    #[error(
        "{url}: found no object of this name or below it; check the name; patterns are not expanded in S3"
    )]
    NoObjects {
        /// The URL.
        url: String,
    },

    /// An object has changed since it was listed.
    #[error("{object}: was replaced while it was read; run again when no program writes to it")]
    Changed {
        /// Its URL.
        object: String,
    },

    /// An invalid object name, possibly from a record that another program wrote.
    #[error(
        "object name {name:?}: {found}; expected segments of A-Z a-z 0-9 . _ - joined by /, none beginning with \
         a dot, each of 1 to {SEGMENT_BYTES_MAX} bytes, {KEY_BYTES_MAX} in all"
    )]
    BadKey {
        /// The name, truncated if it is long.
        name: String,
        /// What is wrong with it.
        found: &'static str,
    },

    /// The object does not exist.
    #[error("{object}: no such object; check the run's name, or run the job that writes it again")]
    Missing {
        /// Its URL.
        object: String,
    },

    /// The object existed and was deleted meanwhile.
    #[error("{object}: was deleted while it was in use; stop the program that deletes objects of this run")]
    Vanished {
        /// Its URL.
        object: String,
    },

    /// When a record is read back, it differs from the record that was put.
    #[error(
        "{object}: found {found} on reading it back, expected the record that was written; the store damaged it, and an object is never overwritten: run again with a new --run in another store"
    )]
    Damaged {
        /// Its URL.
        object: String,
        /// What was read.
        found: &'static str,
    },

    /// Something other than a regular file has the object's name.
    #[error("{object}: found a folder or a special file, expected an object; move it out of the run")]
    NotAnObject {
        /// Its URL.
        object: String,
    },

    /// A record or manifest exceeds the limit of the caller.
    #[error("{object}: more than {limit_bytes} bytes, expected a small record; check --run")]
    TooLarge {
        /// Its URL.
        object: String,
        /// The limit.
        limit_bytes: u64,
    },

    /// The file system can neither rename without overwriting nor link, so objects cannot be put atomically.
    #[error(
        "{object}: the file system cannot create a file exclusively; choose a --run on another file system"
    )]
    NoExclusiveCreate {
        /// Its URL.
        object: String,
        /// The error of the file system.
        source: io::Error,
    },

    /// The service accepts a second put request for a name despite the condition.
    #[error(
        "{run}: the store ignores If-None-Match, so that attempts could overwrite each other; use a store with conditional PUT requests"
    )]
    IgnoresCondition {
        /// The URL of the run.
        run: String,
    },

    /// There are no credentials.
    #[error(
        "{run}: no credentials ({found}); set AWS_PROFILE or AWS_ACCESS_KEY_ID, or run on a machine with a role that may use the bucket"
    )]
    NoCredentials {
        /// The URL of the run.
        run: String,
        /// Where they were searched.
        found: String,
    },

    /// Other put requests for the same name conflicted in all tries.
    #[error("{object}: {tries} PUT requests conflicted with other requests for this name; run again")]
    Conflicts {
        /// Its URL.
        object: String,
        /// Number of tries.
        tries: u32,
    },

    /// The service returned no usable response.
    #[error("{object}: cannot {doing} at {endpoint}: {found}; {}", kinds::remedy_of_s3(*why))]
    S3 {
        /// The URL of the object or the run.
        object: String,
        /// The failed action.
        doing: &'static str,
        /// The host and port of the service.
        endpoint: String,
        /// The message of the service or the client.
        found: String,
        /// The kind of failure.
        why: Kind,
    },

    /// The URL of a file on a web server is invalid.
    #[error("{url}: {found}; expected https://host/path, or http:// to a server on this machine")]
    BadWebUrl {
        /// The URL without its query.
        url: String,
        /// What is wrong with it.
        found: &'static str,
    },

    /// A web server returned no usable response.
    #[error("{url}: {found}; {}", why.remedy())]
    Web {
        /// The URL without its query.
        url: String,
        /// What was found.
        found: String,
        /// The kind of failure.
        why: WebFailure,
    },

    /// The async runtime could not be started.
    #[error("{}", Failure::reading("start the S3 client", .0))]
    Runtime(#[source] io::Error),

    /// The local file to upload could not be read.
    #[error("{}: {} (to be stored as {object})", file.display(), Failure::reading("read the file", source))]
    Source {
        /// The local file.
        file: PathBuf,
        /// The URL of the object.
        object: String,
        /// The error of the operating system.
        source: io::Error,
    },

    /// The storage failed.
    #[error("{object}: {}", Failure::writing(doing, source, "choose another --run"))]
    Io {
        /// The URL of the object or the run.
        object: String,
        /// The failed action.
        doing: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl Error {
    /// Returns this error with the endpoint to which the request was sent.
    pub(crate) fn at(self, endpoint: &str) -> Self {
        match self {
            Self::S3 { object, doing, found, why, .. } => {
                Self::S3 { object, doing, endpoint: endpoint.to_owned(), found, why }
            }
            other => other,
        }
    }
}

impl Fails for Error {
    fn exit(&self) -> Exit {
        match self {
            Error::BadRun { .. }
            | Error::NoSuchStore { .. }
            | Error::UserInfo { .. }
            | Error::BadObjects { .. }
            | Error::BadOutput { .. }
            | Error::BadWebUrl { .. } => Exit::Usage,
            Error::BadKey { .. } | Error::TooLarge { .. } => Exit::BadInput,
            Error::Missing { .. }
            | Error::Vanished { .. }
            | Error::NotAnObject { .. }
            | Error::NoObject { .. }
            | Error::NotASha256 { .. }
            | Error::OtherSha256 { .. }
            | Error::NoObjects { .. } => Exit::MissingInput,
            Error::Damaged { .. } => Exit::Internal,
            Error::Source { .. } | Error::Io { .. } | Error::Cache { .. } | Error::CacheFull { .. } => {
                Exit::Io
            }
            Error::NoCache
            | Error::NoExclusiveCreate { .. }
            | Error::IgnoresCondition { .. }
            | Error::NoCredentials { .. } => Exit::Settings,
            Error::S3 { why, .. } => match why {
                Kind::Expired | Kind::Credentials | Kind::NotAuthorised => Exit::Settings,
                Kind::Absent => Exit::MissingInput,
                Kind::Unavailable | Kind::Throttled => Exit::Unavailable,
                Kind::Other => Exit::Io,
            },
            Error::Runtime(_) => Exit::Io,
            Error::Web { why, .. } => match why {
                WebFailure::Refused | WebFailure::Unauthenticated => Exit::Settings,
                WebFailure::Missing => Exit::MissingInput,
                WebFailure::Unavailable => Exit::Unavailable,
                WebFailure::Redirect | WebFailure::Unverifiable | WebFailure::Other => Exit::Io,
            },
            Error::Conflicts { .. } | Error::Changed { .. } | Error::CacheBusy { .. } => Exit::TryAgain,
        }
    }
}
