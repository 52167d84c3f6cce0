//! The result of a job: the manifest beside its dataset, with the ledger and the digests.

use std::fs;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use corpus::ledger::{self, MapperCounts, ReducerCounts};
use program::bounded;
use program::exit::Exit;
use program::location::S3Url;
use serde::{Deserialize, Serialize};
use store::{S3Options, Store};

use crate::Error;
use crate::job::{Job, Place};

/// Maximum size of a manifest. That of 10,000 shards has some 5 MB.
const MANIFEST_BYTES_MAX: u64 = 64 << 20;

/// The name of the run in a manifest of `sentimill`.
pub const NO_RUN: &str = "sentimill";

/// What a manifest states about a dataset, without the list of its shards.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    seal: Seal,
    /// Size of the dataset in bytes.
    pub bytes: u64,
    /// SHA-256 of the dataset.
    pub sha256: String,
    /// Number of rows.
    pub rows: u64,
    left_out: u64,
    /// Digests of the content.
    pub digests: Digests,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Seal {
    run: String,
    ledger: Ledger,
}

/// The counts of all lines and all texts.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Ledger {
    mapper: Option<MapperCounts>,
    reducer: ReducerCounts,
}

/// Digests of a dataset, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digests {
    /// Digest of the rows' words.
    pub row_digest: String,
    /// Digest of the rows' ids.
    pub id_digest: String,
    /// Digest of the words and their counts.
    pub vocabulary_digest: String,
}

/// The result of a job, as a JSON document.
#[derive(Clone, Debug, Serialize)]
pub struct Made {
    /// The URL or path of the dataset.
    pub dataset: String,
    /// The run from which it was made; `None` if `sentimill` made it without a run.
    pub run: Option<String>,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of its bytes.
    pub sha256: String,
    /// Number of rows.
    pub rows: u64,
    /// Digests of its content.
    pub digests: Digests,
    ledger: Ledger,
    #[serde(skip)]
    left_out: u64,
}

impl Made {
    /// Reads the manifest of a dataset. `None` if there is none.
    pub fn read(dataset: &Place, options: &S3Options) -> Result<Option<Self>, Error> {
        let place = manifest_of(dataset);
        let bytes = match &place {
            Place::Local(path) => local(path)?,
            other => {
                let url = other.s3_url()?;
                store::read_object(&url, options, MANIFEST_BYTES_MAX)?
            }
        };
        let Some(bytes) = bytes else { return Ok(None) };
        let manifest: Manifest = serde_json::from_slice(&bytes).map_err(|_| {
            let message = format!(
                "{place}: found something else than a manifest of merge, expected the manifest of the dataset; choose \
                 another dataset in the job file"
            );
            Error::new(Exit::BadInput, message)
        })?;
        let Manifest { seal, bytes, sha256, rows, left_out, digests } = manifest;
        let (dataset, run) = (dataset.to_string(), Some(seal.run).filter(|run| run != NO_RUN));
        Ok(Some(Self { dataset, run, bytes, sha256, rows, digests, ledger: seal.ledger, left_out }))
    }

    /// The result of a job whose steps have completed. `remedy` is for one without a dataset.
    pub fn after(job: &Job, options: &S3Options, remedy: &str) -> Result<Self, Error> {
        let dataset = &job.dataset;
        Self::read(dataset, options)?.ok_or_else(|| {
            let message = format!(
                "{dataset}: found no manifest although all steps completed, expected the dataset; {remedy}"
            );
            Error::new(Exit::MissingInput, message)
        })
    }

    /// When the manifest of a dataset was written. `None` if there is none.
    pub fn written(dataset: &Place, options: &S3Options) -> Result<Option<SystemTime>, Error> {
        let place = manifest_of(dataset);
        let Place::Local(path) = &place else {
            let Ok(url) = S3Url::parse(&place.to_string()) else { return Ok(None) };
            let (store, key) = Store::of_object(&url, options)?;
            let listed = store.list(key.as_str())?;
            return Ok(listed.into_iter().find(|listed| listed.key == key).map(|listed| listed.modified));
        };
        Ok(fs::metadata(path).and_then(|metadata| metadata.modified()).ok())
    }

    /// The ledger and the digests, as lines.
    pub fn text(&self) -> String {
        let Self { dataset, bytes, sha256, digests, ledger, .. } = self;
        let counts = ledger::lines(ledger.mapper.as_ref(), &ledger.reducer, self.rows, self.left_out);
        let Digests { row_digest, id_digest, vocabulary_digest } = digests;
        format!(
            "{counts}dataset           {dataset} ({bytes} bytes, {} rows)\n\
             sha256            {sha256}\n\
             row digest        {row_digest}\n\
             id digest         {id_digest}\n\
             vocabulary digest {vocabulary_digest}\n",
            self.rows
        )
    }
}

/// `reviews.manifest.json` beside `reviews.h5`.
fn manifest_of(dataset: &Place) -> Place {
    let named = |name: &str| {
        let stem = Path::new(name).file_stem().unwrap_or_default().to_string_lossy();
        format!("{stem}.manifest.json")
    };
    match dataset {
        Place::Local(path) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            Place::Local(path.with_file_name(named(&name)))
        }
        other => {
            let text = other.to_string();
            let name = text.rsplit('/').next().unwrap_or_default();
            other.s3_parent().map_or_else(|| other.clone(), |folder| folder.join(&named(name)))
        }
    }
}

fn local(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match bounded::read(path, MANIFEST_BYTES_MAX) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::io(format!("{}: cannot use the file", path.display()), source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_beside_its_dataset() {
        for (dataset, manifest) in [
            ("s3://bucket/datasets/a.b.h5", "s3://bucket/datasets/a.b.manifest.json"),
            ("s3://bucket/reviews", "s3://bucket/reviews.manifest.json"),
            ("/data/reviews.h5", "/data/reviews.manifest.json"),
        ] {
            let place = Place::parse(dataset, Path::new("/")).unwrap();
            assert_eq!(manifest_of(&place).to_string(), manifest);
        }
    }
}
