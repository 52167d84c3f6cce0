//! The place of one run: named objects that appear whole, at most once, and never change.
//!
//! A run is `file:///data/run-7` or `s3://bucket/run-7`; its objects are `data/part-00007.host.attempt.h5`,
//! `commit/part-00007.json`, `manifest.json`. Every put is a put-if-absent: of all writers of one name,
//! whatever the process or the machine, exactly one is told [`Put::Stored`] and readers see its content whole
//! or nothing. There is no put that overwrites; the exactly-once commit of the reducer and the seal of
//! `merge` stand on this promise alone.
//!
//! The store knows nothing of shards, records or digests. Its calls block, and block as long as the storage
//! does.
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

mod error;
mod file;
mod key;
mod objects;
mod options;
mod run_url;
mod s3;

pub mod naming;

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use program::progress::Progress;

pub use error::{Error, S3Failure};
pub use key::{KEY_BYTES_MAX, Key, SEGMENT_BYTES_MAX};
pub use objects::{Object, ObjectReader, objects};
pub use options::{BadOption, PART_BYTES_MIN, S3Options};

use file::FileStore;
use naming::Hidden;
use run_url::Run;
use s3::S3Store;

/// The objects of one run. A clone is the same store.
#[derive(Debug, Clone)]
pub struct Store {
    backend: Arc<dyn Backend>,
}

/// What keeps a run's objects: a folder, a bucket, or what a caller makes of them. The methods are those of [`Store`],
/// which says what each promises.
pub trait Backend: Debug + Send + Sync {
    /// Where its work is seen.
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
    /// See [`Store::head`].
    fn head(&self, key: &Key) -> Result<Option<ObjectInfo>, Error>;
    /// See [`Store::list`].
    fn list(&self, prefix: &str) -> Result<Vec<Listed>, Error>;
    /// See [`Store::delete`].
    fn delete(&self, key: &Key) -> Result<(), Error>;
}

/// What to store.
#[derive(Debug, Clone, Copy)]
pub enum ObjectContent<'a> {
    /// Bytes in memory: a record, a manifest.
    Bytes(&'a [u8]),
    /// A regular file that no one writes to meanwhile; it is copied and stays the caller's.
    File(&'a Path),
}

/// How a put ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// This call made the object, whole and synced to the storage.
    Stored(ObjectInfo),
    /// The name was taken: by another writer, or by an earlier try of this one whose answer was lost.
    /// Read the object to learn which.
    AlreadyThere,
}

/// What a name holds after a record was put there, read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// The record as given: put by this call, or by an earlier try of it whose answer was lost.
    AsGiven,
    /// Another writer's record.
    Other(Vec<u8>),
}

/// What a store knows of an object without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Size in bytes.
    pub bytes: u64,
    /// The storage's own mark of this content; a folder has none.
    pub etag: Option<String>,
}

/// One object of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub key: Key,
    /// Size in bytes.
    pub bytes: u64,
    /// When the object was written, by the storage's clock.
    pub modified: SystemTime,
}

/// An object as a file of this machine, to be opened for reading only.
#[derive(Debug)]
pub struct LocalObject {
    path: PathBuf,
    bytes: u64,
    /// Removes the file where it is a copy.
    _copy: Option<Hidden>,
}

impl Store {
    /// Opens the place of one run: `file:///folder`, `s3://bucket/prefix`, or a plain path, relative to the working
    /// folder.
    ///
    /// The URL of a file is percent-decoded, any other name is not. Nothing is made before the first put, so the run
    /// need not exist yet. Refused as usage errors: a host, another scheme, `..`, a query or fragment, the root
    /// folder, a whole bucket.
    pub fn open(run: &str) -> Result<Store, Error> {
        Store::open_with(run, &S3Options::default())
    }

    /// Opens a run with options for the case that it is in S3.
    pub fn open_with(run: &str, options: &S3Options) -> Result<Store, Error> {
        Ok(match run_url::place(run)? {
            Run::Folder(folder) => Store::of(FileStore::new(folder)),
            Run::Bucket(place) => Store::of(S3Store::open(place, options)?),
        })
    }

    /// The run that this keeps.
    pub fn of(backend: impl Backend + 'static) -> Store {
        Store { backend: Arc::new(backend) }
    }

    /// Where its work is seen.
    pub fn progress(&self) -> &Progress {
        self.backend.progress()
    }

    /// Finds out, before any work is done, whether the store can be reached and keeps the promise of puts.
    pub fn probe(&self) -> Result<(), Error> {
        self.backend.probe()
    }

    /// The run as records write it, `file:///folder`, without a slash at the end; [`Store::open`] reads it
    /// back.
    pub fn url(&self) -> String {
        self.backend.url()
    }

    /// Stores an object unless one of that name exists; never overwrites, and decides in one atomic step.
    ///
    /// After an error the object is either absent or whole; the same put may be tried again, and an
    /// [`Put::AlreadyThere`] may then be this writer's own first try.
    pub fn put_if_absent(&self, key: &Key, content: ObjectContent<'_>) -> Result<Put, Error> {
        self.backend.put_if_absent(key, content)
    }

    /// Stores a small record unless one of that name exists, and reads back what is there. A store that takes no notice
    /// of checksums may keep other bytes than it was sent: an error, as no put overwrites them. Another writer's record
    /// of more than `limit_bytes` is an error too.
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

    /// Reads a small object whole, `None` where there is none; one of more than `limit_bytes` is an error. What it gives
    /// is durable, whoever put it.
    pub fn get_small(&self, key: &Key, limit_bytes: u64) -> Result<Option<Vec<u8>>, Error> {
        self.backend.get_small(key, limit_bytes)
    }

    /// Gives an object of any size as a local file. A folder's objects lie there already; a remote store
    /// copies into `folder`, which has to hold them.
    pub fn local_copy(&self, key: &Key, folder: &Path) -> Result<LocalObject, Error> {
        self.backend.local_copy(key, folder)
    }

    /// What is known of an object, `None` where there is none.
    pub fn head(&self, key: &Key) -> Result<Option<ObjectInfo>, Error> {
        self.backend.head(key)
    }

    /// Lists the objects whose names begin with `prefix` (`""`, `data/`, `data/part-00007.`), by bytewise
    /// name. Unfinished puts, and files whose names no key can have, are not objects and do not appear.
    pub fn list(&self, prefix: &str) -> Result<Vec<Listed>, Error> {
        self.backend.list(prefix)
    }

    /// Removes an object; one that is not there is no error.
    pub fn delete(&self, key: &Key) -> Result<(), Error> {
        self.backend.delete(key)
    }
}

impl LocalObject {
    /// A file that stays.
    pub fn lasting(path: PathBuf, bytes: u64) -> LocalObject {
        LocalObject { path, bytes, _copy: None }
    }

    /// A copy that goes with this value.
    fn temporary(copy: Hidden, bytes: u64) -> LocalObject {
        LocalObject { path: copy.path().to_owned(), bytes, _copy: Some(copy) }
    }

    /// Where the object lies, as long as this value lives.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}
