//! A linear layer over many rows, on several threads.
//!
//! N: rows; I: inputs; D: outputs; S: outputs padded with zeros to whole blocks of four vectors.

use std::sync::Arc;

use crate::matrices::{add_products, add_row, back_through, with_number, zeros};
use crate::packing;
use crate::products::Columns;
use crate::simd::{LANES_MAX, Vector, on_processor};
use crate::team::Team;

/// y = W x + b for each row, and its gradients. Rows of outputs are [`Linear::stride`] apart.
pub struct Linear {
    team: Arc<Team>,
    n_inputs: usize,
    n_outputs: usize,
    packed: Packed,
    sums: Vec<LinearSums>,
}

/// Weights in the layout of [`packing::panels`].
#[derive(Default)]
struct Packed {
    n_inputs: usize,
    stride: usize,
    /// `[I, S]`
    forward: Vec<f32>,
    /// `[S, I]`
    backward: Vec<f32>,
    /// `[S]`
    biases: Vec<f32>,
}

/// A thread's gradient sums.
#[derive(Default)]
struct LinearSums {
    /// `[S / 4L, I, 4L]`
    weights: Vec<f32>,
    /// `[S]`
    biases: Vec<f32>,
}

impl Linear {
    /// A layer of `n_inputs` inputs and `n_outputs` outputs.
    pub fn new(n_inputs: usize, n_outputs: usize, team: Arc<Team>) -> Self {
        let packed = Packed { n_inputs, stride: Self::stride(n_outputs), ..Packed::default() };
        let sums = (0..team.n_threads()).map(|_| LinearSums::default()).collect();
        Self { team, n_inputs, n_outputs, packed, sums }
    }

    /// S, the distance between two rows of outputs.
    pub fn stride(n_outputs: usize) -> usize {
        n_outputs.next_multiple_of(4 * LANES_MAX)
    }

    /// The outputs `[N, S]` of rows `[N, I]`, with weights `[D, I]` and biases `[D]`. Padding is 0.
    pub fn forward(&mut self, [weights, biases]: [&[f32]; 2], rows: &[f32]) -> Vec<f32> {
        let Self { n_inputs, n_outputs, ref team, ref mut packed, .. } = *self;
        let stride = packed.stride;
        let lanes = team.processor().lanes();
        let weight = |output: usize, input: usize| match output < n_outputs {
            true => weights[output * n_inputs + input],
            false => 0.0,
        };
        packing::panels(&mut packed.forward, [n_inputs, stride], lanes, |input, output| {
            weight(output, input)
        });
        packing::panels(&mut packed.backward, [stride, n_inputs], lanes, weight);
        zeros(&mut packed.biases, stride);
        packed.biases[..n_outputs].copy_from_slice(biases);
        let n_rows = rows.len() / n_inputs;
        let mut outputs = vec![0.0; n_rows * stride];
        let part = team.part(n_rows);
        let parts = rows.chunks(part * n_inputs).zip(outputs.chunks_mut(part * stride));
        team.each(parts.collect(), |(rows, outputs)| {
            forward_on(team.processor(), packed, rows, outputs);
        });
        outputs
    }

    /// Returns the gradients of rows `[N, I]` from those of their outputs, `[N, S]`, and adds those of weights and biases.
    /// The weights are those of the last call of [`Linear::forward`].
    pub fn backward(
        &mut self,
        rows: &[f32],
        of_outputs: &[f32],
        [of_weights, of_biases]: [&mut [f32]; 2],
    ) -> Vec<f32> {
        let Self { n_inputs, ref team, ref packed, ref mut sums, .. } = *self;
        let (n_rows, stride) = (rows.len() / n_inputs, packed.stride);
        let mut of_rows = vec![0.0; rows.len()];
        let part = team.part(n_rows);
        let parts = rows.chunks(part * n_inputs).zip(of_outputs.chunks(part * stride));
        let parts = parts.zip(of_rows.chunks_mut(part * n_inputs)).zip(sums.iter_mut());
        let n_parts = parts.len();
        team.each(parts.collect(), |(((rows, of_outputs), of_rows), sums)| {
            backward_on(team.processor(), packed, rows, of_outputs, of_rows, sums);
        });
        let width = 4 * team.processor().lanes();
        for sums in &self.sums[..n_parts] {
            for (output, of_weights) in of_weights.chunks_exact_mut(n_inputs).enumerate() {
                let block = &sums.weights[output / width * n_inputs * width..][..n_inputs * width];
                let of_output = block.iter().skip(output % width).step_by(width);
                of_weights.iter_mut().zip(of_output).for_each(|(sum, value)| *sum += value);
            }
            of_biases.iter_mut().zip(&sums.biases).for_each(|(sum, value)| *sum += value);
        }
        of_rows
    }
}

/// Multiplies rows by the weights of [`packing::panels`].
#[inline(always)]
fn multiply_rows<V: Vector>(
    rows: &[f32],
    n_inputs: usize,
    weights: &[f32],
    out: &mut [f32],
    n_outputs: usize,
) {
    let parts = rows.chunks(V::ROWS * n_inputs).zip(out.chunks_mut(V::ROWS * n_outputs));
    for (rows, out) in parts {
        with_number!(rows.len() / n_inputs, R in 1 2 3 4 5 6 => {
            let mut all = [&rows[..0]; R];
            for (row, of) in all.iter_mut().zip(rows.chunks_exact(n_inputs)) {
                *row = of;
            }
            back_through::<V, R>(&all, weights, n_outputs, out, n_outputs);
        });
    }
}

#[inline(always)]
fn forward<V: Vector>(packed: &Packed, rows: &[f32], outputs: &mut [f32]) {
    multiply_rows::<V>(rows, packed.n_inputs, &packed.forward, outputs, packed.stride);
    for row in outputs.chunks_exact_mut(packed.stride) {
        add_row::<V>(row, &packed.biases);
    }
}

#[inline(always)]
fn backward<V: Vector>(
    packed: &Packed,
    rows: &[f32],
    of_outputs: &[f32],
    of_rows: &mut [f32],
    sums: &mut LinearSums,
) {
    let &Packed { n_inputs, stride, .. } = packed;
    multiply_rows::<V>(of_outputs, stride, &packed.backward, of_rows, n_inputs);
    zeros(&mut sums.weights, stride * n_inputs);
    zeros(&mut sums.biases, stride);
    let left = Columns { numbers: rows, stride: n_inputs };
    let right = Columns { numbers: of_outputs, stride };
    let n_rows = rows.len() / n_inputs;
    add_products::<V>(&mut sums.weights, left, right, n_rows, 0..n_inputs, n_inputs);
    for row in of_outputs.chunks_exact(stride) {
        add_row::<V>(&mut sums.biases, row);
    }
}

on_processor! {
    fn forward_on(packed: &Packed, rows: &[f32], outputs: &mut [f32]) = forward;
    fn backward_on(
        packed: &Packed,
        rows: &[f32],
        of_outputs: &[f32],
        of_rows: &mut [f32],
        sums: &mut LinearSums,
    ) = backward;
}
