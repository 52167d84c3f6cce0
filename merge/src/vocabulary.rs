//! Sums the words of all shards' dictionaries, and maps each shard's ids to those of the vocabulary.

use std::num::NonZeroUsize;
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
use crate::verify::VerifiedShard;

/// Maximum number of threads. Each holds chunks of [`FAN_IN`] dictionaries, up to 48 MiB.
const THREADS_MAX: usize = 4;

/// Size of the buffer for a run.
const RUN_BUFFER_BYTES: usize = 64 << 10;

/// Number of words that a thread passes on at once.
const WORDS_TOGETHER: usize = 4 << 10;

/// Visits every distinct word of all shards once, in any order, with the sum of its counts. Each thread sums a range of
/// words.
pub(crate) fn each_word(
    shards: &[VerifiedShard],
    scratch: &Path,
    threads: NonZeroUsize,
    visit: &mut dyn FnMut(&[u8], u64),
) -> Result<()> {
    let ranges = WordRanges::of(shards, threads.get().min(THREADS_MAX))?;
    if shards.len() <= FAN_IN {
        let dictionaries = open_all(shards, threads)?;
        return in_threads(
            ranges.n(),
            |range, visit| ranges.sum(&dictionaries, range, &mut infallible(visit)),
            visit,
        );
    }
    // Each range has its own file, because its thread writes to it while the others write to theirs.
    let runs_of = |_| Ok(Mutex::new((Spool::create(scratch)?, Vec::new())));
    let runs: Vec<Mutex<(Spool, Vec<Run>)>> = (0..ranges.n()).map(runs_of).collect::<Result<_>>()?;
    for group in shards.chunks(FAN_IN) {
        let dictionaries = open_all(group, threads)?;
        let sum = |range: usize, _: &mut dyn FnMut(&[u8], u64)| {
            let (spool, runs) = &mut *locked(&runs[range]);
            let mut run = spool.append();
            ranges.sum(&dictionaries, range, &mut |word, count| Ok(run.word(word, count)?))?;
            runs.push(run.finish()?);
            Ok(())
        };
        in_threads(ranges.n(), sum, &mut |_, _| ())?;
    }
    let sum = |range: usize, visit: &mut dyn FnMut(&[u8], u64)| {
        let (spool, runs) = &*locked(&runs[range]);
        let lists = runs.iter().map(|&run| spool.words(run, RUN_BUFFER_BYTES));
        sum_words(lists, |_, _| Ok(()), infallible(visit))
    };
    in_threads(ranges.n(), sum, visit)
}

fn infallible(visit: &mut dyn FnMut(&[u8], u64)) -> impl FnMut(&[u8], u64) -> Result<()> {
    move |word, count| {
        visit(word, count);
        Ok(())
    }
}

/// Opens the dictionaries of shards on several threads.
fn open_all(shards: &[VerifiedShard], threads: NonZeroUsize) -> Result<Vec<WordsReader>> {
    let mut dictionaries = Vec::with_capacity(shards.len());
    let open = |at: usize, put: &mut dyn FnMut(WordsReader)| {
        put(shards[at].open()?.dictionary().another());
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
    n_ranges: usize,
    sum: impl Fn(usize, &mut dyn FnMut(&[u8], u64)) -> Result<()> + Sync,
    visit: &mut dyn FnMut(&[u8], u64),
) -> Result<()> {
    if n_ranges == 1 {
        return sum(0, visit);
    }
    thread::scope(|scope| {
        let (done, blocks) = sync_channel::<Vocabulary>(n_ranges);
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
        let started: Vec<_> = (0..n_ranges).map(start).collect();
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
struct WordRanges {
    /// The first word of each range but the first.
    starts: Vec<Vec<u8>>,
}

impl WordRanges {
    /// This number of ranges, which contain about the same number of words of the largest dictionary, or fewer ranges.
    fn of(shards: &[VerifiedShard], n: usize) -> Result<Self> {
        let mut starts = Vec::new();
        let largest = shards.iter().max_by_key(|shard| shard.n_words);
        if let Some(shard) = largest.filter(|_| n > 1) {
            let mut reader = shard.open()?;
            for range in 1..n as u64 {
                let mut word = Vec::new();
                let at = shard.n_words * range / n as u64;
                if at < shard.n_words {
                    reader.dictionary().read(at, &mut word)?;
                    starts.push(word);
                }
            }
        }
        Ok(Self { starts })
    }

    fn n(&self) -> usize {
        self.starts.len() + 1
    }

    /// Visits the words of a range once, in byte order, with the sums of their counts.
    fn sum(
        &self,
        dictionaries: &[WordsReader],
        range: usize,
        visit: &mut dyn FnMut(&[u8], u64) -> Result<()>,
    ) -> Result<()> {
        let end = self.starts.get(range).map(Vec::as_slice);
        let mut lists = Vec::with_capacity(dictionaries.len());
        for dictionary in dictionaries {
            let mut words = dictionary.another();
            let from = if range == 0 { 0 } else { words.first_from(&self.starts[range - 1])? };
            lists.push(words_in_order(words, from, end));
        }
        sum_words(lists, |_, _| Ok(()), visit)
    }
}

/// The words from this index on that are less than `end`.
fn words_in_order(
    mut words: WordsReader,
    from: u64,
    end: Option<&[u8]>,
) -> impl Iterator<Item = dataset::Result<(Vec<u8>, u64)>> {
    let all = (from..words.n_words()).map(move |at| {
        let mut word = Vec::new();
        let count = words.read(at, &mut word)?;
        Ok((word, count))
    });
    all.take_while(move |read| match (read, end) {
        (Ok((word, _)), Some(end)) => &word[..] < end,
        _ => true,
    })
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
    pub(crate) fn of(words: &mut WordsReader, vocabulary: &Ids<'_>) -> Result<Self> {
        let n_blocks = words.n_words().div_ceil(64) as usize;
        let mut map = Self { bits: vec![0; n_blocks], ranks: vec![0; n_blocks], ids: Vec::new() };
        let mut word = Vec::new();
        for at in 0..words.n_words() {
            let block = (at / 64) as usize;
            if at % 64 == 0 {
                map.ranks[block] = map.ids.len() as u32;
            }
            words.read(at, &mut word)?;
            if let Some(id) = vocabulary.get(&word) {
                map.bits[block] |= 1 << (at % 64);
                map.ids.push(id);
            }
        }
        Ok(map)
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
