//! The passes of a generator over words.

use std::sync::Arc;

use kernels::{Linear, Team, TokenRows};

use crate::spelling::weights::{Sizes, Weights};

/// Computes vectors of words, and gradients of weights.
pub(crate) struct Engine {
    lstm: kernels::Engine,
    linear: Linear,
    /// The last states of the words of the last call, `[words, H]`.
    states: Vec<f32>,
}

impl Engine {
    pub(crate) fn new(sizes: &Sizes, team: &Arc<Team>) -> Self {
        Self {
            lstm: kernels::Engine::new(sizes.of_lstm(), Arc::clone(team)),
            linear: Linear::new(sizes.hidden, sizes.dim, Arc::clone(team)),
            states: Vec::new(),
        }
    }

    /// The vectors of words by their ids, [`Linear::stride`] apart and padded with zeros.
    pub(crate) fn vectors<'a>(
        &mut self,
        weights: &Weights,
        words: impl ExactSizeIterator<Item = &'a [i64]> + Clone,
    ) -> Vec<f32> {
        let longest = words.clone().map(<[i64]>::len).max().unwrap_or(0);
        let mut tokens = Vec::with_capacity(words.len() * longest);
        let mut lengths = Vec::with_capacity(words.len());
        for word in words {
            tokens.extend_from_slice(word);
            lengths.push(word.len() as i64);
            // Padding is not read.
            tokens.resize(lengths.len() * longest, 0);
        }
        let rows = TokenRows { tokens: &tokens, longest, lengths: &lengths };
        self.states = self.lstm.pooled(&weights.lstm(), rows);
        self.linear.forward(weights.linear(), &self.states)
    }

    /// Adds the gradients of the weights, from those of the vectors of the last call.
    pub(crate) fn back(&mut self, of_vectors: &[f32], gradients: &mut Weights) {
        let (mut of_lstm, of_linear) = gradients.parts_mut();
        let of_states = self.linear.backward(&self.states, of_vectors, of_linear);
        self.lstm.pooled_back(&of_states, &mut of_lstm);
    }
}
