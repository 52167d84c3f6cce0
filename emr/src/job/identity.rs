//! The identity of a run: its id, and the record that two starts of one run compare.

use std::collections::BTreeMap;

use durable::sha256;
use serde::{Deserialize, Serialize};

use super::{Job, Place};

/// The key of the cluster's tag that contains the id of the run.
pub const RUN_TAG: &str = "sentimill-run";

/// Version of the record.
const SCHEMA_VERSION: u32 = 1;

impl Job {
    /// The id of the run: `sentimill-` and 16 hexadecimal digits. Equal runs have equal ids, on every machine. It is a
    /// valid tag of EC2 and of YARN, which converts tags to lower case.
    pub fn run_id(&self) -> String {
        format!("sentimill-{}", &sha256::of_bytes(self.run.to_string().as_bytes())[..16])
    }

    /// The record of this job. `programs` are the SHA-256 digests of the programs and files that are sent to the
    /// cluster, by name.
    pub fn record(&self, programs: &BTreeMap<String, String>) -> JobRecord {
        let place = Place::to_string;
        JobRecord {
            schema_version: SCHEMA_VERSION,
            id: self.run_id(),
            run: place(&self.run),
            dataset: place(&self.dataset),
            input: self.input.places.iter().map(place).collect(),
            mapper: self.mapper_flags(),
            reducer: self.shard_flags(),
            merge: self.merge_flags(),
            reducers: self.hadoop.reducers,
            programs: programs.clone(),
        }
    }
}

/// The content of `job.json` in the folder of a run: everything that determines the dataset and the shards. Two starts of one job
/// have equal records. The cluster is not part of it, so a job can be repeated on another cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobRecord {
    /// Version of this format.
    pub schema_version: u32,
    /// The id of the run.
    pub id: String,
    /// The folder of the run.
    pub run: String,
    /// The dataset.
    pub dataset: String,
    /// The input.
    pub input: Vec<String>,
    /// Flags of `mapper`.
    pub mapper: Vec<String>,
    /// Flags of `reducer`.
    pub reducer: Vec<String>,
    /// Flags of `merge`.
    pub merge: Vec<String>,
    /// Number of reducers.
    pub reducers: u32,
    /// Digests of the programs and files that are sent to the cluster.
    pub programs: BTreeMap<String, String>,
}

impl JobRecord {
    /// The bytes of the record, equal for equal records.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).expect("texts and numbers can be written as JSON");
        bytes.push(b'\n');
        bytes
    }

    /// The first field in which another record differs, with the value of each: field, this value, the other value.
    pub fn difference(&self, other: &Self) -> Option<(String, String, String)> {
        let fields = |record: &Self| match serde_json::to_value(record) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let (ours, theirs) = (fields(self), fields(other));
        let differs = |name: &&String| ours.get(*name) != theirs.get(*name);
        let shown = |value: Option<&serde_json::Value>| value.map(ToString::to_string).unwrap_or_default();
        ours.keys().find(differs).map(|name| (name.clone(), shown(ours.get(name)), shown(theirs.get(name))))
    }
}
