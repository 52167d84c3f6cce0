//! Groups to rows, and rows into the order of a shard, in bounded memory.
//!
//! Rows gather in memory with the numbers that words were given as they appeared. When memory is full, what is
//! there is sorted and goes to disk as one run: words in byte order, rows in row order with the words' places in
//! that order. Because places follow the words' byte order in every run, and in the shard too, rows keep their
//! order when the runs' places are replaced by the shard's, and all runs merge in one pass.

use std::path::{Path, PathBuf};

use corpus::digest::{Digest, RowDigester, split, text_hash};
use corpus::group::Group;
use corpus::ledger::ReducerCounts;
use corpus::record::Votes;
use corpus::settings::Settings;
use dataset::Row;
use dataset::merge_sorted::merge_sorted;
use dataset::shard::{ShardSize, ShardWriter};
use dataset::spool::{Run, Spool};

use crate::dictionary::{Dictionary, Word};

/// What the rows add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// What became of the texts.
    pub counts: ReducerCounts,
    /// Kept words of all rows.
    pub kept_words: u64,
    /// The digest of the rows.
    pub row_digest: Digest,
}

/// Turns groups into rows.
pub struct Collector {
    settings: Settings,
    memory_bytes: usize,
    scratch: PathBuf,
    dictionary: Dictionary,
    rows: Vec<BufferedRow>,
    tokens: Vec<u32>,
    spooled: Option<(Spool, Vec<SortedRun>)>,
    totals: Totals,
    words: Words,
    digester: RowDigester,
}

/// A row in memory; its tokens lie in the collector's list of all tokens.
struct BufferedRow {
    hash: u64,
    first_token: usize,
    n_tokens: u32,
    votes: Votes,
    label: u8,
    split: u16,
}

impl BufferedRow {
    fn tokens<'a>(&self, all: &'a [u32]) -> &'a [u32] {
        &all[self.first_token..self.first_token + self.n_tokens as usize]
    }
}

/// The words of one text that are no stop words, and the kept ones joined; buffers that are used again.
#[derive(Default)]
struct Words {
    of_text: Vec<(u32, usize, usize)>,
    kept: Vec<u8>,
}

/// A part of the rows on disk.
struct SortedRun {
    words: Run,
    n_words: u64,
    rows: Run,
}

impl Collector {
    /// Collects rows in about this much memory, beyond it in a file without a name in the folder `scratch`.
    pub fn new(settings: Settings, memory_bytes: usize, scratch: &Path) -> Self {
        Self {
            dictionary: Dictionary::new(&settings.stop_words),
            settings,
            memory_bytes,
            scratch: scratch.to_owned(),
            rows: Vec::new(),
            tokens: Vec::new(),
            spooled: None,
            totals: Totals::default(),
            words: Words::default(),
            digester: RowDigester::default(),
        }
    }

    /// Takes the next text with all its votes.
    pub fn add(&mut self, group: Group<'_>) -> dataset::Result<()> {
        let counts = &mut self.totals.counts;
        counts.distinct += 1;
        counts.reviews += group.votes.total();
        self.words.of_text.clear();
        for (from, to) in words(group.text) {
            if let Word::Number(number) = self.dictionary.count(&group.text[from..to]) {
                self.words.of_text.push((number, from, to));
            }
        }
        if self.words.of_text.is_empty() {
            counts.only_stopwords += 1;
            return Ok(());
        }
        counts.rows += 1;
        self.push_row(group);
        if self.memory_in_use() > self.memory_bytes { self.spill() } else { Ok(()) }
    }

    fn push_row(&mut self, group: Group<'_>) {
        let (front, back) = self.settings.kept(&self.words.of_text);
        let kept = || front.iter().chain(back);
        let n_tokens = front.len() + back.len();
        self.words.kept.clear();
        for &(_, from, to) in kept() {
            self.words.kept.extend_from_slice(&group.text[from..to]);
            self.words.kept.push(b' ');
        }
        self.words.kept.pop();
        let row = BufferedRow {
            hash: text_hash(group.text),
            first_token: self.tokens.len(),
            n_tokens: n_tokens as u32,
            votes: group.votes,
            label: self.settings.label(group.votes),
            split: split(&self.words.kept),
        };
        self.tokens.extend(kept().map(|&(number, _, _)| number));
        let bytes: Vec<&[u8]> = kept().map(|&(_, from, to)| &group.text[from..to]).collect();
        self.totals.row_digest += self.digester.of_words(row.hash, row.label, row.votes, bytes.into_iter());
        self.totals.kept_words += n_tokens as u64;
        self.rows.push(row);
    }

    fn memory_in_use(&self) -> usize {
        // Sorting takes a number for each word and for each row's place besides.
        self.dictionary.memory_bytes()
            + self.dictionary.n_words() * 2 * size_of::<u32>()
            + self.rows.len() * size_of::<BufferedRow>()
            + self.tokens.len() * size_of::<u32>()
    }

    /// Sorts what is in memory: gives the words' numbers in byte order, after putting the rows in row order and
    /// places in that order into their tokens.
    fn sort(&mut self) -> Vec<u32> {
        let order = self.dictionary.in_byte_order();
        let mut places = vec![0; order.len()];
        for (place, &number) in order.iter().enumerate() {
            places[number as usize] = place as u32;
        }
        self.tokens.iter_mut().for_each(|token| *token = places[*token as usize]);
        let tokens = &self.tokens;
        self.rows.sort_unstable_by(|a, b| {
            (a.hash.cmp(&b.hash))
                .then_with(|| a.tokens(tokens).cmp(b.tokens(tokens)))
                .then_with(|| a.votes.cmp(&b.votes))
        });
        order
    }

    fn spill(&mut self) -> dataset::Result<()> {
        let order = self.sort();
        let (spool, runs) = match &mut self.spooled {
            Some(spooled) => spooled,
            None => self.spooled.insert((Spool::create(&self.scratch)?, Vec::new())),
        };
        let mut words = spool.append();
        for &number in &order {
            let (word, count) = self.dictionary.get(number);
            words.word(word, count)?;
        }
        let (words, n_words) = (words.finish()?, order.len() as u64);
        let mut rows = spool.append();
        let mut row = Row::default();
        for buffered in &self.rows {
            buffered.copy_to(&mut row, &self.tokens);
            rows.row(&row)?;
        }
        let rows = rows.finish()?;
        runs.push(SortedRun { words, n_words, rows });
        self.dictionary.clear();
        self.rows.clear();
        self.tokens.clear();
        Ok(())
    }

    /// Ends the collection: everything is in order.
    pub fn finish(mut self) -> dataset::Result<Collection> {
        let totals = self.totals;
        if self.spooled.is_some() && !self.rows.is_empty() {
            self.spill()?;
        }
        let memory_bytes = self.memory_bytes;
        let content = match self.spooled.take() {
            None => {
                let order = self.sort();
                Content::Memory { order, collector: Box::new(self) }
            }
            Some((spool, runs)) => {
                drop(self);
                Content::Disk(merge_words(spool, &runs, memory_bytes)?)
            }
        };
        Ok(Collection { totals, memory_bytes, content })
    }
}

impl BufferedRow {
    fn copy_to(&self, row: &mut Row, tokens: &[u32]) {
        (row.hash, row.votes, row.label, row.split) = (self.hash, self.votes, self.label, self.split);
        row.tokens.clear();
        row.tokens.extend_from_slice(self.tokens(tokens));
    }
}

/// Where each word of a text begins and ends.
fn words(text: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let mut from = 0;
    memchr::memchr_iter(b' ', text).chain(std::iter::once(text.len())).filter_map(move |to| {
        let word = (from, to);
        from = to + 1;
        (word.0 < word.1).then_some(word)
    })
}

/// All rows and words, in order.
pub struct Collection {
    /// What they add up to.
    pub totals: Totals,
    memory_bytes: usize,
    content: Content,
}

enum Content {
    Memory { order: Vec<u32>, collector: Box<Collector> },
    Disk(MergedWords),
}

/// Runs whose words have been merged, and where each run's words went.
struct MergedWords {
    spool: Spool,
    words: Run,
    n_words: u64,
    word_bytes: u64,
    runs: Vec<MappedRun>,
}

/// Rows with places of their own run, and the shard's place for each.
struct MappedRun {
    rows: Run,
    places: Run,
    n_places: u64,
}

fn merge_words(mut spool: Spool, runs: &[SortedRun], memory_bytes: usize) -> dataset::Result<MergedWords> {
    let buffer_bytes = buffer_bytes(memory_bytes, runs.len());
    let mut places: Vec<_> = runs.iter().map(|run| spool.reserve_numbers(run.n_words)).collect();
    let sources: Vec<_> = runs.iter().map(|run| spool.words(run.words, buffer_bytes)).collect();
    let (mut n_words, mut word_bytes) = (0, 0);
    let mut merged = spool.append();
    let mut current: Option<(Vec<u8>, u64)> = None;
    for next in merge_sorted(sources)? {
        let ((word, count), run) = next?;
        match &mut current {
            Some((same, sum)) if *same == word => *sum += count,
            _ => {
                if let Some((word, count)) = current.replace((word, count)) {
                    merged.word(&word, count)?;
                    word_bytes += word.len() as u64;
                    n_words += 1;
                }
            }
        }
        places[run].push(n_words as u32)?;
    }
    if let Some((word, count)) = current {
        merged.word(&word, count)?;
        word_bytes += word.len() as u64;
        n_words += 1;
    }
    let words = merged.finish()?;
    let runs = runs.iter().zip(places).map(|(run, places)| {
        Ok(MappedRun { rows: run.rows, places: places.finish()?, n_places: run.n_words })
    });
    let runs = runs.collect::<dataset::Result<_>>()?;
    Ok(MergedWords { spool, words, n_words, word_bytes, runs })
}

/// The buffer for each of so many runs that are read at once.
fn buffer_bytes(memory_bytes: usize, runs: usize) -> usize {
    (memory_bytes / 2 / runs.max(1)).clamp(4 << 10, 256 << 10)
}

impl Collection {
    /// How much a shard of it holds.
    pub fn size(&self) -> ShardSize {
        let (words, word_bytes) = match &self.content {
            Content::Memory { order, collector } => {
                let word_bytes =
                    order.iter().map(|&number| collector.dictionary.get(number).0.len() as u64).sum();
                (order.len() as u64, word_bytes)
            }
            Content::Disk(merged) => (merged.n_words, merged.word_bytes),
        };
        ShardSize { rows: self.totals.counts.rows, tokens: self.totals.kept_words, words, word_bytes }
    }

    /// Writes all words and rows.
    pub fn write(self, shard: &mut ShardWriter) -> dataset::Result<()> {
        match self.content {
            Content::Memory { order, collector } => {
                for &number in &order {
                    let (word, count) = collector.dictionary.get(number);
                    shard.word(word, count)?;
                }
                let mut row = Row::default();
                for buffered in &collector.rows {
                    buffered.copy_to(&mut row, &collector.tokens);
                    shard.row(&row)?;
                }
                Ok(())
            }
            Content::Disk(merged) => merged.write(shard, self.memory_bytes),
        }
    }
}

impl MergedWords {
    fn write(mut self, shard: &mut ShardWriter, memory_bytes: usize) -> dataset::Result<()> {
        for word in self.spool.words(self.words, 256 << 10) {
            let (word, count) = word?;
            shard.word(&word, count)?;
        }
        let buffer_bytes = buffer_bytes(memory_bytes, self.runs.len());
        let n_places: u64 = self.runs.iter().map(|run| run.n_places).sum();
        if n_places as usize * size_of::<u32>() <= memory_bytes / 2 {
            let sources = self.runs.iter().map(|run| mapped_rows(&self.spool, run, buffer_bytes));
            return write_merged(sources.collect::<dataset::Result<Vec<_>>>()?, shard);
        }
        // The places of all runs do not fit in memory together: each run is rewritten by itself first.
        let mut rewritten = Vec::new();
        for run in &self.runs {
            let rows = mapped_rows(&self.spool, run, buffer_bytes)?;
            let mut out = self.spool.append();
            for row in rows {
                out.row(&row?)?;
            }
            rewritten.push(out.finish()?);
        }
        let sources = rewritten.into_iter().map(|run| self.spool.rows(run, buffer_bytes));
        write_merged(sources.collect(), shard)
    }
}

fn mapped_rows(
    spool: &Spool,
    run: &MappedRun,
    buffer_bytes: usize,
) -> dataset::Result<impl Iterator<Item = dataset::Result<Row>> + use<>> {
    let places = spool.numbers(run.places)?;
    Ok(spool.rows(run.rows, buffer_bytes).map(move |row| {
        row.map(|mut row| {
            row.tokens.iter_mut().for_each(|token| *token = places[*token as usize]);
            row
        })
    }))
}

fn write_merged(
    sources: Vec<impl Iterator<Item = dataset::Result<Row>>>,
    shard: &mut ShardWriter,
) -> dataset::Result<()> {
    for row in merge_sorted(sources)? {
        shard.row(&row?.0)?;
    }
    Ok(())
}
