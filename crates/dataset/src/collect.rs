//! Converts texts into rows in the order of a shard, with bounded memory.
//!
//! Rows are collected in memory. When the memory is full, they are sorted and written to disk as one run.

mod buffer;
mod sorted_runs;

use std::path::{Path, PathBuf};

use corpus::digest::{Digest, RowDigester, split};
use corpus::ledger::ReducerCounts;
use corpus::record::Votes;
use corpus::settings::Settings;
use corpus::words::{CountedWord, Span, find_words, room};
use program::progress::Progress;

use crate::collect::buffer::Buffer;
use crate::collect::sorted_runs::{MergedRuns, Runs};
use crate::error::Result;
use crate::row_columns::Row;
use crate::shard::{ShardSize, ShardWriter};

/// A distinct text with all its votes.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// The cleaned text.
    pub bytes: &'a [u8],
    /// Its words.
    pub words: &'a [Span],
    /// Its XXH3-64.
    pub hash: u64,
    /// The sum of its records' votes.
    pub votes: Votes,
}

/// What became of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    /// A row, here without tokens, which has all its words that are no stop words.
    Row(Row),
    /// A row, here without tokens, which has some of these words.
    CutRow(Row),
    /// No row: its rating has no class, or all its words are stop words.
    Dropped,
    /// No row: it is not in the sample.
    NotSampled,
}

impl Added {
    /// Whether what a shard has of the text is too little to merge it with the same text of another run.
    pub fn is_incomplete(&self) -> bool {
        matches!(self, Self::CutRow(_) | Self::Dropped)
    }

    /// The row.
    pub fn row(&self) -> Option<&Row> {
        match self {
            Self::Row(row) | Self::CutRow(row) => Some(row),
            Self::Dropped | Self::NotSampled => None,
        }
    }
}

/// Totals of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The counts of the texts.
    pub counts: ReducerCounts,
    /// Number of kept tokens of all rows.
    pub kept_words: u64,
    /// Digest of the rows.
    pub row_digest: Digest,
}

/// Converts texts into rows.
pub struct Collector {
    settings: Settings,
    memory_bytes: usize,
    scratch: PathBuf,
    buffer: Buffer,
    runs: Option<Runs>,
    totals: Totals,
    digester: RowDigester,
    progress: Progress,
    /// The words of one text.
    words: Vec<Span>,
    /// Those that are not stop words.
    counted: Vec<CountedWord>,
    /// The kept tokens of the text, joined by spaces.
    joined: Vec<u8>,
}

impl Collector {
    /// Collects rows in about this much memory, and beyond that in an unnamed file in the folder `scratch`.
    pub fn new(settings: Settings, memory_bytes: usize, scratch: &Path) -> Self {
        let buffer = Buffer::new(&settings.stop_words);
        Self {
            // Stop words stay in memory. If they counted, a list as large as the limit would turn each row
            // into a run.
            memory_bytes: memory_bytes.saturating_add(buffer.memory_bytes()),
            buffer,
            totals: Totals { counts: ReducerCounts::none(&settings), ..Totals::default() },
            settings,
            scratch: scratch.to_owned(),
            runs: None,
            digester: RowDigester::default(),
            progress: Progress::default(),
            words: Vec::new(),
            counted: Vec::new(),
            joined: Vec::new(),
        }
    }

    /// Returns the collector with this progress. It counts the steps between the last text and the start of
    /// writing the shard.
    pub fn reporting(self, progress: Progress) -> Self {
        Self { progress, ..self }
    }

    /// Adds the next text, whose words are not known yet.
    pub fn add_text(&mut self, bytes: &[u8], hash: u64, votes: Votes) -> Result<Added> {
        let mut words = std::mem::take(&mut self.words);
        words.resize(words.len().max(room(bytes.len())), Span::default());
        let n_words = find_words(bytes, &mut words);
        let added = self.add(Text { bytes, words: &words[..n_words], hash, votes });
        self.words = words;
        added
    }

    /// Adds the next text with all its votes.
    pub fn add(&mut self, text: Text<'_>) -> Result<Added> {
        let counts = &mut self.totals.counts;
        counts.distinct += 1;
        counts.reviews += text.votes.total();
        // The words of a dropped text are not counted.
        if !self.settings.sample.keeps(text.hash) {
            counts.not_sampled = counts.not_sampled.map(|n| n + 1);
            return Ok(Added::NotSampled);
        }
        let Some(label) = self.settings.label(text.votes) else {
            counts.not_labelled = counts.not_labelled.map(|n| n + 1);
            return Ok(Added::Dropped);
        };
        self.buffer.count(text.bytes, text.words, &mut self.counted);
        if self.counted.is_empty() {
            counts.only_stopwords += 1;
            return Ok(Added::Dropped);
        }
        counts.rows += 1;
        let row = self.push_row(text, label);
        if self.buffer.is_full() || self.buffer.memory_bytes() > self.memory_bytes {
            self.spill()?;
        }
        Ok(if self.settings.cuts(self.counted.len()) { Added::CutRow(row) } else { Added::Row(row) })
    }

    fn push_row(&mut self, text: Text<'_>, label: u8) -> Row {
        let (front, back) = self.settings.kept(&self.counted);
        let kept = front.iter().chain(back);
        join_words(text.bytes, kept.clone().map(|word| word.span), &mut self.joined);
        let row =
            Row { hash: text.hash, votes: text.votes, label, split: split(&self.joined), ..Row::default() };
        self.buffer.push(&row, kept.map(|word| word.number));
        let n_words = front.len() + back.len();
        self.totals.kept_words += n_words as u64;
        self.totals.row_digest +=
            self.digester.of_words(row.hash, row.label, row.votes, n_words, &self.joined);
        row
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

    /// Ends the collection and sorts everything.
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
                Content::Disk(runs.merge_words(self.memory_bytes, self.progress)?)
            }
        };
        Ok(Collection { totals: self.totals, content })
    }
}

/// Writes these words of `text` to `joined`, separated by spaces.
fn join_words(text: &[u8], words: impl Iterator<Item = Span>, joined: &mut Vec<u8>) {
    /// Number of bytes to copy per word. Copying a constant number of bytes is faster than copying the exact
    /// length of each word.
    const COPIED: usize = 16;
    joined.resize(text.len() + COPIED + 1, 0);
    let mut end = 0;
    for word in words {
        let (from, length) = (word.from as usize, word.length as usize);
        match text[from..].first_chunk::<COPIED>() {
            Some(bytes) if length <= COPIED => joined[end..][..COPIED].copy_from_slice(bytes),
            _ => joined[end..][..length].copy_from_slice(word.of(text)),
        }
        end += length;
        joined[end] = b' ';
        end += 1;
    }
    joined.truncate(end.saturating_sub(1));
}

/// All rows and words of a shard, in order.
pub struct Collection {
    /// Totals of the rows.
    pub totals: Totals,
    content: Content,
}

enum Content {
    Memory(Buffer),
    Disk(MergedRuns),
}

impl Collection {
    /// Sizes of the shard.
    pub fn size(&self) -> ShardSize {
        let (words, word_bytes) = match &self.content {
            Content::Memory(buffer) => {
                (buffer.n_words(), buffer.words().map(|(word, _)| word.len() as u64).sum())
            }
            Content::Disk(runs) => (runs.n_words, runs.word_bytes),
        };
        ShardSize { rows: self.totals.counts.rows, tokens: self.totals.kept_words, words, word_bytes }
    }

    /// Writes a shard, which is a new file.
    pub fn write_shard(self, path: &Path, settings: &Settings, progress: &Progress) -> Result<()> {
        let row_digest = self.totals.row_digest;
        let mut shard = ShardWriter::create(path, settings, self.size())?.reporting(progress.clone());
        self.write(&mut shard)?;
        shard.finish(row_digest)
    }

    fn write(self, shard: &mut ShardWriter) -> Result<()> {
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
    use std::num::NonZeroUsize;

    use corpus::digest::text_hash;
    use corpus::labels::Labels;
    use corpus::sample::Sample;
    use proptest::prelude::*;

    use super::*;

    fn words_of(text: &[u8]) -> Vec<Span> {
        let mut words = vec![Span::default(); room(text.len())];
        let n_words = find_words(text, &mut words);
        words.truncate(n_words);
        words
    }

    fn add(collector: &mut Collector, text: &str, votes: [u32; 5]) -> Added {
        collector.add_text(text.as_bytes(), text_hash(text.as_bytes()), Votes(votes)).unwrap()
    }

    /// The bytes of the shard of these texts, from a collector with this much memory.
    fn shard_bytes(texts: &BTreeMap<String, [u32; 5]>, settings: &Settings, memory_bytes: usize) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let mut collector = Collector::new(settings.clone(), memory_bytes, folder.path());
        for (text, &votes) in texts {
            add(&mut collector, text, votes);
        }
        let path = folder.path().join("shard.h5");
        collector.finish().unwrap().write_shard(&path, settings, &Progress::default()).unwrap();
        let mut written = crate::shard::ShardReader::open(&path).unwrap();
        written.keep_dictionary(1 << 20).unwrap();
        written.verify_blocks(NonZeroUsize::MIN, || (), |(), _| (), |()| ()).unwrap();
        std::fs::read(path).unwrap()
    }

    fn texts() -> impl Strategy<Value = BTreeMap<String, [u32; 5]>> {
        let text = prop::collection::vec(prop::sample::select(vec!["the", "a", "b", "ba", "é", "fit"]), 1..6);
        let votes =
            prop::array::uniform5(0u32..3).prop_map(|votes| if votes == [0; 5] { [1; 5] } else { votes });
        prop::collection::btree_map(text.prop_map(|words| words.join(" ")), votes, 0..20)
    }

    #[test]
    fn joined_words_are_separated_by_a_space() {
        let text = b"a fitting word and a notwithstandingness of length";
        let words = words_of(text);
        let mut joined = b"before".to_vec();
        join_words(text, [words[0], words[2], words[5], words[7]].into_iter(), &mut joined);
        assert_eq!(joined, b"a word notwithstandingness length");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_shard_does_not_depend_on_memory(texts in texts(), memory_bytes in 0usize..20_000) {
            let settings = Settings { stop_words: vec!["the".to_owned()], max_tokens: 3, ..Settings::default() };
            let in_memory = shard_bytes(&texts, &settings, usize::MAX);
            // Without memory each row is a run. The index maps of the runs do not fit either, so the runs are
            // rewritten.
            prop_assert!(shard_bytes(&texts, &settings, 0) == in_memory);
            prop_assert!(shard_bytes(&texts, &settings, memory_bytes) == in_memory);
        }
    }

    #[test]
    fn merging_runs_reports_progress() {
        let folder = tempfile::tempdir().unwrap();
        let progress = Progress::default();
        let settings = Settings { stop_words: Vec::new(), ..Settings::default() };
        let mut collector = Collector::new(settings.clone(), 0, folder.path()).reporting(progress.clone());
        // Without memory each text is a run, and the index maps of all runs do not fit together.
        for n in 0..900 {
            add(&mut collector, &format!("nice fit of {n}"), [0, 0, 0, 0, 1]);
        }
        assert_eq!(progress.steps(), 0);

        let collection = collector.finish().unwrap();

        assert_eq!(progress.steps(), 4 * 900, "a step for each word of each run");
        let mut shard =
            ShardWriter::create(&folder.path().join("shard.h5"), &settings, collection.size()).unwrap();
        collection.write(&mut shard).unwrap();
        assert_eq!(progress.steps(), 4 * 900 + 900, "a step for each row of each run that is rewritten");
    }

    #[test]
    fn a_list_of_stop_words_longer_than_memory_makes_no_runs() {
        let stop_words = (0..10_000).map(|n| format!("stop{n}")).collect();
        let settings = Settings { stop_words, ..Settings::default() };
        let mut collector = Collector::new(settings, 10_000, Path::new("/nowhere"));
        add(&mut collector, "nice fit", [0, 0, 0, 0, 1]);
        assert_eq!(collector.finish().unwrap().size().rows, 1);
    }

    #[test]
    fn texts_of_stop_words_only_are_counted_and_dropped() {
        let settings = Settings { stop_words: vec!["the".to_owned()], ..Settings::default() };
        let mut collector = Collector::new(settings, usize::MAX, Path::new("/"));
        add(&mut collector, "the the", [0, 0, 0, 0, 2]);
        add(&mut collector, "the fit", [0, 1, 0, 0, 0]);
        let counts = collector.finish().unwrap().totals.counts;
        let expected =
            ReducerCounts { reviews: 3, distinct: 2, only_stopwords: 1, rows: 1, ..Default::default() };
        assert_eq!(counts, expected);
    }

    #[test]
    fn texts_without_a_class_are_dropped_before_their_words_are_counted() {
        let labels = Labels::Classes("1-2=bad,4-5=good".parse().unwrap());
        let settings = Settings { stop_words: vec!["the".to_owned()], labels, ..Settings::default() };
        let mut collector = Collector::new(settings, usize::MAX, Path::new("/"));
        add(&mut collector, "fine fit", [0, 0, 1, 0, 1]);
        add(&mut collector, "the", [0, 0, 1, 0, 0]);
        add(&mut collector, "the the", [1, 0, 0, 0, 0]);
        add(&mut collector, "nice fit", [0, 0, 1, 0, 2]);
        let collection = collector.finish().unwrap();
        let expected = ReducerCounts {
            reviews: 7,
            distinct: 4,
            not_labelled: Some(2),
            only_stopwords: 1,
            rows: 1,
            ..Default::default()
        };
        assert_eq!(collection.totals.counts, expected);
        assert_eq!((collection.size().words, collection.size().word_bytes), (2, 7), "fit and nice");
    }

    #[test]
    fn texts_outside_the_sample_are_dropped_before_their_class_and_their_words_are_looked_at() {
        let sample: Sample = "0.5".parse().unwrap();
        let labels = Labels::Classes("1-2=bad,4-5=good".parse().unwrap());
        let settings = Settings { stop_words: vec!["the".to_owned()], labels, sample, ..Settings::default() };
        let mut collector = Collector::new(settings, usize::MAX, Path::new("/"));
        // Number of texts in the sample: without a class, of stop words only, and rows.
        let n_in = [("so", [0, 0, 1, 0, 0]), ("the", [0, 0, 0, 0, 1]), ("fit", [1, 0, 0, 0, 0])].map(
            |(word, votes)| {
                let texts: Vec<String> = (1..=20).map(|n| vec![word; n].join(" ")).collect();
                for text in &texts {
                    add(&mut collector, text, votes);
                }
                texts.iter().filter(|text| sample.keeps(text_hash(text.as_bytes()))).count() as u64
            },
        );
        let collection = collector.finish().unwrap();
        let [not_labelled, only_stopwords, rows] = n_in;
        assert!(n_in.iter().all(|n| (1..20).contains(n)), "{n_in:?}");
        let expected = ReducerCounts {
            reviews: 60,
            distinct: 60,
            not_sampled: Some(60 - n_in.iter().sum::<u64>()),
            not_labelled: Some(not_labelled),
            only_stopwords,
            rows,
        };
        assert_eq!((collection.totals.counts, expected.check()), (expected, Ok(())));
        assert_eq!(collection.size().words, 1, "fit");
    }
}
