//! Checks an existing dataset, and its manifest if there is one.

use std::path::Path;

use corpus::digest::Digest;
use dataset::Row;
use dataset::dataset_file::DatasetReader;
use dataset::manifest::DatasetManifest;
use program::exit::{Exit, Failed};
use serde::Serialize;

use crate::THREADS_MAX;
use crate::beside::Beside;
use crate::error::{Error, Result, at};
use crate::input_file::DatasetFile;

/// A dataset that was read completely and is valid.
pub struct Checked {
    /// The dataset.
    pub dataset: DatasetReader,
    /// Whether there is a manifest, whose SHA-256 covers the whole file.
    pub manifest: bool,
    /// The other files that the manifest lists.
    pub files: Vec<CheckedFile>,
}

/// A file that the manifest of a dataset lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckedFile {
    /// Its name.
    pub name: String,
    /// Whether it is in the folder of the dataset. Then its SHA-256 matches the manifest.
    pub exists: bool,
}

/// Reads a whole dataset and checks its content. If there is a manifest, also checks every byte of the file.
pub fn check(file: &DatasetFile) -> Result<Checked> {
    let dataset = file.open()?;
    let check_split = |checked: &mut dataset::Result<()>, row_at, row: &Row| {
        if checked.is_ok() {
            *checked = dataset.check_split(row_at, row);
        }
    };
    dataset.verify_blocks(dataset::threads(THREADS_MAX), || Ok(()), check_split, |checked| checked)?;
    let manifest = file.manifest()?;
    if let Some(manifest) = &manifest {
        check_manifest(file, &dataset, manifest)?;
    }
    let files = match &manifest {
        Some(manifest) => check_files(file, manifest)?,
        None => Vec::new(),
    };
    Ok(Checked { dataset, manifest: manifest.is_some(), files })
}

/// Compares the files beside a dataset, as far as they exist, with its manifest.
fn check_files(file: &DatasetFile, manifest: &DatasetManifest) -> Result<Vec<CheckedFile>> {
    let mut files = Vec::new();
    for (beside, sha256) in Beside::listed(manifest, &file.file_name()) {
        let found = file.sha256_of(&beside.name)?;
        if let Some(found) = found.as_ref().filter(|found| **found != sha256) {
            let path = file.name.with_file_name(&beside.name);
            return Err(other_than_manifest(&path, "the SHA-256", found, &sha256));
        }
        files.push(CheckedFile { name: beside.name, exists: found.is_some() });
    }
    Ok(files)
}

/// Compares a dataset with its manifest.
fn check_manifest(file: &DatasetFile, dataset: &DatasetReader, manifest: &DatasetManifest) -> Result<()> {
    let path = &file.path;
    let sha256 = at(path, "read the dataset", durable::sha256::of_file(path))?;
    let bytes = at(path, "look up the dataset", path.metadata())?.len();
    let (ours, theirs) = (dataset.digests(), manifest.digests);
    let digests = |digests: dataset::Digests| {
        let dataset::Digests { row_digest, id_digest, vocabulary_digest } = digests;
        format!("{row_digest}, {id_digest}, {vocabulary_digest}")
    };
    let other =
        |what, found: &str, expected: &str| Err(other_than_manifest(&file.name, what, found, expected));
    let optional = |digest: Option<Digest>| digest.map_or("none".to_owned(), |digest| digest.to_string());
    let (has, says) = (dataset.settings(), &manifest.settings);
    let pairs = [
        ("the SHA-256", sha256, manifest.sha256.clone()),
        ("the size", bytes.to_string(), manifest.bytes.to_string()),
        ("the number of rows", dataset.n_rows().to_string(), manifest.rows.to_string()),
        ("the list of digests", digests(ours), digests(theirs)),
        ("the vocabulary size", has.vocabulary_size.to_string(), says.vocabulary_size.to_string()),
        ("vocabulary_of", optional(has.vocabulary_of), optional(says.vocabulary_of)),
        ("without", optional(has.without), optional(says.without)),
    ];
    if let Some((what, found, expected)) = pairs.into_iter().find(|(_, found, expected)| found != expected) {
        return other(what, &found, &expected);
    }
    match has.rows.difference(&says.rows) {
        None => Ok(()),
        Some(difference) => other(difference.setting, &difference.ours, &difference.theirs),
    }
}

/// The error of a file that differs from its manifest.
fn other_than_manifest(path: &Path, what: &str, found: &str, expected: &str) -> Error {
    let why = format!(
        "{}: {what} is {found}, its manifest has {expected}; one of the two was altered: merge the run again",
        path.display()
    );
    Failed::new(Exit::MissingInput, why).into()
}
