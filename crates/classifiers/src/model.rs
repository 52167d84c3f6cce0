//! A classifier of any family.

use crate::dictionary::Dictionary;
use crate::names::Names;
use crate::{fasttext, linear};

/// A classifier.
#[derive(Debug)]
pub enum Model {
    /// A mean of embeddings with a linear layer.
    FastText(Box<fasttext::FastTextModel>),
    /// Weighted n-grams.
    Linear(Box<linear::LinearModel>),
}

/// Reusable memory of answers.
#[derive(Debug, Default)]
pub struct Scratch {
    fasttext: fasttext::Scores,
    linear: linear::LinearScratch,
    probabilities: Vec<f32>,
}

impl Model {
    /// Words and labels. Of weighted n-grams only exact ones have words, and there are no counts.
    pub fn dictionary(&self) -> &Dictionary {
        match self {
            Self::FastText(model) => model.dictionary(),
            Self::Linear(model) => model.dictionary(),
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
            Self::Linear(model) => {
                model.probabilities(line, &mut scratch.linear, &mut scratch.probabilities);
                &scratch.probabilities
            }
        }
    }

    /// How much each word and n-gram of a line raises the score of a label, in order of first occurrence.
    ///
    /// # Panics
    /// If the label does not exist.
    pub fn explain(&self, line: &[u8], label: u32) -> Vec<(String, f32)> {
        match self {
            Self::FastText(model) => model.explain(line, label),
            Self::Linear(model) => {
                model.explain(line, label).into_iter().map(|found| (found.ngram, found.weight)).collect()
            }
        }
    }
}
