//! A classifier of any family.

use crate::dictionary::Dictionary;
use crate::fasttext;
use crate::names::Names;

/// A classifier.
#[derive(Debug)]
pub enum Model {
    /// A mean of embeddings with a linear layer.
    FastText(Box<fasttext::Model>),
}

/// Reusable memory of answers.
#[derive(Debug, Default)]
pub struct Scratch {
    fasttext: fasttext::Scores,
}

impl Model {
    /// Words and labels.
    pub fn dictionary(&self) -> &Dictionary {
        match self {
            Self::FastText(model) => model.dictionary(),
        }
    }

    /// The labels in order of their numbers, without prefix.
    pub fn labels(&self) -> &Names {
        self.dictionary().labels()
    }

    /// The probability of each label for a line, by number of the label.
    pub fn scores<'s>(&self, line: &[u8], scratch: &'s mut Scratch) -> &'s [f32] {
        match self {
            Self::FastText(model) => model.scores(line, &mut scratch.fasttext),
        }
    }

    /// How much each word and n-gram of a line speaks for a label, in order of first occurrence.
    ///
    /// # Panics
    /// If the label does not exist.
    pub fn explain(&self, line: &[u8], label: u32) -> Vec<(String, f32)> {
        match self {
            Self::FastText(model) => model.explain(line, label),
        }
    }
}
