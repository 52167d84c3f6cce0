//! Reads the files that the programs wrote.

use std::fs;
use std::path::{Path, PathBuf};

use dataset::commit::Commit;
use dataset::dataset_file::DatasetReader;
use dataset::manifest::DatasetManifest;
use tests::files::files;

pub fn open(dataset: &Path) -> DatasetReader {
    DatasetReader::open(dataset).expect("a dataset opens")
}

/// The manifest of a dataset.
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
