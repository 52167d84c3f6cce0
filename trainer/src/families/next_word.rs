//! Next-word pretraining: LSTM → linear → embedding of the next word. A classifier can start from its weights.
//!
//! B: rows of a share; T: tokens of its longest row; E: embedding dimension.

mod softmax;

use std::path::Path;

use runs::recipe::{Dropout, LstmSettings, NextWordSettings, Recipe};
use tch::{Device, Kind};

use self::softmax::{Candidates, Pairs};
use super::lstm::{Layout, Lstm, Start, drop};
use super::share::{Share, Weighed, in_precision};
use crate::error::Result;
use crate::train::step::InStep;

/// The model.
#[derive(Debug)]
pub struct NextWord {
    lstm: Lstm,
    settings: NextWordSettings,
    /// The linear layer from a state to the embedding of the next word.
    linear: [usize; 2],
    /// One bias per word.
    biases: usize,
}

impl NextWord {
    /// A model with random weights.
    pub fn new(
        lstm: &LstmSettings,
        settings: NextWordSettings,
        start: Start,
        place: (Kind, Device),
    ) -> Result<Self> {
        let (layout, linear, biases) = layout(lstm);
        Ok(Self { lstm: layout.draw(start, place)?, settings, linear, biases })
    }

    /// A model with the weights of a safetensors file.
    pub(super) fn read(
        lstm: &LstmSettings,
        settings: NextWordSettings,
        place: (Kind, Device),
        path: &Path,
    ) -> Result<Self> {
        let (layout, linear, biases) = layout(lstm);
        Ok(Self { lstm: layout.read(place.0, place.1, path)?, settings, linear, biases })
    }

    /// The LSTM, which holds all weights.
    pub fn lstm(&self) -> &Lstm {
        &self.lstm
    }

    /// The LSTM, mutable.
    pub fn lstm_mut(&mut self) -> &mut Lstm {
        &mut self.lstm
    }

    /// The settings.
    pub fn settings(&self) -> NextWordSettings {
        self.settings
    }

    /// The weighted sum of the losses of a share's rows. A row's loss is the mean over its words except the first.
    /// Each of them is predicted among the candidates, from the previous words. It is 0 for a row with one word.
    pub(super) fn loss(&self, share: &Share<'_>, recipe: &Recipe, step: InStep) -> Result<Weighed> {
        let candidates =
            Candidates::draw(self.lstm.settings().ids, self.settings.candidates, step.candidates);
        in_precision(recipe.precision, || self.loss_of(share, recipe.dropout, &candidates))
    }

    fn loss_of(&self, share: &Share<'_>, dropout: Dropout, candidates: &Candidates) -> Result<Weighed> {
        let states = self.lstm.states(&share.tokens, &share.lengths, dropout)?;
        let pairs = Pairs::of(&share.tokens, share.row_lengths)?;
        let expected = drop(self.lstm.dense(self.linear, &pairs.contexts(&states)?)?, dropout.head)?; // [N, E]
        let (weights, biases) = (pairs.weights(&share.weights)?, self.lstm.parameters().at(self.biases));
        softmax::loss(&expected, &pairs, &weights, self.lstm.embedding(), biases, candidates)
    }
}

fn layout(lstm: &LstmSettings) -> (Layout, [usize; 2], usize) {
    let mut layout = Layout::of(lstm.clone());
    let linear = layout.dense("next.linear", layout.n_states(), lstm.embedding);
    let biases = layout.zeros("next.words", &[lstm.ids]);
    (layout, linear, biases)
}
