//! Sums the words of all shards' dictionaries, and maps each shard's ids to those of the vocabulary.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::sync_channel;
use std::thread;

use dataset::merge_sorted::sum_words;
use dataset::spool::{Run, Spool};
use dataset::vocabulary::{UNKNOWN, Vocabulary};
use dataset::{WordsReader, in_order};
use making::Ids;
use program::exit::Failed;
use program::threads::{locked, spawn};

use crate::FAN_IN;
use crate::Result;
use crate::verify::{KnownShard, Role};

/// Maximum number of ranges at once. Each holds chunks of [`FAN_IN`] dictionaries, up to 48 MiB.
pub(crate) const RANGES_MAX: usize = 4;

/// Size of the buffer for a run.
const RUN_BUFFER_BYTES: usize = 64 << 10;

/// Number of words that a thread passes on at once.
const WORDS_TOGETHER: usize = 4 << 10;

/// Visits every distinct word of these ranges once, in any order, with the sum of its counts in all shards, from which those
/// of removed rows are subtracted. Each range has its own thread.
pub(crate) fn each_word(
    shards: &[KnownShard],
    ranges: &WordRanges,
    these: Range<usize>,
    (scratch, threads): (&Path, NonZeroUsize),
    visit: &mut dyn FnMut(&[u8], u64),
) -> Result<()> {
    if shards.len() <= FAN_IN {
        let dictionaries = open_all(shards, threads)?;
        let sum =
            |range, visit: &mut dyn FnMut(&[u8], u64)| ranges.sum(&dictionaries, range, &mut counted(visit));
        return in_threads(these, sum, visit);
    }
    // Each range has its own file, because its thread writes to it while the others write to theirs.
    let runs_of = |_| Ok(Mutex::new((Spool::create(scratch)?, Vec::new())));
    let runs: Vec<Mutex<(Spool, Vec<Run>)>> = these.clone().map(runs_of).collect::<Result<_>>()?;
    let runs_of = |range: usize| locked(&runs[range - these.start]);
    for group in shards.chunks(FAN_IN) {
        let dictionaries = open_all(group, threads)?;
        let sum = |range: usize, _: &mut dyn FnMut(&[u8], u64)| {
            let (spool, runs) = &mut *runs_of(range);
            let mut run = spool.append();
            ranges.sum(&dictionaries, range, &mut |word, count| Ok(run.word(word, count)?))?;
            runs.push(run.finish()?);
            Ok(())
        };
        in_threads(these.clone(), sum, &mut |_, _| ())?;
    }
    let sum = |range: usize, visit: &mut dyn FnMut(&[u8], u64)| {
        let (spool, runs) = &*runs_of(range);
        let lists = runs.iter().map(|&run| spool.words(run, RUN_BUFFER_BYTES));
        sum_words(lists, |_, _| Ok(()), counted(visit))
    };
    in_threads(these.clone(), sum, visit)
}

/// Visits words that are still counted.
fn counted(visit: &mut dyn FnMut(&[u8], u64)) -> impl FnMut(&[u8], u64) -> Result<()> {
    move |word, count| {
        if count > 0 {
            visit(word, count);
        }
        Ok(())
    }
}

/// The dictionary of a shard.
struct ShardWords {
    words: WordsReader,
    role: Role,
}

/// Opens the dictionaries of shards on several threads.
fn open_all(shards: &[KnownShard], threads: NonZeroUsize) -> Result<Vec<ShardWords>> {
    let mut dictionaries = Vec::with_capacity(shards.len());
    let open = |at: usize, put: &mut dyn FnMut(ShardWords)| {
        put(ShardWords { words: shards[at].open()?.dictionary().another(), role: shards[at].role });
        Ok::<_, Failed>(())
    };
    in_order(shards.len(), threads, 1, open, |dictionary| {
        dictionaries.push(dictionary);
        Ok(())
    })?;
    Ok(dictionaries)
}

/// Runs `sum` for each range on a thread of its own. Visits the words that it visits on the calling thread.
fn in_threads(
    ranges: Range<usize>,
    sum: impl Fn(usize, &mut dyn FnMut(&[u8], u64)) -> Result<()> + Sync,
    visit: &mut dyn FnMut(&[u8], u64),
) -> Result<()> {
    if ranges.len() == 1 {
        return sum(ranges.start, visit);
    }
    thread::scope(|scope| {
        let (done, blocks) = sync_channel::<Vocabulary>(ranges.len().max(1));
        let start = |range: usize| {
            let (sum, done) = (&sum, done.clone());
            spawn(scope, move || {
                let mut block = Vocabulary::default();
                // The receiver takes all words.
                sum(range, &mut |word, count| {
                    block.words.push(word);
                    block.counts.push(count);
                    if block.counts.len() == WORDS_TOGETHER {
                        let _ = done.send(std::mem::take(&mut block));
                    }
                })?;
                let _ = done.send(block);
                Ok(())
            })
        };
        let started: Vec<_> = ranges.map(start).collect();
        drop(done);
        for Vocabulary { words, counts } in blocks {
            words.iter().zip(counts).for_each(|(word, count)| visit(word, count));
        }
        let mut ends = started
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ends.try_for_each(|end| end)
    })
}

/// Consecutive ranges of words that together contain every word.
pub(crate) struct WordRanges {
    /// The first word of each range but the first.
    starts: Vec<Vec<u8>>,
}

impl WordRanges {
    /// This number of ranges, which contain about the same number of words of the largest dictionary, or fewer ranges.
    pub(crate) fn of(shards: &[KnownShard], n: usize) -> Result<Self> {
        match shards.iter().max_by_key(|shard| shard.n_words).filter(|_| n > 1) {
            Some(shard) => Self::of_dictionary(shard.open()?.dictionary(), n),
            None => Ok(Self { starts: Vec::new() }),
        }
    }

    /// As [`WordRanges::of`], for this dictionary.
    pub(crate) fn of_dictionary(words: &mut WordsReader, n: usize) -> Result<Self> {
        let (n, n_words) = (n as u64, words.n_words());
        let mut starts = Vec::new();
        for range in 1..n {
            let mut word = Vec::new();
            let at = n_words * range / n;
            if at < n_words {
                words.read(at, &mut word)?;
                starts.push(word);
            }
        }
        Ok(Self { starts })
    }

    /// The first range, and one from each of these words, which ascend.
    pub(crate) fn starting_at(words: &[String]) -> Self {
        Self { starts: words.iter().map(|word| word.clone().into_bytes()).collect() }
    }

    /// These ranges joined to at most this number of ranges, and their places among all.
    pub(crate) fn joined(&self, these: &Range<usize>, n: NonZeroUsize) -> (Self, Range<usize>) {
        let n = n.get().min(these.len());
        let bounds = (0..=n).map(|bound| these.start + these.len() * bound / n.max(1));
        let starts = bounds.filter_map(|bound| self.starts.get(bound.checked_sub(1)?).cloned()).collect();
        let first = usize::from(these.start > 0);
        (Self { starts }, first..first + n)
    }

    /// The first word of each range but the first.
    pub(crate) fn starts(&self) -> &[Vec<u8>] {
        &self.starts
    }

    /// Number of ranges.
    pub(crate) fn n(&self) -> usize {
        self.starts.len() + 1
    }

    /// The indexes of a dictionary's words that are in these ranges.
    pub(crate) fn indexes(&self, words: &mut WordsReader, ranges: &Range<usize>) -> Result<Range<u64>> {
        let mut first_of = |range: usize| match range.checked_sub(1) {
            None => Ok(0),
            Some(before) => {
                self.starts.get(before).map_or(Ok(words.n_words()), |start| words.first_from(start))
            }
        };
        Ok(first_of(ranges.start)?..first_of(ranges.end)?)
    }

    /// Visits the words of a range once, in byte order, with the sums of their counts, which may be negative as long as other
    /// dictionaries are to be added.
    fn sum(
        &self,
        dictionaries: &[ShardWords],
        range: usize,
        visit: &mut dyn FnMut(&[u8], u64) -> Result<()>,
    ) -> Result<()> {
        let mut lists = Vec::with_capacity(dictionaries.len());
        for ShardWords { words, role } in dictionaries {
            let mut words = words.another();
            let indexes = self.indexes(&mut words, &(range..range + 1))?;
            lists.push(indexes.map(move |at| {
                let mut word = Vec::new();
                let count = words.read(at, &mut word)?;
                let count = if *role == Role::Removed { count.wrapping_neg() } else { count };
                Ok::<_, dataset::Error>((word, count))
            }));
        }
        sum_words(lists, |_, _| Ok(()), visit)
    }
}

/// Maps the ids of one shard to those of the vocabulary. Most words of a shard are not in the vocabulary, so
/// the map has one bit per word and one id per set bit.
pub(crate) struct IdMap {
    bits: Vec<u64>,
    /// Number of set bits before each block of 64.
    ranks: Vec<u32>,
    ids: Vec<u32>,
}

impl IdMap {
    /// The map of a dictionary.
    pub(crate) fn of(words: &mut WordsReader, vocabulary: &Ids<'_>) -> Result<Self> {
        let mut map = Self::empty(words.n_words());
        let mut word = Vec::new();
        for at in 0..words.n_words() {
            words.read(at, &mut word)?;
            if let Some(id) = vocabulary.get(&word) {
                map.push(at as u32, id);
            }
        }
        Ok(map.ranked())
    }

    /// A map of this number of words, none of which is in the vocabulary.
    pub(crate) fn empty(n_words: u64) -> Self {
        let n_blocks = n_words.div_ceil(64) as usize;
        Self { bits: vec![0; n_blocks], ranks: vec![0; n_blocks], ids: Vec::new() }
    }

    /// Adds the id of the shard's word at this index. Indexes ascend.
    pub(crate) fn push(&mut self, place: u32, id: u32) {
        self.bits[place as usize / 64] |= 1 << (place % 64);
        self.ids.push(id);
    }

    /// The map, after all ids were added.
    pub(crate) fn ranked(mut self) -> Self {
        let mut rank = 0;
        for (bits, of_block) in self.bits.iter().zip(&mut self.ranks) {
            *of_block = rank;
            rank += bits.count_ones();
        }
        self
    }

    /// The id of the shard's word at this index.
    #[inline]
    pub(crate) fn get(&self, place: u32) -> u32 {
        let (block, bit) = (place as usize / 64, place % 64);
        let bits = self.bits[block];
        if bits >> bit & 1 == 0 {
            return UNKNOWN;
        }
        let before = (bits & ((1 << bit) - 1)).count_ones();
        self.ids[(self.ranks[block] + before) as usize]
    }
}
