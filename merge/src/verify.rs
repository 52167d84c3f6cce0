//! Reads a shard and compares it with its commit record.

use std::io;
use std::num::NonZeroUsize;
use std::ops::{AddAssign, Range, SubAssign};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use corpus::ledger::ReducerCounts;
use corpus::settings::Settings;
use dataset::commit::Commit;
use dataset::hashes::{HashFile, Place};
use dataset::shard::ShardReader;
use dataset::{Digests, Fetch, KeptWords, RowsSize, in_order};
use durable::sha256;
use making::at;
use program::exit::{Exit, Failed};
use program::threads::locked;
use store::{Key, LocalObject, PartialCopy, Store};

use crate::Result;
use crate::ranges::{RangeSizes, Ranges};

/// A shard that matches its commit record, or is going to be compared with it by another task.
pub(crate) struct KnownShard {
    /// Its bytes.
    pub(crate) file: ShardFile,
    /// Its URL.
    pub(crate) name: String,
    /// What its rows are to the dataset.
    pub(crate) role: Role,
    /// Number of words of its dictionary.
    pub(crate) n_words: u64,
    /// The size of each range.
    pub(crate) sizes: Vec<RowsSize>,
    /// Where its hashes are, if they are written to a file.
    pub(crate) hashes: Place,
    /// The digests at verification.
    pub(crate) digests: Digests,
}

/// What the rows of a shard are to the dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Rows of a run. Those of texts that are in several runs are omitted.
    Run,
    /// These omitted rows, as the runs have them.
    Removed,
    /// The rows of these texts with the sums of their votes.
    Added,
}

impl Role {
    /// Adds something of a shard to a sum over all shards, from which that of removed rows is subtracted.
    pub(crate) fn add<T: AddAssign + SubAssign>(self, sum: &mut T, of_shard: T) {
        match self {
            Self::Run | Self::Added => *sum += of_shard,
            Self::Removed => *sum -= of_shard,
        }
    }
}

/// A shard on this machine. A copy is deleted when this value is dropped.
#[derive(Clone, Debug)]
pub(crate) enum ShardFile {
    Whole(Arc<LocalObject>),
    Partial(Arc<PartialCopy>),
}

impl ShardFile {
    /// A shard of which only parts are read.
    pub(crate) fn partial(store: &Store, key: &Key, folder: &Path) -> Result<Self> {
        Ok(match store.partial_copy(key, folder)? {
            Some(copy) => Self::Partial(Arc::new(copy)),
            None => Self::Whole(Arc::new(store.local_copy(key, folder)?)),
        })
    }

    pub(crate) fn open(&self) -> Result<ShardReader> {
        Ok(match self {
            Self::Whole(file) => ShardReader::open(file.path())?,
            Self::Partial(copy) => {
                let fetch: Arc<dyn Fetch> = Arc::new(Fetched(Arc::clone(copy)));
                ShardReader::open_partial(copy.path(), copy.bytes(), &fetch)?
            }
        })
    }

    fn path(&self) -> &Path {
        match self {
            Self::Whole(file) => file.path(),
            Self::Partial(copy) => copy.path(),
        }
    }
}

/// Fetches from a store.
#[derive(Debug)]
struct Fetched(Arc<PartialCopy>);

impl Fetch for Fetched {
    fn fetch(&self, range: Range<u64>) -> io::Result<()> {
        self.0.fetch(range).map_err(io::Error::other)
    }
}

impl KnownShard {
    /// Opens the shard again. The path may now name another valid file with other rows, so the digests are
    /// compared.
    pub(crate) fn open(&self) -> Result<ShardReader> {
        let shard = self.file.open()?;
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

/// Maximum memory for the dictionaries of the shards that are being verified. A larger one is read from the file.
pub(crate) const DICTIONARY_BYTES_MAX: u64 = 96 << 20;

/// Verifies the shards of all commit records, several at a time. Calls `verified` after each. Writes their hashes to
/// `hashes`, one shard after the other, if there is such a file.
pub(crate) fn verify_all(
    commits: &[(&Store, Commit)],
    hashes: Option<&HashFile>,
    scratch: &Path,
    ranges: &Ranges,
    threads: NonZeroUsize,
    mut verified: impl FnMut(),
) -> Result<Vec<KnownShard>> {
    let ends = commits.iter().scan(0, |end, (_, commit)| {
        *end += commit.counts.rows;
        Some(*end)
    });
    let ends: Vec<u64> = ends.collect();
    let dictionaries = Dictionaries { free: Mutex::new(DICTIONARY_BYTES_MAX), freed: Condvar::new() };
    // Few shards are each read by several threads.
    let per_shard = NonZeroUsize::new(threads.get() / commits.len().max(1)).unwrap_or(NonZeroUsize::MIN);
    let mut shards = Vec::with_capacity(commits.len());
    let work = |at: usize, put: &mut dyn FnMut(KnownShard)| {
        let hashes = hashes.map(|file| (file, ends[at] - commits[at].1.counts.rows));
        put(verify((commits[at].0, &commits[at].1), hashes, scratch, ranges, &dictionaries, per_shard)?);
        Ok(())
    };
    in_order(commits.len(), threads, 1, work, |shard| {
        shards.push(shard);
        verified();
        Ok::<_, Failed>(())
    })?;
    Ok(shards)
}

/// Memory for dictionaries, which threads share.
struct Dictionaries {
    free: Mutex<u64>,
    freed: Condvar,
}

/// A part of the memory for dictionaries, until it is dropped.
struct Taken<'a> {
    of: &'a Dictionaries,
    bytes: u64,
}

impl Dictionaries {
    /// Waits for memory for a dictionary of this size. One that never fits takes none.
    fn take(&self, bytes: u64) -> Taken<'_> {
        let bytes = if bytes > DICTIONARY_BYTES_MAX { 0 } else { bytes };
        let mut free = self
            .freed
            .wait_while(locked(&self.free), |free| *free < bytes)
            .unwrap_or_else(PoisonError::into_inner);
        *free -= bytes;
        Taken { of: self, bytes }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *locked(&self.of.free) += self.bytes;
        self.of.freed.notify_all();
    }
}

/// Fetches a shard, reads all of it and compares it with its commit record.
fn verify(
    (store, commit): (&Store, &Commit),
    hashes: Option<(&HashFile, u64)>,
    scratch: &Path,
    ranges: &Ranges,
    dictionaries: &Dictionaries,
    threads: NonZeroUsize,
) -> Result<KnownShard> {
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
    let memory = dictionaries.take(KeptWords::memory_bytes(size.words, size.word_bytes));
    shard.keep_dictionary(DICTIONARY_BYTES_MAX)?;
    let (mut votes, mut sizes) = (0, vec![RowsSize::default(); ranges.n()]);
    let start = hashes.map_or(0, |(_, start)| start);
    let (mut end, mut written) = (start, Ok(()));
    shard.verify_blocks(
        threads,
        || (0, RangeSizes::default(), Vec::new()),
        |(votes, sizes, of_block), row| {
            *votes += row.votes.total();
            sizes.add(ranges, row);
            if hashes.is_some() {
                of_block.push(row.hash);
            }
        },
        |(of_block, counted, found)| {
            votes += of_block;
            counted.add_to(&mut sizes);
            if let (Some((file, _)), Ok(())) = (hashes, &written) {
                written = file.write(end, &found);
                end += found.len() as u64;
            }
        },
    )?;
    written?;
    if let Some((what, found, expected)) = contradiction(&commit.counts, shard.settings(), votes) {
        return Err(altered(what, found, expected));
    }
    let digests = shard.digests();
    // The next thread takes the memory when it is free.
    drop(shard);
    drop(memory);
    let file = ShardFile::Whole(Arc::new(file));
    Ok(KnownShard { file, name, role: Role::Run, n_words: size.words, sizes, hashes: start..end, digests })
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
