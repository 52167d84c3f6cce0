//! Reads a shard and compares it with its commit record.

use std::path::Path;

use corpus::ledger::ReducerCounts;
use corpus::settings::Settings;
use dataset::Digests;
use dataset::commit::Commit;
use dataset::shard::ShardReader;
use durable::sha256;
use making::{THREADS_MAX, at};
use program::exit::{Exit, Failed};
use store::{Key, LocalObject, Store};

use crate::Result;

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
        let shown = |of: Digests| format!("{} and {}", of.row_digest, of.vocabulary_digest);
        Err(Failed::new(
            Exit::MissingInput,
            format!(
                "{}: the digests of rows and words are {}, expected {} as at its verification; the file was replaced \
                 during the merge: restore it, and merge again when no program writes to the run",
                self.file.path().display(),
                shown(found),
                shown(expected)
            ),
        ))
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
    let altered = |what, found: String, expected: String| {
        Failed::new(
            Exit::MissingInput,
            format!(
                "{name} has {what} {found}, its commit record has {expected}; the object was altered: restore it, or run \
                 its reducer again into a new --run"
            ),
        )
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
    if let Some((what, found, expected)) = contradiction(&commit.counts, shard.settings(), votes) {
        return Err(altered(what, found, expected));
    }
    Ok(VerifiedShard { file, name: commit.object.clone(), tokens: size.tokens, digests: shard.digests() })
}

/// The first contradiction of the counts of a commit record to the shard's settings or its number of votes:
/// what it is about, the found and the expected.
fn contradiction(
    counts: &ReducerCounts,
    settings: &Settings,
    votes: u64,
) -> Option<(&'static str, String, String)> {
    let Settings { labels, sample, .. } = settings;
    let optional = [
        ("labels", labels.flag(), labels.classes().is_some(), "not_labelled", counts.not_labelled),
        ("sample", sample.to_string(), !sample.is_all(), "not_sampled", counts.not_sampled),
    ];
    for (what, found, is_counted, counter, n) in optional {
        if n.is_some() != is_counted {
            let a_or_no = if n.is_some() { "a" } else { "no" };
            return Some((what, found, format!("{a_or_no} counter {counter}")));
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
        return Some(("number of reviews", found, reviews.to_string()));
    }
    None
}
