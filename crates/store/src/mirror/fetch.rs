//! Copies the objects that a list of digests names to a local folder, each compared with its digest.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::{Key, Store};
use durable::sha256;
use program::temporary::{self, TemporaryPath};

use crate::mirror::bundle::SUMS;
use crate::mirror::error::{MirrorError, Result};

/// Enough for thousands of files.
const SUMS_BYTES_MAX: u64 = 1 << 20;

/// Copies the objects below `prefix` (`""`, `model/`) that its `SHA256SUMS` names, and this list, into the existing
/// `folder`. Errors: there is no list, an object is missing, or it does not match its digest.
pub fn fetch(store: &Store, prefix: &str, folder: &Path) -> Result<()> {
    let list = sums(store, prefix)?;
    for (name, expected) in parse(&list.object, &list.bytes)? {
        let key = Key::new(&format!("{prefix}{name}"))?;
        let found = fetch_named(store, &key, &folder.join(&name))?;
        if found != expected {
            let object = format!("{}/{key}", store.url());
            return Err(MirrorError::Damaged { object, found, expected });
        }
    }
    let path = folder.join(SUMS);
    fs::write(&path, &list.bytes).map_err(MirrorError::io(&path, "write it"))
}

/// Copies a folder as [`fetch`] does, to a path that is free or an earlier copy. It appears completely or not at all.
pub fn fetch_whole(store: &Store, prefix: &str, path: &Path) -> Result<()> {
    let parent = program::place::folder_of(path);
    fs::create_dir_all(parent).map_err(MirrorError::io(parent, "make the folder"))?;
    let temporary = fresh_folder(parent)?;
    fetch(store, prefix, &temporary)?;
    replace(&temporary, path)
}

/// Copies an object to a file, which is replaced. Returns the SHA-256 of the file.
pub fn fetch_named(store: &Store, key: &Key, path: &Path) -> Result<String> {
    let folder = program::place::folder_of(path);
    fs::create_dir_all(folder).map_err(MirrorError::io(folder, "make the folder"))?;
    let copy = store.local_copy(key, folder)?;
    // The objects of a store in a folder are its files, so they are copied, not renamed.
    fs::copy(copy.path(), path).map_err(MirrorError::io(path, "write it"))?;
    sha256::of_file(path).map_err(MirrorError::io(path, "read it"))
}

/// Copies the objects below `prefix` into the cache and returns the folder. It is copied once per machine, and again
/// if its files have changed. Folders with the same list of digests are one.
pub fn fetch_cached(store: &Store, prefix: &str, cache: &Path) -> Result<PathBuf> {
    let list = sums(store, prefix)?;
    let folders = cache.join("folders");
    fs::create_dir_all(&folders).map_err(MirrorError::io(&folders, "make the folder"))?;
    let temporary = fresh_folder(&folders)?;
    let path = temporary.join(SUMS);
    fs::write(&path, &list.bytes).map_err(MirrorError::io(&path, "write it"))?;
    let name = sha256::of_file(&path).map_err(MirrorError::io(&path, "read it"))?;
    let folder = folders.join(&name);

    // Released when the file is closed. Other processes wait, and then find the folder.
    let lock = folders.join(format!("{name}.lock"));
    let held = File::create(&lock).map_err(MirrorError::io(&lock, "create it"))?;
    held.lock().map_err(MirrorError::io(&lock, "lock it"))?;
    if is_intact(&folder, &list)? {
        return Ok(folder);
    }
    fetch(store, prefix, &temporary)?;
    replace(&temporary, &folder)?;
    Ok(folder)
}

fn replace(temporary: &Path, folder: &Path) -> Result<()> {
    durable::replace_folder(temporary, folder).map_err(MirrorError::io(folder, "replace it"))
}

/// A new folder under a temporary path.
fn fresh_folder(within: &Path) -> Result<TemporaryPath> {
    let made = temporary::path_in(within).and_then(|path| fs::create_dir(&path).map(|()| path));
    made.map_err(MirrorError::io(within, "make a folder in it"))
}

/// Whether a copy has all files of the list, unchanged.
fn is_intact(folder: &Path, list: &Sums) -> Result<bool> {
    if !folder.is_dir() {
        return Ok(false);
    }
    let listed = parse(&list.object, &list.bytes)?;
    let is_equal = |(name, expected): &(String, String)| {
        sha256::of_file(&folder.join(name)).is_ok_and(|found| found == *expected)
    };
    Ok(listed.iter().all(is_equal) && fs::read(folder.join(SUMS)).is_ok_and(|bytes| bytes == list.bytes))
}

/// A list of digests, and its URL.
struct Sums {
    object: String,
    bytes: Vec<u8>,
}

fn sums(store: &Store, prefix: &str) -> Result<Sums> {
    let key = Key::new(&format!("{prefix}{SUMS}"))?;
    let object = format!("{}/{key}", store.url());
    match store.get_small(&key, SUMS_BYTES_MAX)? {
        Some(bytes) => Ok(Sums { object, bytes }),
        None => Err(crate::Error::Missing { object }.into()),
    }
}

/// The names and digests of a list. Names are those of objects, so none leaves the folder.
fn parse(object: &str, bytes: &[u8]) -> Result<Vec<(String, String)>> {
    let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).enumerate();
    let parsed = lines.map(|(at, line)| {
        parse_line(line).ok_or_else(|| MirrorError::BadList { object: object.to_owned(), line: at + 1 })
    });
    parsed.collect()
}

fn parse_line(line: &[u8]) -> Option<(String, String)> {
    let (sha256, name) = std::str::from_utf8(line).ok()?.split_once("  ")?;
    let is_digest =
        sha256.len() == 64 && sha256.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (is_digest && Key::new(name).is_ok()).then(|| (name.to_owned(), sha256.to_owned()))
}

#[cfg(test)]
mod tests {
    use crate::ObjectContent;
    use tempfile::TempDir;

    use super::*;
    use crate::mirror::bundle::sums_of;

    /// A store with the folder `model/` of two files, one in a subfolder.
    fn model() -> (TempDir, Store) {
        let within = tempfile::tempdir().unwrap();
        let store = Store::open(within.path().join("prefix").to_str().unwrap()).unwrap();
        let mut files = Vec::new();
        for name in ["config.json", "more/weights"] {
            let path = within.path().join(name.replace('/', "-"));
            fs::write(&path, name).unwrap();
            files.push((name.to_owned(), path));
        }
        let put = |name: &str, content: ObjectContent<'_>| {
            store.put_if_absent(&Key::new(&format!("model/{name}")).unwrap(), content).unwrap();
        };
        files.iter().for_each(|(name, path)| put(name, ObjectContent::File(path)));
        put(SUMS, ObjectContent::Bytes(sums_of(&files).unwrap().as_bytes()));
        (within, store)
    }

    #[test]
    fn a_folder_is_fetched_once_and_again_if_its_copy_was_changed() {
        let (within, store) = model();
        let cache = within.path().join("cache");
        let folder = fetch_cached(&store, "model/", &cache).unwrap();
        let weights = folder.join("more/weights");
        assert_eq!(fs::read(&weights).unwrap(), b"more/weights");

        fs::remove_file(within.path().join("prefix/model/more/weights")).unwrap();
        assert_eq!(fetch_cached(&store, "model/", &cache).unwrap(), folder);
        fs::write(&weights, "changed").unwrap();
        let error = fetch_cached(&store, "model/", &cache).unwrap_err().to_string();
        assert!(error.contains("model/more/weights: no such object"), "{error}");
        assert!(fs::read_dir(cache.join("folders")).unwrap().count() <= 2, "no temporary folder is left");
    }

    #[test]
    fn an_object_that_does_not_match_its_digest_is_refused_by_name() {
        let (within, store) = model();
        fs::write(within.path().join("prefix/model/config.json"), "altered").unwrap();
        let error = fetch_cached(&store, "model/", &within.path().join("cache")).unwrap_err();
        assert!(error.to_string().contains("/prefix/model/config.json: its SHA-256 is "), "{error}");
        assert_eq!(error.exit() as u8, 66);
    }

    #[test]
    fn a_list_that_names_a_file_elsewhere_is_refused() {
        let sha256 = "0".repeat(64);
        for line in
            [format!("{sha256}  ../x"), format!("{sha256}  /etc/passwd"), format!("{sha256} x"), "x".into()]
        {
            let error = parse("list", line.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("list: line 1 is something else"), "{line}: {error}");
        }
    }
}
