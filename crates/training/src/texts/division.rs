//! Assigns texts to the splits of a division, as rows of a dataset are.
//!
//! The split number of a text is the one that its row has in a dataset, of words that the dataset keeps; without settings
//! of a dataset, of all its words. So equal texts are in the same split, whatever their order and the number of threads. A
//! text without words of letters has the split number of its bytes.

use std::collections::HashSet;

use batches::{Division, Part};
use classifiers::{Builders, Reading, Texts, TextsBuilder, Words};
use corpus::clean::Cleaner;
use corpus::digest::{split, text_hash};
use corpus::settings::Settings;

use crate::texts::chunks::ThreadBuilders;
use crate::texts::error::Result;

/// The texts of a split, and how they are read.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The split.
    pub part: Part,
    /// How a text is split into words.
    pub reading: Reading,
}

/// The builders of all wanted splits.
pub(crate) struct SplitBuilders {
    /// `None`: all texts are wanted, as one split.
    division: Option<Division>,
    splits: Vec<(Part, Builders)>,
    /// The settings of the rows whose splits these are; `None`: rows have all words.
    rows: Option<Settings>,
}

impl SplitBuilders {
    /// Builders of all texts.
    pub fn of_all(reading: Reading) -> Self {
        Self { division: None, splits: vec![(Part::Training, Builders::new(reading))], rows: None }
    }

    /// Builders of some splits of rows with these settings.
    pub fn of(division: Division, wanted: Vec<Wanted>, rows: Option<Settings>) -> Self {
        let splits = wanted.into_iter().map(|of| (of.part, Builders::new(of.reading))).collect();
        Self { division: Some(division), splits, rows }
    }

    /// Whether all lines are added as they are: all texts are wanted, and none needs a key.
    pub fn takes_all_lines(&self) -> bool {
        self.division.is_none() && !self.reading().has_keys
    }

    /// How the texts of the first split are read.
    pub fn reading(&self) -> &Reading {
        self.splits[0].1.reading()
    }

    /// The builders of one thread.
    pub fn of_thread(&self) -> ThreadSplits<'_> {
        ThreadSplits {
            division: self.division,
            parts: self.splits.iter().map(|(part, _)| *part).collect(),
            builders: self.splits.iter().map(|(_, builders)| ThreadBuilders::new(builders)).collect(),
            hashed: Hashed::of(self.reading().words, self.rows.as_ref()),
            n_omitted: 0,
        }
    }

    /// The texts of each wanted split, and the number of texts in no wanted split.
    pub fn merge(&self, threads: Vec<BuiltByThread>) -> Result<(Vec<Texts>, u64)> {
        let n_omitted = threads.iter().map(|thread| thread.n_omitted).sum();
        let mut built: Vec<Vec<TextsBuilder>> = self.splits.iter().map(|_| Vec::new()).collect();
        for thread in threads {
            built.iter_mut().zip(thread.builders).for_each(|(all, of_thread)| all.extend(of_thread));
        }
        let merged = self.splits.iter().zip(built).map(|((_, builders), built)| Ok(builders.merge(built)?));
        Ok((merged.collect::<Result<_>>()?, n_omitted))
    }
}

/// The builders of one thread, one for each wanted split.
pub(crate) struct ThreadSplits<'a> {
    division: Option<Division>,
    parts: Vec<Part>,
    builders: Vec<ThreadBuilders<'a>>,
    hashed: Hashed,
    n_omitted: u64,
}

/// Finds the key and the split number that a text has as a row of a dataset.
pub(crate) struct Hashed {
    cleaner: Cleaner,
    cleaned: Vec<u8>,
    /// The settings of rows, and their stop words.
    rows: Option<(Settings, HashSet<Vec<u8>>)>,
}

/// The cleaned text, or the text itself if it has no words of letters.
pub(crate) struct HashedText<'a> {
    text: &'a [u8],
    rows: Option<&'a (Settings, HashSet<Vec<u8>>)>,
}

impl Hashed {
    /// For texts that are split into such words, and rows with these settings.
    pub fn of(words: Words, rows: Option<&Settings>) -> Self {
        let stop_words =
            |rows: &Settings| rows.stop_words.iter().map(|word| word.clone().into_bytes()).collect();
        Self {
            cleaner: Cleaner::new(words.rules().unwrap_or_default()),
            cleaned: Vec::new(),
            rows: rows.map(|rows| (rows.clone(), stop_words(rows))),
        }
    }

    /// A text.
    pub fn text<'a>(&'a mut self, text: &'a [u8]) -> HashedText<'a> {
        self.cleaned.clear();
        let has_words = self.cleaner.clean(&String::from_utf8_lossy(text), &mut self.cleaned);
        HashedText { text: if has_words { &self.cleaned } else { text }, rows: self.rows.as_ref() }
    }
}

impl HashedText<'_> {
    /// The key.
    pub fn key(&self) -> u64 {
        text_hash(self.text)
    }

    /// The split number, which is that of the words that the row keeps.
    pub fn split(&self) -> u16 {
        let Some((rows, stop_words)) = self.rows else { return split(self.text) };
        let words = self.text.split(|&byte| byte == b' ').filter(|word| !stop_words.contains(*word));
        let words: Vec<&[u8]> = words.collect();
        let (front, back) = rows.kept(&words);
        split(&[front, back].concat().join(&b' '))
    }
}

/// What one thread has built.
pub(crate) struct BuiltByThread {
    builders: Vec<Vec<TextsBuilder>>,
    n_omitted: u64,
}

impl ThreadSplits<'_> {
    /// Begins a chunk. No other thread begins it.
    pub fn begin(&mut self, chunk: u64) -> Result<()> {
        self.builders.iter_mut().try_for_each(|builders| builders.begin(chunk))
    }

    /// Whether all lines are added as they are, as [`SplitBuilders::takes_all_lines`].
    pub fn takes_all_lines(&self) -> bool {
        self.division.is_none() && !self.has_keys(0)
    }

    /// Whether the texts of a split have keys.
    pub fn has_keys(&self, index: usize) -> bool {
        self.builders[index].has_keys()
    }

    /// Number of wanted splits.
    pub fn n_splits(&self) -> usize {
        self.builders.len()
    }

    /// The index of the split of a text, which is added next. A text in no wanted split is counted. The key of a text is
    /// the hash of its row in a dataset.
    pub fn index(&mut self, text: &[u8]) -> Option<usize> {
        if self.takes_all_lines() {
            return Some(0);
        }
        let text = self.hashed.text(text);
        let index = match self.division {
            None => Some(0),
            Some(division) => {
                division.part(text.split()).and_then(|part| self.parts.iter().position(|&of| of == part))
            }
        };
        match index {
            Some(index) if self.builders[index].has_keys() => {
                self.builders[index].builder().set_key(text.key());
            }
            Some(_) => {}
            None => self.n_omitted += 1,
        }
        index
    }

    /// The builder of a split, for the current chunk.
    pub fn builder(&mut self, index: usize) -> &mut TextsBuilder {
        self.builders[index].builder()
    }

    pub fn finish(self) -> BuiltByThread {
        let builders = self.builders.into_iter().map(ThreadBuilders::finish).collect();
        BuiltByThread { builders, n_omitted: self.n_omitted }
    }
}
