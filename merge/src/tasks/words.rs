//! Sums the dictionaries of all shards over some ranges of words.
//!
//! The result has the words that may be in the vocabulary, and their places in the dictionary of each shard, so that no
//! other task reads a dictionary to number the tokens of rows. Behind its record are the places of each shard: pairs of
//! the index in its dictionary and the index of the word, two little-endian u32, ascending.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use corpus::digest::Digest;
use dataset::vocabulary::FIRST_WORD;
use dataset::{Digests, in_order};
use making::{Ids, at};
use program::exit::Failed;
use serde::{Deserialize, Serialize};
use store::Key;

use crate::Result;
use crate::plan::{Planned, Task};
use crate::tasks::{VerifiedRun, WorkOptions, record};
use crate::verify::{KnownShard, Role, ShardFile};
use crate::vocabulary::{WordRanges, each_word};

const KIND: &str = "words";
/// Size of a place.
const PLACE_BYTES: u64 = 8;

/// The record.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
struct Summed {
    words: Vec<String>,
    counts: Vec<u64>,
    shards: Vec<Places>,
}

/// The places of the words in one shard.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
struct Places {
    /// The digests of the shard.
    of: Digests,
    n: u64,
    digest: Digest,
}

corpus::read_from_objects!(Summed, Places);

/// Sums the words of a task, and returns the bytes of the result.
pub(crate) fn sum(planned: &Planned, number: u32, options: &WorkOptions) -> Result<Vec<u8>> {
    let ranges = WordRanges::starting_at(&planned.plan.words);
    let these = planned.word_ranges(number);
    let shards = open_all(planned, options)?;
    let progress = planned.store().progress();
    let (_, _, inputs) = planned.inputs(&options.s3)?;
    // Each range has a thread.
    let (joined, of_threads) = ranges.joined(&these, options.threads);
    let vocabulary = inputs.vocabulary(|visit| {
        each_word(&shards, &joined, of_threads, (&options.scratch, options.threads), &mut |word, count| {
            progress.advance(1);
            visit(word, count);
        })
    })?;
    // A reused vocabulary also has the words of other ranges, with a count of 0 here.
    let here = vocabulary.words.iter().zip(&vocabulary.counts).filter(|&(_, &count)| count > 0);
    let mut kept = dataset::vocabulary::Vocabulary::default();
    here.for_each(|(word, &count)| {
        kept.words.push(word);
        kept.counts.push(count);
    });
    let ids = Ids::of(&kept.words);
    let (mut places, mut body) = (Vec::with_capacity(shards.len()), Vec::new());
    let find = |shard: usize, put: &mut dyn FnMut((Digests, Vec<u8>))| {
        let (shard, mut word, mut found) = (&shards[shard], Vec::new(), Vec::new());
        let mut reader = shard.open()?;
        let words = reader.dictionary();
        for at in ranges.indexes(words, &these)? {
            words.read(at, &mut word)?;
            progress.advance(1);
            if let Some(id) = ids.get(&word) {
                found.extend_from_slice(&(at as u32).to_le_bytes());
                found.extend_from_slice(&(id - FIRST_WORD).to_le_bytes());
            }
        }
        put((shard.digests, found));
        Ok::<_, Failed>(())
    };
    in_order(shards.len(), options.threads, 1, find, |(of, found)| {
        places.push(Places { of, n: found.len() as u64 / PLACE_BYTES, digest: Digest::of(&found) });
        body.extend_from_slice(&found);
        Ok::<_, Failed>(())
    })?;
    let words = kept.words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let summed = Summed { words, counts: kept.counts, shards: places };
    Ok([record::of(KIND, planned.identity(Task::Words(number)), &summed), body].concat())
}

/// Opens all shards. Other tasks verify them; each chunk that is read is compared with its digest.
fn open_all(planned: &Planned, options: &WorkOptions) -> Result<Vec<KnownShard>> {
    let sealed = &planned.plan.seal.shards;
    let mut shards = Vec::with_capacity(sealed.len());
    let open = |at: usize, put: &mut dyn FnMut(KnownShard)| {
        let file = ShardFile::partial(planned.store(), &Key::new(&sealed[at].object)?, &options.scratch)?;
        let shard = file.open()?;
        let (digests, n_words) = (shard.digests(), shard.size().words);
        let name = format!("{}/{}", planned.store().url(), sealed[at].object);
        put(KnownShard { file, name, role: Role::Run, n_words, sizes: Vec::new(), hashes: 0..0, digests });
        Ok::<_, Failed>(())
    };
    in_order(sealed.len(), options.threads, 1, open, |shard| {
        shards.push(shard);
        Ok::<_, Failed>(())
    })?;
    Ok(shards)
}

/// The result of a task.
pub(crate) struct WordsFile {
    summed: Summed,
    file: File,
    /// Position of the places of each shard.
    starts: Vec<u64>,
    /// The object, for messages.
    object: PathBuf,
}

/// The results of all tasks that sum words. They must be about the shards that were verified.
pub(crate) fn read_words(
    planned: &Planned,
    run: &VerifiedRun,
    options: &WorkOptions,
) -> Result<Vec<WordsFile>> {
    (0..planned.plan.tasks)
        .map(|number| {
            let file = WordsFile::open(planned, Task::Words(number), options)?;
            let is_of_run = file.summed.shards.len() == run.shards.len()
                && file
                    .summed
                    .shards
                    .iter()
                    .zip(&run.shards)
                    .all(|(places, shard)| places.of == shard.digests);
            if is_of_run {
                return Ok(file);
            }
            Err(file.unexpected("of other shards than those that were verified"))
        })
        .collect()
}

impl WordsFile {
    fn open(planned: &Planned, task: Task, options: &WorkOptions) -> Result<Self> {
        let key = planned.result_key(task)?;
        if planned.store().head(&key)?.is_none() {
            return Err(planned.missing(task));
        }
        let copy = planned.store().local_copy(&key, &options.scratch)?;
        let object = planned.url(&key);
        let file = at(copy.path(), "read the words", File::open(copy.path()))?;
        let (summed, mut start) = record::read::<Summed>(KIND, planned.identity(task), &file, &object)?;
        let mut words = Self { summed, file, starts: Vec::new(), object: object.into() };
        if words.summed.words.len() != words.summed.counts.len() {
            return Err(words.unexpected("damaged"));
        }
        for places in &words.summed.shards {
            words.starts.push(start);
            start = start.saturating_add(places.n.saturating_mul(PLACE_BYTES));
        }
        if start != copy.bytes() {
            return Err(words.unexpected("cut"));
        }
        Ok(words)
    }

    /// The words.
    pub(crate) fn words(&self) -> impl Iterator<Item = &[u8]> {
        self.summed.words.iter().map(String::as_bytes)
    }

    /// Visits each word with its count in all shards.
    pub(crate) fn each_word(&self, visit: &mut dyn FnMut(&[u8], u64)) {
        self.words().zip(&self.summed.counts).for_each(|(word, &count)| visit(word, count));
    }

    /// The places of the words in the dictionary of a shard, which has `n_words` words: their indexes there and here.
    pub(crate) fn places(
        &self,
        shard: usize,
        n_words: u64,
    ) -> Result<impl Iterator<Item = (u32, u32)> + use<>> {
        let Places { n, digest, .. } = self.summed.shards[shard];
        let mut bytes = vec![0; (n * PLACE_BYTES) as usize];
        at(&self.object, "read places of words", self.file.read_exact_at(&mut bytes, self.starts[shard]))?;
        let places: Vec<(u32, u32)> = bytes
            .chunks_exact(PLACE_BYTES as usize)
            .map(|pair| {
                let number = |from: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| pair[from + byte]));
                (number(0), number(4))
            })
            .collect();
        let is_valid = |&(place, word): &(u32, u32)| {
            u64::from(place) < n_words && (word as usize) < self.summed.words.len()
        };
        let ascend = places.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if Digest::of(&bytes) != digest || !places.iter().all(is_valid) || !ascend {
            return Err(self.unexpected("damaged"));
        }
        Ok(places.into_iter())
    }

    pub(crate) fn unexpected(&self, found: &str) -> Failed {
        record::unexpected(&self.object.display(), found)
    }
}
