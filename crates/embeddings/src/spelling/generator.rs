//! A trained generator: characters and weights.

use std::sync::Arc;

use kernels::{Linear, Processor, Team};

use crate::spelling::characters::Characters;
use crate::spelling::engine::{Engine, Words};
use crate::spelling::weights::Weights;

/// Words whose states are in memory at the same time.
const WORDS_TOGETHER: usize = 1024;

/// Computes the vectors of words from their characters.
#[derive(Clone, Debug, PartialEq)]
pub struct Generator {
    characters: Characters,
    weights: Weights,
}

impl Generator {
    /// A generator.
    ///
    /// # Panics
    /// If there is not one embedding per character id, or [`kernels::Sizes::is_supported`] is false.
    pub fn new(characters: Characters, weights: Weights) -> Self {
        assert_eq!(characters.n_ids(), weights.sizes().ids, "one embedding per character id");
        assert!(weights.sizes().of_lstm().is_supported(), "kernels for {:?}", weights.sizes());
        Self { characters, weights }
    }

    /// The characters.
    pub fn characters(&self) -> &Characters {
        &self.characters
    }

    /// The weights.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// D, the dimension of the vectors.
    pub fn dim(&self) -> usize {
        self.weights.sizes().dim
    }

    /// The vectors `[words, D]` of words, by several threads. A vector does not depend on the other words.
    pub fn vectors<'a>(&self, words: impl Iterator<Item = &'a [u8]>, n_threads: usize) -> Vec<f32> {
        let team = team(n_threads);
        let mut ids = Words::default();
        for word in words {
            self.characters.ids(word, &mut ids.ids);
            ids.ends.push(ids.ids.len());
        }
        vectors(&mut Engine::new(self.weights.sizes(), &team), &self.weights, &ids)
    }

    /// The vector of a word.
    pub fn vector(&self, word: &[u8]) -> Vec<f32> {
        // One thread is the caller's.
        self.vectors(std::iter::once(word), 1)
    }
}

/// The vectors `[words, D]` of all words.
pub(crate) fn vectors(engine: &mut Engine, weights: &Weights, words: &Words) -> Vec<f32> {
    let (dim, n_words) = (weights.sizes().dim, words.ends.len());
    let mut all = Vec::with_capacity(n_words * dim);
    for first in (0..n_words).step_by(WORDS_TOGETHER) {
        let numbers = first..n_words.min(first + WORDS_TOGETHER);
        let padded = engine.vectors(weights, numbers.map(|number| words.get(number)));
        for vector in padded.chunks_exact(Linear::stride(dim)) {
            all.extend_from_slice(&vector[..dim]);
        }
    }
    all
}

pub(crate) fn team(n_threads: usize) -> Arc<Team> {
    Arc::new(Team::new(n_threads, Processor::best()))
}
