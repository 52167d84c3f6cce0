//! A run's folder → its shards, complete, of one run, and each exactly what its commit says.

use std::collections::BTreeMap;
use std::path::Path;

use corpus::ledger::ReducerCounts;
use dataset::commit::{
    COMMIT_PREFIX, Commit, DATA_PREFIX, RECORD_BYTES_MAX, SEAL_KEY, partition_of_commit_key,
};
use dataset::manifest::{Seal, SealedShard};
use dataset::sha256;
use dataset::shard::ShardReader;
use store::{Key, LocalObject, Store};

use crate::error::{Error, Result, at};

/// All commit records of a run, by partition.
pub(crate) fn read_commits(store: &Store) -> Result<BTreeMap<u32, Commit>> {
    let mut commits = BTreeMap::new();
    for listed in store.list(COMMIT_PREFIX)? {
        let Some(partition) = partition_of_commit_key(listed.key.as_str()) else { continue };
        let object = format!("{}/{}", store.url(), listed.key);
        let bytes = store.get_small(&listed.key, RECORD_BYTES_MAX)?.unwrap_or_default();
        let commit: Commit = serde_json::from_slice(&bytes).map_err(|source| Error::Record {
            object: object.clone(),
            expected: "commit record",
            source,
        })?;
        check_names(&object, partition, &commit)?;
        commits.insert(partition, commit);
    }
    Ok(commits)
}

/// A record comes from elsewhere: it names its own partition and a shard of that partition, or it is not followed.
fn check_names(object: &str, partition: u32, commit: &Commit) -> Result<()> {
    let contradiction = |what, found: String, expected: String| {
        Err(Error::Contradiction { object: object.to_owned(), what, found, expected })
    };
    if commit.partition != partition {
        return contradiction("partition", commit.partition.to_string(), partition.to_string());
    }
    if commit.schema_version != dataset::SCHEMA_VERSION {
        let (found, expected) = (commit.schema_version, dataset::SCHEMA_VERSION);
        return contradiction("schema version", found.to_string(), expected.to_string());
    }
    let prefix = format!("{DATA_PREFIX}part-{partition:05}.");
    if !commit.object.starts_with(&prefix)
        || !commit.object.ends_with(".h5")
        || Key::new(&commit.object).is_err()
    {
        return contradiction("object", format!("{:?}", commit.object), format!("{prefix}*.h5"));
    }
    Ok(())
}

/// The commits of partitions 0 to R-1 of one run with one set of settings, each once and no other.
pub(crate) fn complete(store: &Store, commits: BTreeMap<u32, Commit>) -> Result<Vec<Commit>> {
    let Some(partitions) = commits.values().map(|commit| commit.partitions).max() else {
        return Err(Error::NoCommits { run: store.url() });
    };
    let missing: Vec<u32> = (0..partitions).filter(|partition| !commits.contains_key(partition)).collect();
    let extra: Vec<u32> = commits.keys().copied().filter(|&partition| partition >= partitions).collect();
    if !(missing.is_empty() && extra.is_empty()) {
        let wrong = [("missing", missing), ("extra", extra)]
            .into_iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(name, list)| format!("{name} {}", listed(&list)));
        let wrong = wrong.collect::<Vec<_>>().join(", ");
        return Err(Error::Partitions { run: store.url(), found: commits.len(), partitions, wrong });
    }
    let commits: Vec<Commit> = commits.into_values().collect();
    commits.windows(2).try_for_each(|pair| check_alike(&pair[1], &pair[0]))?;
    Ok(commits)
}

/// The first few of a list.
fn listed(partitions: &[u32]) -> String {
    const SHOWN: usize = 10;
    let shown: Vec<String> = partitions.iter().take(SHOWN).map(u32::to_string).collect();
    let more = partitions.len().saturating_sub(SHOWN);
    if more == 0 { shown.join(" ") } else { format!("{} and {more} more", shown.join(" ")) }
}

fn check_alike(one: &Commit, other: &Commit) -> Result<()> {
    let (what, found, expected) = if one.partitions != other.partitions {
        ("number of partitions".to_owned(), one.partitions.to_string(), other.partitions.to_string())
    } else if one.run != other.run {
        ("run".to_owned(), one.run.clone(), other.run.clone())
    } else if let Some(difference) = one.settings.difference(&other.settings) {
        (difference.setting.to_owned(), difference.ours, difference.theirs)
    } else {
        return Ok(());
    };
    Err(Error::Mixed { one: one.partition, other: other.partition, what, found, expected })
}

/// The seal of a run, where it has one.
pub(crate) fn read_seal(store: &Store) -> Result<Option<Seal>> {
    let key = Key::new(SEAL_KEY)?;
    let Some(bytes) = store.get_small(&key, RECORD_BYTES_MAX)? else { return Ok(None) };
    let object = format!("{}/{key}", store.url());
    let seal = serde_json::from_slice(&bytes).map_err(|source| Error::Record {
        object,
        expected: "seal",
        source,
    })?;
    Ok(Some(seal))
}

/// Checks that the commits are those that were sealed.
pub(crate) fn check_sealed(seal: &Seal, commits: &[Commit]) -> Result<()> {
    let shards: Vec<SealedShard> = commits.iter().map(SealedShard::from).collect();
    let name = |shard: Option<&SealedShard>| match shard {
        Some(shard) => format!("{} ({} bytes, sha256 {:.8})", shard.object, shard.bytes, shard.sha256),
        None => "absent".to_owned(),
    };
    let differs = |at: &usize| shards.get(*at) != seal.shards.get(*at);
    match (0..shards.len().max(seal.shards.len())).find(differs) {
        None => Ok(()),
        Some(partition) => Err(Error::Unsealed {
            run: seal.run.clone(),
            partition,
            found: name(shards.get(partition)),
            expected: name(seal.shards.get(partition)),
        }),
    }
}

/// A shard that holds what its commit says.
pub(crate) struct VerifiedShard {
    /// Where it lies; kept so that a downloaded copy lives as long.
    pub(crate) file: LocalObject,
    /// Its name in the run's folder.
    pub(crate) name: String,
}

impl VerifiedShard {
    /// Opens it for another reading.
    pub(crate) fn open(&self) -> Result<ShardReader> {
        Ok(ShardReader::open(self.file.path())?)
    }
}

/// Fetches a shard and reads all of it, against its commit.
pub(crate) fn verify(
    store: &Store,
    commit: &Commit,
    scratch: &Path,
    memory_bytes: u64,
) -> Result<VerifiedShard> {
    let file = store.local_copy(&Key::new(&commit.object)?, scratch)?;
    let name = format!("{}/{}", store.url(), commit.object);
    let altered = |what, found: String, expected: String| Error::Altered {
        object: name.clone(),
        what,
        found,
        expected,
    };
    if file.bytes() != commit.bytes {
        return Err(altered("size", file.bytes().to_string(), commit.bytes.to_string()));
    }
    let found = at(file.path(), sha256::of_file(file.path()))?;
    if found != commit.sha256 {
        return Err(altered("SHA-256", found, commit.sha256.clone()));
    }
    let mut shard = ShardReader::open(file.path())?;
    let digest = shard.digests().row_digest;
    if digest != commit.row_digest {
        return Err(altered("row digest", digest.to_string(), commit.row_digest.to_string()));
    }
    let rows = shard.size().rows;
    if rows != commit.counts.rows {
        return Err(altered("number of rows", rows.to_string(), commit.counts.rows.to_string()));
    }
    if let Some(difference) = shard.settings().difference(&commit.settings) {
        return Err(altered(difference.setting, difference.ours, difference.theirs));
    }
    shard.keep_dictionary(memory_bytes)?;
    shard.verify(|_| Ok(()))?;
    Ok(VerifiedShard { file, name: commit.object.clone() })
}

/// The reducers' part of the ledger.
pub(crate) fn sum_counts(commits: &[Commit]) -> ReducerCounts {
    let mut sum = ReducerCounts::default();
    commits.iter().for_each(|commit| sum += commit.counts);
    sum
}
