//! Puts files below a prefix, in an order in which the last object makes the others count.

use std::path::{Path, PathBuf};

use crate::{Key, ObjectContent, Put, Store};
use durable::sha256;
use program::temporary;

use crate::mirror::error::{MirrorError, Result};

/// Name of a list of digests in the format of `sha256sum`. It is the last file of a folder.
pub const SUMS: &str = "SHA256SUMS";

/// Files to put, by the names of their objects.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// All files except the last, in the order in which they are put.
    pub files: Vec<(Key, PathBuf)>,
    /// The file whose object makes the bundle complete.
    pub last: (Key, PathBuf),
}

/// What happens to an object of an incomplete bundle that has other content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// It is an error.
    Refuse,
    /// It is deleted and put again. Only the holder of the prefix's claim may do this.
    Replace,
}

/// Puts the files of a bundle. Objects that exist with equal content are kept, so an interrupted put is repeated.
/// `may_finish` is called before the last file; its error prevents that the bundle becomes complete. Errors: an object of
/// a complete bundle has other content.
pub fn put(
    store: &Store,
    bundle: &Bundle,
    leftovers: Leftovers,
    may_finish: impl FnOnce() -> Result<()>,
) -> Result<()> {
    for (key, path) in &bundle.files {
        if !put_or_equal(store, key, path)? {
            let is_replaced = leftovers == Leftovers::Replace && store.head(&bundle.last.0)?.is_none();
            if is_replaced {
                store.delete(key)?;
            }
            if !is_replaced || !put_or_equal(store, key, path)? {
                return Err(occupied(store, key));
            }
        }
    }
    may_finish()?;
    let (key, path) = &bundle.last;
    if put_or_equal(store, key, path)? { Ok(()) } else { Err(occupied(store, key)) }
}

/// The lines of a list of digests.
pub fn sums_of(files: &[(String, PathBuf)]) -> Result<String> {
    let mut lines = String::new();
    for (name, path) in files {
        let sha256 = sha256::of_file(path).map_err(MirrorError::io(path, "read it"))?;
        lines += &format!("{sha256}  {name}\n");
    }
    Ok(lines)
}

/// Puts a file. Returns whether the object has its content.
fn put_or_equal(store: &Store, key: &Key, path: &Path) -> Result<bool> {
    match store.put_if_absent(key, ObjectContent::File(path))? {
        Put::Stored(_) => Ok(true),
        Put::AlreadyThere => has_content(store, key, path),
    }
}

fn has_content(store: &Store, key: &Key, path: &Path) -> Result<bool> {
    let bytes = path.metadata().map_err(MirrorError::io(path, "read its metadata"))?.len();
    if store.head(key)?.is_none_or(|found| found.bytes != bytes) {
        return Ok(false);
    }
    let tmpdir = std::env::temp_dir();
    let folder = temporary::folder_in(&tmpdir).map_err(MirrorError::io(&tmpdir, "make a folder in it"))?;
    let copy = store.local_copy(key, folder.path())?;
    let digest = |path: &Path| sha256::of_file(path).map_err(MirrorError::io(path, "read it"));
    Ok(digest(copy.path())? == digest(path)?)
}

fn occupied(store: &Store, key: &Key) -> MirrorError {
    MirrorError::Occupied { object: format!("{}/{key}", store.url()) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct World {
        _folder: tempfile::TempDir,
        store: Store,
        files: PathBuf,
    }

    fn world() -> World {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("prefix").to_str().unwrap()).unwrap();
        let files = folder.path().join("files");
        fs::create_dir(&files).unwrap();
        World { _folder: folder, store, files }
    }

    impl World {
        fn bundle(&self, content: [&str; 2]) -> Bundle {
            let file = |name: &str, content: &str| {
                let path = self.files.join(format!("{name}-{content}"));
                fs::write(&path, content).unwrap();
                (Key::new(&format!("step/{name}")).unwrap(), path)
            };
            Bundle { files: vec![file("weights", content[0])], last: file(SUMS, content[1]) }
        }

        fn content(&self, name: &str) -> Option<Vec<u8>> {
            self.store.get_small(&Key::new(&format!("step/{name}")).unwrap(), 1 << 20).unwrap()
        }
    }

    fn stopped() -> Result<()> {
        Err(MirrorError::Taken { url: String::new(), holder: String::new() })
    }

    #[test]
    fn a_bundle_is_complete_only_with_its_last_object_and_is_put_twice_without_a_change() {
        let world = world();
        let bundle = world.bundle(["a", "sums"]);
        put(&world.store, &bundle, Leftovers::Replace, stopped).unwrap_err();
        assert_eq!((world.content("weights"), world.content(SUMS)), (Some(b"a".to_vec()), None));
        for _ in 0..2 {
            put(&world.store, &bundle, Leftovers::Refuse, || Ok(())).unwrap();
            assert_eq!(world.content(SUMS), Some(b"sums".to_vec()));
        }
    }

    #[test]
    fn leftovers_of_an_incomplete_bundle_are_replaced_only_on_request() {
        let world = world();
        put(&world.store, &world.bundle(["a", "sums"]), Leftovers::Replace, stopped).unwrap_err();
        let other = world.bundle(["b", "sums-b"]);
        let refused = put(&world.store, &other, Leftovers::Refuse, || Ok(())).unwrap_err();
        assert!(refused.to_string().contains("step/weights: already exists with other content"), "{refused}");
        assert_eq!((world.content("weights"), refused.exit() as u8), (Some(b"a".to_vec()), 64));
        put(&world.store, &other, Leftovers::Replace, || Ok(())).unwrap();
        assert_eq!(world.content("weights"), Some(b"b".to_vec()));
    }

    #[test]
    fn nothing_of_a_complete_bundle_is_replaced() {
        let world = world();
        put(&world.store, &world.bundle(["a", "sums"]), Leftovers::Replace, || Ok(())).unwrap();
        for content in [["b", "sums"], ["a", "sums-b"]] {
            put(&world.store, &world.bundle(content), Leftovers::Replace, || Ok(())).unwrap_err();
            assert_eq!(world.content("weights"), Some(b"a".to_vec()));
            assert_eq!(world.content(SUMS), Some(b"sums".to_vec()));
        }
    }
}
