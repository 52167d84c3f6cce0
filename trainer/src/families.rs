//! The models. Each family has its own folder. [`Model`] lists the families with an LSTM, which train in
//! synchronous batches.

pub mod classifier;
mod lstm;
mod next_word;
mod parameters;
mod saving;
mod share;
mod weights_file;
pub(crate) mod words;

use std::path::Path;

use batches::Batch;
use runs::recipe::{Family, LstmSettings, Recipe};
use tch::{Device, Kind};

pub use self::classifier::Classifier;
pub use self::lstm::{Lstm, Start};
pub use self::next_word::NextWord;
pub use self::parameters::Parameters;
pub(crate) use self::parameters::{read_like, write as write_tensors};
pub use self::saving::{SavedClassifier, begin_with, read_classifier, save_model};
use self::share::Share;
pub(crate) use self::share::Weighed;
pub use self::share::kind_of;
use crate::error::Result;
use crate::inputs::Inputs;
use crate::train::step::InStep;

/// A model of any family.
#[derive(Debug)]
pub enum Model {
    /// Classifies rows.
    Classifier(Classifier),
    /// Predicts the next word at each position of a row.
    NextWord(NextWord),
}

impl Model {
    /// A model with random weights.
    pub fn new(recipe: &Recipe, device: Device) -> Result<Self> {
        let (lstm, place) = (&recipe.model, (kind_of(recipe.precision), device));
        let start = Start { seed: recipe.seed, embedding_std: recipe.embedding_std };
        Ok(match recipe.family {
            Family::Classifier(settings) => Self::Classifier(Classifier::new(lstm, settings, start, place)?),
            Family::NextWord(settings) => Self::NextWord(NextWord::new(lstm, settings, start, place)?),
        })
    }

    /// A model with the weights of a safetensors file.
    fn read(lstm: &LstmSettings, family: Family, place: (Kind, Device), path: &Path) -> Result<Self> {
        Ok(match family {
            Family::Classifier(settings) => Self::Classifier(Classifier::read(lstm, settings, place, path)?),
            Family::NextWord(settings) => Self::NextWord(NextWord::read(lstm, settings, place, path)?),
        })
    }

    /// The classifier, if it is one.
    pub fn classifier(&self) -> Option<&Classifier> {
        match self {
            Self::Classifier(model) => Some(model),
            Self::NextWord(_) => None,
        }
    }

    /// The family, with its settings.
    pub fn family(&self) -> Family {
        match self {
            Self::Classifier(model) => Family::Classifier(model.settings()),
            Self::NextWord(model) => Family::NextWord(model.settings()),
        }
    }

    /// The LSTM, which holds all weights.
    pub fn lstm(&self) -> &Lstm {
        match self {
            Self::Classifier(model) => model.lstm(),
            Self::NextWord(model) => model.lstm(),
        }
    }

    /// Its weights.
    pub fn parameters(&self) -> &Parameters {
        self.lstm().parameters()
    }

    /// Its weights, mutable.
    pub fn parameters_mut(&mut self) -> &mut Parameters {
        match self {
            Self::Classifier(model) => model.lstm_mut().parameters_mut(),
            Self::NextWord(model) => model.lstm_mut().parameters_mut(),
        }
    }

    /// The weighted sum of the losses of a share's rows, computed by PyTorch. The share must have at least one row.
    pub fn loss(&self, recipe: &Recipe, inputs: &Inputs<'_>, batch: &Batch, step: InStep) -> Result<Weighed> {
        let kind = kind_of(recipe.precision);
        let (tokens, lengths) = inputs.tokens_and_lengths(batch)?;
        let tokens = words::drop_words_of(&tokens, batch, recipe.dropout.words, step.masks)?;
        let weights = inputs.weights(batch, kind)?;
        if !recipe.dropout.is_none() {
            tch::manual_seed(step.generator as i64);
        }
        let share = Share { tokens, lengths, row_lengths: &batch.lengths, weights };
        match self {
            Self::Classifier(model) => model.loss(&share, &inputs.targets(batch)?, recipe),
            Self::NextWord(model) => model.loss(&share, recipe, step),
        }
    }
}
