//! The commit records of a run: one for each partition, of one run and with equal settings.

use std::collections::BTreeMap;

use dataset::commit::{COMMIT_PREFIX, Commit, DATA_PREFIX, RECORD_BYTES_MAX, partition_of_commit_key};
use making::{check_version, parsed_record};
use store::{KEY_BYTES_MAX, Key, Store};

use crate::error::{Error, Result};

/// All commit records of a run, by partition.
pub(crate) fn read_commits(store: &Store) -> Result<BTreeMap<u32, Commit>> {
    let mut commits = BTreeMap::new();
    for listed in store.list(COMMIT_PREFIX)? {
        let Some(partition) = partition_of_commit_key(listed.key.as_str()) else { continue };
        let object = format!("{}/{}", store.url(), listed.key);
        let bytes = store.get_small(&listed.key, RECORD_BYTES_MAX)?.unwrap_or_default();
        let commit: Commit = parsed_record(&object, "commit record", &bytes)?;
        check_version(&object, "commit record", commit.schema_version)?;
        check_names(&object, partition, &commit)?;
        commits.insert(partition, commit);
    }
    Ok(commits)
}

/// A record may be altered, so it is used only if it names its own partition and a shard of that partition.
fn check_names(object: &str, partition: u32, commit: &Commit) -> Result<()> {
    let contradiction = |what, found: String, expected: String| {
        Err(Error::Contradiction { object: object.to_owned(), what, found, expected })
    };
    if commit.partition != partition {
        return contradiction("partition", commit.partition.to_string(), partition.to_string());
    }
    let prefix = format!("{DATA_PREFIX}part-{partition:05}.");
    if !commit.object.starts_with(&prefix)
        || !commit.object.ends_with(".h5")
        || Key::new(&commit.object).is_err()
    {
        let shown: String = commit.object.chars().take(KEY_BYTES_MAX).collect();
        return contradiction("object", format!("{shown:?}"), format!("{prefix}*.h5"));
    }
    Ok(())
}

/// Checks that there is exactly one commit record for each of partitions 0 to R-1, with equal run and
/// settings.
pub(crate) fn complete(store: &Store, commits: BTreeMap<u32, Commit>) -> Result<Vec<Commit>> {
    let Some(partitions) = commits.values().map(|commit| commit.partitions).max() else {
        return Err(Error::NoCommits { run: store.url() });
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
    let commits: Vec<Commit> = commits.into_values().collect();
    // Checked first, because a record of another run may be the reason for missing partitions.
    commits.windows(2).try_for_each(|pair| check_alike(&pair[1], &pair[0]))?;
    if wrong.is_empty() {
        Ok(commits)
    } else {
        Err(Error::Partitions { run: store.url(), found, partitions, wrong })
    }
}

/// Maximum number of partitions listed by number.
const LISTED: usize = 10;

fn listed(partitions: impl Iterator<Item = u32>) -> String {
    partitions.take(LISTED).map(|partition| partition.to_string()).collect::<Vec<_>>().join(" ")
}

fn check_alike(one: &Commit, other: &Commit) -> Result<()> {
    let partitions = (one.partition, other.partition);
    let other_run = |what, found, expected| {
        let (one, other) = partitions;
        Err(Error::OtherRun { one, other, what, found, expected })
    };
    if one.run != other.run {
        return other_run("name", one.run.clone(), other.run.clone());
    }
    if one.partitions != other.partitions {
        return other_run("number of partitions", one.partitions.to_string(), other.partitions.to_string());
    }
    one.settings.difference(&other.settings).map_or(Ok(()), |difference| {
        Err(Error::OtherSettings {
            one: one.partition,
            other: other.partition,
            what: difference.setting,
            found: difference.ours,
            expected: difference.theirs,
        })
    })
}
