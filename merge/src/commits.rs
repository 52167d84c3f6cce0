//! The commit records of a run: one for each partition, of one run and with equal settings.

use std::collections::BTreeMap;

use corpus::settings::Difference;
use dataset::commit::{
    COMMIT_PREFIX, Commit, DATA_PREFIX, ListedFile, RECORD_BYTES_MAX, partition_of_commit_key,
};
use making::parsed_record;
use program::exit::{Exit, Failed};
use store::{KEY_BYTES_MAX, Key, Store};

use crate::Result;

/// All commit records of a run, by partition.
pub(crate) fn read_commits(store: &Store) -> Result<BTreeMap<u32, Commit>> {
    let mut commits = BTreeMap::new();
    for listed in store.list(COMMIT_PREFIX)? {
        let Some(partition) = partition_of_commit_key(listed.key.as_str()) else { continue };
        commits.insert(partition, read_commit(store, &listed.key, partition)?);
    }
    Ok(commits)
}

/// The commit record of a partition.
pub(crate) fn read_commit(store: &Store, key: &Key, partition: u32) -> Result<Commit> {
    let object = format!("{}/{key}", store.url());
    let bytes = store.get_small(key, RECORD_BYTES_MAX)?.unwrap_or_default();
    let commit = parsed_record(&object, "commit record", &bytes, |commit: &Commit| commit.schema_version)?;
    check_names(&object, partition, &commit)?;
    Ok(commit)
}

/// A record may be altered, so it is used only if it names its own partition and objects of that partition.
fn check_names(object: &str, partition: u32, commit: &Commit) -> Result<()> {
    let contradiction = |what, found: String, expected: String| {
        Err(Failed::new(
            Exit::MissingInput,
            format!(
                "{object} names {what} {found}, expected {expected}; the record was altered or moved: restore it"
            ),
        ))
    };
    if commit.partition != partition {
        return contradiction("partition", commit.partition.to_string(), partition.to_string());
    }
    let prefix = format!("{DATA_PREFIX}part-{partition:05}.");
    for (kind, ListedFile { name, .. }) in commit.objects() {
        let end = format!(".{}", kind.extension());
        if !name.starts_with(&prefix) || !name.ends_with(&end) || Key::new(&name).is_err() {
            let shown: String = name.chars().take(KEY_BYTES_MAX).collect();
            return contradiction("object", format!("{shown:?}"), format!("{prefix}*{end}"));
        }
    }
    Ok(())
}

/// Why a run is not complete.
pub(crate) struct Incomplete {
    /// The numbers of committed partitions and of all, if some are missing and nothing else is known to be wrong: their
    /// attempts may still run.
    pub(crate) missing: Option<(usize, u32)>,
    /// The message.
    pub(crate) error: Failed,
}

impl From<Failed> for Incomplete {
    fn from(error: Failed) -> Self {
        Self { missing: None, error }
    }
}

impl From<Incomplete> for Failed {
    fn from(incomplete: Incomplete) -> Self {
        incomplete.error
    }
}

/// Checks that there is exactly one commit record for each of partitions 0 to R-1, with equal run and
/// settings.
pub(crate) fn complete(
    store: &Store,
    commits: BTreeMap<u32, Commit>,
) -> std::result::Result<Vec<Commit>, Incomplete> {
    let run = store.url();
    let Some(partitions) = commits.values().map(|commit| commit.partitions).max() else {
        let message = format!(
            "{run}: found no committed partition, expected all; check --run, or run the reducers first"
        );
        return Err(Failed::new(Exit::MissingInput, message).into());
    };
    let found = commits.range(..partitions).count();
    // A record may claim four billion partitions, so the missing ones are never listed completely.
    let missing = (0..partitions).filter(|partition| !commits.contains_key(partition));
    let extra = commits.range(partitions..).map(|(&partition, _)| partition);
    let lists = [
        ("missing", partitions as usize - found, listed(missing)),
        ("extra", commits.len() - found, listed(extra)),
    ];
    let wrong = lists.into_iter().filter(|(_, n, _)| *n > 0).map(|(name, n, list)| {
        if n <= LISTED { format!("{name} {list}") } else { format!("{name} {list} and {} more", n - LISTED) }
    });
    let wrong = wrong.collect::<Vec<_>>().join(", ");
    // Checked first, because a record of another run may be the reason for missing partitions.
    check_alike(&commits)?;
    if wrong.is_empty() {
        return Ok(commits.into_values().collect());
    }
    let message = format!(
        "{run} has {found} of {partitions} partitions: {wrong}; run the missing reducers, or check --run"
    );
    let missing = (found < partitions as usize).then_some((found, partitions));
    Err(Incomplete { missing, error: Failed::new(Exit::MissingInput, message) })
}

/// Maximum number of partitions listed by number.
const LISTED: usize = 10;

fn listed(partitions: impl Iterator<Item = u32>) -> String {
    partitions.take(LISTED).map(|partition| partition.to_string()).collect::<Vec<_>>().join(" ")
}

/// Checks that all partitions are of one run, with equal settings.
pub(crate) fn check_alike(commits: &BTreeMap<u32, Commit>) -> Result<()> {
    commits.values().zip(commits.values().skip(1)).try_for_each(|(other, one)| check_pair(one, other))
}

fn check_pair(one: &Commit, other: &Commit) -> Result<()> {
    let partitions = format!("{} and {}", one.partition, other.partition);
    let other_run = |what, found: String, expected: String| {
        Err(Failed::new(
            Exit::MissingInput,
            format!(
                "partitions {partitions} belong to different runs, because they differ in {what}: {found} and \
                 {expected}; restore the commit record of this run"
            ),
        ))
    };
    if one.run != other.run {
        return other_run("name", one.run.clone(), other.run.clone());
    }
    if one.partitions != other.partitions {
        return other_run("number of partitions", one.partitions.to_string(), other.partitions.to_string());
    }
    let kinds = || {
        let (ours, theirs) = (one.kinds(), other.kinds());
        (ours != theirs).then_some(Difference { setting: "objects", ours, theirs })
    };
    one.settings.difference(&other.settings).or_else(kinds).map_or(Ok(()), |difference| {
        let Difference { setting, ours, theirs } = difference;
        Err(Failed::new(
            Exit::Settings,
            format!(
                "partitions {partitions} differ in {setting}: {ours} and {theirs}; run all reducers with the same \
                 settings, into a new --run"
            ),
        ))
    })
}
