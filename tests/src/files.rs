//! Compares files by content, and detects whether they were modified.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Asserts equality without printing megabytes.
#[track_caller]
pub fn assert_same_bytes(found: &Path, expected: &[u8], how: &str) {
    let found = fs::read(found).expect("the dataset was made");
    let different = found.iter().zip(expected).position(|(a, b)| a != b);
    assert!(
        found == expected,
        "{how}: {} bytes, expected {}; the first other one is at {different:?}",
        found.len(),
        expected.len()
    );
}

/// The files of a folder, including hidden ones, in byte order. Empty if the folder does not exist.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a folder can be read").path()).collect();
    paths.sort();
    paths
}

/// Metadata of a file that changes when the file is written or replaced.
#[derive(Debug, PartialEq, Eq)]
pub struct Untouched {
    inode: u64,
    changed_ns: i64,
    content: Vec<u8>,
}

/// Every file below a folder. Two snapshots are equal if no file was modified between them.
pub fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Untouched> {
    let mut all = BTreeMap::new();
    for path in files(folder) {
        if path.is_dir() {
            all.append(&mut snapshot(&path));
        } else {
            let metadata = fs::metadata(&path).expect("a file has metadata");
            let changed_ns = metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec();
            let content = fs::read(&path).expect("a file can be read");
            all.insert(path, Untouched { inode: metadata.ino(), changed_ns, content });
        }
    }
    all
}
