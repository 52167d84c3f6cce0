//! The storage of one run: named objects that appear whole, at most once, and never change.
//!
//! A run is `file:///data/run-7` or `s3://bucket/run-7`. Its objects are `data/part-00007.host.attempt.h5`,
//! `commit/part-00007.json` and `manifest.json`. Every put request is a put-if-absent and never overwrites an object.
//! If several writers put the same name, in any process and on any machine, exactly one of them gets [`Put::Stored`].
//! Readers see its content completely or not at all. The exactly-once commit of the reducer and the run's manifest
//! depend only on this guarantee.
//!
//! [`Store::of_object`] writes other objects with the same guarantees. [`cached`] returns an object of S3 as a local
//! file that is fetched once.
//!
//! [`mirror`] copies folders to prefixes and back. The store does not depend on shards, records and datasets. Its calls are blocking.
//!
//! ```
//! use store::{Key, ObjectContent, Put, Store};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let run = folder.path().join("run-7");
//! let store = Store::open(run.to_str().unwrap())?;
//! let commit = Key::new("commit/part-00007.json")?;
//! assert!(matches!(store.put_if_absent(&commit, ObjectContent::Bytes(b"{}"))?, Put::Stored(_)));
//! assert!(matches!(store.put_if_absent(&commit, ObjectContent::Bytes(b"[]"))?, Put::AlreadyThere));
//! assert_eq!(store.get_small(&commit, 1 << 20)?, Some(b"{}".to_vec()));
//! # Ok::<(), store::Error>(())
//! ```

mod cache;
mod error;
mod file;
mod key;
pub mod mirror;
mod objects;
mod options;
mod partial;
mod run_url;
mod s3;
mod web;

pub mod amazon;
pub mod naming;

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use program::location::S3Url;
use program::progress::Progress;
use tempfile::NamedTempFile;

pub use aws_sdk_s3::config::Credentials;
pub use cache::{CacheOptions, CachedFile, cache_folder, cached};
pub use error::{Error, WebFailure};
pub use key::{KEY_BYTES_MAX, Key, SEGMENT_BYTES_MAX};
pub use objects::{Object, ObjectReader, objects};
pub use options::{BadOption, PART_BYTES_MIN, S3_HELP, S3_LONG_HELP, S3Options};
pub use partial::PartialCopy;

pub use s3::ServiceClock;

pub use web::{Stated, WebFile, WebReader};

use file::FileStore;
use run_url::Run;
use s3::S3Store;

/// The objects of one run. Clones share the storage.
#[derive(Debug, Clone)]
pub struct Store {
    backend: Arc<dyn Backend>,
}

/// Checks the name of a run, as [`Store::open`] does, without opening it.
pub fn check_run(run: &str) -> Result<(), Error> {
    run_url::place(run).map(drop)
}

/// The storage behind a run's objects: a folder, a bucket, or an implementation of a caller. The methods are
/// those of [`Store`], which documents the guarantees.
pub trait Backend: Debug + Send + Sync {
    /// Progress of the calls.
    fn progress(&self) -> &Progress;
    /// See [`Store::probe`].
    fn probe(&self) -> Result<(), Error>;
    /// See [`Store::url`].
    fn url(&self) -> String;
    /// See [`Store::put_if_absent`].
    fn put_if_absent(&self, key: &Key, content: ObjectContent<'_>) -> Result<Put, Error>;
    /// See [`Store::get_small`].
    fn get_small(&self, key: &Key, limit_bytes: u64) -> Result<Option<Vec<u8>>, Error>;
    /// See [`Store::local_copy`].
    fn local_copy(&self, key: &Key, folder: &Path) -> Result<LocalObject, Error>;
    /// See [`Store::partial_copy`].
    fn remote(&self, _key: &Key) -> Result<Option<Object>, Error> {
        Ok(None)
    }
    /// See [`Store::head`].
    fn head(&self, key: &Key) -> Result<Option<ObjectInfo>, Error>;
    /// See [`Store::list`].
    fn list(&self, prefix: &str) -> Result<Vec<Listed>, Error>;
    /// See [`Store::delete`].
    fn delete(&self, key: &Key) -> Result<(), Error>;
}

/// The content of a put request.
#[derive(Debug, Clone, Copy)]
pub enum ObjectContent<'a> {
    /// Bytes in memory: a record, a manifest.
    Bytes(&'a [u8]),
    /// A regular file, which must not change during the call. It is copied and stays in place.
    File(&'a Path),
}

/// Result of a put request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// This call created the object, complete and synced to the storage.
    Stored(ObjectInfo),
    /// An object with this name exists. Either another writer put it, or an earlier try of this writer, whose
    /// response was lost. Read the object to check which writer it was.
    AlreadyThere,
}

/// Result of putting a record, after reading it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// The stored record is the one that was passed. Either this call put it, or an earlier try, whose
    /// response was lost.
    AsGiven,
    /// The stored record is another writer's.
    Other(Vec<u8>),
}

/// Metadata of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Size in bytes.
    pub bytes: u64,
    /// The ETag, with which the storage identifies this content; `None` in a folder.
    pub etag: Option<String>,
}

/// An entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Name of the object.
    pub key: Key,
    /// Size in bytes.
    pub bytes: u64,
    /// When the object was written, by the clock of the storage.
    pub modified: SystemTime,
}

/// An object as a local file, to be opened for reading only.
#[derive(Debug)]
pub struct LocalObject {
    path: PathBuf,
    bytes: u64,
    /// Deletes the file if it is a copy.
    _copy: Option<NamedTempFile>,
}

impl Store {
    /// Opens a run: `file:///folder`, `s3://bucket/prefix`, or a plain path, relative to the working folder.
    ///
    /// Only `file` URLs are percent-decoded. Nothing is created before the first put, so the run need not
    /// exist. These are refused as usage errors: a host, another scheme, `..`, a query or fragment, the root
    /// folder, a whole bucket.
    pub fn open(run: &str) -> Result<Store, Error> {
        Store::open_with(run, &S3Options::default())
    }

    /// Opens a run, with options that apply if it is in S3.
    pub fn open_with(run: &str, options: &S3Options) -> Result<Store, Error> {
        Ok(match run_url::place(run)? {
            Run::Folder(folder) => Store::of(FileStore::new(folder)),
            Run::Bucket(place) => Store::of(S3Store::open(place, options)?),
        })
    }

    /// Opens the folder of an object, for writing it and the objects beside it. Returns the object's name there. The
    /// bucket itself is such a folder. As in a run, names consist of A-Z a-z 0-9 . _ - and no object is overwritten.
    pub fn of_object(url: &S3Url, options: &S3Options) -> Result<(Store, Key), Error> {
        let key = run_url::output(url)?;
        Ok((Store::of(S3Store::of_object(url, options, &Progress::default())?), key))
    }

    /// Creates a store on this backend.
    pub fn of(backend: impl Backend + 'static) -> Store {
        Store { backend: Arc::new(backend) }
    }

    /// Progress of the calls.
    pub fn progress(&self) -> &Progress {
        self.backend.progress()
    }

    /// Checks, before any work is done, that the store is reachable and that no put request overwrites an
    /// object.
    pub fn probe(&self) -> Result<(), Error> {
        self.backend.probe()
    }

    /// The URL of the run as written in records, `file:///folder`, without a trailing slash. [`Store::open`]
    /// accepts it.
    pub fn url(&self) -> String {
        self.backend.url()
    }

    /// Stores an object unless one with this name exists. The check and the write are one atomic step, so no
    /// object is overwritten.
    ///
    /// After an error the object is either absent or complete. The same put request may be retried, and
    /// [`Put::AlreadyThere`] may then refer to the first try of this writer.
    pub fn put_if_absent(&self, key: &Key, content: ObjectContent<'_>) -> Result<Put, Error> {
        self.backend.put_if_absent(key, content)
    }

    /// Stores a small record unless one with this name exists, and reads back the stored one. A store that
    /// ignores checksums may store other bytes than it received. This is an error, because no put request can
    /// overwrite them. Another writer's record of more than `limit_bytes` is an error too.
    pub fn put_record(&self, key: &Key, record: &[u8], limit_bytes: u64) -> Result<Recorded, Error> {
        let object = || format!("{}/{key}", self.url());
        let put = self.put_if_absent(key, ObjectContent::Bytes(record))?;
        match (put, self.get_small(key, limit_bytes)?) {
            (_, Some(there)) if there == record => Ok(Recorded::AsGiven),
            (Put::Stored(_), Some(_)) => Err(Error::Damaged { object: object(), found: "other bytes" }),
            (Put::Stored(_), None) => Err(Error::Damaged { object: object(), found: "no object" }),
            (Put::AlreadyThere, Some(there)) => Ok(Recorded::Other(there)),
            (Put::AlreadyThere, None) => Err(Error::Vanished { object: object() }),
        }
    }

    /// Reads a small object; `None` if it does not exist. An object of more than `limit_bytes` is an error.
    /// The object returned is durable, whichever process put it.
    pub fn get_small(&self, key: &Key, limit_bytes: u64) -> Result<Option<Vec<u8>>, Error> {
        self.backend.get_small(key, limit_bytes)
    }

    /// Returns an object of any size as a local file. Objects of a folder are already local files. A remote
    /// store copies the object into `folder`, which must have enough space.
    pub fn local_copy(&self, key: &Key, folder: &Path) -> Result<LocalObject, Error> {
        self.backend.local_copy(key, folder)
    }

    /// Returns an object as a local file, of which nothing is present before it is fetched. `None` if objects of this
    /// store are local files.
    pub fn partial_copy(&self, key: &Key, folder: &Path) -> Result<Option<PartialCopy>, Error> {
        self.backend.remote(key)?.map(|object| PartialCopy::of(object, folder)).transpose()
    }

    /// Metadata of an object; `None` if it does not exist.
    pub fn head(&self, key: &Key) -> Result<Option<ObjectInfo>, Error> {
        self.backend.head(key)
    }

    /// Lists the objects whose names start with `prefix` (`""`, `data/`, `data/part-00007.`), ordered by the
    /// bytes of the name. Unfinished puts, and files whose names are not valid keys, are not listed.
    pub fn list(&self, prefix: &str) -> Result<Vec<Listed>, Error> {
        self.backend.list(prefix)
    }

    /// Deletes an object. It is not an error if the object does not exist.
    pub fn delete(&self, key: &Key) -> Result<(), Error> {
        self.backend.delete(key)
    }
}

/// Reads a small object of any name, which must exist. An object of more than `limit_bytes` is an error.
pub fn read_existing(url: &S3Url, options: &S3Options, limit_bytes: u64) -> Result<Vec<u8>, Error> {
    let content = read_object(url, options, limit_bytes)?;
    content.ok_or_else(|| Error::NoObject { object: url.to_string() })
}

/// Reads a small object of any name; `None` if it does not exist. An object of more than `limit_bytes` is an error.
pub fn read_object(url: &S3Url, options: &S3Options, limit_bytes: u64) -> Result<Option<Vec<u8>>, Error> {
    S3Store::of_object(url, options, &Progress::default())?.read_named(url.name(), limit_bytes)
}

/// Compares the clock of this machine with the clock of the service that stores a run in S3.
pub fn clock_of(run: &str, options: &S3Options) -> Result<ServiceClock, Error> {
    match run_url::place(run)? {
        Run::Bucket(place) => S3Store::open(place, options)?.clock(),
        Run::Folder(_) => Err(Error::BadRun { run: run.to_owned(), found: "it is a folder, expected s3://" }),
    }
}

/// The region of the bucket of `s3://bucket/name`; `None` if the service does not report it. It is an error if the
/// bucket does not exist, belongs to another account than expected, or may not be read.
pub fn bucket_region(url: &str, options: &S3Options) -> Result<Option<String>, Error> {
    S3Store::open(run_url::objects_of(url)?, options)?.bucket_region()
}

impl LocalObject {
    /// A file that is not deleted.
    pub fn lasting(path: PathBuf, bytes: u64) -> LocalObject {
        LocalObject { path, bytes, _copy: None }
    }

    /// A copy that is deleted when this value is dropped.
    fn temporary(copy: NamedTempFile, bytes: u64) -> LocalObject {
        LocalObject { path: copy.path().to_owned(), bytes, _copy: Some(copy) }
    }

    /// Path of the file, valid while this value exists.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
