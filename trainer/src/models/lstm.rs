//! Embedding → LSTM layers, and one of two heads on their states: the sentiment classifier, pooling → linear → ReLU →
//! output, or the one that tells next words.
//!
//! B rows of a share, T tokens of its longest row, E numbers of an embedding, H of a state, D of the states of both
//! directions beside each other (H where there is one), O outputs.
//!
//! What follows a row's last token never changes its result: states are read there, and those before it depend on no
//! later one. The other direction begins at the row's last token.

use std::path::Path;

use dataset::vocabulary::UNKNOWN;
use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use super::next_word::{self, Candidates, Weighed};
use super::parameters::{Parameters, normal, uniform};
use super::weights_file::{self, Expected};
use crate::error::{Error, Result};
use crate::ffi::{numbers, numbers_mut};
use crate::limits::{self, described};

/// The sizes and choices of a model.
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
    /// Whether each layer also reads a row from its end.
    pub bidirectional: bool,
    /// What its states are for.
    pub head: Head,
}

/// What the last layer's states are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Head {
    /// What a row says.
    Classifier {
        /// What of the states goes on.
        pool: Pool,
        /// Width of the linear layer before the output.
        linear: i64,
        /// O.
        outputs: i64,
    },
    /// Which word comes next in a row.
    NextWord,
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

impl LstmSettings {
    /// Refuses sizes that no model has: the name of one, what it is, and what it may be. `ids`: those of its words.
    pub fn check(&self, ids: u64) -> std::result::Result<(), (&'static str, String, String)> {
        if u64::try_from(self.ids) != Ok(ids) {
            return Err(("ids", self.ids.to_string(), format!("{ids}, those of its vocabulary")));
        }
        let linear = match self.head {
            Head::Classifier { linear, .. } => linear,
            Head::NextWord => *limits::SIZE.start(),
        };
        for (name, size) in [("embedding", self.embedding), ("hidden", self.hidden), ("linear", linear)] {
            if !limits::SIZE.contains(&size) {
                return Err((name, size.to_string(), described(&limits::SIZE)));
            }
        }
        if i64::try_from(self.layers).is_ok_and(|layers| limits::LAYERS.contains(&layers)) {
            Ok(())
        } else {
            Err(("layers", self.layers.to_string(), described(&limits::LAYERS)))
        }
    }
}

/// The model.
#[derive(Debug)]
pub struct Lstm {
    settings: LstmSettings,
    parameters: Parameters,
    /// For each layer and direction: input weights, state weights, input biases, state biases.
    layers: Vec<Vec<[usize; 4]>>,
    head: HeadPlaces,
}

/// Where the weights of a head are: those of a linear layer and its biases.
#[derive(Debug)]
enum HeadPlaces {
    Classifier {
        pool: Pool,
        linear: [usize; 2],
        output: [usize; 2],
    },
    /// From a state to the embedding of the word that comes; and a number for each word.
    NextWord {
        linear: [usize; 2],
        words: usize,
    },
}

/// A weight that a model has.
struct Weight {
    name: String,
    shape: Vec<i64>,
    first: First,
}

/// How a weight begins.
enum First {
    /// Drawn from a normal distribution, but for row 0, padding, which is zero.
    Embedding,
    /// Drawn within a bound of 0.
    Uniform(f64),
    Zeros,
}

impl Weight {
    fn draw(&self, place: (Kind, Device)) -> Tensor {
        match self.first {
            First::Embedding => {
                let words = normal(&self.shape, place);
                let _ = words.select(0, 0).zero_();
                words
            }
            First::Uniform(bound) => uniform(&self.shape, bound, place),
            First::Zeros => Tensor::zeros(&self.shape[..], place),
        }
    }
}

/// All weights of a model, and the place of each among them.
struct Layout {
    weights: Vec<Weight>,
    layers: Vec<Vec<[usize; 4]>>,
    head: HeadPlaces,
}

impl Layout {
    /// The embeddings come first.
    const EMBEDDING: usize = 0;

    fn of(settings: &LstmSettings) -> Self {
        let mut weights = Vec::new();
        let mut add = |name: String, shape: &[i64], first: First| {
            weights.push(Weight { name, shape: shape.to_vec(), first });
            weights.len() - 1
        };
        let (hidden, embedded) = (settings.hidden, settings.embedding);
        let directions: &[&str] = if settings.bidirectional { &["", "_reverse"] } else { &[""] };
        let n_states = hidden * directions.len() as i64;
        add("embedding.weight".to_owned(), &[settings.ids, embedded], First::Embedding);

        let bound = 1.0 / (hidden as f64).sqrt();
        let mut layers = Vec::with_capacity(settings.layers);
        for layer in 0..settings.layers {
            let inputs = if layer == 0 { embedded } else { n_states };
            let of_direction = directions.iter().map(|direction| {
                let mut weight = |name: &str, shape: &[i64]| {
                    add(format!("lstm.{name}_l{layer}{direction}"), shape, First::Uniform(bound))
                };
                [
                    weight("weight_ih", &[4 * hidden, inputs]),
                    weight("weight_hh", &[4 * hidden, hidden]),
                    weight("bias_ih", &[4 * hidden]),
                    weight("bias_hh", &[4 * hidden]),
                ]
            });
            layers.push(of_direction.collect());
        }

        let mut dense = |name: &str, inputs: i64, outputs: i64| {
            let bound = 1.0 / (inputs as f64).sqrt();
            [
                add(format!("{name}.weight"), &[outputs, inputs], First::Uniform(bound)),
                add(format!("{name}.bias"), &[outputs], First::Uniform(bound)),
            ]
        };
        let head = match settings.head {
            Head::Classifier { pool, linear, outputs } => {
                let pooled = match pool {
                    Pool::Last => n_states,
                    Pool::MeanMax => 2 * n_states,
                };
                let places = dense("linear", pooled, linear);
                HeadPlaces::Classifier { pool, linear: places, output: dense("output", linear, outputs) }
            }
            Head::NextWord => {
                let linear = dense("next.linear", n_states, embedded);
                let words = add("next.words".to_owned(), &[settings.ids], First::Zeros);
                HeadPlaces::NextWord { linear, words }
            }
        };
        Self { weights, layers, head }
    }
}

impl Lstm {
    /// A model with weights drawn as PyTorch draws those of its modules: the embedding from a normal distribution
    /// with row 0, padding, at zero; the LSTM uniform within 1/√H; linear layers within 1/√inputs.
    pub fn new(settings: LstmSettings, seed: u64, kind: Kind, device: Device) -> Self {
        tch::manual_seed(seed as i64);
        let layout = Layout::of(&settings);
        let values: Vec<Tensor> = layout.weights.iter().map(|weight| weight.draw((kind, device))).collect();
        Self::with(settings, layout, &values)
    }

    /// Reads a model of these sizes from a safetensors file, which has no say in what is made.
    pub(super) fn read(settings: LstmSettings, kind: Kind, device: Device, path: &Path) -> Result<Self> {
        let layout = Layout::of(&settings);
        let expected: Vec<Expected> = layout
            .weights
            .iter()
            .map(|Weight { name, shape, .. }| Expected { name: name.clone(), shape: shape.clone() })
            .collect();
        let values = weights_file::read(&expected, kind, path)?;
        let values = values.iter().map(|value| Ok(value.f_to_device(device)?)).collect::<Result<Vec<_>>>()?;
        Ok(Self::with(settings, layout, &values))
    }

    fn with(settings: LstmSettings, layout: Layout, values: &[Tensor]) -> Self {
        let Layout { weights, layers, head } = layout;
        let mut parameters = Parameters::new();
        for (weight, value) in weights.into_iter().zip(values) {
            parameters.add(weight.name, value);
        }
        Self { settings, parameters, layers, head }
    }

    /// The sizes it was made with.
    pub fn settings(&self) -> &LstmSettings {
        &self.settings
    }

    /// Whether all models have this weight in common: that it belongs to no head.
    pub(super) fn has_in_common(weight: &str) -> bool {
        weight.starts_with("embedding.") || weight.starts_with("lstm.")
    }

    /// Its weights.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Its weights, to be changed.
    pub fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    /// Which of its weights is the embeddings.
    pub(crate) fn embedding(&self) -> usize {
        Layout::EMBEDDING
    }

    /// Its sizes, as the kernels have them, where they are such.
    pub(crate) fn kernel_sizes(&self) -> Option<kernels::Sizes> {
        let LstmSettings { ids, embedding, hidden, layers, bidirectional: false, head } = self.settings
        else {
            return None;
        };
        let Head::Classifier { pool, linear, outputs } = head else { return None };
        Some(kernels::Sizes {
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
        })
    }

    /// The numbers of its weights, which lie in a processor's memory in 32 bits.
    pub(crate) fn weights(&self) -> Result<kernels::Parameters<&[f32]>> {
        let numbers = self.parameters.tensors().iter().map(numbers).collect::<Option<Vec<_>>>();
        self.arranged(numbers.ok_or_else(not_plain)?)
    }

    /// The numbers of tensors like its weights, to be changed.
    pub(crate) fn numbers_of<'a>(
        &self,
        tensors: &'a mut [Tensor],
    ) -> Result<kernels::Parameters<&'a mut [f32]>> {
        let numbers = tensors.iter_mut().map(numbers_mut).collect::<Option<Vec<_>>>();
        self.arranged(numbers.ok_or_else(not_plain)?)
    }

    /// What there is for each of its weights, in their order, as the kernels have them.
    fn arranged<T>(&self, each: Vec<T>) -> Result<kernels::Parameters<T>> {
        let HeadPlaces::Classifier { linear, output, .. } = self.head else { return Err(not_plain()) };
        let mut each: Vec<Option<T>> = each.into_iter().map(Some).collect();
        let mut take = |place: usize| each[place].take().expect("each weight has one place in the model");
        Ok(kernels::Parameters {
            embedding: take(Layout::EMBEDDING),
            layers: self.layers.iter().map(|directions| directions[0].map(&mut take)).collect(),
            linear: linear.map(&mut take),
            output: output.map(&mut take),
        })
    }

    /// The outputs of rows, `[B, O]`, of their tokens, `[B, T]`, and their lengths, `[B]`, each 1 to T. B is 1 or more.
    /// Dropout is that of training; its masks come from PyTorch's generator.
    pub fn forward(&self, tokens: &Tensor, lengths: &Tensor, dropout: Dropout) -> Result<Tensor> {
        let HeadPlaces::Classifier { pool, linear, output } = self.head else { return Err(other_head()) };
        let states = self.states(tokens, lengths, dropout)?;
        let pooled = match pool {
            Pool::Last => self.last_states(&states, lengths)?, // [B, D]
            Pool::MeanMax => mean_and_maximum(&states, lengths)?, // [B, 2D]
        };
        let head = drop(self.dense(linear, &pooled)?.f_relu()?, dropout.head)?;
        self.dense(output, &head) // [B, O]
    }

    /// The weighted sum of rows' losses, a row's weights being `[B]`: each is the mean loss of its words from the second
    /// on, told from the candidates by what stands before it; 0 for a row of one word. The other arguments are those of
    /// [`Lstm::forward`].
    pub fn next_word_loss(
        &self,
        tokens: &Tensor,
        lengths: &Tensor,
        weights: &Tensor,
        dropout: Dropout,
        candidates: &Candidates,
    ) -> Result<Weighed> {
        let HeadPlaces::NextWord { linear, words } = self.head else { return Err(other_head()) };
        let states = self.states(tokens, lengths, dropout)?;
        let pairs = next_word::Pairs::of(tokens, lengths)?;
        let expected = drop(self.dense(linear, &pairs.befores(&states)?)?, dropout.head)?; // [N, E]
        let [embedding, biases] = [Layout::EMBEDDING, words].map(|place| self.parameters.at(place));
        next_word::loss(&expected, &pairs, &pairs.weights(weights)?, embedding, biases, candidates)
    }

    /// The last layer's states, `[B, T, D]`.
    fn states(&self, tokens: &Tensor, lengths: &Tensor, dropout: Dropout) -> Result<Tensor> {
        let tokens = drop_words(tokens, dropout.words)?;
        let embedding = self.parameters.at(Layout::EMBEDDING);
        let mut states = Tensor::f_embedding(embedding, &tokens, -1, false, false)?; // [B, T, E]
        states = drop(states, dropout.embedding)?;
        let n_rows = tokens.size()[0];
        let start = Tensor::zeros([1, n_rows, self.settings.hidden], (states.kind(), states.device()));
        let read = |states: &Tensor, places: &[usize; 4]| -> Result<Tensor> {
            let weights = places.map(|place| self.parameters.at(place));
            Ok(states.f_lstm(&[&start, &start], &weights, true, 1, 0.0, true, false, true)?.0) // [B, T, H]
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

    fn dense(&self, places: [usize; 2], inputs: &Tensor) -> Result<Tensor> {
        let [weights, biases] = places.map(|place| self.parameters.at(place));
        Ok(inputs.f_linear(weights, Some(biases))?)
    }

    /// `[B, D]` of `[B, T, D]`: for each direction, the state that has read the whole row.
    fn last_states(&self, states: &Tensor, lengths: &Tensor) -> Result<Tensor> {
        let hidden = self.settings.hidden;
        let forward = at_last_tokens(&states.f_narrow(2, 0, hidden)?, lengths)?;
        if !self.settings.bidirectional {
            return Ok(forward);
        }
        let backward = states.f_select(1, 0)?.f_narrow(1, hidden, hidden)?;
        Ok(Tensor::f_cat(&[forward, backward], 1)?)
    }
}

fn not_plain() -> Error {
    Error::Internal {
        promise: "the kernels were given a tensor that is not of plain 32-bit numbers".to_owned(),
    }
}

fn other_head() -> Error {
    Error::Internal { promise: "a model was asked for what its head is not for".to_owned() }
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

/// Each row's tokens in the other order, `[B, T, X]`; what follows a row's last stays.
fn reversed(states: &Tensor, lengths: &Tensor) -> Result<Tensor> {
    let size = states.size();
    let positions = Tensor::f_arange(size[1], (Kind::Int64, states.device()))?.f_unsqueeze(0)?; // [1, T]
    let lengths = lengths.f_unsqueeze(1)?; // [B, 1]
    let mirrored = &lengths - 1 - &positions;
    let places = mirrored.f_where_self(&positions.f_lt_tensor(&lengths)?, &positions)?; // [B, T]
    Ok(states.f_gather(1, &places.f_unsqueeze(2)?.f_expand(&size[..], false)?, false)?)
}

/// `[B, X]` of `[B, T, X]`.
fn at_last_tokens(states: &Tensor, lengths: &Tensor) -> Result<Tensor> {
    let size = states.size();
    let last = (lengths - 1).f_view([size[0], 1, 1])?.f_expand([size[0], 1, size[2]], false)?;
    Ok(states.f_gather(1, &last, false)?.f_squeeze_dim(1)?)
}

/// `[B, 2D]` of `[B, T, D]`.
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
