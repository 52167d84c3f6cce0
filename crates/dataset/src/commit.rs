//! The commit record of a partition, and the names of objects in a run's folder.

use corpus::digest::Digest;
use corpus::ledger::ReducerCounts;
use corpus::settings::Settings;
use serde::{Deserialize, Serialize};

/// Describes the shard that a reducer has stored: one small JSON object. It is stored only if no record of
/// the partition exists, which elects one attempt. An object in the store counts only if a commit record
/// names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Commit {
    /// Version of this record and of the shard's format.
    pub schema_version: u32,
    /// The run, as passed to the reducer.
    pub run: String,
    /// The partition, from 0.
    pub partition: u32,
    /// Number of partitions of the run.
    pub partitions: u32,
    /// Name of the shard in the run's folder.
    pub object: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of the shard, in hexadecimal digits.
    pub sha256: String,
    /// The store's name for this version of the object, if the store has one.
    pub etag: Option<String>,
    /// The host that wrote the shard.
    pub host: String,
    /// The attempt that wrote the shard.
    pub attempt: String,
    /// The Hadoop job, under Hadoop.
    pub job: Option<String>,
    /// Time of the commit, in seconds since 1970.
    pub committed_unix_s: u64,
    /// The reducer's counts.
    pub counts: ReducerCounts,
    /// Number of kept tokens of all rows.
    pub kept_words: u64,
    /// Number of words in the shard's dictionary.
    pub distinct_words: u64,
    /// Digest of the rows, which is equal for all attempts of a partition.
    pub row_digest: Digest,
    /// Settings of the shard.
    pub settings: Settings,
    /// The texts of the rows, as Parquet, if the reducer wrote them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub texts: Option<ListedFile>,
    /// What its rows lack, if the reducer kept words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<Rest>,
}

/// The rest of a shard: the texts that its rows do not describe completely, with all their words and votes. These are texts
/// with more words than a row keeps, texts without a class, and texts of stop words only. It has the format of a shard, with
/// the settings [`Settings::of_rest`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Rest {
    /// The object.
    pub file: ListedFile,
    /// Number of texts, and of their reviews.
    pub counts: ReducerCounts,
    /// Number of words of all texts.
    pub kept_words: u64,
    /// Number of distinct words.
    pub distinct_words: u64,
    /// Digest of the texts.
    pub row_digest: Digest,
}

/// A file in the folder of a dataset, or an object in the folder of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct ListedFile {
    /// Its name.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of its bytes.
    pub sha256: String,
}

corpus::read_from_objects!(Commit, Rest, ListedFile);

impl Commit {
    /// The objects that this record names: the shard, then the others.
    pub fn objects(&self) -> Vec<(PartObject, ListedFile)> {
        let Self { object, bytes, sha256, texts, rest, .. } = self;
        let shard = ListedFile { name: object.clone(), bytes: *bytes, sha256: sha256.clone() };
        let rest = rest.as_ref().map(|rest| &rest.file);
        let others = [(PartObject::Texts, texts.as_ref()), (PartObject::Rest, rest)];
        let others = others.into_iter().filter_map(|(kind, file)| Some((kind, file?.clone())));
        [(PartObject::Shard, shard)].into_iter().chain(others).collect()
    }

    /// The record that the rest of this shard would have as a shard of its own.
    pub fn of_rest(&self) -> Option<Self> {
        let Rest { file, counts, kept_words, distinct_words, row_digest } = self.rest.clone()?;
        Some(Self {
            object: file.name,
            bytes: file.bytes,
            sha256: file.sha256,
            etag: None,
            counts,
            kept_words,
            distinct_words,
            row_digest,
            settings: self.settings.of_rest(),
            texts: None,
            rest: None,
            ..self.clone()
        })
    }

    /// The kinds of these objects, for messages: `shard + texts`.
    pub fn kinds(&self) -> String {
        self.objects().iter().map(|(kind, _)| kind.name()).collect::<Vec<_>>().join(" + ")
    }
}

/// An object that a reducer stores for its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartObject {
    /// The shard.
    Shard,
    /// The texts of its rows, as Parquet.
    Texts,
    /// The rest of the shard.
    Rest,
}

impl PartObject {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Shard, Self::Texts, Self::Rest];

    /// What messages call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shard => "shard",
            Self::Texts => "texts",
            Self::Rest => "kept words",
        }
    }

    /// The end of its key.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Shard => "h5",
            Self::Texts => "texts.parquet",
            Self::Rest => "rest.h5",
        }
    }

    /// Its key in the run's folder. The key contains host and attempt, because several reducers can run on one host, and names of
    /// attempts can repeat on other hosts.
    pub fn key(self, partition: u32, host: &str, attempt: &str) -> String {
        format!("{DATA_PREFIX}part-{partition:05}.{host}.{attempt}.{}", self.extension())
    }
}

/// Maximum size of a record or manifest that is read. Settings may contain a long list of stop words.
pub const RECORD_BYTES_MAX: u64 = 64 << 20;

/// The folder of shards and of the objects beside them.
pub const DATA_PREFIX: &str = "data/";
/// The folder of commit records.
pub const COMMIT_PREFIX: &str = "commit/";
/// The run's manifest.
pub const SEAL_KEY: &str = "manifest.json";

/// Whether the name has the form that reducers use for their objects.
pub fn is_part_key(key: &str) -> bool {
    let name = key.strip_prefix(DATA_PREFIX).and_then(|name| name.strip_prefix("part-"));
    let mut parts = name.unwrap_or_default().split('.');
    let (Some(partition), Some(host), Some(attempt)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let is_fit = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let is_key = |n| PartObject::ALL.iter().any(|object| object.key(n, host, attempt) == key);
    is_fit(host) && is_fit(attempt) && partition.parse().is_ok_and(is_key)
}

/// The name of a partition's commit record.
pub fn commit_key(partition: u32) -> String {
    format!("{COMMIT_PREFIX}part-{partition:05}.json")
}

/// The partition in the name of a commit record.
pub fn partition_of_commit_key(key: &str) -> Option<u32> {
    let digits = key.strip_prefix(COMMIT_PREFIX)?.strip_prefix("part-")?.strip_suffix(".json")?;
    digits.parse().ok().filter(|&partition| commit_key(partition) == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_partition_host_and_attempt() {
        let name = |object: PartObject| object.key(7, "ip-10-0-3-9", "0af1");
        assert_eq!(name(PartObject::Shard), "data/part-00007.ip-10-0-3-9.0af1.h5");
        assert_eq!(name(PartObject::Texts), "data/part-00007.ip-10-0-3-9.0af1.texts.parquet");
        assert_eq!(commit_key(123_456), "commit/part-123456.json");
    }

    #[test]
    fn only_names_in_the_form_of_a_reducer_are_its_objects() {
        for own in [
            "data/part-00007.ip-10-0-3-9.0af1.h5",
            "data/part-123456.a_b.attempt_1.h5",
            "data/part-00007.ip-10-0-3-9.0af1.texts.parquet",
        ] {
            assert!(is_part_key(own), "{own}");
        }
        for other in [
            "data/amz.json",
            "data/part-00007.h5",
            "data/part-00007.host.h5",
            "data/part-7.host.0af1.h5",
            "data/part-00007.host.0af1.h5.tmp",
            "data/part-00007.host.0af1.more.h5",
            "data/part-00007.host.0af1.parquet",
            "data/part-00007.host.texts.parquet",
            "data/part-00007..0af1.h5",
            "data/part-00007.ho/st.0af1.h5",
            "data/sub/part-00007.host.0af1.h5",
            "commit/part-00007.host.0af1.h5",
        ] {
            assert!(!is_part_key(other), "{other}");
        }
    }

    #[test]
    fn only_exact_commit_record_names_have_a_partition() {
        assert_eq!(partition_of_commit_key("commit/part-00007.json"), Some(7));
        for other in
            ["commit/part-7.json", "commit/part-00007.json.tmp", "data/part-00007.json", "commit/x.json"]
        {
            assert_eq!(partition_of_commit_key(other), None, "{other}");
        }
    }
}
