//! Reads and verifies a run: its shards are complete, belong to one run, and match their commit records.

use std::collections::BTreeMap;
use std::path::Path;

use corpus::digest::Digest;
use corpus::ledger::{MapperCounts, ReducerCounts};
use corpus::settings::Settings;
use dataset::Digests;
use dataset::commit::{
    COMMIT_PREFIX, Commit, DATA_PREFIX, RECORD_BYTES_MAX, SEAL_KEY, partition_of_commit_key,
};
use dataset::manifest::{Ledger, Seal, SealedShard};
use dataset::sha256;
use dataset::shard::ShardReader;
use making::{THREADS_MAX, at, check_version, parsed_record};
use store::{KEY_BYTES_MAX, Key, LocalObject, Store};

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

/// The manifest of a run, if it has one.
pub(crate) fn read_seal(store: &Store) -> Result<Option<Seal>> {
    let key = Key::new(SEAL_KEY)?;
    let Some(bytes) = store.get_small(&key, RECORD_BYTES_MAX)? else { return Ok(None) };
    parsed_seal(store, &bytes).map(Some)
}

/// Parses the manifest of a run.
pub(crate) fn parsed_seal(store: &Store, bytes: &[u8]) -> Result<Seal> {
    let object = format!("{}/{SEAL_KEY}", store.url());
    let seal: Seal = parsed_record(&object, "manifest of a run", bytes)?;
    check_version(&object, "manifest of a run", seal.schema_version)?;
    Ok(seal)
}

/// The run's manifest for these commit records.
pub(crate) fn seal_of(commits: &[Commit], mapper: Option<MapperCounts>) -> Seal {
    let (mut row_digest, mut reducer) = (Digest::default(), ReducerCounts::default());
    for commit in commits {
        row_digest += commit.row_digest;
        reducer += commit.counts;
    }
    Seal {
        schema_version: dataset::SCHEMA_VERSION,
        run: commits[0].run.clone(),
        shards: commits.iter().map(SealedShard::from).collect(),
        row_digest,
        ledger: Ledger { mapper, reducer },
        settings: commits[0].settings.clone(),
    }
}

/// Compares the manifest of these commit records with the stored manifest. The mappers' ledger may be missing
/// in one of the two.
pub(crate) fn check_sealed(store: &Store, sealed: &Seal, now: &Seal) -> Result<()> {
    let unsealed = |what: String, found: String, expected: String| {
        Err(Error::Unsealed { run: store.url(), what, found, expected })
    };
    let (found, expected) = (now.shards.len(), sealed.shards.len());
    if found != expected {
        return unsealed("the number of shards".to_owned(), found.to_string(), expected.to_string());
    }
    for (partition, (now, sealed)) in now.shards.iter().zip(&sealed.shards).enumerate() {
        if let Some((what, found, expected)) = difference(now, sealed) {
            return unsealed(format!("the {what} of partition {partition}"), found, expected);
        }
    }
    if let Some(difference) = now.settings.difference(&sealed.settings) {
        return unsealed(difference.setting.to_owned(), difference.ours, difference.theirs);
    }
    let pairs = [
        ("the run's name", now.run.clone(), sealed.run.clone()),
        ("the ledger", now.ledger.reducer.to_string(), sealed.ledger.reducer.to_string()),
        ("the row digest", now.row_digest.to_string(), sealed.row_digest.to_string()),
    ];
    match pairs.into_iter().find(|(_, found, expected)| found != expected) {
        None => Ok(()),
        Some((what, found, expected)) => unsealed(what.to_owned(), found, expected),
    }
}

/// The first field in which two shards in a manifest differ, with both values.
fn difference(one: &SealedShard, other: &SealedShard) -> Option<(&'static str, String, String)> {
    let pairs = [
        ("object", one.object.clone(), other.object.clone()),
        ("size", one.bytes.to_string(), other.bytes.to_string()),
        ("SHA-256", one.sha256.clone(), other.sha256.clone()),
        ("host", one.host.clone(), other.host.clone()),
        ("attempt", one.attempt.clone(), other.attempt.clone()),
        ("time", one.committed_unix_s.to_string(), other.committed_unix_s.to_string()),
        ("number of rows", one.rows.to_string(), other.rows.to_string()),
        ("row digest", one.row_digest.to_string(), other.row_digest.to_string()),
    ];
    pairs.into_iter().find(|(_, one, other)| one != other)
}

/// A shard that matches its commit record.
pub(crate) struct VerifiedShard {
    /// The local file, kept so that a downloaded copy is not deleted.
    pub(crate) file: LocalObject,
    /// Name in the run's folder.
    pub(crate) name: String,
    /// Number of kept tokens of all rows.
    pub(crate) tokens: u64,
    /// The digests at verification.
    digests: Digests,
}

impl VerifiedShard {
    /// Opens the shard again. The path may now name another valid file with other rows, so the digests are
    /// compared.
    pub(crate) fn open(&self) -> Result<ShardReader> {
        let shard = ShardReader::open(self.file.path())?;
        let (found, expected) = (shard.digests(), self.digests);
        if found == expected {
            return Ok(shard);
        }
        Err(Error::Exchanged {
            path: self.file.path().to_owned(),
            found: format!("{} and {}", found.row_digest, found.vocabulary_digest),
            expected: format!("{} and {}", expected.row_digest, expected.vocabulary_digest),
        })
    }
}

/// Fetches a shard, reads all of it and compares it with its commit record.
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
    let found = at(file.path(), "read the shard", sha256::of_file(file.path()))?;
    if found != commit.sha256 {
        return Err(altered("SHA-256", found, commit.sha256.clone()));
    }
    let mut shard = ShardReader::open(file.path())?;
    let digest = shard.digests().row_digest;
    if digest != commit.row_digest {
        return Err(altered("row digest", digest.to_string(), commit.row_digest.to_string()));
    }
    let size = shard.size();
    let sizes = [
        ("number of rows", size.rows, commit.counts.rows),
        ("number of kept words", size.tokens, commit.kept_words),
        ("number of distinct words", size.words, commit.distinct_words),
    ];
    if let Some((what, found, expected)) = sizes.into_iter().find(|(_, found, expected)| found != expected) {
        return Err(altered(what, found.to_string(), expected.to_string()));
    }
    if let Some(difference) = shard.settings().difference(&commit.settings) {
        return Err(altered(difference.setting, difference.ours, difference.theirs));
    }
    shard.keep_dictionary(memory_bytes)?;
    let mut votes = 0;
    shard.verify_blocks(
        dataset::threads(THREADS_MAX),
        || 0,
        |sum, row| *sum += row.votes.total(),
        |sum| votes += sum,
    )?;
    let counts = commit.counts;
    let Settings { labels, sample, .. } = shard.settings();
    let optional = [
        ("labels", labels.flag(), labels.classes().is_some(), "not_labelled", counts.not_labelled),
        ("sample", sample.to_string(), !sample.is_all(), "not_sampled", counts.not_sampled),
    ];
    for (what, found, is_counted, counter, n) in optional {
        if n.is_some() != is_counted {
            let a_or_no = if n.is_some() { "a" } else { "no" };
            return Err(altered(what, found, format!("{a_or_no} counter {counter}")));
        }
    }
    // Dropped texts are not in any shard, and each of them has at least one vote.
    let (reviews, dropped) = (counts.reviews, counts.dropped());
    if reviews.saturating_sub(dropped) < votes || (dropped == 0 && reviews != votes) {
        let mut found = format!("{votes} and {} texts of stop words only", counts.only_stopwords);
        let others = [(counts.not_labelled, "without a class"), (counts.not_sampled, "outside the sample")];
        for (n, which) in others.into_iter().filter_map(|(n, which)| Some((n.filter(|&n| n > 0)?, which))) {
            found += &format!(" and {n} texts {which}");
        }
        return Err(altered("number of reviews", found, reviews.to_string()));
    }
    Ok(VerifiedShard { file, name: commit.object.clone(), tokens: size.tokens, digests: shard.digests() })
}
