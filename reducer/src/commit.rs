//! The commit: one attempt of a partition is elected, once and for all.
//!
//! The shard is put under a name of its own; then one put-if-absent of the partition's commit record elects it. An
//! attempt that comes second compares: rows and settings that agree mean that the work is done, rows that do not
//! mean that something is wrong which nobody may paper over.

use std::path::Path;

use dataset::commit::{Commit, RECORD_BYTES_MAX, commit_key, shard_key};
use dataset::sha256;
use store::{Key, ObjectContent, Put, Recorded, Store};

use crate::{Error, Result};

/// How a commit ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This attempt was elected.
    Won(Commit),
    /// Another attempt was elected, and its shard holds the same rows.
    Same(Commit),
}

/// The record of a partition that is committed already.
pub fn earlier(store: &Store, partition: u32) -> Result<Option<Commit>> {
    let key = Key::new(&commit_key(partition))?;
    let record = store.get_small(&key, RECORD_BYTES_MAX)?;
    record.map(|record| parsed(store, &key, &record)).transpose()
}

fn parsed(store: &Store, key: &Key, record: &[u8]) -> Result<Commit> {
    let object = || format!("{}/{key}", store.url());
    serde_json::from_slice(record).map_err(|found| Error::Record { object: object(), found })
}

/// Puts the shard under its own name, if it is not there from an earlier try of this very attempt; gives what the
/// store calls this version of it.
pub fn put_shard(
    store: &Store,
    object: &str,
    shard: &Path,
    bytes: u64,
    digest: &str,
) -> Result<Option<String>> {
    let key = Key::new(object)?;
    match store.put_if_absent(&key, ObjectContent::File(shard))? {
        Put::Stored(info) => Ok(info.etag),
        Put::AlreadyThere => {
            let there = store.local_copy(&key, shard.parent().unwrap_or(Path::new(".")))?;
            let info = store.head(&key)?;
            let sha256 = sha256::of_file_reporting(there.path(), store.progress());
            let sha256 = sha256.map_err(|source| Error::Scratch { path: there.path().to_owned(), source })?;
            if there.bytes() == bytes && sha256 == digest {
                Ok(info.and_then(|info| info.etag))
            } else {
                Err(Error::NameTaken { object: format!("{}/{key}", store.url()) })
            }
        }
    }
}

/// Elects this attempt, or finds out who was elected before. The record is read back: nobody is elected by a record
/// that the store has damaged.
pub fn elect(store: &Store, commit: Commit, scratch: &Path) -> Result<Outcome> {
    let key = Key::new(&commit_key(commit.partition))?;
    let mut record = serde_json::to_vec_pretty(&commit).expect("a record of plain values is JSON");
    record.push(b'\n');
    match store.put_record(&key, &record, RECORD_BYTES_MAX)? {
        Recorded::AsGiven => Ok(Outcome::Won(commit)),
        Recorded::Other(there) => {
            let elected = parsed(store, &key, &there)?;
            agree(store, &commit, &elected, scratch)?;
            // Where this attempt was started twice, the first may have ended before it could say so.
            let is_own = elected.object == commit.object;
            Ok(if is_own { Outcome::Won(elected) } else { Outcome::Same(elected) })
        }
    }
}

/// Checks that a partition committed earlier holds what this attempt worked out, and that its record is sound: all of it
/// but job, time and etag is compared with this attempt's or with the object that it names.
pub fn agree(store: &Store, ours: &Commit, elected: &Commit, scratch: &Path) -> Result<()> {
    match difference(ours, elected) {
        None => check_object(store, ours, elected, scratch),
        Some((what, ours, theirs)) => Err(Error::Disagree {
            partition: elected.partition,
            attempt: elected.attempt.clone(),
            what,
            ours,
            theirs,
        }),
    }
}

/// The first thing in which attempts of one partition must agree and do not, with both values.
fn difference(ours: &Commit, theirs: &Commit) -> Option<(&'static str, String, String)> {
    if let Some(difference) = ours.settings.difference(&theirs.settings) {
        return Some((difference.setting, difference.ours, difference.theirs));
    }
    let pairs = [
        ("the schema version", ours.schema_version.to_string(), theirs.schema_version.to_string()),
        ("the partition", ours.partition.to_string(), theirs.partition.to_string()),
        ("the number of partitions", ours.partitions.to_string(), theirs.partitions.to_string()),
        ("the row digest", ours.row_digest.to_string(), theirs.row_digest.to_string()),
        ("the counts", ours.counts.to_string(), theirs.counts.to_string()),
        ("kept words", ours.kept_words.to_string(), theirs.kept_words.to_string()),
        ("distinct words", ours.distinct_words.to_string(), theirs.distinct_words.to_string()),
        ("the run", ours.run.clone(), theirs.run.clone()),
    ];
    pairs.into_iter().find(|(_, ours, theirs)| ours != theirs)
}

/// Checks that a record names an object of its own host and attempt, which is there and what the record says. Attempts
/// that agree mostly have the same bytes. Where this attempt has no shard to compare, or one of other bytes, the object
/// is read.
fn check_object(store: &Store, ours: &Commit, elected: &Commit, scratch: &Path) -> Result<()> {
    let damaged = |found: String| {
        let object = format!("{}/{}", store.url(), commit_key(elected.partition));
        Err(Error::Damaged { object, found })
    };
    let key = match Key::new(&elected.object) {
        Ok(key) if key.as_str() == shard_key(elected.partition, &elected.host, &elected.attempt) => key,
        _ => return damaged("names no object of its host and attempt".to_owned()),
    };
    let Some(there) = store.head(&key)? else { return damaged(format!("names {key}, which is not there")) };
    if there.bytes != elected.bytes {
        return damaged(format!("says that {key} has {} bytes, found {}", elected.bytes, there.bytes));
    }
    if elected.sha256 == ours.sha256 {
        return Ok(());
    }
    let copy = store.local_copy(&key, scratch)?;
    let found = sha256::of_file_reporting(copy.path(), store.progress());
    match found.map_err(|source| Error::Scratch { path: copy.path().to_owned(), source })? {
        found if found == elected.sha256 => Ok(()),
        found => damaged(format!("says that {key} has another SHA-256 than found, {found}")),
    }
}
