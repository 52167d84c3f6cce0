//! What lies beside the data: the seal of a run, and the manifest of a dataset.

use corpus::digest::Digest;
use corpus::ledger::{MapperCounts, ReducerCounts};
use corpus::settings::Settings;
use serde::{Deserialize, Serialize};

use crate::commit::Commit;
use crate::dataset_file::DatasetSettings;
use crate::header::Digests;

/// The seal of a run: which shards it consists of, once and for all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Seal {
    /// The version of this record.
    pub schema_version: u32,
    /// The run, as its reducers were given it.
    pub run: String,
    /// The shards, by partition from 0.
    pub shards: Vec<SealedShard>,
    /// The sum of their row digests.
    pub row_digest: Digest,
    /// The ledger of the run.
    pub ledger: Ledger,
    /// The settings that all shards were made with.
    pub settings: Settings,
}

/// One shard of a sealed run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct SealedShard {
    /// Its name in the run's folder.
    pub object: String,
    /// Its size.
    pub bytes: u64,
    /// The SHA-256 of its bytes.
    pub sha256: String,
    /// The host that made it.
    pub host: String,
    /// The attempt that made it.
    pub attempt: String,
    /// When, in seconds since 1970.
    pub committed_unix_s: u64,
    /// Its rows.
    pub rows: u64,
    /// Their digest.
    pub row_digest: Digest,
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
        }
    }
}

/// Every line and every text of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Ledger {
    /// The mappers' part, where it was given.
    pub mapper: Option<MapperCounts>,
    /// The reducers' part.
    pub reducer: ReducerCounts,
}

/// The manifest beside a dataset, `reviews.manifest.json` beside `reviews.h5`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct DatasetManifest {
    /// The version of this record and of the dataset's format.
    pub schema_version: u32,
    /// The run it was made from.
    pub seal: Seal,
    /// The settings that decide its content.
    pub settings: DatasetSettings,
    /// The ids a row of the padded copy, where one was made.
    pub padded: Option<u64>,
    /// The size of the dataset's file.
    pub bytes: u64,
    /// The SHA-256 of the dataset's file.
    pub sha256: String,
    /// The SHA-256 of the padded copy, where one was made.
    pub padded_sha256: Option<String>,
    /// Its rows.
    pub rows: u64,
    /// Rows of the shards that another dataset holds and this one leaves out.
    pub left_out: u64,
    /// Its digests.
    pub digests: Digests,
}

corpus::read_from_objects!(Seal, SealedShard, Ledger, DatasetManifest);
