//! Another dataset, which is read: a local file, or an object of S3 that is fetched into the cache. Its settings are
//! compared with those of the dataset to make.

use std::path::{Path, PathBuf};

use corpus::settings::{Difference, Settings};
use dataset::RowsReader;
use dataset::commit::RECORD_BYTES_MAX;
use dataset::dataset_file::DatasetReader;
use dataset::manifest::{DatasetManifest, manifest_name};
use durable::sha256;
use program::exit::{Exit, Failed};
use program::location::{Location, S3Url};
use store::{CacheOptions, S3Options, Store, cached, read_object};

use crate::error::{Result, at};
use crate::publish::Places;
use crate::record::parsed_manifest;

/// A dataset as a local file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatasetFile {
    /// The file to read.
    pub path: PathBuf,
    /// The path or URL that the user passed, for messages.
    pub name: PathBuf,
    manifest: Manifest,
}

/// The manifest of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Manifest {
    /// It may be in the folder of the dataset.
    InFolder,
    /// It was read before the dataset was fetched from this URL.
    Fetched { url: S3Url, s3: Box<S3Options>, manifest: Option<Box<DatasetManifest>> },
}

impl DatasetFile {
    /// Finds a dataset. An object of S3 is fetched unless the cache contains it, and compared with the SHA-256 in its
    /// manifest if it has one.
    pub fn of(location: &Location, s3: &S3Options) -> Result<Self> {
        match location {
            Location::Local(path) => Ok(path.clone().into()),
            Location::S3(url) => Self::fetched(url, s3),
        }
    }

    fn fetched(url: &S3Url, s3: &S3Options) -> Result<Self> {
        let manifest = manifest_in_s3(url, s3)?;
        let sha256 = manifest.as_ref().map(|manifest| manifest.sha256.clone());
        let file = cached(url, &CacheOptions { s3: s3.clone(), sha256, ..CacheOptions::default() })?;
        Ok(Self {
            path: file.path,
            name: url.to_string().into(),
            manifest: Manifest::Fetched {
                url: url.clone(),
                s3: Box::new(s3.clone()),
                manifest: manifest.map(Box::new),
            },
        })
    }

    /// Opens the file. An error names the dataset as the user did.
    pub fn open(&self) -> Result<DatasetReader> {
        Ok(DatasetReader::open(&self.path).map_err(|error| error.of_file(&self.name))?)
    }

    /// Its manifest, if it has one.
    pub(crate) fn manifest(&self) -> Result<Option<DatasetManifest>> {
        match &self.manifest {
            Manifest::InFolder => Places::of(&self.path).read_manifest(),
            Manifest::Fetched { manifest, .. } => Ok(manifest.as_deref().cloned()),
        }
    }

    /// The name of the dataset without its folder.
    pub(crate) fn file_name(&self) -> String {
        self.name.file_name().unwrap_or(self.name.as_os_str()).to_string_lossy().into_owned()
    }

    /// The SHA-256 of another file in the folder of the dataset, if it exists.
    pub(crate) fn sha256_of(&self, name: &str) -> Result<Option<String>> {
        let of_file = |path: &Path| at(path, "read the file", sha256::of_file(path)).map(Some);
        match &self.manifest {
            Manifest::InFolder => {
                let path = self.path.with_file_name(name);
                if at(&path, "read its metadata", path.try_exists())? { of_file(&path) } else { Ok(None) }
            }
            Manifest::Fetched { url, s3, .. } => {
                let (store, key) = Store::of_object(&url.with_file_name(name), s3)?;
                if store.head(&key)?.is_none() {
                    return Ok(None);
                }
                let folder = std::env::temp_dir();
                of_file(store.local_copy(&key, &folder)?.path())
            }
        }
    }
}

impl From<PathBuf> for DatasetFile {
    fn from(path: PathBuf) -> Self {
        Self { name: path.clone(), path, manifest: Manifest::InFolder }
    }
}

impl From<&Path> for DatasetFile {
    fn from(path: &Path) -> Self {
        path.to_owned().into()
    }
}

/// The manifest of a dataset, if it has one.
pub fn manifest_of(dataset: &Location, s3: &S3Options) -> Result<Option<DatasetManifest>> {
    match dataset {
        Location::Local(path) => Places::of(path).read_manifest(),
        Location::S3(url) => manifest_in_s3(url, s3),
    }
}

fn manifest_in_s3(url: &S3Url, s3: &S3Options) -> Result<Option<DatasetManifest>> {
    let object = url.with_file_name(&manifest_name(url.file_name()));
    let record = read_object(&object, s3, RECORD_BYTES_MAX)?;
    record.map(|record| parsed_manifest(&object.to_string(), &record)).transpose()
}

/// The hashes of another dataset, queried in ascending order.
pub struct Hashes {
    rows: RowsReader,
    at: u64,
}

impl Hashes {
    /// Starts at the first hash.
    pub fn of(dataset: &DatasetReader) -> Self {
        Self { rows: dataset.rows(), at: 0 }
    }

    /// Starts at the first hash that is not less than `hash`.
    pub fn from(dataset: &DatasetReader, hash: u64) -> Result<Self> {
        let mut hashes = Self::of(dataset);
        let mut end = hashes.rows.n_rows();
        while hashes.at < end {
            let middle = hashes.at + (end - hashes.at) / 2;
            if hashes.rows.hash(middle)? < hash { hashes.at = middle + 1 } else { end = middle }
        }
        Ok(hashes)
    }

    /// Whether the dataset has this hash, which must not be less than the one of the previous call.
    pub fn contains(&mut self, hash: u64) -> Result<bool> {
        while self.at < self.rows.n_rows() {
            let there = self.rows.hash(self.at)?;
            if there >= hash {
                return Ok(there == hash);
            }
            self.at += 1;
        }
        Ok(false)
    }
}

/// The hashes of texts can be compared only if both datasets were cleaned by the same rules.
pub(crate) fn check_cleaning(path: &Path, there: &Settings, here: &Settings) -> Result<()> {
    let pairs = [
        ("the cleaning version", there.cleaning(), here.cleaning()),
        ("the Unicode version", there.unicode_version.clone(), here.unicode_version.clone()),
    ];
    match pairs.into_iter().find(|(_, found, expected)| found != expected) {
        None => Ok(()),
        Some((what, found, expected)) => {
            let remedy = "texts are cleaned differently and cannot be compared: make it again";
            let why = format!(
                "{}: {what} is {found}, expected {expected} as in this run; {remedy}",
                path.display()
            );
            Err(Failed::new(Exit::Settings, why).into())
        }
    }
}

/// Rows that share a vocabulary must have the same settings. A test set may have all rows, and its training set a sample
/// of them.
pub(crate) fn check_rows(path: &Path, there: &Settings, here: &Settings) -> Result<()> {
    there.row_difference(here).map_or(Ok(()), |difference| {
        let Difference { setting, ours, theirs } = difference;
        let why = format!(
            "{}: its {setting} is {ours}, expected {theirs} as in this run; datasets that share a vocabulary must have the \
             same settings: run the reducers with {}, into a new --run",
            path.display(),
            there.flags()
        );
        Err(Failed::new(Exit::Settings, why).into())
    })
}
