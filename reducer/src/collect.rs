//! Groups → rows in the order of a shard, in bounded memory.
//!
//! Rows gather in memory; when that is full, what is there is sorted and goes to disk as one run.

use std::path::{Path, PathBuf};

use corpus::digest::{Digest, RowDigester, split, text_hash};
use corpus::group::Group;
use corpus::ledger::ReducerCounts;
use corpus::settings::Settings;
use dataset::shard::{ShardSize, ShardWriter};
use dataset::{Result, Row};

use crate::buffer::Buffer;
use crate::dictionary::Word;
use crate::runs::{MergedRuns, Runs};

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
    buffer: Buffer,
    runs: Option<Runs>,
    totals: Totals,
    digester: RowDigester,
    /// The words of one text that are no stop words: number, begin and end in the text.
    words: Vec<(u32, usize, usize)>,
    /// The kept ones of them joined by spaces.
    joined: Vec<u8>,
}

impl Collector {
    /// Collects rows in about this much memory, beyond it in a file without a name in the folder `scratch`.
    pub fn new(settings: Settings, memory_bytes: usize, scratch: &Path) -> Self {
        let buffer = Buffer::new(&settings.stop_words);
        Self {
            // The stop words are there to stay: a list of them as long as the limit would make a run of each row.
            memory_bytes: memory_bytes.saturating_add(buffer.memory_bytes()),
            buffer,
            settings,
            scratch: scratch.to_owned(),
            runs: None,
            totals: Totals::default(),
            digester: RowDigester::default(),
            words: Vec::new(),
            joined: Vec::new(),
        }
    }

    /// Takes the next text with all its votes.
    pub fn add(&mut self, group: Group<'_>) -> Result<()> {
        let counts = &mut self.totals.counts;
        counts.distinct += 1;
        counts.reviews += group.votes.total();
        self.words.clear();
        for (from, to) in words(group.text) {
            if let Word::Number(number) = self.buffer.count(&group.text[from..], to - from) {
                self.words.push((number, from, to));
            }
        }
        if self.words.is_empty() {
            counts.only_stopwords += 1;
            return Ok(());
        }
        counts.rows += 1;
        self.push_row(group);
        if self.buffer.memory_bytes() > self.memory_bytes { self.spill() } else { Ok(()) }
    }

    fn push_row(&mut self, group: Group<'_>) {
        let (front, back) = self.settings.kept(&self.words);
        let kept = front.iter().chain(back);
        self.joined.clear();
        for &(_, from, to) in kept.clone() {
            self.joined.extend_from_slice(&group.text[from..to]);
            self.joined.push(b' ');
        }
        self.joined.pop();
        let row = Row {
            hash: text_hash(group.text),
            votes: group.votes,
            label: self.settings.label(group.votes),
            split: split(&self.joined),
            ..Row::default()
        };
        self.buffer.push(&row, kept.map(|&(number, _, _)| number));
        let n_words = front.len() + back.len();
        self.totals.kept_words += n_words as u64;
        self.totals.row_digest +=
            self.digester.of_words(row.hash, row.label, row.votes, n_words, &self.joined);
    }

    fn spill(&mut self) -> Result<()> {
        self.buffer.sort();
        let runs = match &mut self.runs {
            Some(runs) => runs,
            None => self.runs.insert(Runs::create(&self.scratch)?),
        };
        runs.add(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Ends the collection: everything is in order.
    pub fn finish(mut self) -> Result<Collection> {
        if self.runs.is_some() && !self.buffer.is_empty() {
            self.spill()?;
        }
        let content = match self.runs.take() {
            None => {
                self.buffer.sort();
                Content::Memory(self.buffer)
            }
            Some(runs) => {
                drop(self.buffer);
                Content::Disk(runs.merge_words(self.memory_bytes)?)
            }
        };
        Ok(Collection { totals: self.totals, content })
    }
}

/// Where each word of a text begins and ends.
fn words(text: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        while from < text.len() {
            let word = (from, from + word_length(&text[from..]));
            from = word.1 + 1;
            if word.0 < word.1 {
                return Some(word);
            }
        }
        None
    })
}

/// The bytes before the first space. Most words are short, so the first sixteen bytes are looked at together.
#[inline]
fn word_length(text: &[u8]) -> usize {
    const ONES: u128 = u128::MAX / 255;
    if let Some(&block) = text.first_chunk() {
        // Bytes that are a space become zero; the lowest zero byte is where the borrow begins.
        let spaces = u128::from_le_bytes(block) ^ (ONES * b' ' as u128);
        let found = spaces.wrapping_sub(ONES) & !spaces & (ONES << 7);
        if found != 0 {
            return found.trailing_zeros() as usize / 8;
        }
    }
    memchr::memchr(b' ', text).unwrap_or(text.len())
}

/// All rows and words of a shard, in order.
pub struct Collection {
    /// What they add up to.
    pub totals: Totals,
    content: Content,
}

enum Content {
    Memory(Buffer),
    Disk(MergedRuns),
}

impl Collection {
    /// How much a shard of it holds.
    pub fn size(&self) -> ShardSize {
        let (words, word_bytes) = match &self.content {
            Content::Memory(buffer) => {
                (buffer.n_words(), buffer.words().map(|(word, _)| word.len() as u64).sum())
            }
            Content::Disk(runs) => (runs.n_words, runs.word_bytes),
        };
        ShardSize { rows: self.totals.counts.rows, tokens: self.totals.kept_words, words, word_bytes }
    }

    /// Writes all words and rows.
    pub fn write(self, shard: &mut ShardWriter) -> Result<()> {
        match self.content {
            Content::Memory(buffer) => {
                buffer.words().try_for_each(|(word, count)| shard.word(word, count))?;
                buffer.each_row(|row| shard.row(row))
            }
            Content::Disk(runs) => runs.write(shard),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use corpus::record::Votes;
    use proptest::prelude::*;

    use super::*;

    /// The bytes of the shard that a collector with this much memory makes of these texts.
    fn shard_bytes(texts: &BTreeMap<String, [u32; 5]>, settings: &Settings, memory_bytes: usize) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let mut collector = Collector::new(settings.clone(), memory_bytes, folder.path());
        for (text, &votes) in texts {
            collector.add(Group { text: text.as_bytes(), votes: Votes(votes), line: 1 }).unwrap();
        }
        let collection = collector.finish().unwrap();
        let path = folder.path().join("shard.h5");
        let (size, totals) = (collection.size(), collection.totals);
        let mut shard = ShardWriter::create(&path, settings, size).unwrap();
        collection.write(&mut shard).unwrap();
        shard.finish(totals.row_digest).unwrap();
        let mut written = dataset::shard::ShardReader::open(&path).unwrap();
        written.keep_dictionary(1 << 20).unwrap();
        written.verify(|_| Ok(())).unwrap();
        std::fs::read(path).unwrap()
    }

    fn texts() -> impl Strategy<Value = BTreeMap<String, [u32; 5]>> {
        let text = prop::collection::vec(prop::sample::select(vec!["the", "a", "b", "ba", "é", "fit"]), 1..6);
        let votes =
            prop::array::uniform5(0u32..3).prop_map(|votes| if votes == [0; 5] { [1; 5] } else { votes });
        prop::collection::btree_map(text.prop_map(|words| words.join(" ")), votes, 0..20)
    }

    proptest! {
        #[test]
        fn words_are_what_spaces_separate(text in "( |!|a|é|aaaaaaaaaaaaaaa){0,40}") {
            let found: Vec<&str> = words(text.as_bytes()).map(|(from, to)| &text[from..to]).collect();
            let expected: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
            prop_assert_eq!(found, expected);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_shard_does_not_depend_on_memory(texts in texts(), memory_bytes in 0usize..20_000) {
            let settings = Settings { stop_words: vec!["the".to_owned()], max_tokens: 3, ..Settings::default() };
            let in_memory = shard_bytes(&texts, &settings, usize::MAX);
            // With no memory at all each row is a run; the runs' places do not fit either and runs are rewritten.
            prop_assert!(shard_bytes(&texts, &settings, 0) == in_memory);
            prop_assert!(shard_bytes(&texts, &settings, memory_bytes) == in_memory);
        }
    }

    #[test]
    fn a_list_of_stop_words_longer_than_memory_makes_no_runs() {
        let stop_words = (0..10_000).map(|n| format!("stop{n}")).collect();
        let settings = Settings { stop_words, ..Settings::default() };
        let mut collector = Collector::new(settings, 10_000, Path::new("/nowhere"));
        collector.add(Group { text: b"nice fit", votes: Votes::one(5), line: 1 }).unwrap();
        assert_eq!(collector.finish().unwrap().size().rows, 1);
    }

    #[test]
    fn texts_of_stop_words_only_are_counted_and_dropped() {
        let settings = Settings { stop_words: vec!["the".to_owned()], ..Settings::default() };
        let mut collector = Collector::new(settings, usize::MAX, Path::new("/"));
        collector.add(Group { text: b"the the", votes: Votes([0, 0, 0, 0, 2]), line: 1 }).unwrap();
        collector.add(Group { text: b"the fit", votes: Votes([0, 1, 0, 0, 0]), line: 2 }).unwrap();
        let counts = collector.finish().unwrap().totals.counts;
        assert_eq!(counts, ReducerCounts { reviews: 3, distinct: 2, only_stopwords: 1, rows: 1 });
    }
}
