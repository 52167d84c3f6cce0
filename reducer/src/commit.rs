//! The commit: one attempt of a partition is elected, once and for all.
//!
//! The shard is put under a name of its own; then one put-if-absent of the partition's commit record elects it. An
//! attempt that comes second compares: rows and settings that agree mean that the work is done, rows that do not
//! mean that something is wrong which nobody may paper over.

use std::path::Path;

use dataset::commit::{Commit, RECORD_BYTES_MAX, commit_key};
use dataset::sha256;
use store::{Content, Key, Put, Store};

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
    let Some(bytes) = store.get_small(&key, RECORD_BYTES_MAX)? else { return Ok(None) };
    let commit = serde_json::from_slice(&bytes)
        .map_err(|found| Error::Record { object: format!("{}/{key}", store.url()), found })?;
    Ok(Some(commit))
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
    match store.put_if_absent(&key, Content::File(shard))? {
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

/// Elects this attempt, or finds out who was elected before.
pub fn elect(store: &Store, commit: Commit) -> Result<Outcome> {
    let key = Key::new(&commit_key(commit.partition))?;
    let mut record = serde_json::to_vec_pretty(&commit).expect("a record of plain values is JSON");
    record.push(b'\n');
    match store.put_if_absent(&key, Content::Bytes(&record))? {
        Put::Stored(_) => Ok(Outcome::Won(commit)),
        Put::AlreadyThere => {
            let elected = earlier(store, commit.partition)?
                .ok_or_else(|| Error::Vanished { object: format!("{}/{key}", store.url()) })?;
            // Our own put may have been answered by silence and tried again.
            if elected.object == commit.object && elected.sha256 == commit.sha256 {
                return Ok(Outcome::Won(elected));
            }
            agree(&commit, &elected)?;
            Ok(Outcome::Same(elected))
        }
    }
}

/// Checks that a partition committed earlier holds what this attempt worked out.
pub fn agree(ours: &Commit, elected: &Commit) -> Result<()> {
    let (what, ours, theirs) = if let Some(difference) = ours.settings.difference(&elected.settings) {
        (difference.setting, difference.ours, difference.theirs)
    } else if ours.schema_version != elected.schema_version {
        ("the schema version", ours.schema_version.to_string(), elected.schema_version.to_string())
    } else if ours.partitions != elected.partitions {
        ("the number of partitions", ours.partitions.to_string(), elected.partitions.to_string())
    } else if ours.row_digest != elected.row_digest {
        ("the row digest", ours.row_digest.to_string(), elected.row_digest.to_string())
    } else if ours.counts != elected.counts {
        ("the counts", ours.counts.to_string(), elected.counts.to_string())
    } else {
        return Ok(());
    };
    Err(Error::Disagree {
        partition: elected.partition,
        attempt: elected.attempt.clone(),
        what,
        ours,
        theirs,
    })
}
