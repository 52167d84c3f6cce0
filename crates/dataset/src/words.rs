//! Words with their counts: the dictionary of a shard, or the vocabulary of a dataset.

use std::collections::HashSet;

use corpus::settings::Settings;
use program::exit::quoted;
use thiserror::Error;

use crate::column::ColumnReader;
use crate::column_writer::ColumnWriter;
use crate::error::{Result, Violation};
use crate::file::{FileReader, FileWriter};
use crate::schema::{COUNT, OFFSETS, WORD_BYTES};

/// Number of the rule that words are cleaned words.
pub const RULE_OF_WORDS: &str = "F18";

/// A list of words as three columns: the concatenated bytes, the offset of each word, and its count.
pub(crate) struct WordsWriter {
    bytes: ColumnWriter<u8>,
    offsets: ColumnWriter<u64>,
    count: ColumnWriter<u64>,
    n_bytes: u64,
}

impl WordsWriter {
    /// Creates the columns in a group of this name.
    pub(crate) fn create(file: &mut FileWriter, group: &str, words: u64, bytes: u64) -> Result<Self> {
        file.group(group)?;
        let mut offsets = file.column(&format!("{group}/{OFFSETS}"), words as usize + 1, None)?;
        offsets.push(&mut file.chunks, &[0])?;
        Ok(Self {
            bytes: file.column(&format!("{group}/{WORD_BYTES}"), bytes as usize, None)?,
            offsets,
            count: file.column(&format!("{group}/{COUNT}"), words as usize, None)?,
            n_bytes: 0,
        })
    }

    pub(crate) fn push(&mut self, file: &mut FileWriter, word: &[u8], count: u64) -> Result<()> {
        self.n_bytes += word.len() as u64;
        self.bytes.push(&mut file.chunks, word)?;
        self.offsets.push(&mut file.chunks, &[self.n_bytes])?;
        self.count.push(&mut file.chunks, &[count])
    }

    pub(crate) fn finish(self, file: &mut FileWriter) -> Result<()> {
        file.finish_column(self.bytes)?;
        file.finish_column(self.offsets)?;
        file.finish_column(self.count)
    }
}

/// Reads words by index. Reading in order is cheap.
pub struct WordsReader {
    bytes: ColumnReader<u8>,
    offsets: ColumnReader<u64>,
    count: ColumnReader<u64>,
}

impl WordsReader {
    pub(crate) fn open(file: &mut FileReader, group: &str) -> Result<Self> {
        let mut words = Self {
            bytes: file.column(&format!("{group}/{WORD_BYTES}"), None)?.reader(),
            offsets: file.column(&format!("{group}/{OFFSETS}"), None)?.reader(),
            count: file.column(&format!("{group}/{COUNT}"), None)?.reader(),
        };
        let n = words.count.column().n_rows();
        let n_offsets = words.offsets.column().n_rows();
        let thing = |of: &str| format!("{of} of {group}/{OFFSETS}");
        if n_offsets != n + 1 {
            let expected = format!("{}, one more than words", n + 1);
            return Err(file.stored.broken(Violation::new(
                "F17",
                thing("the length"),
                n_offsets.to_string(),
                expected,
            )));
        }
        let (first, last, n_bytes) = (words.offsets.get(0)?, words.offsets.get(n)?, words.n_bytes());
        if first != 0 {
            return Err(file.stored.broken(Violation::new(
                "F17",
                thing("the first"),
                first.to_string(),
                "0",
            )));
        }
        if last != n_bytes {
            let expected = format!("{n_bytes}, the bytes of all words");
            return Err(file.stored.broken(Violation::new(
                "F17",
                thing("the last"),
                last.to_string(),
                expected,
            )));
        }
        Ok(words)
    }

    /// Another reader of the same words, for another thread.
    pub fn another(&self) -> Self {
        let Self { bytes, offsets, count } = self;
        Self {
            bytes: bytes.column().reader(),
            offsets: offsets.column().reader(),
            count: count.column().reader(),
        }
    }

    /// The index of the first word of a dictionary that is not less than `word`.
    pub fn first_from(&mut self, word: &[u8]) -> Result<u64> {
        let (mut from, mut to, mut other) = (0, self.n_words(), Vec::new());
        while from < to {
            let middle = from + (to - from) / 2;
            self.read(middle, &mut other)?;
            if &other[..] < word { from = middle + 1 } else { to = middle }
        }
        Ok(from)
    }

    /// Number of words.
    pub fn n_words(&self) -> u64 {
        self.count.column().n_rows() as u64
    }

    /// Total length of all words in bytes.
    pub fn n_bytes(&self) -> u64 {
        self.bytes.column().n_rows() as u64
    }

    /// Size of the columns in the file, in bytes.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let Self { bytes, offsets, count } = self;
        bytes.column().stored_bytes() + offsets.column().stored_bytes() + count.column().stored_bytes()
    }

    /// Reads the word at this index into `word`. Returns its count.
    pub fn read(&mut self, at: u64, word: &mut Vec<u8>) -> Result<u64> {
        let at = at as usize;
        let (from, to) = (self.offsets.get(at)?, self.offsets.get(at + 1)?);
        // A file with valid digests may still be crafted. Words that share bytes would take far more memory
        // than the file has bytes.
        if from >= to || to > self.n_bytes() {
            let expected = format!("more, and at most {}", self.n_bytes());
            let thing = format!("the end of word {at}, which begins at byte {from},");
            return Err(self.offsets.column().broken(Violation::new("F17", thing, to.to_string(), expected)));
        }
        word.clear();
        self.bytes.pieces(from as usize, to as usize, |bytes| word.extend_from_slice(bytes))?;
        self.count.get(at)
    }
}

/// Words in memory, concatenated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WordList {
    bytes: Vec<u8>,
    ends: Vec<u64>,
}

impl WordList {
    /// Appends a word.
    pub fn push(&mut self, word: &[u8]) {
        self.bytes.extend_from_slice(word);
        self.ends.push(self.bytes.len() as u64);
    }

    /// The word at this index.
    pub fn get(&self, at: usize) -> &[u8] {
        let from = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.bytes[from..self.ends[at] as usize]
    }

    /// The words in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|at| self.get(at))
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no words.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Total length of all words in bytes.
    pub fn n_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Checks words from another source for texts prepared with these settings: each is a cleaned word, is
    /// listed once, and is not a stop word.
    pub fn check(&self, settings: &Settings) -> Result<(), WordViolation> {
        let mut cleaner = settings.cleaner();
        let mut listed = HashSet::with_capacity(self.len());
        for (at, word) in self.iter().enumerate() {
            if !settings.is_word(&mut cleaner, word) {
                return Err(WordViolation {
                    rule: RULE_OF_WORDS,
                    at,
                    found: quoted(word),
                    expected: "a cleaned word",
                });
            }
            if !listed.insert(word) {
                return Err(WordViolation {
                    rule: "F20",
                    at,
                    found: quoted(word),
                    expected: "a word that is listed once",
                });
            }
        }
        let stop_word = settings.stop_words.iter().find(|word| listed.contains(word.as_bytes()));
        stop_word.map_or(Ok(()), |stop_word| {
            let at = self.iter().position(|word| word == stop_word.as_bytes()).unwrap_or(0);
            let found = quoted(stop_word.as_bytes());
            Err(WordViolation { rule: "F19", at, found, expected: "none of the stop words" })
        })
    }
}

/// A word that no list of this project can contain.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("word {at} is {found}, expected {expected}")]
pub struct WordViolation {
    /// Number of the rule in FORMAT.md.
    pub rule: &'static str,
    /// Index of the word, from 0.
    pub at: usize,
    /// The value found, without control characters.
    pub found: String,
    /// The expected value.
    pub expected: &'static str,
}
