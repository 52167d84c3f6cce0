//! Objects that no commit names: what is left of attempts that were not elected.

use dataset::commit::{DATA_PREFIX, is_shard_key};
use store::{Listed, Store};

use crate::error::{Error, Result};
use crate::run::{complete, read_commits};

/// What lies in a run that no commit names.
pub struct Garbage {
    /// The shards.
    pub orphans: Vec<Listed>,
    /// Objects beside them that no reducer has put there, by their names: somebody else's, to be left alone.
    pub strangers: Vec<Listed>,
    /// Why they must not be removed, where that is so.
    pub refusal: Option<Error>,
}

/// Finds the objects of a run that no commit names, and whether they may go: only where all partitions are
/// committed can no attempt win any more.
pub fn find(store: &Store) -> Result<Garbage> {
    // The commits are read once and before the objects: a partition that is committed meanwhile leaves this run
    // unfinished, so the shard of its attempt is not taken for garbage.
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
        // A commit that names another object than it did would make garbage of the one it was elected with.
        Ok(commits) if named < commits.len() => {
            Some(Error::ObjectsMissing { run: store.url(), found: named, expected: commits.len() })
        }
        Ok(_) => None,
    };
    Ok(Garbage { orphans, strangers, refusal })
}
