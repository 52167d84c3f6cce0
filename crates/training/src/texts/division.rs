//! Assigns texts to the splits of a division, as rows of a dataset are.
//!
//! The split number of a text is the one that its row has in a dataset with all its words, so equal texts are in the same
//! split, whatever their order and the number of threads. A text without words of letters has the split number of its
//! bytes.

use batches::{Division, Part};
use classifiers::{Builders, Reading, Texts, TextsBuilder, Words};
use corpus::clean::Cleaner;
use corpus::digest::{split, text_hash};

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
}

impl SplitBuilders {
    /// Builders of all texts.
    pub fn of_all(reading: Reading) -> Self {
        Self { division: None, splits: vec![(Part::Training, Builders::new(reading))] }
    }

    /// Builders of some splits.
    pub fn of(division: Division, wanted: Vec<Wanted>) -> Self {
        let splits = wanted.into_iter().map(|of| (of.part, Builders::new(of.reading))).collect();
        Self { division: Some(division), splits }
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
            hashed: Hashed::of(self.reading().words),
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

/// Finds the text whose hash is the key of a text.
pub(crate) struct Hashed {
    cleaner: Cleaner,
    cleaned: Vec<u8>,
}

impl Hashed {
    /// For texts that are split into such words.
    pub fn of(words: Words) -> Self {
        Self { cleaner: Cleaner::new(words.rules().unwrap_or_default()), cleaned: Vec::new() }
    }

    /// The cleaned text, or the text itself if it has no words of letters.
    pub fn text<'a>(&'a mut self, text: &'a [u8]) -> &'a [u8] {
        self.cleaned.clear();
        let has_words = self.cleaner.clean(&String::from_utf8_lossy(text), &mut self.cleaned);
        if has_words { &self.cleaned } else { text }
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
                division.part(split(text)).and_then(|part| self.parts.iter().position(|&of| of == part))
            }
        };
        match index {
            Some(index) if self.builders[index].has_keys() => {
                self.builders[index].builder().set_key(text_hash(text));
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
