//! Multiplies token embeddings by the first layer's input weights. The result does not depend on a token's position,
//! so it is computed once per distinct token of a batch, in the forward and in the backward pass.
//!
//! E: embedding dimension; H: hidden size; D: distinct tokens.

use crate::matrices::{add_products, add_row, add_rows, back_through, rows_at, with_number, zeros};
use crate::model::{Layer, Model};
use crate::products::{Columns, multiply};
use crate::simd::{Vector, on_processor};

/// The distinct tokens of some rows, in order of first occurrence.
#[derive(Default)]
pub(crate) struct Distinct {
    /// Index of each id among the distinct tokens. All are `NONE` between two calls.
    of_id: Vec<u32>,
    /// Ids of the distinct tokens.
    pub(crate) ids: Vec<u32>,
    /// For each token of all rows, the index of its distinct token.
    places: Vec<u32>,
    /// End of each row in `places`.
    ends: Vec<usize>,
}

const NONE: u32 = u32::MAX;

impl Distinct {
    pub(crate) fn new(n_ids: usize) -> Self {
        Self { of_id: vec![NONE; n_ids], ..Self::default() }
    }

    /// Panics if a token is not a valid id.
    pub(crate) fn find<'a>(&mut self, rows: impl Iterator<Item = &'a [i64]>) {
        self.ids.clear();
        self.places.clear();
        self.ends.clear();
        for row in rows {
            for &token in row {
                let place = &mut self.of_id[token as usize];
                if *place == NONE {
                    *place = self.ids.len() as u32;
                    self.ids.push(token as u32);
                }
                self.places.push(*place);
            }
            self.ends.push(self.places.len());
        }
        for &id in &self.ids {
            self.of_id[id as usize] = NONE;
        }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn of_row(&self, row: usize) -> &[u32] {
        let begin = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.places[begin..self.ends[row]]
    }
}

/// Copies the embeddings of distinct tokens, `[D, E]`, and computes their gates, `[D, 4H]`, interleaved.
#[inline(always)]
fn project<V: Vector>(
    model: &Model,
    embedding: &[f32],
    ids: &[u32],
    embedded: &mut [f32],
    projected: &mut [f32],
) {
    let (width, n_gates) = (model.embedding, 4 * model.hidden);
    for (row, &id) in embedded.chunks_exact_mut(width).zip(ids) {
        row.copy_from_slice(&embedding[id as usize * width..][..width]);
    }
    let rows = embedded.chunks(V::ROWS * width).zip(projected.chunks_mut(V::ROWS * n_gates));
    for (rows, gates) in rows {
        with_number!(rows.len() / width, R in 1 2 3 4 5 6 => project_rows::<V, R>(model, rows, gates));
    }
}

#[inline(always)]
fn project_rows<V: Vector, const R: usize>(model: &Model, rows: &[f32], gates: &mut [f32]) {
    let (width, n_gates, block_gates) = (model.embedding, 4 * model.hidden, 4 * V::LANES);
    let rows = rows_at(rows, &first_places::<R>(), width);
    let Layer { forward, biases, .. } = &model.projection;
    for (block, weights) in forward.chunks_exact(width * block_gates).enumerate() {
        let mut sums = [[V::splat(0.0); 4]; R];
        for n in 0..4 {
            let bias = V::load(&biases[block * block_gates + n * V::LANES..]);
            for sums in &mut sums {
                sums[n] = bias;
            }
        }
        multiply(&mut sums, &rows, weights);
        for r in 0..R {
            for n in 0..4 {
                sums[r][n].store(&mut gates[r * n_gates + block * block_gates + n * V::LANES..]);
            }
        }
    }
}

/// 0, 1, ….
#[inline(always)]
fn first_places<const R: usize>() -> [usize; R] {
    let mut places = [0; R];
    for (r, place) in places.iter_mut().enumerate() {
        *place = r;
    }
    places
}

/// A thread's gradient sums for the first layer's input weights.
#[derive(Default)]
pub(crate) struct ProjectionSums {
    /// Layout of [`crate::packing::forward`].
    pub(crate) weights: Vec<f32>,
    /// Interleaved.
    pub(crate) biases: Vec<f32>,
}

/// Adds other threads' gradients of projected tokens to `gradients`, `[D, 4H]`. Computes from the sum the gradients
/// of embeddings, `[D, E]`, and of the input weights.
#[inline(always)]
fn project_back<V: Vector>(
    model: &Model,
    embedded: &[f32],
    gradients: &mut [f32],
    of_others: &[&[f32]],
    embedding_gradients: &mut [f32],
    sums: &mut ProjectionSums,
) {
    let (width, n_gates) = (model.embedding, 4 * model.hidden);
    zeros(&mut sums.weights, model.projection.forward.len());
    zeros(&mut sums.biases, n_gates);
    for other in of_others {
        add_row::<V>(gradients, other);
    }
    add_rows::<V>(&mut sums.biases, gradients);
    let rows = gradients.chunks(V::ROWS * n_gates).zip(embedding_gradients.chunks_mut(V::ROWS * width));
    let weights = &model.projection.backward;
    for (gates, rows) in rows {
        with_number!(gates.len() / n_gates, R in 1 2 3 4 5 6 => {
            let gates = rows_at(gates, &first_places::<R>(), n_gates);
            back_through::<V, R>(&gates, weights, width, rows, width);
        });
    }
    let left = Columns { numbers: embedded, stride: width };
    let right = Columns { numbers: gradients, stride: n_gates };
    add_products::<V>(&mut sums.weights, left, right, gradients.len() / n_gates, 0..width, width);
}

on_processor! {
    pub(crate) fn project_on(
        model: &Model,
        embedding: &[f32],
        ids: &[u32],
        embedded: &mut [f32],
        projected: &mut [f32],
    ) = project;
    pub(crate) fn project_back_on(
        model: &Model,
        embedded: &[f32],
        gradients: &mut [f32],
        of_others: &[&[f32]],
        embedding_gradients: &mut [f32],
        sums: &mut ProjectionSums,
    ) = project_back;
}
