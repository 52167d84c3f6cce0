//! A classifier of any family, with its labels: linear models and models of embeddings, which `ngrams train` trains, and
//! models of the fastText program.

mod labels;
mod preparation;
mod program;

use std::collections::HashMap;
use std::path::Path;

use scoring::Choice;

use crate::dictionary::Dictionary;
use crate::features::Features;
use crate::files::{self, ModelRef, Result, bin};
use crate::linear::AT_THE_END;
use crate::names::Names;
use crate::words::{END, LABEL_PREFIX, Words};
use crate::{fasttext, linear};

pub use self::labels::Labels;
pub use self::preparation::Preparation;

/// A classifier with its labels.
#[derive(Debug)]
pub struct Classifier {
    model: Model,
    labels: Labels,
    numbers: HashMap<Vec<u8>, u32>,
}

/// A model of any kind.
#[derive(Debug)]
pub enum Model {
    /// A linear model.
    Linear(Box<linear::LinearModel>),
    /// A mean of embeddings with a linear layer.
    FastText(Box<fasttext::FastTextModel>),
    /// A model of the fastText program.
    Program(Box<bin::BinModel>),
}

impl Classifier {
    /// The classifier of a model.
    pub fn new(model: Model) -> Self {
        let names: Vec<Vec<u8>> = match &model {
            Model::Linear(model) => owned(model.labels()),
            Model::FastText(model) => owned(model.dictionary().labels()),
            Model::Program(model) => {
                // The fastText program stores labels with their prefix.
                let bare = |name: Vec<u8>| {
                    name.strip_prefix(LABEL_PREFIX).map_or_else(|| name.clone(), <[u8]>::to_vec)
                };
                let labels = 0..model.entries().n_labels() as u32;
                labels.map(|label| bare(model.entries().label(label))).collect()
            }
        };
        let labels = match &model {
            Model::Linear(model) => Labels::of(model.dictionary()).with_choice(model.stored().choice),
            Model::FastText(model) => Labels::of(model.dictionary()).with_choice(model.choice()),
            Model::Program(_) => {
                let shown = names.iter().map(|name| String::from_utf8_lossy(name).into_owned());
                Labels::new(shown.collect(), &Names::default())
            }
        };
        Self { model, labels, numbers: names.into_iter().zip(0..).collect() }
    }

    /// Sets calibration and threshold of a model that was trained.
    pub fn choose(&mut self, choice: Choice) {
        match &mut self.model {
            Model::Linear(model) => model.choose(choice),
            Model::FastText(model) => model.choose(choice),
            Model::Program(_) => {}
        }
        self.labels = self.labels.clone().with_choice(choice);
    }

    /// Reads a model folder, or a file of the fastText program.
    pub fn read(path: &Path) -> Result<Self> {
        Ok(Self::new(match path.is_dir() {
            true => files::read(path)?,
            false => Model::Program(Box::new(bin::BinModel::read(path)?)),
        }))
    }

    /// The model, unless it is one of the fastText program.
    pub fn stored(&self) -> Option<ModelRef<'_>> {
        match &self.model {
            Model::Linear(model) => Some(ModelRef::Linear(model)),
            Model::FastText(model) => Some(ModelRef::FastText(model)),
            Model::Program(_) => None,
        }
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The labels.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The number of a label.
    pub fn label(&self, name: &[u8]) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// How texts are split into words.
    pub fn words(&self) -> Words {
        match &self.model {
            Model::Linear(model) => model.stored().words,
            Model::FastText(model) => model.words(),
            Model::Program(_) => Words::Spaces,
        }
    }

    /// Maximum length of n-grams in words.
    pub fn ngrams(&self) -> usize {
        match &self.model {
            Model::Linear(model) => model.stored().settings.ngrams as usize,
            Model::FastText(model) => model.features().ngrams as usize,
            Model::Program(model) => model.args().features().ngrams as usize,
        }
    }

    /// Answers for texts, one at a time.
    pub fn reader(&self) -> Reader<'_> {
        Reader { classifier: self, scratch: Scratch::default(), probabilities: Vec::new() }
    }
}

fn owned(names: &Names) -> Vec<Vec<u8>> {
    names.iter().map(<[u8]>::to_vec).collect()
}

/// Computes answers of a classifier, with reusable memory.
#[derive(Debug)]
pub struct Reader<'a> {
    classifier: &'a Classifier,
    scratch: Scratch,
    probabilities: Vec<f32>,
}

#[derive(Debug, Default)]
struct Scratch {
    linear: linear::LinearScratch,
    fasttext: fasttext::Scores,
    program: bin::answers::BinScratch,
}

impl<'a> Reader<'a> {
    /// The labels.
    pub fn labels(&self) -> &'a Labels {
        self.classifier.labels()
    }

    /// The probability of each label for a text, before the calibration; `None` for a text without a row of the model.
    pub fn probabilities(&mut self, text: &[u8]) -> Option<&[f32]> {
        let Self { classifier, scratch, probabilities } = self;
        match &classifier.model {
            Model::Linear(model) => model.probabilities(text, &mut scratch.linear, probabilities),
            Model::FastText(model) => {
                probabilities.clear();
                probabilities.extend_from_slice(model.scores(text, &mut scratch.fasttext));
            }
            Model::Program(model) => {
                let found = model.probabilities(text, &mut scratch.program)?;
                probabilities.clear();
                probabilities.extend_from_slice(found);
            }
        }
        Some(probabilities)
    }

    /// As [`Self::probabilities`]; `None` for a text of which the model knows no word. Of a hashed n-gram it is unknown whether
    /// it was in a text of the training.
    pub fn of_known(&mut self, text: &[u8]) -> Option<&[f32]> {
        let mut is_known = match &self.classifier.model {
            Model::Linear(_) => true,
            Model::FastText(model) => self.has_word(text, model.features(), model.dictionary()),
            Model::Program(model) => {
                self.has_word(text, model.args().features(), model.entries().dictionary())
            }
        };
        self.probabilities(text)?;
        if let Model::Linear(_) = self.classifier.model {
            is_known = self.scratch.linear.has_known();
        }
        is_known.then_some(&self.probabilities)
    }

    /// Whether a word of the text may have a row.
    fn has_word(&self, text: &[u8], features: Features, dictionary: &Dictionary) -> bool {
        let mut is_found = features.characters_max > 0 || features.hashes_unknown;
        // The end of a line is a word of the fastText program.
        self.each_word(text, |word| is_found = is_found || (word != END && dictionary.word(word).is_some()));
        is_found
    }

    /// What each distinct n-gram of a text adds to the score of a label.
    pub fn contributions(&self, text: &[u8], label: u32) -> Vec<(String, f64)> {
        match &self.classifier.model {
            Model::Linear(model) => {
                // One at the end of a text is the same n-gram as that within it.
                let found = model.explain(text, label).into_iter().map(|mut of| {
                    if of.is_ending {
                        of.ngram.truncate(of.ngram.len() - AT_THE_END.len());
                    }
                    (of.ngram, f64::from(of.weight))
                });
                found.collect()
            }
            Model::FastText(model) => of_floats(model.explain(text, label)),
            Model::Program(model) => program::explain(model, text, label),
        }
    }

    /// Calls `each` with each word of a text.
    pub fn each_word(&self, text: &[u8], each: impl FnMut(&[u8])) {
        self.classifier.words().each(text, &mut Vec::new(), each);
    }
}

fn of_floats(shares: Vec<(String, f32)>) -> Vec<(String, f64)> {
    shares.into_iter().map(|(ngram, weight)| (ngram, f64::from(weight))).collect()
}
