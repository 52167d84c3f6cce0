//! Objects that no commit names: what is left of attempts that were not elected.

use dataset::commit::DATA_PREFIX;
use store::{Listed, Store};

use crate::error::{Error, Result};
use crate::run::read_commits;

/// The shards of a run that no commit names.
pub fn orphans(store: &Store) -> Result<Vec<Listed>> {
    let commits = read_commits(store)?;
    let mut objects = store.list(DATA_PREFIX)?;
    objects.retain(|listed| !commits.values().any(|commit| commit.object == listed.key.as_str()));
    Ok(objects)
}

/// Checks that no attempt can win any more: all partitions are committed.
pub fn check_finished(store: &Store) -> Result<()> {
    let commits = read_commits(store)?;
    let Some(partitions) = commits.values().map(|commit| commit.partitions).max() else {
        return Err(Error::NoCommits { run: store.url() });
    };
    if (0..partitions).all(|partition| commits.contains_key(&partition)) {
        Ok(())
    } else {
        Err(Error::StillRunning { run: store.url(), found: commits.len(), partitions })
    }
}
