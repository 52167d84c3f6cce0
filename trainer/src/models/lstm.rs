//! The sentiment classifier: embedding → LSTM layers → pooling → linear → ReLU → output.
//!
//! B rows of a share, T tokens of its longest row, E numbers of an embedding, H of a state, O outputs.
//!
//! What follows a row's last token never changes its result: states are read there, and those before it depend on no
//! later one.

use dataset::vocabulary::UNKNOWN;
use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use super::parameters::{Parameters, normal, uniform};
use crate::error::{Error, Result};
use crate::ffi::{numbers, numbers_mut};

/// The sizes and choices of an LSTM classifier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LstmSettings {
    /// Ids, padding and the unknown word among them.
    pub ids: i64,
    /// E.
    pub embedding: i64,
    /// H.
    pub hidden: i64,
    /// LSTM layers, 1 or more.
    pub layers: usize,
    /// Width of the linear layer before the output.
    pub linear: i64,
    /// What of the last layer's states goes on.
    pub pool: Pool,
    /// O.
    pub outputs: i64,
}

/// What stands for a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pool {
    /// The state at its last token.
    #[default]
    Last,
    /// The mean and the maximum of the states at all its tokens, beside each other.
    MeanMax,
}

/// What is left out at random in training: a share of the words; and of the numbers in three places, which are set to
/// 0, the others scaled up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dropout {
    /// Of the tokens, which are read as unknown words.
    pub words: f64,
    /// Of embedded tokens.
    pub embedding: f64,
    /// Of the states between layers.
    pub layers: f64,
    /// Of what goes into the output.
    pub head: f64,
}

impl Dropout {
    /// Whether anything is ever dropped.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// The model.
#[derive(Debug)]
pub struct Lstm {
    settings: LstmSettings,
    parameters: Parameters,
    embedding: usize,
    /// For each layer: input weights, state weights, input biases, state biases.
    layers: Vec<[usize; 4]>,
    linear: [usize; 2],
    output: [usize; 2],
}

impl Lstm {
    /// A model with weights drawn as PyTorch draws those of its modules: the embedding from a normal distribution
    /// with row 0, padding, at zero; the LSTM uniform within 1/√H; linear layers within 1/√inputs.
    pub fn new(settings: LstmSettings, seed: u64, kind: Kind, device: Device) -> Self {
        tch::manual_seed(seed as i64);
        let place = (kind, device);
        let mut parameters = Parameters::new();
        let (hidden, embedded) = (settings.hidden, settings.embedding);

        let words = normal(&[settings.ids, embedded], place);
        let _ = words.select(0, 0).zero_();
        let embedding = parameters.add("embedding.weight".to_owned(), &words);

        let bound = 1.0 / (hidden as f64).sqrt();
        let mut layers = Vec::with_capacity(settings.layers);
        for layer in 0..settings.layers {
            let inputs = if layer == 0 { embedded } else { hidden };
            let mut weight = |name: &str, shape: &[i64]| {
                parameters.add(format!("lstm.{name}_l{layer}"), &uniform(shape, bound, place))
            };
            layers.push([
                weight("weight_ih", &[4 * hidden, inputs]),
                weight("weight_hh", &[4 * hidden, hidden]),
                weight("bias_ih", &[4 * hidden]),
                weight("bias_hh", &[4 * hidden]),
            ]);
        }

        let pooled = match settings.pool {
            Pool::Last => hidden,
            Pool::MeanMax => 2 * hidden,
        };
        let mut dense = |name: &str, inputs: i64, outputs: i64| {
            let bound = 1.0 / (inputs as f64).sqrt();
            [
                parameters.add(format!("{name}.weight"), &uniform(&[outputs, inputs], bound, place)),
                parameters.add(format!("{name}.bias"), &uniform(&[outputs], bound, place)),
            ]
        };
        let linear = dense("linear", pooled, settings.linear);
        let output = dense("output", settings.linear, settings.outputs);
        Self { settings, parameters, embedding, layers, linear, output }
    }

    /// The sizes it was made with.
    pub fn settings(&self) -> &LstmSettings {
        &self.settings
    }

    /// Its weights.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Its weights, to be changed.
    pub fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    /// Its sizes, as the kernels have them.
    pub(crate) fn kernel_sizes(&self) -> kernels::Sizes {
        let &LstmSettings { ids, embedding, hidden, layers, linear, pool, outputs } = &self.settings;
        kernels::Sizes {
            ids: ids as usize,
            embedding: embedding as usize,
            hidden: hidden as usize,
            layers,
            linear: linear as usize,
            outputs: outputs as usize,
            pool: match pool {
                Pool::Last => kernels::Pool::Last,
                Pool::MeanMax => kernels::Pool::MeanMax,
            },
        }
    }

    /// The numbers of its weights, which lie in a processor's memory in 32 bits.
    pub(crate) fn weights(&self) -> Result<kernels::Parameters<&[f32]>> {
        let numbers = self.parameters.tensors().iter().map(numbers).collect::<Option<Vec<_>>>();
        Ok(self.arranged(numbers.ok_or_else(not_plain)?))
    }

    /// The numbers of tensors like its weights, to be changed.
    pub(crate) fn numbers_of<'a>(
        &self,
        tensors: &'a mut [Tensor],
    ) -> Result<kernels::Parameters<&'a mut [f32]>> {
        let numbers = tensors.iter_mut().map(numbers_mut).collect::<Option<Vec<_>>>();
        Ok(self.arranged(numbers.ok_or_else(not_plain)?))
    }

    /// What there is for each of its weights, in their order.
    fn arranged<T>(&self, each: Vec<T>) -> kernels::Parameters<T> {
        let mut each: Vec<Option<T>> = each.into_iter().map(Some).collect();
        let mut take = |place: usize| each[place].take().expect("each weight has one place in the model");
        kernels::Parameters {
            embedding: take(self.embedding),
            layers: self.layers.iter().map(|places| places.map(&mut take)).collect(),
            linear: self.linear.map(&mut take),
            output: self.output.map(&mut take),
        }
    }

    /// The outputs of rows, `[B, O]`, of their tokens, `[B, T]`, and their lengths, `[B]`, each 1 to T. B is 1 or more.
    /// Dropout is that of training; its masks come from PyTorch's generator.
    pub fn forward(&self, tokens: &Tensor, lengths: &Tensor, dropout: Dropout) -> Result<Tensor> {
        let weight = |place: usize| self.parameters.at(place);
        let tokens = drop_words(tokens, dropout.words)?;
        let mut states = Tensor::f_embedding(weight(self.embedding), &tokens, -1, false, false)?; // [B, T, E]
        states = drop(states, dropout.embedding)?;
        let n_rows = tokens.size()[0];
        let start = Tensor::zeros([1, n_rows, self.settings.hidden], (states.kind(), states.device()));
        for (layer, places) in self.layers.iter().enumerate() {
            if layer > 0 {
                states = drop(states, dropout.layers)?;
            }
            let weights = places.map(weight);
            states = states.f_lstm(&[&start, &start], &weights, true, 1, 0.0, true, false, true)?.0; // [B, T, H]
        }
        let pooled = match self.settings.pool {
            Pool::Last => last_states(&states, lengths)?,         // [B, H]
            Pool::MeanMax => mean_and_maximum(&states, lengths)?, // [B, 2H]
        };
        let head = pooled.f_linear(weight(self.linear[0]), Some(weight(self.linear[1])))?.f_relu()?;
        let head = drop(head, dropout.head)?;
        Ok(head.f_linear(weight(self.output[0]), Some(weight(self.output[1])))?) // [B, O]
    }
}

fn not_plain() -> Error {
    Error::Internal {
        promise: "the kernels were given a tensor that is not of plain 32-bit numbers".to_owned(),
    }
}

/// Padding may become an unknown word too: nothing of it is read.
fn drop_words(tokens: &Tensor, share: f64) -> Result<Tensor> {
    if share == 0.0 {
        return Ok(tokens.shallow_clone());
    }
    let is_left_out = Tensor::f_rand(tokens.size(), (Kind::Float, tokens.device()))?.f_lt(share)?;
    Ok(tokens.f_masked_fill(&is_left_out, i64::from(UNKNOWN))?)
}

fn drop(values: Tensor, share: f64) -> Result<Tensor> {
    if share == 0.0 { Ok(values) } else { Ok(values.f_dropout(share, true)?) }
}

/// `[B, H]` of `[B, T, H]`.
fn last_states(states: &Tensor, lengths: &Tensor) -> Result<Tensor> {
    let size = states.size();
    let last = (lengths - 1).f_view([size[0], 1, 1])?.f_expand([size[0], 1, size[2]], false)?;
    Ok(states.f_gather(1, &last, false)?.f_squeeze_dim(1)?)
}

/// `[B, 2H]` of `[B, T, H]`.
fn mean_and_maximum(states: &Tensor, lengths: &Tensor) -> Result<Tensor> {
    let size = states.size();
    let positions = Tensor::f_arange(size[1], (Kind::Int64, states.device()))?.f_unsqueeze(0)?; // [1, T]
    let is_padding = positions.f_ge_tensor(&lengths.f_unsqueeze(1)?)?.f_unsqueeze(2)?; // [B, T, 1]
    let sum = states.f_masked_fill(&is_padding, 0.0)?.f_sum_dim_intlist(1, false, None)?;
    let mean = sum.f_div(&lengths.f_unsqueeze(1)?.f_to_kind(states.kind())?)?;
    let maximum = states.f_masked_fill(&is_padding, f64::NEG_INFINITY)?.f_amax(1, false)?;
    Ok(Tensor::f_cat(&[mean, maximum], 1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_words_that_are_left_out_is_the_one_asked_for() {
        tch::manual_seed(1);
        let tokens = Tensor::arange(10_000, (Kind::Int64, Device::Cpu)).view([100, 100]) + 2;
        let left = drop_words(&tokens, 0.3).unwrap();
        let n_unknown = left.eq(i64::from(UNKNOWN)).sum(Kind::Int64).int64_value(&[]);
        let n_same = left.eq_tensor(&tokens).sum(Kind::Int64).int64_value(&[]);
        // Five standard deviations of 46.
        assert!((n_unknown - 3_000).abs() < 230, "{n_unknown}");
        assert_eq!(n_unknown + n_same, 10_000);
        assert_eq!(drop_words(&tokens, 0.0).unwrap(), tokens);
    }
}
