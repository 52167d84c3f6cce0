//! An LSTM classifier's forward and backward pass on a processor, in 32-bit floats, several times as fast as by a
//! library of tensors; and the rules by which gradients change weights.
//!
//! embedding → LSTM layers → pooling → linear → ReLU → linear, as PyTorch defines each of them. An [`Engine`] is given
//! slices of weights and writes slices of gradients; it knows no tensors, no dataset and no loss, which it is told of a
//! row by a function.
//!
//! What makes it fast:
//! - What the first layer does to a token alone is done once for each distinct token of a batch (`projection`), exact
//!   but for rounding.
//! - Some rows go through all time steps and layers, forward and back, in memory that stays near the processor
//!   (`tile`); rows of one length, or ordered by it, need no masks and no padding.
//! - All sums of a product stay in registers (`products`), and what follows them is done there; what is larger is cut
//!   (`matrices`).
//!
//! Which rows a thread has is a function of their lengths and of the number of threads alone: the same call gives the
//! same bits.

mod activation;
mod dropout;
mod engine;
mod head;
mod matrices;
mod model;
mod optimizer;
mod packing;
mod processor;
mod products;
mod projection;
mod team;
#[cfg(test)]
mod tests;
mod tile;
mod tile_row;
mod vector;

pub use dropout::{Dropout, Share};
pub use engine::Engine;
pub use optimizer::{Adam, Sgd, adam, sgd};
pub use processor::Processor;
pub use team::Team;

/// The sizes of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Ids of tokens.
    pub ids: usize,
    /// E, the numbers of an embedding.
    pub embedding: usize,
    /// H, the units of a layer: a multiple of [`Sizes::HIDDEN_MULTIPLE`].
    pub hidden: usize,
    /// LSTM layers, 1 or more.
    pub layers: usize,
    /// D, the numbers of the linear layer.
    pub linear: usize,
    /// O, the outputs of a row.
    pub outputs: usize,
    /// What of the last layer's states goes on.
    pub pool: Pool,
}

impl Sizes {
    /// What a layer's units come in.
    pub const HIDDEN_MULTIPLE: usize = vector::LANES_MAX;

    /// P, the numbers that stand for a row.
    pub fn pooled(&self) -> usize {
        match self.pool {
            Pool::Last => self.hidden,
            Pool::MeanMax => 2 * self.hidden,
        }
    }

    /// How many numbers each of a model's parameters has.
    pub fn lengths(&self) -> Parameters<usize> {
        let gates = 4 * self.hidden;
        let layer = |layer| {
            let inputs = if layer == 0 { self.embedding } else { self.hidden };
            [gates * inputs, gates * self.hidden, gates, gates]
        };
        Parameters {
            embedding: self.ids * self.embedding,
            layers: (0..self.layers).map(layer).collect(),
            linear: [self.linear * self.pooled(), self.linear],
            output: [self.outputs * self.linear, self.outputs],
        }
    }

    /// Whether there are kernels for them.
    pub fn is_supported(&self) -> bool {
        self.hidden > 0 && self.hidden.is_multiple_of(Self::HIDDEN_MULTIPLE) && self.layers > 0
    }
}

/// What stands for a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// The state after its last token.
    Last,
    /// The mean and the maximum of the states after all its tokens, beside each other.
    MeanMax,
}

/// A model's weights, or their gradients, as PyTorch has them.
#[derive(Clone, Debug)]
pub struct Parameters<T> {
    /// `[ids, E]`
    pub embedding: T,
    /// Of each layer: weights of inputs, `[4H, E or H]`, and of states, `[4H, H]`, biases of both, `[4H]` each.
    pub layers: Vec<[T; 4]>,
    /// Weights, `[D, H or 2H]`, and biases, `[D]`.
    pub linear: [T; 2],
    /// Weights, `[O, D]`, and biases, `[O]`.
    pub output: [T; 2],
}

impl<T> Parameters<T> {
    /// Something made of each.
    pub fn map<U>(self, mut to: impl FnMut(T) -> U) -> Parameters<U> {
        Parameters {
            embedding: to(self.embedding),
            layers: self.layers.into_iter().map(|layer| layer.map(&mut to)).collect(),
            linear: self.linear.map(&mut to),
            output: self.output.map(&mut to),
        }
    }

    /// All of them, in the order in which they stand here.
    pub fn all(self) -> Vec<T> {
        let mut all = Vec::new();
        self.map(|one| all.push(one));
        all
    }
}

impl Parameters<Vec<f32>> {
    /// To be read.
    pub fn views(&self) -> Parameters<&[f32]> {
        Parameters {
            embedding: &self.embedding[..],
            layers: self.layers.iter().map(|layer| layer.each_ref().map(|one| &one[..])).collect(),
            linear: self.linear.each_ref().map(|one| &one[..]),
            output: self.output.each_ref().map(|one| &one[..]),
        }
    }

    /// To be changed.
    pub fn views_mut(&mut self) -> Parameters<&mut [f32]> {
        Parameters {
            embedding: &mut self.embedding[..],
            layers: self.layers.iter_mut().map(|layer| layer.each_mut().map(|one| &mut one[..])).collect(),
            linear: self.linear.each_mut().map(|one| &mut one[..]),
            output: self.output.each_mut().map(|one| &mut one[..]),
        }
    }
}

/// Rows of tokens, each of 1 or more.
#[derive(Clone, Copy, Debug)]
pub struct TokenRows<'a> {
    /// Row after row, each `longest` long; what is behind a row's length is not read.
    pub tokens: &'a [i64],
    /// From a row to the next.
    pub longest: usize,
    /// The tokens of each row.
    pub lengths: &'a [i64],
}

impl<'a> TokenRows<'a> {
    fn iter(self) -> impl Iterator<Item = &'a [i64]> {
        self.lengths
            .iter()
            .enumerate()
            .map(move |(row, &length)| &self.tokens[row * self.longest..][..length as usize])
    }
}

/// The loss of a row, by its place and outputs; it also gives the gradient of each output.
pub type Loss<'a> = dyn Fn(usize, &[f32], &mut [f32]) -> f64 + Sync + 'a;
