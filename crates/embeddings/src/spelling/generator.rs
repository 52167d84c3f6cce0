//! A trained generator: characters and weights.

use std::sync::Arc;

use kernels::{Linear, Processor, Team};

use crate::spelling::characters::Characters;
use crate::spelling::engine::Engine;
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
        let ids: Vec<Vec<i64>> = words.map(|word| self.characters.ids(word)).collect();
        vectors(&mut Engine::new(self.weights.sizes(), &team), &self.weights, ids.iter().map(Vec::as_slice))
    }

    /// The vector of a word.
    pub fn vector(&self, word: &[u8]) -> Vec<f32> {
        // One thread is the caller's.
        self.vectors(std::iter::once(word), 1)
    }
}

/// The vectors `[words, D]` of words by their ids.
pub(crate) fn vectors<'a>(
    engine: &mut Engine,
    weights: &Weights,
    words: impl ExactSizeIterator<Item = &'a [i64]>,
) -> Vec<f32> {
    let dim = weights.sizes().dim;
    let mut all = Vec::with_capacity(words.len() * dim);
    let words: Vec<&[i64]> = words.collect();
    for words in words.chunks(WORDS_TOGETHER) {
        let padded = engine.vectors(weights, words.iter().copied());
        for vector in padded.chunks_exact(Linear::stride(dim)) {
            all.extend_from_slice(&vector[..dim]);
        }
    }
    all
}

pub(crate) fn team(n_threads: usize) -> Arc<Team> {
    Arc::new(Team::new(n_threads, Processor::best()))
}
