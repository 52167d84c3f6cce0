//! The made-up reviews that most of these tests read, and what one plain pipe makes of them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use dataset::commit::Commit;
use dataset::dataset_file::DatasetReader;
use dataset::manifest::DatasetManifest;
use tests::corpus::{self, Facts};
use tests::pipe::{Pipe, mapped};

const LINES: u64 = 5_000;

/// A corpus, and what becomes of it.
pub struct Demo {
    pub raw: Vec<u8>,
    pub facts: Facts,
    pub records: Vec<u8>,
    /// The bytes of the dataset that `mapper | sort | reducer` and `merge` make of it.
    pub dataset: Vec<u8>,
}

pub static DEMO: LazyLock<Demo> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a test can make a folder");
    let (raw, facts) = raw(LINES, 1);
    let records = mapped(&raw, &folder.path().join("mapper.json"));
    let dataset = fs::read(Pipe::default().dataset_of_records(&records, folder.path())).expect("it was made");
    Demo { raw, facts, records, dataset }
});

pub fn raw(lines: u64, seed: u64) -> (Vec<u8>, Facts) {
    let mut raw = Vec::new();
    let facts = corpus::write(lines, seed, &mut raw).expect("memory takes all");
    (raw, facts)
}

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

pub fn open(dataset: &Path) -> DatasetReader {
    DatasetReader::open(dataset).expect("a dataset opens")
}

/// The manifest beside a dataset.
pub fn manifest(dataset: &Path) -> DatasetManifest {
    let json = fs::read(dataset.with_extension("manifest.json")).expect("a manifest lies beside the dataset");
    serde_json::from_slice(&json).expect("a manifest is JSON")
}

/// The commit records of a run, by partition.
pub fn commits(run: &Path) -> Vec<Commit> {
    let records = files(&run.join("commit"));
    let read = |path: &PathBuf| serde_json::from_slice(&fs::read(path).expect("a commit can be read"));
    records.iter().map(|path| read(path).expect("a commit is JSON")).collect()
}

/// The names of the objects in a run's `data/`, in byte order.
pub fn objects(run: &Path) -> Vec<String> {
    let name = |path: PathBuf| path.file_name().expect("a file has a name").to_string_lossy().into_owned();
    files(&run.join("data")).into_iter().map(name).collect()
}

/// The files of a folder, hidden ones too, in byte order; none where there is no such folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a folder can be read").path()).collect();
    paths.sort();
    paths
}

/// One file: what tells that nobody touched it.
#[derive(PartialEq, Eq)]
pub struct Untouched {
    inode: u64,
    changed_ns: i64,
    content: Vec<u8>,
}

/// Every file below a folder. Equal where nothing was touched.
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
