//! Embedding → LSTM layers: the base of several model families.
//!
//! B: rows of a share; T: tokens of its longest row; E: embedding dimension; H: hidden size; D: states of both
//! directions, concatenated (H with one direction).
//!
//! Padding after a row's last token never changes its result: the state is read at the last token and does not depend
//! on later tokens. The backward direction starts at the row's last token.

use std::path::Path;

use runs::recipe::{Dropout, LstmSettings};
use tch::{Device, Kind, Tensor};

use super::parameters::{Parameters, normal, uniform};
use super::weights_file::{self, Expected};
use crate::error::Result;

/// An LSTM on token embeddings. It contains all weights of the model, including those of the layers after the
/// LSTM.
#[derive(Debug)]
pub struct Lstm {
    settings: LstmSettings,
    parameters: Parameters,
    /// Per layer and direction, the indices of input weights, state weights, input biases and state biases.
    layers: Vec<Vec<[usize; 4]>>,
}

impl Lstm {
    /// Index of the embedding.
    pub(crate) const EMBEDDING: usize = 0;

    /// The sizes.
    pub fn settings(&self) -> &LstmSettings {
        &self.settings
    }

    /// All weights of the model.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// All weights of the model, mutable.
    pub fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    /// The embeddings, `[ids, E]`.
    pub fn embedding(&self) -> &Tensor {
        self.parameters.at(Self::EMBEDDING)
    }

    /// Per layer and direction, the indices of its weights.
    pub(super) fn layers(&self) -> &[Vec<[usize; 4]>] {
        &self.layers
    }

    /// Whether all models with an LSTM have this weight.
    pub(super) fn has_in_common(weight: &str) -> bool {
        weight.starts_with("embedding.") || weight.starts_with("lstm.")
    }

    /// The last layer's states, `[B, T, D]`, from tokens, `[B, T]`, and lengths, `[B]`, each 1 to T. B is at least 1.
    /// Applies dropout except to tokens; masks come from PyTorch's generator.
    pub fn states(&self, tokens: &Tensor, lengths: &Tensor, dropout: Dropout) -> Result<Tensor> {
        // On a GPU, autocast computes an LSTM in float16, also if its kind is bfloat16.
        c10d::in_own_kinds(|is_in_bfloat16| {
            let kind = if is_in_bfloat16 { Kind::BFloat16 } else { self.embedding().kind() };
            self.states_of(kind, tokens, lengths, dropout)
        })?
    }

    fn states_of(&self, kind: Kind, tokens: &Tensor, lengths: &Tensor, dropout: Dropout) -> Result<Tensor> {
        let states = Tensor::f_embedding(self.embedding(), tokens, -1, false, false)?; // [B, T, E]
        let mut states = drop(states, dropout.embedding)?.f_to_kind(kind)?;
        let n_rows = tokens.size()[0];
        let start = Tensor::f_zeros([1, n_rows, self.settings.hidden], (kind, states.device()))?;
        let start = [start.shallow_clone(), start];
        // Only a training needs what cuDNN keeps for the backward pass.
        let trains = states.requires_grad();
        let read = |states: &Tensor, places: &[usize; 4]| -> Result<Tensor> {
            let weights = self.weights(places, kind)?;
            Ok(states.f_lstm(&start, &weights, true, 1, 0.0, trains, false, true)?.0) // [B, T, H]
        };
        for (layer, directions) in self.layers.iter().enumerate() {
            if layer > 0 {
                states = drop(states, dropout.layers)?;
            }
            states = match &directions[..] {
                [forward, backward] => {
                    let from_end = reversed(&read(&reversed(&states, lengths)?, backward)?, lengths)?;
                    Tensor::f_cat(&[read(&states, forward)?, from_end], 2)?
                }
                directions => read(&states, &directions[0])?,
            };
        }
        Ok(states)
    }

    /// The weights of a layer and direction in this kind.
    fn weights(&self, places: &[usize; 4], kind: Kind) -> Result<Vec<Tensor>> {
        let weights = places.iter().map(|&place| Ok(self.parameters.at(place).f_to_kind(kind)?));
        let weights = weights.collect::<Result<Vec<_>>>()?;
        if kind != self.embedding().kind() {
            self.flatten(&weights)?;
        }
        Ok(weights)
    }

    /// Moves weights that cuDNN reads together into one buffer. Otherwise, each of its calls copies them and warns.
    fn flatten(&self, weights: &[Tensor]) -> Result<()> {
        /// CUDNN_LSTM
        const MODE: i64 = 2;
        if weights[0].device() == Device::Cpu {
            return Ok(());
        }
        let (inputs, hidden) = (weights[0].size()[1], self.settings.hidden);
        tch::no_grad(|| {
            let _buffer = Tensor::f_internal_cudnn_rnn_flatten_weight(
                weights, 4, inputs, MODE, hidden, 0, 1, true, false,
            )?;
            Ok(())
        })
    }

    /// A linear layer, by the indices of its weights and biases.
    pub(super) fn dense(&self, places: [usize; 2], inputs: &Tensor) -> Result<Tensor> {
        let [weights, biases] = places.map(|place| self.parameters.at(place));
        Ok(inputs.f_linear(weights, Some(biases))?)
    }

    /// From `[B, T, D]` to `[B, D]`: per direction, the state after the whole row.
    pub(super) fn last_states(&self, states: &Tensor, lengths: &Tensor) -> Result<Tensor> {
        let hidden = self.settings.hidden;
        let forward = at_last_tokens(&states.f_narrow(2, 0, hidden)?, lengths)?;
        if !self.settings.bidirectional {
            return Ok(forward);
        }
        let backward = states.f_select(1, 0)?.f_narrow(1, hidden, hidden)?;
        Ok(Tensor::f_cat(&[forward, backward], 1)?)
    }
}

/// How random weights are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Standard deviation of the embeddings.
    pub embedding_std: f64,
}

/// A weight of a model.
struct Weight {
    name: String,
    shape: Vec<i64>,
    first: First,
}

/// Initial values of a weight.
enum First {
    /// Normal distribution, except for row 0 (padding), which is zero.
    Embedding,
    /// Uniform within this bound.
    Uniform(f64),
    Zeros,
}

impl Weight {
    fn draw(&self, embedding_std: f64, place: (Kind, Device)) -> Result<Tensor> {
        Ok(match self.first {
            First::Embedding => {
                let words = normal(&self.shape, embedding_std, place)?;
                let _ = words.f_select(0, 0)?.f_zero_()?;
                words
            }
            First::Uniform(bound) => uniform(&self.shape, bound, place)?,
            First::Zeros => Tensor::f_zeros(&self.shape[..], place)?,
        })
    }
}

/// The weights of a model and their indices: those of the LSTM, followed by those of a family.
pub(super) struct Layout {
    settings: LstmSettings,
    weights: Vec<Weight>,
    layers: Vec<Vec<[usize; 4]>>,
}

impl Layout {
    /// The weights of the LSTM.
    pub(super) fn of(settings: LstmSettings) -> Self {
        let (hidden, embedded) = (settings.hidden, settings.embedding);
        let mut layout = Self { settings, weights: Vec::new(), layers: Vec::new() };
        layout.add("embedding.weight".to_owned(), &[layout.settings.ids, embedded], First::Embedding);
        let directions: &[&str] = if layout.settings.bidirectional { &["", "_reverse"] } else { &[""] };
        let bound = 1.0 / (hidden as f64).sqrt();
        for layer in 0..layout.settings.layers {
            let inputs = if layer == 0 { embedded } else { layout.n_states() };
            let of_direction = directions.iter().map(|direction| {
                let mut weight = |name: &str, shape: &[i64]| {
                    layout.add(format!("lstm.{name}_l{layer}{direction}"), shape, First::Uniform(bound))
                };
                [
                    weight("weight_ih", &[4 * hidden, inputs]),
                    weight("weight_hh", &[4 * hidden, hidden]),
                    weight("bias_ih", &[4 * hidden]),
                    weight("bias_hh", &[4 * hidden]),
                ]
            });
            let of_layer = of_direction.collect();
            layout.layers.push(of_layer);
        }
        layout
    }

    /// D.
    pub(super) fn n_states(&self) -> i64 {
        self.settings.hidden * if self.settings.bidirectional { 2 } else { 1 }
    }

    /// Adds a linear layer. Returns the indices of its weights and biases.
    pub(super) fn dense(&mut self, name: &str, inputs: i64, outputs: i64) -> [usize; 2] {
        let bound = 1.0 / (inputs as f64).sqrt();
        [
            self.add(format!("{name}.weight"), &[outputs, inputs], First::Uniform(bound)),
            self.add(format!("{name}.bias"), &[outputs], First::Uniform(bound)),
        ]
    }

    /// Adds weights with initial value 0. Returns their index.
    pub(super) fn zeros(&mut self, name: &str, shape: &[i64]) -> usize {
        self.add(name.to_owned(), shape, First::Zeros)
    }

    fn add(&mut self, name: String, shape: &[i64], first: First) -> usize {
        self.weights.push(Weight { name, shape: shape.to_vec(), first });
        self.weights.len() - 1
    }

    /// Draws the weights as PyTorch does for its modules: the embedding from a normal distribution, whose standard
    /// deviation is 1 in PyTorch, with row 0, padding, at zero; the LSTM uniform within 1/√H; linear layers uniform within
    /// 1/√inputs.
    pub(super) fn draw(self, start: Start, place: (Kind, Device)) -> Result<Lstm> {
        tch::manual_seed(start.seed as i64);
        let values = self.weights.iter().map(|weight| weight.draw(start.embedding_std, place));
        let values = values.collect::<Result<Vec<_>>>()?;
        self.with(&values)
    }

    /// Reads the weights from a safetensors file. The layout, not the file, determines the names and shapes.
    pub(super) fn read(self, kind: Kind, device: Device, path: &Path) -> Result<Lstm> {
        let expected: Vec<Expected> = self
            .weights
            .iter()
            .map(|Weight { name, shape, .. }| Expected { name: name.clone(), shape: shape.clone() })
            .collect();
        let values = weights_file::read(&expected, kind, path)?;
        let values = values.iter().map(|value| Ok(value.f_to_device(device)?)).collect::<Result<Vec<_>>>()?;
        self.with(&values)
    }

    fn with(self, values: &[Tensor]) -> Result<Lstm> {
        let mut parameters = Parameters::new();
        for (weight, value) in self.weights.into_iter().zip(values) {
            parameters.add(weight.name, value);
        }
        let lstm = Lstm { settings: self.settings, parameters, layers: self.layers };
        let kind = lstm.embedding().kind();
        for places in lstm.layers.iter().flatten() {
            lstm.flatten(&lstm.weights(places, kind)?)?;
        }
        Ok(lstm)
    }
}

pub(super) fn drop(values: Tensor, share: f64) -> Result<Tensor> {
    if share == 0.0 { Ok(values) } else { Ok(values.f_dropout(share, true)?) }
}

/// Reverses each row's tokens, `[B, T, X]`; padding stays in place.
fn reversed(states: &Tensor, lengths: &Tensor) -> Result<Tensor> {
    let size = states.size();
    let positions = Tensor::f_arange(size[1], (Kind::Int64, states.device()))?.f_unsqueeze(0)?; // [1, T]
    let lengths = lengths.f_unsqueeze(1)?; // [B, 1]
    let mirrored = lengths.f_sub_scalar(1)?.f_sub(&positions)?;
    let places = mirrored.f_where_self(&positions.f_lt_tensor(&lengths)?, &positions)?; // [B, T]
    Ok(states.f_gather(1, &places.f_unsqueeze(2)?.f_expand(&size[..], false)?, false)?)
}

/// From `[B, T, X]` to `[B, X]`.
fn at_last_tokens(states: &Tensor, lengths: &Tensor) -> Result<Tensor> {
    let size = states.size();
    let last = lengths.f_sub_scalar(1)?.f_view([size[0], 1, 1])?.f_expand([size[0], 1, size[2]], false)?;
    Ok(states.f_gather(1, &last, false)?.f_squeeze_dim(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_deviation_scales_the_embeddings_alone() {
        let settings = LstmSettings { ids: 1000, embedding: 20, hidden: 16, layers: 1, bidirectional: false };
        let drawn = |embedding_std| {
            let start = Start { seed: 3, embedding_std };
            Layout::of(settings.clone()).draw(start, (Kind::Double, Device::Cpu)).unwrap()
        };
        let (standard, tenth) = (drawn(1.0), drawn(0.1));
        let pairs = standard.parameters().tensors().iter().zip(tenth.parameters().tensors());
        for (place, (standard, tenth)) in pairs.enumerate() {
            let factor = if place == Lstm::EMBEDDING { 0.1 } else { 1.0 };
            assert!(tenth.allclose(&(standard * factor), 1e-12, 0.0, false), "weight {place}");
        }
        let std = tenth.embedding().std(true).double_value(&[]);
        assert!((std - 0.1).abs() < 0.002, "{std}");
    }
}
