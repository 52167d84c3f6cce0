//! Stores for races: one whose callers wait for each other before the election, and one in memory.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Error as IoError, ErrorKind};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, SystemTime};

use dataset::commit::COMMIT_PREFIX;
use program::progress::Progress;
use store::{Backend, Error, Key, Listed, LocalObject, ObjectContent, ObjectInfo, Put, Store};

/// A store whose callers wait for each other before the election.
#[derive(Debug)]
pub struct Together {
    /// The store with the objects.
    pub store: Store,
    /// The barrier.
    pub start: Arc<Start>,
}

/// A barrier for a number of attempts. Waiting is limited, because an attempt may have failed before.
#[derive(Debug)]
pub struct Start {
    missing: Mutex<usize>,
    changed: Condvar,
}

const LIMIT: Duration = Duration::from_secs(60);

impl Start {
    /// A barrier for this number of attempts.
    pub fn of(attempts: usize) -> Self {
        Self { missing: Mutex::new(attempts), changed: Condvar::new() }
    }

    fn wait(&self) {
        let mut missing = self.missing.lock().unwrap();
        *missing = missing.saturating_sub(1);
        self.changed.notify_all();
        let (missing, _) = self.changed.wait_timeout_while(missing, LIMIT, |missing| *missing > 0).unwrap();
        assert_eq!(*missing, 0, "others do not come to the election");
    }
}

impl Backend for Together {
    fn progress(&self) -> &Progress {
        self.store.progress()
    }

    fn probe(&self) -> Result<(), Error> {
        self.store.probe()
    }

    fn url(&self) -> String {
        self.store.url()
    }

    fn put_if_absent(&self, key: &Key, content: ObjectContent<'_>) -> Result<Put, Error> {
        if key.as_str().starts_with(COMMIT_PREFIX) {
            self.start.wait();
        }
        self.store.put_if_absent(key, content)
    }

    fn get_small(&self, key: &Key, limit_bytes: u64) -> Result<Option<Vec<u8>>, Error> {
        self.store.get_small(key, limit_bytes)
    }

    fn local_copy(&self, key: &Key, folder: &Path) -> Result<LocalObject, Error> {
        self.store.local_copy(key, folder)
    }

    fn head(&self, key: &Key) -> Result<Option<ObjectInfo>, Error> {
        self.store.head(key)
    }

    fn list(&self, prefix: &str) -> Result<Vec<Listed>, Error> {
        self.store.list(prefix)
    }

    fn delete(&self, key: &Key) -> Result<(), Error> {
        self.store.delete(key)
    }
}

/// Objects in memory under one lock: the simplest store with atomic puts.
#[derive(Debug, Default)]
pub struct Locked {
    objects: Mutex<BTreeMap<Key, Vec<u8>>>,
    progress: Progress,
}

impl Locked {
    fn failed(key: &Key, source: IoError) -> Error {
        Error::Io { object: format!("memory:///{key}"), doing: "copy it", source }
    }
}

impl Backend for Locked {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn probe(&self) -> Result<(), Error> {
        Ok(())
    }

    fn url(&self) -> String {
        "memory://".to_owned()
    }

    fn put_if_absent(&self, key: &Key, content: ObjectContent<'_>) -> Result<Put, Error> {
        let content = match content {
            ObjectContent::Bytes(bytes) => bytes.to_vec(),
            ObjectContent::File(file) => fs::read(file).map_err(|error| Self::failed(key, error))?,
        };
        let mut objects = self.objects.lock().unwrap();
        if objects.contains_key(key) {
            return Ok(Put::AlreadyThere);
        }
        let bytes = content.len() as u64;
        objects.insert(key.clone(), content);
        Ok(Put::Stored(ObjectInfo { bytes, etag: None }))
    }

    fn get_small(&self, key: &Key, _: u64) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.objects.lock().unwrap().get(key).cloned())
    }

    fn local_copy(&self, key: &Key, folder: &Path) -> Result<LocalObject, Error> {
        let objects = self.objects.lock().unwrap();
        let content = objects.get(key).ok_or_else(|| Self::failed(key, ErrorKind::NotFound.into()))?;
        let copy = folder.join(key.as_str().replace('/', "-"));
        fs::write(&copy, content).map_err(|error| Self::failed(key, error))?;
        Ok(LocalObject::lasting(copy, content.len() as u64))
    }

    fn head(&self, key: &Key) -> Result<Option<ObjectInfo>, Error> {
        let objects = self.objects.lock().unwrap();
        Ok(objects.get(key).map(|content| ObjectInfo { bytes: content.len() as u64, etag: None }))
    }

    fn list(&self, prefix: &str) -> Result<Vec<Listed>, Error> {
        let objects = self.objects.lock().unwrap();
        let listed = objects.iter().filter(|(key, _)| key.as_str().starts_with(prefix));
        let modified = SystemTime::UNIX_EPOCH;
        Ok(listed
            .map(|(key, content)| Listed { key: key.clone(), bytes: content.len() as u64, modified })
            .collect())
    }

    fn delete(&self, key: &Key) -> Result<(), Error> {
        self.objects.lock().unwrap().remove(key);
        Ok(())
    }
}
