//! The sentiment classifier: LSTM → pooling → linear → ReLU → output, and n-grams if it has a [`Wide`] part. Also its
//! predictions and evaluation.
//!
//! B: rows of a share; T: tokens of its longest row; D: states of both directions; O: outputs.

mod answers;
mod choice;
mod evaluate;
pub mod explain;
pub(crate) mod kernels;
pub mod loss;
pub mod onnx;
pub mod predict;
mod wide;

use std::path::Path;

use runs::recipe::{ClassifierSettings, Dropout, LstmSettings, Pool, Recipe};
use tch::{Device, Kind, Tensor};

pub use self::answers::Answers;
pub use self::choice::choose;
pub use self::evaluate::{
    EvaluatedRows, EvaluatedTexts, Evaluation, Truth, evaluate, evaluate_rows, evaluate_texts,
};
pub use self::kernels::unsupported;
use self::loss::row_losses;
pub use self::wide::{Head, Wide};
use super::lstm::{Layout, Lstm, Start, drop};
use super::share::{Share, Weighed, in_precision, kind_of};
use crate::error::Result;
use crate::inputs::Targets;

/// The model.
#[derive(Debug)]
pub struct Classifier {
    lstm: Lstm,
    settings: ClassifierSettings,
    places: Places,
    wide: Option<Box<Wide>>,
}

/// Indices of the weights after the LSTM: weights and biases of each linear layer.
#[derive(Clone, Copy, Debug)]
struct Places {
    linear: [usize; 2],
    output: [usize; 2],
}

impl Classifier {
    /// A classifier with random weights.
    pub fn new(
        lstm: &LstmSettings,
        settings: ClassifierSettings,
        start: Start,
        place: (Kind, Device),
    ) -> Result<Self> {
        let (layout, places) = layout(lstm, settings);
        Ok(Self { lstm: layout.draw(start, place)?, settings, places, wide: None })
    }

    /// A classifier with the weights of a safetensors file.
    pub(super) fn read(
        lstm: &LstmSettings,
        settings: ClassifierSettings,
        place: (Kind, Device),
        path: &Path,
    ) -> Result<Self> {
        let (layout, places) = layout(lstm, settings);
        Ok(Self { lstm: layout.read(place.0, place.1, path)?, settings, places, wide: None })
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
    pub fn settings(&self) -> ClassifierSettings {
        self.settings
    }

    /// The n-grams, if it has any.
    pub fn wide(&self) -> Option<&Wide> {
        self.wide.as_deref()
    }

    /// The n-grams, mutable.
    pub fn wide_mut(&mut self) -> Option<&mut Wide> {
        self.wide.as_deref_mut()
    }

    /// Adds n-grams.
    pub fn widen(&mut self, wide: Wide) {
        self.wide = Some(Box::new(wide));
    }

    /// The outputs of the LSTM for rows, `[B, O]`, from their tokens, `[B, T]`, and their lengths, `[B]`, each 1 to T. B is at
    /// least 1. Applies dropout except to tokens; masks come from PyTorch's generator.
    pub fn forward(&self, tokens: &Tensor, lengths: &Tensor, dropout: Dropout) -> Result<Tensor> {
        let states = self.lstm.states(tokens, lengths, dropout)?;
        let pooled = match self.settings.pool {
            Pool::Last => self.lstm.last_states(&states, lengths)?, // [B, D]
            Pool::MeanMax => mean_and_maximum(&states, lengths)?,   // [B, 2D]
        };
        let head = drop(self.lstm.dense(self.places.linear, &pooled)?.f_relu()?, dropout.head)?;
        self.lstm.dense(self.places.output, &head) // [B, O]
    }

    /// The weighted sum of the losses of a share's rows.
    pub(super) fn loss(&self, share: &Share<'_>, targets: &Targets, recipe: &Recipe) -> Result<Weighed> {
        let kind = kind_of(recipe.precision);
        let forward = || self.forward(&share.tokens, &share.lengths, recipe.dropout);
        let outputs = in_precision(recipe.precision, forward)?.f_to_kind(kind)?;
        let losses = row_losses(self.settings.objective, &outputs, targets)?; // [B]
        let sum = losses.f_mul(&share.weights)?.f_sum(kind)?;
        Ok(Weighed { loss: sum.detach().f_to_kind(Kind::Double)?, gradients: sum })
    }
}

fn layout(lstm: &LstmSettings, settings: ClassifierSettings) -> (Layout, Places) {
    let mut layout = Layout::of(lstm.clone());
    let pooled = match settings.pool {
        Pool::Last => layout.n_states(),
        Pool::MeanMax => 2 * layout.n_states(),
    };
    let linear = layout.dense("linear", pooled, settings.linear);
    let output = layout.dense("output", settings.linear, settings.objective.n_outputs() as i64);
    (layout, Places { linear, output })
}

/// Pools `[B, T, D]` into `[B, 2D]`.
fn mean_and_maximum(states: &Tensor, lengths: &Tensor) -> Result<Tensor> {
    let size = states.size();
    let positions = Tensor::f_arange(size[1], (Kind::Int64, states.device()))?.f_unsqueeze(0)?; // [1, T]
    let is_padding = positions.f_ge_tensor(&lengths.f_unsqueeze(1)?)?.f_unsqueeze(2)?; // [B, T, 1]
    let sum = states.f_masked_fill(&is_padding, 0.0)?.f_sum_dim_intlist(1, false, None)?;
    let mean = sum.f_div(&lengths.f_unsqueeze(1)?.f_to_kind(states.kind())?)?;
    let maximum = states.f_masked_fill(&is_padding, f64::NEG_INFINITY)?.f_amax(1, false)?;
    Ok(Tensor::f_cat(&[mean, maximum], 1)?)
}
