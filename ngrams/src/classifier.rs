//! Classifiers of words and n-grams: linear models and models of embeddings, which `ngrams train` trains, and models of
//! the fastText program. They do not use tensors.

pub mod choice;
pub mod evaluate;
pub mod explain;
mod labels;
pub mod onnx;
pub mod predict;
mod program;
pub mod quality;
pub mod text;

use std::collections::HashMap;
use std::path::Path;

use classifiers::files::{ModelRef, bin};
use classifiers::linear::AT_THE_END;
use classifiers::{Dictionary, END, Features, LABEL_PREFIX, Names, Words, fasttext, linear};
use scoring::Choice;
use training::{Error, Result};

pub use self::labels::Labels;

/// A classifier with its labels.
#[derive(Debug)]
pub struct Classifier {
    model: ClassifierModel,
    labels: Labels,
    numbers: HashMap<Vec<u8>, u32>,
}

/// A model of any kind.
#[derive(Debug)]
pub enum ClassifierModel {
    /// A linear model.
    Linear(Box<linear::LinearModel>),
    /// A mean of embeddings with a linear layer.
    FastText(Box<fasttext::FastTextModel>),
    /// A model of the fastText program.
    Program(Box<bin::BinModel>),
}

impl Classifier {
    /// The classifier of a model.
    pub fn new(model: ClassifierModel) -> Self {
        let names: Vec<Vec<u8>> = match &model {
            ClassifierModel::Linear(model) => owned(model.labels()),
            ClassifierModel::FastText(model) => owned(model.dictionary().labels()),
            ClassifierModel::Program(model) => {
                // The fastText program stores labels with their prefix.
                let bare = |name: Vec<u8>| {
                    name.strip_prefix(LABEL_PREFIX).map_or_else(|| name.clone(), <[u8]>::to_vec)
                };
                let labels = 0..model.entries().n_labels() as u32;
                labels.map(|label| bare(model.entries().label(label))).collect()
            }
        };
        let labels = match &model {
            ClassifierModel::Linear(model) => {
                Labels::of(model.dictionary()).with_choice(model.stored().choice)
            }
            ClassifierModel::FastText(model) => Labels::of(model.dictionary()).with_choice(model.choice()),
            ClassifierModel::Program(_) => {
                let shown = names.iter().map(|name| String::from_utf8_lossy(name).into_owned());
                Labels::new(shown.collect(), &Names::default())
            }
        };
        Self { model, labels, numbers: names.into_iter().zip(0..).collect() }
    }

    /// Sets calibration and threshold of a model that was trained.
    pub fn choose(&mut self, choice: Choice) {
        match &mut self.model {
            ClassifierModel::Linear(model) => model.choose(choice),
            ClassifierModel::FastText(model) => model.choose(choice),
            ClassifierModel::Program(_) => {}
        }
        self.labels = self.labels.clone().with_choice(choice);
    }

    /// Reads a model folder, or a file of the fastText program.
    pub fn read(path: &Path) -> Result<Self> {
        Ok(Self::new(match path.is_dir() {
            true => match classifiers::files::read(path)? {
                classifiers::Model::Linear(model) => ClassifierModel::Linear(model),
                classifiers::Model::FastText(model) => ClassifierModel::FastText(model),
            },
            false => ClassifierModel::Program(Box::new(bin::BinModel::read(path)?)),
        }))
    }

    /// Writes the folder of a model that was trained.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let Some(stored) = self.stored() else {
            return Err(Error::internal(&"a model of another program has no folder"));
        };
        Ok(classifiers::files::write(folder, stored)?)
    }

    /// The model, unless it is one of the fastText program.
    pub fn stored(&self) -> Option<ModelRef<'_>> {
        match &self.model {
            ClassifierModel::Linear(model) => Some(ModelRef::Linear(model)),
            ClassifierModel::FastText(model) => Some(ModelRef::FastText(model)),
            ClassifierModel::Program(_) => None,
        }
    }

    /// The model.
    pub fn model(&self) -> &ClassifierModel {
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
            ClassifierModel::Linear(model) => model.stored().words,
            ClassifierModel::FastText(model) => model.words(),
            ClassifierModel::Program(_) => Words::Spaces,
        }
    }

    /// Maximum length of n-grams in words.
    pub fn ngrams(&self) -> usize {
        match &self.model {
            ClassifierModel::Linear(model) => model.stored().settings.ngrams as usize,
            ClassifierModel::FastText(model) => model.features().ngrams as usize,
            ClassifierModel::Program(model) => model.args().features().ngrams as usize,
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
            ClassifierModel::Linear(model) => model.probabilities(text, &mut scratch.linear, probabilities),
            ClassifierModel::FastText(model) => {
                probabilities.clear();
                probabilities.extend_from_slice(model.scores(text, &mut scratch.fasttext));
            }
            ClassifierModel::Program(model) => {
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
            ClassifierModel::Linear(_) => true,
            ClassifierModel::FastText(model) => self.has_word(text, model.features(), model.dictionary()),
            ClassifierModel::Program(model) => {
                self.has_word(text, model.args().features(), model.entries().dictionary())
            }
        };
        self.probabilities(text)?;
        if let ClassifierModel::Linear(_) = self.classifier.model {
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
            ClassifierModel::Linear(model) => {
                // One at the end of a text is the same n-gram as that within it.
                let found = model.explain(text, label).into_iter().map(|mut of| {
                    if of.is_ending {
                        of.ngram.truncate(of.ngram.len() - AT_THE_END.len());
                    }
                    (of.ngram, f64::from(of.weight))
                });
                found.collect()
            }
            ClassifierModel::FastText(model) => of_floats(model.explain(text, label)),
            ClassifierModel::Program(model) => program::explain(model, text, label),
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
