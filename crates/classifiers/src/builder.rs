//! Numbers the words of lines in several threads.
//!
//! Each thread has a builder with its own numbers. [`Builders::merge`] joins the builders and orders the words, so that
//! the result depends neither on the number of threads nor on timing.
//!
//! The dictionary is bounded. The first distinct words of the input are kept, up to [`Reading::words_max`] words of
//! [`Reading::words_bytes_max`] bytes. The others are stored by their hash. If there are others, words of equal hash count
//! as one word.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use corpus::words::Span;

use crate::dictionary::hash;
use crate::error::{Error, Result};
use crate::numbers::Numbers;
use crate::texts::{Block, Counts, UNKNOWN};
use crate::words::{LABEL_PREFIX, Words};

/// How lines are read.
#[derive(Clone, Debug)]
pub struct Reading {
    /// How a line is split.
    pub words: Words,
    /// Prefix of labels in lines of fastText's format.
    pub label_prefix: Vec<u8>,
    /// Maximum number of words of the dictionary. Other words are stored by their hash.
    pub words_max: usize,
    /// Maximum total length of the words of the dictionary in bytes.
    pub words_bytes_max: usize,
    /// Minimum count of a word of the dictionary. Other words are stored by their hash.
    pub count_min: u64,
    /// Maximum size of all texts in memory, in bytes. Other texts are stored in a temporary file.
    pub memory_bytes: usize,
    /// The folder of the temporary file.
    pub folder: PathBuf,
    /// Whether each text has a key, which [`TextsBuilder::set_key`] sets.
    pub has_keys: bool,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            words: Words::Spaces,
            label_prefix: LABEL_PREFIX.to_vec(),
            words_max: 1 << 23,
            words_bytes_max: 1 << 28,
            count_min: 1,
            memory_bytes: 4 << 30,
            folder: std::env::temp_dir(),
            has_keys: false,
        }
    }
}

/// Maximum number of distinct labels, and of their bytes.
pub(crate) const LABELS_MAX: usize = 1 << 22;
pub(crate) const LABELS_BYTES_MAX: usize = 1 << 28;
/// Number of tokens after which a block ends: 1 MiB.
const BLOCK_TOKENS: usize = 1 << 18;

/// The builders of one input.
#[derive(Clone, Debug)]
pub struct Builders {
    reading: Arc<Reading>,
    /// Bytes of all blocks in memory.
    memory: Arc<AtomicUsize>,
}

/// Numbers the words of lines, in one thread.
#[derive(Debug)]
pub struct TextsBuilder {
    pub(crate) reading: Arc<Reading>,
    memory: Arc<AtomicUsize>,
    pub(crate) words: Numbers,
    pub(crate) labels: Numbers,
    pub(crate) counts: Counts,
    /// Chunks in increasing order, each with the number of words before it.
    pub(crate) chunks: Vec<(u64, u32)>,
    /// The chunk in which a word was refused first, and the number of words before it.
    pub(crate) closed: Option<(u64, u32)>,
    /// Chunk and block, in increasing order of chunks.
    pub(crate) blocks: Vec<(u64, Unnumbered)>,
    block: Block,
    file: Option<(Arc<File>, u64)>,
    word: Vec<u8>,
    known: Known,
    key: u64,
}

/// Words that are numbered in another way, and what a builder knows of them.
#[derive(Debug, Default)]
struct Known {
    /// Number of each word in the builder, plus 1; 0 for a word that has not occurred.
    numbers: Vec<u32>,
    /// Occurrences by number in the builder, which its table does not have.
    counts: Vec<u64>,
}

/// A block with the numbers of its builder.
#[derive(Debug)]
pub(crate) enum Unnumbered {
    Memory(Block),
    File { file: Arc<File>, from: u64, lengths: [usize; 5] },
}

impl Builders {
    /// Builders that share these settings.
    pub fn new(reading: Reading) -> Self {
        Self { reading: Arc::new(reading), memory: Arc::default() }
    }

    /// The settings.
    pub fn reading(&self) -> &Reading {
        &self.reading
    }

    /// The builder of one thread.
    pub fn builder(&self) -> TextsBuilder {
        TextsBuilder {
            reading: Arc::clone(&self.reading),
            memory: Arc::clone(&self.memory),
            words: Numbers::new(self.reading.words_max, self.reading.words_bytes_max),
            labels: Numbers::new(LABELS_MAX, LABELS_BYTES_MAX),
            counts: Counts::default(),
            chunks: vec![(0, 0)],
            closed: None,
            blocks: Vec::new(),
            block: Block::default(),
            file: None,
            word: Vec::new(),
            known: Known::default(),
            key: 0,
        }
    }
}

impl TextsBuilder {
    /// Starts a chunk of the input. The chunks of a builder have increasing numbers, and each chunk has one builder.
    ///
    /// # Errors
    /// If the temporary file cannot be written.
    pub fn begin(&mut self, chunk: u64) -> Result<()> {
        self.end_block()?;
        self.chunks.push((chunk, self.words.names().len() as u32));
        Ok(())
    }

    /// Sets the key of the text that is added next. Texts with equal keys are copies of one text.
    pub fn set_key(&mut self, key: u64) {
        self.key = key;
    }

    /// Adds a text. Returns whether it has a label; a text without one is counted and skipped.
    ///
    /// # Errors
    /// If the temporary file cannot be written.
    pub fn add<'a>(&mut self, words: impl IntoIterator<Item = &'a [u8]>, labels: &[&[u8]]) -> Result<bool> {
        if !self.has_labels(labels) {
            return Ok(false);
        }
        let Self { words: numbers, block, .. } = self;
        words.into_iter().filter(|word| !word.is_empty()).for_each(|word| count(numbers, block, word));
        self.end_text().map(|()| true)
    }

    /// Adds a text of words that are numbered already: `word` returns the word of a number. Each word is looked up once.
    /// Returns whether the text has a label.
    ///
    /// # Errors
    /// If the temporary file cannot be written.
    pub fn add_known<'a>(
        &mut self,
        words: impl IntoIterator<Item = u32>,
        word: impl Fn(u32) -> &'a [u8],
        labels: &[&[u8]],
    ) -> Result<bool> {
        if !self.has_labels(labels) {
            return Ok(false);
        }
        let Self { words: numbers, block, known, .. } = self;
        for id in words {
            match known.number(id, numbers, &word) {
                Some(number) => block.tokens.push(number),
                None => block.tokens.extend([UNKNOWN, hash(word(id))]),
            }
        }
        self.end_text().map(|()| true)
    }

    /// Adds a line as a text, split by [`Reading::words`]. Returns whether it has a label.
    ///
    /// # Errors
    /// If the temporary file cannot be written.
    pub fn add_line(&mut self, line: &[u8], labels: &[&[u8]]) -> Result<bool> {
        if !self.has_labels(labels) {
            return Ok(false);
        }
        let Self { words: numbers, block, word, reading, .. } = self;
        reading.words.each(line, word, |word| count(numbers, block, word));
        self.end_text().map(|()| true)
    }

    /// Adds the words at these spans of a text, then `last`.
    pub(crate) fn add_spans(
        &mut self,
        text: &[u8],
        words: &[Span],
        last: Option<&[u8]>,
        labels: &[Span],
    ) -> Result<bool> {
        if labels.is_empty() {
            self.counts.n_unlabelled += 1;
            return Ok(false);
        }
        let Self { words: numbers, labels: label_numbers, block, .. } = self;
        label_numbers.count_all(text, labels, |number, _| block.labels.extend(number));
        block.tokens.reserve(2 * words.len());
        numbers.count_all(text, words, |number, span| match number {
            Some(number) => block.tokens.push(number),
            None => block.tokens.extend([UNKNOWN, hash(span.of(text))]),
        });
        if let Some(last) = last {
            count(numbers, block, last);
        }
        self.end_text().map(|()| true)
    }

    /// Adds the labels of a text, which are not empty.
    fn has_labels(&mut self, labels: &[&[u8]]) -> bool {
        let before = self.block.labels.len();
        let labels = labels.iter().filter(|label| !label.is_empty());
        let numbers = labels.filter_map(|label| self.labels.count(label, 1));
        self.block.labels.extend(numbers);
        let has_any = self.block.labels.len() > before;
        self.counts.n_unlabelled += u64::from(!has_any);
        has_any
    }

    fn end_text(&mut self) -> Result<()> {
        if self.closed.is_none() && self.words.is_over() {
            self.closed = Some((self.chunk(), self.words.names().len() as u32));
        }
        let from = self.block.ends.last().copied().unwrap_or(0);
        self.block.end_text();
        if self.reading.has_keys {
            self.block.keys.extend([self.key as u32, (self.key >> 32) as u32]);
        }
        self.counts.n_texts += 1;
        self.counts.n_empty += u64::from(from as usize == self.block.tokens.len());
        if self.block.tokens.len() >= BLOCK_TOKENS || self.block.ends.len() >= BLOCK_TOKENS {
            self.end_block()?;
        }
        Ok(())
    }

    fn chunk(&self) -> u64 {
        self.chunks.last().map_or(0, |&(chunk, _)| chunk)
    }

    /// Adds the counts of the known words, and ends the last block.
    pub(crate) fn finish(mut self) -> Result<Self> {
        self.words.add_counts(&self.known.counts);
        self.end_block()?;
        Ok(self)
    }

    fn end_block(&mut self) -> Result<()> {
        if self.labels.is_over() {
            return Err(Error::TooManyLabels { max: LABELS_MAX });
        }
        if self.block.ends.is_empty() {
            return Ok(());
        }
        let chunk = self.chunk();
        let block = std::mem::take(&mut self.block);
        let n_bytes = block.n_bytes();
        let before = self.memory.fetch_add(n_bytes, Relaxed);
        let stored = if before + n_bytes <= self.reading.memory_bytes {
            Unnumbered::Memory(block)
        } else {
            self.memory.fetch_sub(n_bytes, Relaxed);
            let spilled = self.spill(&block);
            spilled.map_err(|source| Error::Spill { folder: self.reading.folder.clone(), source })?
        };
        self.blocks.push((chunk, stored));
        Ok(())
    }

    fn spill(&mut self, block: &Block) -> io::Result<Unnumbered> {
        let (file, end) = match self.file.take() {
            Some(file) => file,
            None => (Arc::new(tempfile::tempfile_in(&self.reading.folder)?), 0),
        };
        let lists = block.lists();
        let numbers = lists.iter().flat_map(|list| list.iter());
        let bytes: Vec<u8> = numbers.flat_map(|number| number.to_le_bytes()).collect();
        file.write_all_at(&bytes, end)?;
        self.file = Some((Arc::clone(&file), end + bytes.len() as u64));
        Ok(Unnumbered::File { file, from: end, lengths: lists.map(Vec::len) })
    }
}

impl Known {
    /// Counts a word and returns its number in the builder; `None` if the builder's table is full.
    #[inline]
    fn number<'a>(&mut self, id: u32, numbers: &mut Numbers, word: impl Fn(u32) -> &'a [u8]) -> Option<u32> {
        let at = id as usize;
        let number = match self.numbers.get(at) {
            Some(&number) if number > 0 => number - 1,
            _ => {
                let number = numbers.count(word(id), 0)?;
                self.numbers.resize(self.numbers.len().max(at + 1), 0);
                self.numbers[at] = number + 1;
                self.counts.resize(self.counts.len().max(number as usize + 1), 0);
                number
            }
        };
        self.counts[number as usize] += 1;
        Some(number)
    }
}

fn count(numbers: &mut Numbers, block: &mut Block, word: &[u8]) {
    match numbers.count(word, 1) {
        Some(number) => block.tokens.push(number),
        None => block.tokens.extend([UNKNOWN, hash(word)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_numbered_already_give_the_texts_of_their_names() {
        let names = ["", "film", "great", "not", "a"].map(str::as_bytes);
        let texts: Vec<Vec<u32>> =
            (0..500).map(|n| (0..n % 7).map(|at| 1 + (n * at + n / 3) % 4).collect()).collect();
        for words_max in [2, 100] {
            let reading = Reading { words: Words::Cleaned, words_max, ..Reading::default() };
            let of = |by_name: bool| {
                let builders = Builders::new(reading.clone());
                let mut all = [builders.builder(), builders.builder()];
                for (text, chunk) in texts.chunks(50).zip(0..) {
                    let builder = &mut all[chunk as usize % 2];
                    builder.begin(chunk).unwrap();
                    for words in text {
                        let name = |id: u32| names[id as usize];
                        let words = words.iter().copied();
                        let is_added = match by_name {
                            true => builder.add(words.map(name), &[b"x"]),
                            false => builder.add_known(words, name, &[b"x"]),
                        };
                        assert!(is_added.unwrap());
                    }
                }
                builders.merge(all.into()).unwrap()
            };
            let (known, named) = (of(false), of(true));
            assert!(known.dictionary == named.dictionary && known.dictionary.n_words() == words_max.min(4));
            assert_eq!(known.counts(), named.counts());
            assert_eq!(known.digest().unwrap(), named.digest().unwrap());
        }
    }
}
