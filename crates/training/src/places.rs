//! Inputs named by a path or by a URL of S3, as local files and folders. Objects are fetched into the cache, once for
//! all processes of a machine.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use dataset::manifest::{DatasetManifest, manifest_name};
use program::location::{Location, S3Url};
use runs::training::read_json;
use store::{CacheOptions, S3Options, cached, objects, read_object};

use crate::error::{Error, Result};
use crate::remote;

/// Limit of a dataset's manifest, which lists shards and stop words.
const MANIFEST_BYTES_MAX: u64 = 256 << 20;

/// The local file of a dataset. If its manifest is beside it in S3, the object must have the SHA-256 in it.
pub fn dataset(location: &Location, s3: &S3Options) -> Result<PathBuf> {
    match location {
        Location::Local(path) => Ok(path.clone()),
        Location::S3(url) => fetched(url, s3, sha256_of(url, s3)?),
    }
}

/// The local path of a file.
pub fn file(location: &Location, s3: &S3Options) -> Result<PathBuf> {
    match location {
        Location::Local(path) => Ok(path.clone()),
        Location::S3(url) => fetched(url, s3, None),
    }
}

/// The local path of a model or of initial weights: a folder, or a file. `flag` is the argument that contained it.
pub fn weights(location: &Location, s3: &S3Options, flag: &str) -> Result<PathBuf> {
    match location {
        Location::Local(path) => Ok(path.clone()),
        Location::S3(url) => {
            let name = url.to_string();
            let is_file = matches!(&objects(&name, s3)?[..], [one] if one.url() == name);
            if is_file { fetched(url, s3, None) } else { remote::fetch_model(url, s3, flag) }
        }
    }
}

/// Whether any of these locations is in S3.
pub fn is_any_in_s3<'a>(mut locations: impl Iterator<Item = &'a Location>) -> bool {
    locations.any(|location| matches!(location, Location::S3(_)))
}

/// Whether a place, as it was passed, is a URL of S3.
pub fn is_any_url_of_s3<'a>(mut places: impl Iterator<Item = &'a String>) -> bool {
    places.any(|place| place.starts_with("s3") && place.contains("://"))
}

fn fetched(url: &S3Url, s3: &S3Options, sha256: Option<String>) -> Result<PathBuf> {
    let options = CacheOptions { s3: s3.clone(), sha256, ..CacheOptions::default() };
    Ok(cached(url, &options)?.path)
}

/// How texts and ratings were found in the input of a dataset, by the names of flags; empty without a manifest beside it that
/// says so.
pub fn input_of(dataset: PathBuf, s3: &S3Options) -> Result<BTreeMap<String, String>> {
    let manifest = match Location::of_file(dataset).map_err(|error| Error::internal(&error))? {
        Location::Local(path) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            read_json(&path.with_file_name(manifest_name(&name)))
        }
        Location::S3(url) => manifest_of(&url, s3)?,
    };
    Ok(manifest.map_or_else(BTreeMap::new, |manifest: DatasetManifest| manifest.seal.ledger.input))
}

/// The digest of a dataset in the manifest beside it, if there is one.
fn sha256_of(url: &S3Url, s3: &S3Options) -> Result<Option<String>> {
    Ok(manifest_of(url, s3)?.map(|manifest| manifest.sha256))
}

/// The manifest beside a dataset, if there is one.
fn manifest_of(url: &S3Url, s3: &S3Options) -> Result<Option<DatasetManifest>> {
    let beside = url.with_file_name(&manifest_name(url.file_name()));
    let Some(json) = read_object(&beside, s3, MANIFEST_BYTES_MAX)? else { return Ok(None) };
    let manifest = serde_json::from_slice(&json).map_err(|error| {
        Error::unexpected(beside, error, format!("the manifest of {url}; put both there again"))
    })?;
    Ok(Some(manifest))
}

/// The first bytes of a dataset.
const HDF5: &[u8] = b"\x89HDF\r\n\x1a\n";

/// Whether a place is a dataset: an HDF5 file, or a file or an object with its extension.
pub fn is_dataset(place: &str) -> bool {
    if place.ends_with(".h5") {
        return true;
    }
    let mut begin = [0; HDF5.len()];
    let path = Path::new(place);
    path.is_file()
        && File::open(path).and_then(|mut file| file.read_exact(&mut begin)).is_ok()
        && begin == HDF5
}
