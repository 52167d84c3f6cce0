//! The loss of a batch of positions, and the gradients of its vectors.
//!
//! For the vector c of a word of a window and the vectors o of the position's targets, the loss is
//! `-Σ log logistic(±c · o)`, with + for the word at the position and - for the samples.

use kernels::Team;
use kernels::simd::activation::{LOGISTIC, logistic};
use kernels::simd::{LANES_MAX, Vector};

use crate::spelling::batches::{Batch, PositionRows};

/// Targets whose scores are computed together.
const TARGETS: usize = 6;
/// The loss of one of this number of positions is computed.
const LOSS_EVERY: usize = 16;
/// Smallest probability whose logarithm is computed for the loss.
const PROBABILITY_MIN: f32 = 1e-7;

/// Gradients of a thread.
#[derive(Debug, Default)]
pub(crate) struct Gradients {
    pub(crate) of_inputs: Vec<f32>,
    pub(crate) of_outputs: Vec<f32>,
    /// Number of pairs whose loss was computed, and its sum.
    pub(crate) loss: (u64, f64),
}

/// Vectors of the distinct words of a batch, [`Vectors::stride`] apart and padded with zeros.
#[derive(Clone, Copy)]
pub(crate) struct Vectors<'a> {
    pub(crate) inputs: &'a [f32],
    pub(crate) outputs: &'a [f32],
    pub(crate) stride: usize,
}

/// Computes the gradients of the loss times `scale`. Each thread has a share of the positions; the sum is in the first
/// element of `gradients`, of which there is one per thread.
pub(crate) fn gradients(
    team: &Team,
    batch: &Batch,
    vectors: Vectors<'_>,
    scale: f32,
    gradients: &mut [Gradients],
) {
    let share = batch.positions.len().div_ceil(gradients.len()).max(1);
    let shares = batch.positions.chunks(share).chain(std::iter::repeat(&[][..]));
    let parts: Vec<_> = gradients.iter_mut().zip(shares).collect();
    team.each(parts, |(gradients, positions)| {
        for (of, values) in
            [(&mut gradients.of_inputs, vectors.inputs), (&mut gradients.of_outputs, vectors.outputs)]
        {
            of.clear();
            of.resize(values.len(), 0.0);
        }
        gradients.loss = (0, 0.0);
        add_on(team.processor(), positions, &batch.rows, vectors, scale, gradients);
    });
    let Some((sum, others)) = gradients.split_first_mut() else { return };
    for other in others {
        for (sum, other) in [(&mut sum.of_inputs, &other.of_inputs), (&mut sum.of_outputs, &other.of_outputs)]
        {
            sum.iter_mut().zip(other).for_each(|(sum, value)| *sum += value);
        }
        sum.loss = (sum.loss.0 + other.loss.0, sum.loss.1 + other.loss.1);
    }
}

kernels::simd::on_processor! {
    fn add_on(
        positions: &[PositionRows],
        rows: &[u32],
        vectors: Vectors<'_>,
        scale: f32,
        gradients: &mut Gradients,
    ) = add;
}

/// Adds the gradients of some positions.
#[inline(always)]
fn add<V: Vector>(
    positions: &[PositionRows],
    rows: &[u32],
    vectors: Vectors<'_>,
    scale: f32,
    gradients: &mut Gradients,
) {
    for (at, position) in positions.iter().enumerate() {
        let rows = &rows[position.begin..];
        let (targets, inputs) = rows[..position.n_targets + position.n_inputs].split_at(position.n_targets);
        for (number, targets) in targets.chunks(TARGETS).enumerate() {
            let mut part = TargetBlock::new(targets, number == 0);
            for &input in inputs {
                part.add::<V>(input as usize, vectors, scale, gradients);
            }
            if at % LOSS_EVERY == 0 {
                let n_pairs = if number == 0 { inputs.len() } else { 0 };
                gradients.loss = (gradients.loss.0 + n_pairs as u64, gradients.loss.1 + part.loss);
            }
        }
    }
}

/// Some targets of a position. Those behind the last one repeat it and have no gradient.
struct TargetBlock {
    rows: [usize; TARGETS],
    n: usize,
    has_word: bool,
    loss: f64,
}

impl TargetBlock {
    fn new(targets: &[u32], has_word: bool) -> Self {
        let mut rows = [targets[0] as usize; TARGETS];
        rows.iter_mut().zip(targets).for_each(|(row, &target)| *row = target as usize);
        Self { rows, n: targets.len(), has_word, loss: 0.0 }
    }

    /// Adds the gradients of a word of the window and of the targets.
    #[inline(always)]
    fn add<V: Vector>(&mut self, input: usize, vectors: Vectors<'_>, scale: f32, gradients: &mut Gradients) {
        let stride = vectors.stride;
        let word = &vectors.inputs[input * stride..][..stride];
        let mut outputs = [word; TARGETS];
        for (output, &row) in outputs.iter_mut().zip(&self.rows) {
            *output = &vectors.outputs[row * stride..][..stride];
        }
        let mut sums = [V::splat(0.0); TARGETS];
        for at in (0..stride).step_by(V::LANES) {
            let word = V::load(&word[at..]);
            for k in 0..TARGETS {
                sums[k] = word.fma(V::load(&outputs[k][at..]), sums[k]);
            }
        }
        let errors = self.errors::<V>(&sums, scale);
        let of_word = &mut gradients.of_inputs[input * stride..][..stride];
        for at in (0..stride).step_by(V::LANES) {
            let mut sum = V::load(&of_word[at..]);
            for k in 0..TARGETS {
                sum = V::load(&outputs[k][at..]).fma(V::splat(errors[k]), sum);
            }
            sum.store(&mut of_word[at..]);
        }
        for (row, &error) in self.rows[..self.n].iter().zip(&errors) {
            let of_output = &mut gradients.of_outputs[row * stride..][..stride];
            let error = V::splat(error);
            for at in (0..stride).step_by(V::LANES) {
                V::load(&word[at..]).fma(error, V::load(&of_output[at..])).store(&mut of_output[at..]);
            }
        }
    }

    /// scale · (logistic(score) - label)
    #[inline(always)]
    fn errors<V: Vector>(&mut self, sums: &[V; TARGETS], scale: f32) -> [f32; LANES_MAX] {
        let mut scores = [0.0; LANES_MAX];
        for k in 0..TARGETS {
            scores[k] = sums[k].sum();
        }
        for scores in scores.chunks_exact_mut(V::LANES) {
            logistic(V::load(scores).mul(V::splat(LOGISTIC))).store(scores);
        }
        let mut errors = [0.0; LANES_MAX];
        for k in 0..self.n {
            let is_word = self.has_word && k == 0;
            errors[k] = scale * if is_word { scores[k] - 1.0 } else { scores[k] };
            let right = if is_word { scores[k] } else { 1.0 - scores[k] };
            self.loss -= f64::from(right.max(PROBABILITY_MIN).ln());
        }
        errors
    }
}
