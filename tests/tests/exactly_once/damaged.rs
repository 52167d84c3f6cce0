//! A store that ignores checksums and stores a different record than it was sent.

use std::path::Path;

use dataset::commit::{COMMIT_PREFIX, SEAL_KEY};
use program::exit::Exit;
use program::progress::Progress;
use store::{Backend, Error, Key, Listed, LocalObject, ObjectContent, ObjectInfo, Put, Store};
use synthetic::random::Random;
use tests::fault_proxy::damage_behind;

use crate::attempts::{Corpus, merged, reduce, task};
use crate::hadoop::Maps;
use crate::scratch;
use crate::stores::Locked;

/// A store that flips a bit in a digest of each record whose name has this prefix.
#[derive(Debug)]
struct Damaging {
    store: Store,
    prefix: &'static str,
}

impl Backend for Damaging {
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
        match content {
            ObjectContent::Bytes(record) if key.as_str().starts_with(self.prefix) => {
                let mut damaged = record.to_vec();
                damage_behind(&mut damaged, "\"sha256\": \"");
                self.store.put_if_absent(key, ObjectContent::Bytes(&damaged))
            }
            content => self.store.put_if_absent(key, content),
        }
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

fn stores(folder: &Path) -> [Store; 2] {
    [Store::of(Locked::default()), Store::open(folder.join("run").to_str().unwrap()).unwrap()]
}

#[test]
fn a_damaged_commit_record_is_reported_as_a_failure() {
    let corpus = Corpus::of(60, 1);
    let folder = scratch();
    for store in stores(folder.path()) {
        let maps = Maps::of(&corpus.lines, 2, 1);
        let mut random = Random::new(1);
        let damaging = Store::of(Damaging { store: store.clone(), prefix: COMMIT_PREFIX });
        let mut attempt = |store: &Store, name: &str| {
            reduce(store, maps.input(0, &mut random), &task(0, 1, name, folder.path())).unwrap_err()
        };
        let first = attempt(&damaging, "first");
        assert!(first.to_string().contains("found other bytes on reading it back"), "{first}");
        // The damaged record does not count as success: neither for a retry of the same attempt, nor for
        // another attempt.
        for (store, name) in [(&damaging, "first"), (&store, "first"), (&store, "second")] {
            let error = attempt(store, name);
            assert!(error.to_string().contains("records another SHA-256 for data/"), "{name}: {error}");
            assert_eq!(error.exit, Exit::Internal, "{name}: {error}");
        }
        assert_eq!(first.exit, Exit::Internal);
    }
}

#[test]
fn a_damaged_run_manifest_is_reported_as_a_failure() {
    let corpus = Corpus::of(60, 1);
    let folder = scratch();
    for (number, store) in stores(folder.path()).into_iter().enumerate() {
        let maps = Maps::of(&corpus.lines, 2, 1);
        reduce(&store, maps.input(0, &mut Random::new(1)), &task(0, 1, "first", folder.path())).unwrap();
        let damaging = Store::of(Damaging { store: store.clone(), prefix: SEAL_KEY });
        let out = folder.path().join(format!("out-{number}.h5"));
        let error = merged(&damaging, &out, maps.counts, folder.path()).unwrap_err();
        assert!(error.to_string().contains("found other bytes on reading it back"), "{error}");
        assert_eq!(error.exit, Exit::Internal);
        assert!(!out.exists());
    }
}
