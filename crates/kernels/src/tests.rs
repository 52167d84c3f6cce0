//! Compares the kernels with a plain 64-bit implementation of the model and with finite differences of its loss.

mod pooled;

use std::sync::Arc;

use crate::dropout::{Dropout, Share};
use crate::tile_row::TileRow;
use crate::{Engine, Parameters, Pool, Processor, Sizes, Team, TokenRows};

const SIZES: Sizes =
    Sizes { ids: 19, embedding: 5, hidden: 16, layers: 2, linear: 7, outputs: 2, pool: Pool::Last };

/// Pseudo-random values from -0.5 to 0.5.
fn numbers(n: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f32 / (1u64 << 24) as f32) - 0.5
    };
    (0..n).map(|_| next()).collect()
}

fn weights(sizes: &Sizes, seed: u64) -> Parameters<Vec<f32>> {
    let mut seed = seed;
    sizes.lengths().map(|n| {
        seed += 1;
        numbers(n, seed)
    })
}

/// Rows with these lengths and repeated tokens, with invalid ids as padding.
struct Texts {
    tokens: Vec<i64>,
    stride: usize,
    lengths: Vec<i64>,
}

impl Texts {
    fn new(lengths: &[i64], ids: usize) -> Self {
        let stride = lengths.iter().max().copied().unwrap_or(0) as usize + 1;
        let mut tokens = vec![-1; lengths.len() * stride];
        for (row, &length) in lengths.iter().enumerate() {
            for t in 0..length as usize {
                tokens[row * stride + t] = ((row * 31 + t * t * 7 + t) % ids) as i64;
            }
        }
        Self { tokens, stride, lengths: lengths.to_vec() }
    }

    fn rows(&self) -> TokenRows<'_> {
        TokenRows { tokens: &self.tokens, longest: self.stride, lengths: &self.lengths }
    }
}

/// The squared error of the outputs to the targets 0.3, 0.4, ….
fn squares(_row: usize, outputs: &[f32], gradients: &mut [f32]) -> f64 {
    let mut sum = 0.0;
    for (at, (output, gradient)) in outputs.iter().zip(gradients).enumerate() {
        let difference = f64::from(*output) - target(at);
        *gradient = (2.0 * difference) as f32;
        sum += difference * difference;
    }
    sum
}

fn target(output: usize) -> f64 {
    0.3 + 0.1 * output as f64
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// bias + weights · numbers
fn dense(weights: &[f64], bias: &[f64], numbers: &[f64]) -> Vec<f64> {
    let product = |row: &[f64]| row.iter().zip(numbers).map(|(weight, number)| weight * number).sum::<f64>();
    weights.chunks_exact(numbers.len()).zip(bias).map(|(row, bias)| bias + product(row)).collect()
}

/// Dropout masks of a row after a layer, `[T, H]`, as the kernels draw them.
fn layer_mask(dropout: &Dropout, row: usize, layer: usize, hidden: usize, length: usize) -> Vec<f32> {
    let mut mask = vec![1.0; hidden * length];
    if dropout.layers.is_some() {
        dropout.mask_layer(&[TileRow { row, length, slot: 0 }], hidden, layer, &mut mask);
    }
    mask
}

/// The pooled vector of a row in 64 bits, one value at a time.
fn pooled_of(
    sizes: &Sizes,
    weights: &Parameters<Vec<f64>>,
    row: usize,
    tokens: &[i64],
    dropout: &Dropout,
) -> Vec<f64> {
    let hidden = sizes.hidden;
    let embedded =
        |&token: &i64| weights.embedding[token as usize * sizes.embedding..][..sizes.embedding].to_vec();
    let mut inputs: Vec<Vec<f64>> = tokens.iter().map(embedded).collect();
    for (layer, [of_inputs, of_states, one, other]) in weights.layers.iter().enumerate() {
        let (mut state, mut cell) = (vec![0.0; hidden], vec![0.0; hidden]);
        let mut states = Vec::new();
        for input in &inputs {
            let gates = dense(of_inputs, one, input);
            let more = dense(of_states, other, &state);
            let gate =
                |number: usize, unit: usize| gates[number * hidden + unit] + more[number * hidden + unit];
            for unit in 0..hidden {
                cell[unit] =
                    sigmoid(gate(1, unit)) * cell[unit] + sigmoid(gate(0, unit)) * gate(2, unit).tanh();
                state[unit] = sigmoid(gate(3, unit)) * cell[unit].tanh();
            }
            states.push(state.clone());
        }
        if layer + 1 < sizes.layers {
            let mask = layer_mask(dropout, row, layer, hidden, tokens.len());
            for (state, mask) in states.iter_mut().zip(mask.chunks_exact(hidden)) {
                state.iter_mut().zip(mask).for_each(|(number, by)| *number *= f64::from(*by));
            }
        }
        inputs = states;
    }
    match sizes.pool {
        Pool::Last => inputs[inputs.len() - 1].clone(),
        Pool::MeanMax => {
            let of = |unit: usize| inputs.iter().map(move |state| state[unit]);
            let means = (0..hidden).map(|unit| of(unit).sum::<f64>() / inputs.len() as f64);
            means.chain((0..hidden).map(|unit| of(unit).fold(f64::NEG_INFINITY, f64::max))).collect()
        }
    }
}

/// The outputs of a row in 64 bits.
fn outputs_of(
    sizes: &Sizes,
    weights: &Parameters<Vec<f64>>,
    row: usize,
    tokens: &[i64],
    dropout: &Dropout,
) -> Vec<f64> {
    let pooled = pooled_of(sizes, weights, row, tokens, dropout);
    let mut mask = vec![1.0; sizes.linear];
    dropout.mask_head(row, &mut mask);
    let middle = dense(&weights.linear[0], &weights.linear[1], &pooled);
    let middle: Vec<f64> = middle.iter().zip(mask).map(|(one, by)| one.max(0.0) * f64::from(by)).collect();
    dense(&weights.output[0], &weights.output[1], &middle)
}

fn loss_of(sizes: &Sizes, weights: &Parameters<Vec<f64>>, texts: &Texts, dropout: &Dropout) -> f64 {
    let mut sum = 0.0;
    for (row, tokens) in texts.rows().iter().enumerate() {
        for (at, output) in outputs_of(sizes, weights, row, tokens, dropout).iter().enumerate() {
            sum += (output - target(at)).powi(2);
        }
    }
    sum
}

/// Finite-difference gradients of some elements of each weight.
fn slopes(
    sizes: &Sizes,
    weights: &Parameters<Vec<f32>>,
    texts: &Texts,
    dropout: &Dropout,
) -> Vec<Vec<(usize, f64)>> {
    const STEP: f64 = 1e-5;
    let exact: Parameters<Vec<f64>> =
        weights.clone().map(|numbers| numbers.into_iter().map(f64::from).collect());
    let n_weights = exact.clone().all().len();
    let with = |which: usize, at: usize, by: f64| {
        let mut number = 0;
        let moved = exact.clone().map(|mut numbers: Vec<f64>| {
            if number == which {
                numbers[at] += by;
            }
            number += 1;
            numbers
        });
        loss_of(sizes, &moved, texts, dropout)
    };
    let lengths: Vec<usize> = exact.clone().all().iter().map(Vec::len).collect();
    (0..n_weights)
        .map(|which| {
            (0..lengths[which])
                .step_by((lengths[which] / 40).max(1))
                .map(|at| (at, (with(which, at, STEP) - with(which, at, -STEP)) / (2.0 * STEP)))
                .collect()
        })
        .collect()
}

fn gradients(
    team: &Arc<Team>,
    sizes: &Sizes,
    weights: &Parameters<Vec<f32>>,
    texts: &Texts,
    dropout: &Dropout,
) -> (f64, Parameters<Vec<f32>>) {
    let mut gradients = sizes.lengths().map(|n| vec![0.0; n]);
    let mut engine = Engine::new(*sizes, team.clone());
    let loss = engine.train(&weights.views(), texts.rows(), dropout, &squares, &mut gradients.views_mut());
    (loss, gradients)
}

fn check(sizes: &Sizes, lengths: &[i64], dropout: &Dropout) {
    let weights = weights(sizes, 7);
    let texts = Texts::new(lengths, sizes.ids);
    let exact = weights.clone().map(|numbers| numbers.into_iter().map(f64::from).collect());
    let expected_loss = loss_of(sizes, &exact, &texts, dropout);
    let expected = slopes(sizes, &weights, &texts, dropout);
    for processor in Processor::all() {
        for n_threads in [1, 3] {
            let team = Arc::new(Team::new(n_threads, processor));
            let (loss, found) = gradients(&team, sizes, &weights, &texts, dropout);
            assert!((loss - expected_loss).abs() < 1e-6 * expected_loss, "{loss} {expected_loss}");
            for (which, (found, expected)) in found.all().iter().zip(&expected).enumerate() {
                let largest = found.iter().fold(0.0, |most, number| f32::max(most, number.abs()));
                for &(at, slope) in expected {
                    let difference = (f64::from(found[at]) - slope).abs();
                    assert!(
                        difference <= 1e-5 * f64::from(largest) + 1e-8,
                        "{processor:?} {n_threads} threads, weight {which} at {at}: {} and {slope}, of {largest}",
                        found[at]
                    );
                }
            }
        }
    }
}

#[test]
fn gradients_match_finite_differences() {
    // More rows than fit in one tile, of various lengths.
    let lengths: Vec<i64> = (0..31).map(|row| 1 + row * 5 % 9).collect();
    check(&SIZES, &lengths, &Dropout::none());
    check(&Sizes { pool: Pool::MeanMax, ..SIZES }, &[1, 4, 2, 2, 7], &Dropout::none());
    check(&Sizes { layers: 1, embedding: 33, outputs: 1, ..SIZES }, &[3], &Dropout::none());
    check(&Sizes { layers: 3, hidden: 48, linear: 1, ..SIZES }, &[3, 1, 2], &Dropout::none());
}

#[test]
fn gradients_with_dropout_match_finite_differences() {
    let dropout = Dropout { layers: Share::of(0.3), head: Share::of(0.2), seed: 9, first_row: 3 };
    check(&SIZES, &[5, 5, 4, 1, 1, 1, 1, 1], &dropout);
    check(&Sizes { layers: 3, pool: Pool::MeanMax, ..SIZES }, &[5, 3], &dropout);
}

#[test]
fn outputs_match_a_64_bit_reference() {
    let texts = Texts::new(&[1, 9, 2, 2, 5, 5, 5, 30], SIZES.ids);
    let weights = weights(&SIZES, 3);
    let exact = weights.clone().map(|numbers| numbers.into_iter().map(f64::from).collect());
    for processor in Processor::all() {
        let team = Arc::new(Team::new(2, processor));
        let found = Engine::new(SIZES, team).outputs(&weights.views(), texts.rows());
        for (row, (tokens, found)) in texts.rows().iter().zip(found.chunks_exact(SIZES.outputs)).enumerate() {
            for (found, expected) in
                found.iter().zip(outputs_of(&SIZES, &exact, row, tokens, &Dropout::none()))
            {
                assert!((f64::from(*found) - expected).abs() < 2e-6, "row {row}: {found} {expected}");
            }
        }
    }
}

#[test]
fn repeated_calls_give_identical_bits() {
    let lengths: Vec<i64> = (0..200).map(|row| 1 + row % 23).collect();
    let (texts, weights) = (Texts::new(&lengths, SIZES.ids), weights(&SIZES, 1));
    let team = Arc::new(Team::new(3, Processor::best()));
    let (loss, first) = gradients(&team, &SIZES, &weights, &texts, &Dropout::none());
    let first = first.all();
    for _ in 0..5 {
        let (again, found) = gradients(&team, &SIZES, &weights, &texts, &Dropout::none());
        assert_eq!(again.to_bits(), loss.to_bits());
        assert_eq!(found.all(), first);
    }
}

#[test]
fn nan_reaches_the_outputs() {
    let texts = Texts::new(&[3, 2], SIZES.ids);
    for processor in Processor::all() {
        for pool in [Pool::Last, Pool::MeanMax] {
            let sizes = Sizes { pool, ..SIZES };
            let mut weights = weights(&sizes, 1);
            weights.layers[0][1].fill(f32::NAN);
            let team = Arc::new(Team::new(1, processor));
            let outputs = Engine::new(sizes, team).outputs(&weights.views(), texts.rows());
            assert!(outputs.iter().all(|output| output.is_nan()), "{processor:?} {pool:?}: {outputs:?}");
        }
    }
}
