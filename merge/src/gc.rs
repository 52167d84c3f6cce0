//! Finds objects that no commit record names: shards of attempts that were not elected.

use dataset::commit::{DATA_PREFIX, is_shard_key};
use store::{Listed, Store};

use crate::commits::{complete, read_commits};
use crate::error::{Error, Result};

/// Objects of a run that no commit record names.
pub struct Garbage {
    /// Shards.
    pub orphans: Vec<Listed>,
    /// Objects whose names no reducer uses. They are not deleted.
    pub strangers: Vec<Listed>,
    /// Why the shards must not be deleted, if that is the case.
    pub refusal: Option<Error>,
}

/// Finds the objects of a run that no commit record names, and checks whether they may be deleted. They may
/// be deleted only if all partitions are committed, because then no other attempt can be elected.
pub fn find(store: &Store) -> Result<Garbage> {
    // The commit records are read once, before the objects are listed. If a partition is committed in
    // between, the run counts as incomplete, so the shard of that attempt is not deleted.
    let commits = read_commits(store)?;
    let (mut orphans, strangers): (Vec<_>, Vec<_>) =
        store.list(DATA_PREFIX)?.into_iter().partition(|listed| is_shard_key(listed.key.as_str()));
    let all = orphans.len();
    orphans.retain(|listed| !commits.values().any(|commit| commit.object == listed.key.as_str()));
    let named = all - orphans.len();
    let refusal = match complete(store, commits) {
        Err(Error::Partitions { run, found, partitions, .. }) if found < partitions as usize => {
            Some(Error::StillRunning { run, found, partitions })
        }
        Err(error) => Some(error),
        // A commit record that was changed to name another object would turn the elected shard into garbage.
        Ok(commits) if named < commits.len() => {
            Some(Error::ObjectsMissing { run: store.url(), found: named, expected: commits.len() })
        }
        Ok(_) => None,
    };
    Ok(Garbage { orphans, strangers, refusal })
}
