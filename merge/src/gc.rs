//! Finds objects that no commit record names: those of attempts that were not elected, and the plans of merged runs.

use std::collections::BTreeSet;

use dataset::commit::{Commit, DATA_PREFIX, is_part_key};
use program::exit::{Exit, Failed};
use store::{Listed, Store};

use crate::Result;
use crate::commits::{Incomplete, complete, read_commits};
use crate::plan::{PLAN, PLANS_PREFIX, is_plan_key};
use crate::seal::read_seal;

/// Objects of a run that no commit record names.
pub struct Garbage {
    /// Objects of attempts; if the run was merged, also the plans of merges and the results of their tasks.
    pub orphans: Vec<Listed>,
    /// Objects whose names no reducer and no plan uses. They are not deleted.
    pub foreign: Vec<Listed>,
    /// Why they must not be deleted, if that is the case.
    pub refusal: Option<Failed>,
}

/// Finds the objects of a run that no commit record names, and checks whether they may be deleted. They may
/// be deleted only if all partitions are committed, because then no other attempt can be elected.
pub fn find(store: &Store) -> Result<Garbage> {
    // The commit records are read once, before the objects are listed. If a partition is committed in
    // between, the run counts as incomplete, so the objects of that attempt are not deleted.
    let commits = read_commits(store)?;
    let (mut orphans, mut foreign): (Vec<_>, Vec<_>) =
        store.list(DATA_PREFIX)?.into_iter().partition(|listed| is_part_key(listed.key.as_str()));
    let all = orphans.len();
    let named: BTreeSet<String> =
        commits.values().flat_map(Commit::objects).map(|(_, object)| object.name).collect();
    orphans.retain(|listed| !named.contains(listed.key.as_str()));
    let found = all - orphans.len();
    if read_seal(store)?.is_some() {
        let (mut plans, others): (Vec<_>, Vec<_>) =
            store.list(PLANS_PREFIX)?.into_iter().partition(|listed| is_plan_key(listed.key.as_str()));
        // A plan is deleted after its results.
        plans.sort_by_key(|listed| listed.key.as_str().ends_with(PLAN));
        orphans.extend(plans);
        foreign.extend(others);
    }
    let run = store.url();
    let refusal = match complete(store, commits) {
        Err(Incomplete { missing: Some((found, partitions)), .. }) => Some(Failed::new(
            Exit::TryAgain,
            format!(
                "{run}: {found} of {partitions} partitions are committed, and an attempt that still runs may need its \
                 object; nothing is deleted until all partitions are committed"
            ),
        )),
        Err(incomplete) => Some(incomplete.error),
        // A commit record that was changed to name another object would turn the elected one into garbage.
        Ok(_) if found < named.len() => Some(Failed::new(
            Exit::MissingInput,
            format!(
                "{run}: found {found} of the {} objects that commit records name, expected all; nothing was deleted: \
                     restore the missing objects",
                named.len()
            ),
        )),
        Ok(_) => None,
    };
    Ok(Garbage { orphans, foreign, refusal })
}
