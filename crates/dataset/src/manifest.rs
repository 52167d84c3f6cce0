//! Records stored with the data: the manifest of a run, and the manifest of a dataset.

use std::collections::BTreeMap;

use corpus::digest::Digest;
use corpus::ledger::{MapperCounts, ReducerCounts};
use corpus::settings::Settings;
use serde::{Deserialize, Serialize};

use crate::commit::{Commit, ListedFile};
use crate::dataset_settings::DatasetSettings;
use crate::header::Digests;

/// The manifest of a run, which lists its shards. It is never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Seal {
    /// Version of this record.
    pub schema_version: u32,
    /// The run, as passed to its reducers.
    pub run: String,
    /// The shards, by partition from 0.
    pub shards: Vec<SealedShard>,
    /// The sum of their row digests.
    pub row_digest: Digest,
    /// The ledger of the run.
    pub ledger: Ledger,
    /// Settings of all shards.
    pub settings: Settings,
}

/// A shard listed in a run's manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct SealedShard {
    /// Name in the run's folder.
    pub object: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of its bytes.
    pub sha256: String,
    /// The host that wrote it.
    pub host: String,
    /// The attempt that wrote it.
    pub attempt: String,
    /// Time of the commit, in seconds since 1970.
    pub committed_unix_s: u64,
    /// Number of rows.
    pub rows: u64,
    /// Digest of the rows.
    pub row_digest: Digest,
    /// The texts of the rows, as Parquet, if the reducers wrote them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub texts: Option<ListedFile>,
    /// What the rows lack, if the reducers kept it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<ListedFile>,
}

impl From<&Commit> for SealedShard {
    fn from(commit: &Commit) -> Self {
        Self {
            object: commit.object.clone(),
            bytes: commit.bytes,
            sha256: commit.sha256.clone(),
            host: commit.host.clone(),
            attempt: commit.attempt.clone(),
            committed_unix_s: commit.committed_unix_s,
            rows: commit.counts.rows,
            row_digest: commit.row_digest,
            texts: commit.texts.clone(),
            rest: commit.rest.as_ref().map(|rest| rest.file.clone()),
        }
    }
}

/// The counts of all lines and all texts of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Ledger {
    /// The mappers' counts, if they were passed.
    pub mapper: Option<MapperCounts>,
    /// The reducers' counts.
    pub reducer: ReducerCounts,
    /// How the tables were written, if there were any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<TableDialect>,
    /// How texts and ratings were found in the input, by the names of flags; empty if that is not known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub input: BTreeMap<String, String>,
}

/// How some tables of the input were written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct TableDialect {
    /// The value of `--delimiter`.
    pub delimiter: String,
    /// The value of `--quote`.
    pub quote: String,
    /// Number of tables.
    pub files: u64,
}

/// The manifest of a dataset, `reviews.manifest.json` for `reviews.h5`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct DatasetManifest {
    /// Version of this record and of the dataset's format.
    pub schema_version: u32,
    /// The run from which the dataset was made.
    pub seal: Seal,
    /// The settings that determine its content.
    pub settings: DatasetSettings,
    /// Number of ids per row of the padded copy, if there is one.
    pub padded: Option<u64>,
    /// Size of the dataset file in bytes.
    pub bytes: u64,
    /// SHA-256 of the dataset file.
    pub sha256: String,
    /// SHA-256 of the padded copy, if there is one.
    pub padded_sha256: Option<String>,
    /// Number of rows.
    pub rows: u64,
    /// Number of rows of the shards that were excluded because another dataset has them.
    pub left_out: u64,
    /// Its digests.
    pub digests: Digests,
    /// The Parquet file of its ids, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<ListedFile>,
    /// The Parquet file of its texts, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub texts: Option<ListedFile>,
    /// The Croissant description of its Parquet files, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub croissant: Option<ListedFile>,
}

corpus::read_from_objects!(Seal, SealedShard, Ledger, TableDialect, DatasetManifest);

/// The name of a dataset's manifest, which is in the same folder: `reviews.manifest.json` for `reviews.h5`.
pub fn manifest_name(dataset: &str) -> String {
    format!("{}.manifest.json", stem(dataset))
}

/// The name of a dataset's padded copy, which is in the same folder: `reviews.padded.h5` for `reviews.h5`.
pub fn padded_name(dataset: &str) -> String {
    format!("{}.padded.h5", stem(dataset))
}

/// The name of the run of a dataset's words, which is in the same folder: `reviews.words` for `reviews.h5`.
pub fn words_name(dataset: &str) -> String {
    format!("{}.words", stem(dataset))
}

/// The name of the Parquet file of a dataset's ids, which is in the same folder: `reviews.ids.parquet` for `reviews.h5`.
pub fn ids_name(dataset: &str) -> String {
    format!("{}.ids.parquet", stem(dataset))
}

/// The name of the description of a dataset's Parquet files, which is in the same folder: `reviews.croissant.json` for
/// `reviews.h5`.
pub fn croissant_name(dataset: &str) -> String {
    format!("{}.croissant.json", stem(dataset))
}

/// The file name without its extension. A dot at its start does not start an extension.
fn stem(name: &str) -> &str {
    name.rfind('.').filter(|&dot| dot > 0).map_or(name, |dot| &name[..dot])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_dataset_have_its_name_without_the_extension() {
        for (dataset, stem) in
            [("reviews.h5", "reviews"), ("a.b.h5", "a.b"), ("reviews", "reviews"), (".h5", ".h5")]
        {
            assert_eq!(manifest_name(dataset), format!("{stem}.manifest.json"));
            assert_eq!(padded_name(dataset), format!("{stem}.padded.h5"));
            assert_eq!(ids_name(dataset), format!("{stem}.ids.parquet"));
            assert_eq!(croissant_name(dataset), format!("{stem}.croissant.json"));
            assert_eq!(std::path::Path::new(dataset).file_stem().unwrap(), stem);
        }
    }
}
