//! Computes the forward and the backward pass of an LSTM classifier on the CPU, in 32-bit floats, and the update
//! rules of the optimizers. The passes are several times as fast as those of a tensor library.
//!
//! The model is embedding → LSTM layers → pooling → linear → ReLU → linear, each as PyTorch defines it. An [`Engine`]
//! reads slices of weights and writes slices of gradients. It does not depend on tensors or datasets. The caller
//! passes the loss as a function of one row.
//!
//! Reasons for the speed:
//! - The first layer's matrix multiplication of inputs and weights is computed once per distinct token of a batch
//!   (`projection`). The result differs only in rounding.
//! - A tile of rows passes through all time steps and layers, forward and backward, in memory that fits the cache
//!   (`tile`). Rows are sorted by length, so no masks and no padding are needed.
//! - All sums of a matrix multiplication stay in registers, where the activation is applied to them (`products`).
//!   Larger matrices are split (`matrices`).
//!
//! [`Engine::pooled`] and [`Engine::pooled_back`] are the passes without the layers after pooling, for losses of several
//! rows; [`Linear`] is a linear layer over all rows. [`simd`] has the vectors of a processor, for these and other models.
//!
//! The assignment of rows to threads depends only on row lengths and the number of threads. Repeated calls therefore
//! give identical bits.

mod dropout;
mod engine;
mod head;
mod linear;
mod matrices;
mod model;
mod optimizer;
mod packing;
mod products;
mod projection;
pub mod simd;
mod team;
#[cfg(test)]
mod tests;
mod tile;
mod tile_row;

pub use crate::simd::Processor;
pub use dropout::{Dropout, Share};
pub use engine::{Engine, Passes};
pub use linear::Linear;
pub use optimizer::{Adam, Sgd, adam, sgd};
pub use team::Team;

/// The sizes of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Number of token ids in the vocabulary.
    pub ids: usize,
    /// E, the embedding dimension.
    pub embedding: usize,
    /// H, the hidden size: a multiple of [`Sizes::HIDDEN_MULTIPLE`].
    pub hidden: usize,
    /// Number of LSTM layers, at least 1.
    pub layers: usize,
    /// D, the size of the linear layer.
    pub linear: usize,
    /// O, the outputs per row.
    pub outputs: usize,
    /// Pooling of the last layer's states.
    pub pool: Pool,
}

impl Sizes {
    /// The hidden size must be a multiple of this.
    pub const HIDDEN_MULTIPLE: usize = crate::simd::LANES_MAX;

    /// P, the size of a row's pooled vector.
    pub fn pooled(&self) -> usize {
        match self.pool {
            Pool::Last => self.hidden,
            Pool::MeanMax => 2 * self.hidden,
        }
    }

    /// The number of elements of each parameter.
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

    /// Whether kernels exist for these sizes.
    pub fn is_supported(&self) -> bool {
        self.hidden > 0 && self.hidden.is_multiple_of(Self::HIDDEN_MULTIPLE) && self.layers > 0
    }
}

/// Pooling of hidden states into one vector per row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// The state after the last token.
    Last,
    /// The mean and the maximum of the states over all tokens, concatenated.
    MeanMax,
}

/// A model's weights or their gradients, in PyTorch's layout.
#[derive(Clone, Debug)]
pub struct Parameters<T> {
    /// `[ids, E]`
    pub embedding: T,
    /// Per layer: input weights `[4H, E or H]`, state weights `[4H, H]`, input biases `[4H]` and state biases `[4H]`.
    pub layers: Vec<[T; 4]>,
    /// Weights, `[D, H or 2H]`, and biases, `[D]`.
    pub linear: [T; 2],
    /// Weights, `[O, D]`, and biases, `[O]`.
    pub output: [T; 2],
}

impl<T> Parameters<T> {
    /// Applies a function to each parameter.
    pub fn map<U>(self, mut to: impl FnMut(T) -> U) -> Parameters<U> {
        Parameters {
            embedding: to(self.embedding),
            layers: self.layers.into_iter().map(|layer| layer.map(&mut to)).collect(),
            linear: self.linear.map(&mut to),
            output: self.output.map(&mut to),
        }
    }

    /// All parameters, in the order of the fields.
    pub fn all(self) -> Vec<T> {
        let mut all = Vec::new();
        self.map(|one| all.push(one));
        all
    }
}

impl Parameters<Vec<f32>> {
    /// Shared slices of all parameters.
    pub fn views(&self) -> Parameters<&[f32]> {
        Parameters {
            embedding: &self.embedding[..],
            layers: self.layers.iter().map(|layer| layer.each_ref().map(|one| &one[..])).collect(),
            linear: self.linear.each_ref().map(|one| &one[..]),
            output: self.output.each_ref().map(|one| &one[..]),
        }
    }

    /// Mutable slices of all parameters.
    pub fn views_mut(&mut self) -> Parameters<&mut [f32]> {
        Parameters {
            embedding: &mut self.embedding[..],
            layers: self.layers.iter_mut().map(|layer| layer.each_mut().map(|one| &mut one[..])).collect(),
            linear: self.linear.each_mut().map(|one| &mut one[..]),
            output: self.output.each_mut().map(|one| &mut one[..]),
        }
    }
}

/// Rows of tokens; each row has at least one token.
#[derive(Clone, Copy, Debug)]
pub struct TokenRows<'a> {
    /// Padded rows of `longest` tokens each. Tokens after a row's length are not read.
    pub tokens: &'a [i64],
    /// Distance between the starts of two rows.
    pub longest: usize,
    /// Number of tokens per row.
    pub lengths: &'a [i64],
}

impl<'a> TokenRows<'a> {
    /// The tokens of each row.
    pub fn iter(self) -> impl Iterator<Item = &'a [i64]> {
        self.lengths
            .iter()
            .enumerate()
            .map(move |(row, &length)| &self.tokens[row * self.longest..][..length as usize])
    }
}

/// Computes a row's loss from its index and outputs, and writes the gradient of each output.
pub type Loss<'a> = dyn Fn(usize, &[f32], &mut [f32]) -> f64 + Sync + 'a;
