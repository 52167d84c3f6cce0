//! What Adam (Kingma and Ba 2015) trains: the weights of a generator, or a table of vectors.

use std::sync::Arc;

use kernels::{Adam, Linear, Team};

use crate::spelling::engine::Engine;
use crate::spelling::weights::{Sizes, Weights};

/// A generator that is trained.
pub(crate) struct Learner {
    pub(crate) engine: Engine,
    pub(crate) weights: Weights,
    pub(crate) gradients: Weights,
    /// Of trainings whose optimizer is Adam.
    moments: Option<[Weights; 2]>,
    /// The first weights, from which rows differ.
    first: Option<Weights>,
}

impl Learner {
    /// Draws the weights of a generator.
    pub(crate) fn new(sizes: Sizes, seed: u64, generator: u64, team: &Arc<Team>) -> Self {
        Self {
            engine: Engine::new(&sizes, team),
            weights: Weights::draw(sizes, seed, generator),
            gradients: Weights::zeros(sizes),
            moments: None,
            first: None,
        }
    }

    /// The vectors of words.
    pub(crate) fn vectors<'a>(
        &mut self,
        words: impl ExactSizeIterator<Item = &'a [i64]> + Clone,
    ) -> Vec<f32> {
        self.engine.vectors(&self.weights, words)
    }

    /// Adds the gradients of the weights, from those of the vectors of the last call.
    pub(crate) fn back(&mut self, of_vectors: &[f32]) {
        self.engine.back(of_vectors, &mut self.gradients);
    }

    /// Updates the weights by their gradients, and sets these to 0.
    pub(crate) fn update(&mut self, team: &Team, rule: &Adam) {
        let sizes = *self.weights.sizes();
        let [means, squares] = moments(&mut self.moments, || Weights::zeros(sizes));
        let moments = means.all_mut().iter_mut().zip(squares.all_mut());
        let weights = self.weights.all_mut().iter_mut().zip(self.gradients.all_mut());
        for ((weights, gradients), (mean, square)) in weights.zip(moments) {
            kernels::adam(team, weights, gradients, [mean, square], rule);
        }
    }

    /// Number of rows of `width` values that all weights have.
    pub(crate) fn n_rows(&self, width: usize) -> usize {
        self.weights.all().iter().map(Vec::len).sum::<usize>().div_ceil(width)
    }

    /// Sets rows of the weights to the first weights plus these differences.
    pub(crate) fn write_rows(&mut self, rows: &[u32], differences: &[f32], width: usize) {
        let first = self.first.get_or_insert_with(|| self.weights.clone());
        for (&row, mut differences) in rows.iter().zip(differences.chunks_exact(width)) {
            let begin = row as usize * width;
            for (number, of_weight) in first.stretches(begin, begin + width) {
                let (part, rest) = differences.split_at(of_weight.len());
                let weights = self.weights.all_mut()[number][of_weight.clone()].iter_mut();
                let first = &first.all()[number][of_weight];
                weights
                    .zip(first)
                    .zip(part)
                    .for_each(|((weight, first), difference)| *weight = first + difference);
                differences = rest;
            }
        }
    }

    /// The gradients of rows, padded with zeros, after which all gradients are 0.
    pub(crate) fn take_gradients(&mut self, rows: &[u32], width: usize) -> Vec<f32> {
        let mut taken = Vec::with_capacity(rows.len() * width);
        for &row in rows {
            let (begin, end) = (row as usize * width, taken.len() + width);
            for (number, of_weight) in self.gradients.stretches(begin, begin + width) {
                taken.extend_from_slice(&self.gradients.all()[number][of_weight]);
            }
            taken.resize(end, 0.0);
        }
        self.gradients.all_mut().iter_mut().for_each(|gradients| gradients.fill(0.0));
        taken
    }

    /// The weights and the optimizer's state.
    pub(crate) fn state(&mut self) -> impl Iterator<Item = &mut Vec<f32>> {
        let sizes = *self.weights.sizes();
        let [means, squares] = moments(&mut self.moments, || Weights::zeros(sizes));
        [&mut self.weights, means, squares].into_iter().flat_map(Weights::all_mut)
    }
}

/// The moments, which are zeros at first. A training by another optimizer has none.
fn moments<T>(moments: &mut Option<[T; 2]>, zeros: impl Fn() -> T) -> &mut [T; 2] {
    moments.get_or_insert_with(|| [zeros(), zeros()])
}

/// A table of vectors that is trained. Only the rows of a step change.
pub(crate) struct Table {
    dim: usize,
    /// `[V, D]`
    vectors: Vec<f32>,
    /// `[V, D]` each, of trainings whose optimizer is Adam.
    moments: Option<[Vec<f32>; 2]>,
    /// Rows of vectors and moments of the last call, padded.
    rows: [Vec<f32>; 3],
}

impl Table {
    /// Zeros.
    pub(crate) fn new(n_words: usize, dim: usize) -> Self {
        Self { dim, vectors: vec![0.0; n_words * dim], moments: None, rows: Default::default() }
    }

    /// Begins the vector of a word: that of the next one, or of another word.
    pub(crate) fn begin(&mut self, word: u32) {
        let (begin, end) = (word as usize * self.dim, (word as usize + 1) * self.dim);
        for values in self.state() {
            values.resize(values.len().max(end), 0.0);
            values[begin..end].fill(0.0);
        }
    }

    /// The vectors of words, [`Linear::stride`] apart and padded with zeros.
    pub(crate) fn vectors(&mut self, words: &[u32]) -> &[f32] {
        copy_rows(&self.vectors, self.dim, words, &mut self.rows[0]);
        &self.rows[0]
    }

    /// Updates the vectors of the words of the last call, and sets their gradients to 0.
    pub(crate) fn update(&mut self, team: &Team, words: &[u32], of_vectors: &mut [f32], rule: &Adam) {
        let [means, squares] = moments(&mut self.moments, || vec![0.0; self.vectors.len()]);
        let [vectors, mean, square] = &mut self.rows;
        copy_rows(means, self.dim, words, mean);
        copy_rows(squares, self.dim, words, square);
        kernels::adam(team, vectors, of_vectors, [mean, square], rule);
        let (dim, stride) = (self.dim, Linear::stride(self.dim));
        for (rows, all) in self.rows.iter().zip([&mut self.vectors, means, squares]) {
            for (row, &word) in rows.chunks_exact(stride).zip(words) {
                all[word as usize * dim..][..dim].copy_from_slice(&row[..dim]);
            }
        }
    }

    /// Sets the vectors of words.
    pub(crate) fn write_rows(&mut self, words: &[u32], values: &[f32]) {
        for (&word, values) in words.iter().zip(values.chunks_exact(self.dim)) {
            self.vectors[word as usize * self.dim..][..self.dim].copy_from_slice(values);
        }
    }

    /// `[V, D]`
    pub(crate) fn all(&self) -> &[f32] {
        &self.vectors
    }

    /// The vectors and the optimizer's state.
    pub(crate) fn state(&mut self) -> impl Iterator<Item = &mut Vec<f32>> {
        let moments = moments(&mut self.moments, || vec![0.0; self.vectors.len()]);
        std::iter::once(&mut self.vectors).chain(moments)
    }
}

/// Copies rows of a table, [`Linear::stride`] apart and padded with zeros.
fn copy_rows(table: &[f32], dim: usize, words: &[u32], rows: &mut Vec<f32>) {
    let stride = Linear::stride(dim);
    rows.clear();
    rows.resize(words.len() * stride, 0.0);
    for (row, &word) in rows.chunks_exact_mut(stride).zip(words) {
        row[..dim].copy_from_slice(&table[word as usize * dim..][..dim]);
    }
}
