//! One position of a sentence: the words of its window learn to predict the word at the position.
//!
//! With the input vectors `C` of the `m` words of the window and the output vectors `O` of the target (the word at the
//! position, label 1, and the negative samples, label 0), the step is
//!
//! ```text
//! S = C Oᵀ                           [m, TARGETS]
//! G = rate · (labels - logistic(S))  [m, TARGETS]
//! C += G O,  O += Gᵀ C               with the values before the step
//! ```
//!
//! All words of a window share the negative samples (Ji et al. 2016, "Parallelizing word2vec in shared and distributed
//! memory"). So the output vectors are read from the caches once per position, and stay in registers.

use kernels::simd::activation::{LOGISTIC, logistic};
use kernels::simd::{LANES_MAX, Row, Table, Vector};

/// Number of targets whose vectors fit into the registers together with their gradients: the word and five samples.
pub(crate) const TARGETS: usize = 6;
/// Maximum number of words per step; the words of a larger window take several steps.
pub(crate) const WORDS_MAX: usize = 32;
/// Smallest probability whose logarithm is computed for the loss.
pub(crate) const PROBABILITY_MIN: f32 = 1e-7;

/// The targets of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Targets {
    /// Rows of the output table. Those from `n` on repeat the first one.
    pub rows: [u32; TARGETS],
    /// Number of targets.
    pub n: usize,
    /// Whether the first target is the word at the position.
    pub has_word: bool,
}

/// Scores of a step, then their errors times the rate.
pub(crate) type Errors = [f32; TARGETS * WORDS_MAX];

/// Trains one position. `words` are rows of the input table, at most [`WORDS_MAX`].
#[inline(always)]
pub(crate) fn step<V: Vector>(
    input: &Table,
    output: &Table,
    words: &[u32],
    targets: &Targets,
    rate: f32,
    errors: &mut Errors,
) {
    let mut inputs = [input.row(words[0], 0); WORDS_MAX];
    for (row, &word) in inputs.iter_mut().zip(words) {
        *row = input.row(word, 0);
    }
    let inputs = &inputs[..words.len()];
    let mut outputs = [output.row(targets.rows[0], 0); TARGETS];
    for (row, &target) in outputs.iter_mut().zip(&targets.rows) {
        *row = output.row(target, 0);
    }
    score::<V>(inputs, &outputs, input.stride(), errors);
    to_errors::<V>(words.len(), targets, rate, errors);
    update::<V>(inputs, &outputs, input.stride(), errors);
}

/// S = C Oᵀ
#[inline(always)]
fn score<V: Vector>(inputs: &[Row<'_>], outputs: &[Row<'_>; TARGETS], stride: usize, scores: &mut Errors) {
    let mut word = 0;
    // With 32 registers, the sums of four words fit.
    if V::LANES == LANES_MAX {
        while inputs.len() - word >= 4 {
            score_words::<V, 4>(&inputs[word..], outputs, stride, &mut scores[word * TARGETS..]);
            word += 4;
        }
        if inputs.len() - word >= 2 {
            score_words::<V, 2>(&inputs[word..], outputs, stride, &mut scores[word * TARGETS..]);
            word += 2;
        }
    }
    while word < inputs.len() {
        score_words::<V, 1>(&inputs[word..], outputs, stride, &mut scores[word * TARGETS..]);
        word += 1;
    }
}

#[inline(always)]
fn score_words<V: Vector, const WORDS: usize>(
    inputs: &[Row<'_>],
    outputs: &[Row<'_>; TARGETS],
    stride: usize,
    scores: &mut [f32],
) {
    let mut sums = [[V::splat(0.0); TARGETS]; WORDS];
    let mut at = 0;
    while at < stride {
        let mut targets = [V::splat(0.0); TARGETS];
        for k in 0..TARGETS {
            targets[k] = V::load_row(outputs[k], at);
        }
        for w in 0..WORDS {
            let word = V::load_row(inputs[w], at);
            for k in 0..TARGETS {
                sums[w][k] = word.fma(targets[k], sums[w][k]);
            }
        }
        at += V::LANES;
    }
    for w in 0..WORDS {
        for k in 0..TARGETS {
            scores[w * TARGETS + k] = sums[w][k].sum();
        }
    }
}

/// G = rate · (labels - logistic(S))
#[inline(always)]
fn to_errors<V: Vector>(n_words: usize, targets: &Targets, rate: f32, errors: &mut Errors) {
    let n = (n_words * TARGETS).next_multiple_of(V::LANES).min(errors.len());
    for scores in errors[..n].chunks_exact_mut(V::LANES) {
        let probability = logistic(V::load(scores).mul(V::splat(LOGISTIC)));
        probability.mul(V::splat(-rate)).store(scores);
    }
    if targets.has_word {
        errors[..n_words * TARGETS].iter_mut().step_by(TARGETS).for_each(|error| *error += rate);
    }
    if targets.n < TARGETS {
        for errors in errors[..n_words * TARGETS].chunks_exact_mut(TARGETS) {
            errors[targets.n..].fill(0.0);
        }
    }
}

/// C += G O, O += Gᵀ C. A row that occurs twice among the words gets both updates.
#[inline(always)]
fn update<V: Vector>(inputs: &[Row<'_>], outputs: &[Row<'_>; TARGETS], stride: usize, errors: &Errors) {
    let mut at = 0;
    while at < stride {
        let mut targets = [V::splat(0.0); TARGETS];
        for k in 0..TARGETS {
            targets[k] = V::load_row(outputs[k], at);
        }
        let mut gradients = [V::splat(0.0); TARGETS];
        for (row, errors) in inputs.iter().zip(errors.chunks_exact(TARGETS)) {
            let word = V::load_row(*row, at);
            let mut sum = word;
            for k in 0..TARGETS {
                let error = V::splat(errors[k]);
                sum = targets[k].fma(error, sum);
                gradients[k] = word.fma(error, gradients[k]);
            }
            sum.store_row(*row, at);
        }
        // The first target last: those that repeat it have no gradient and would undo its update.
        for k in (0..TARGETS).rev() {
            targets[k].add(gradients[k]).store_row(outputs[k], at);
        }
        at += V::LANES;
    }
}

/// The mean loss of the pairs of a step, from its errors: -log of the probability of each label.
pub(crate) fn loss(errors: &Errors, n_words: usize, targets: &Targets, rate: f32) -> f32 {
    let of_word = |errors: &[f32]| -> f32 {
        let losses = errors[..targets.n].iter().enumerate().map(|(k, error)| {
            // The error is rate · (1 - p) for the word and -rate · p for a sample.
            let wrong = if k == 0 && targets.has_word { error / rate } else { -error / rate };
            -(1.0 - wrong).max(PROBABILITY_MIN).ln()
        });
        losses.sum()
    };
    errors.chunks_exact(TARGETS).take(n_words).map(of_word).sum::<f32>() / n_words as f32
}

kernels::simd::on_processor! {
    pub(crate) fn step_on(
        input: &Table,
        output: &Table,
        words: &[u32],
        targets: &Targets,
        rate: f32,
        errors: &mut Errors,
    ) = step;
}
