//! The passes in two calls, and the linear layer over all rows.

use std::sync::Arc;

use super::{SIZES, Texts, dense, numbers, pooled_of, weights};
use crate::dropout::Dropout;
use crate::{Engine, Linear, Parameters, Pool, Processor, Sizes, Team};

/// No head.
const BODY: Sizes = Sizes { layers: 1, linear: 0, outputs: 0, ..SIZES };
/// Outputs of the linear layer.
const D: usize = 70;

/// A model, then the linear layer's weights `[D, P]` and biases.
#[derive(Clone)]
struct Weights<T> {
    body: Parameters<Vec<T>>,
    linear: [Vec<T>; 2],
}

impl<T: Clone> Weights<T> {
    fn all(&self) -> Vec<Vec<T>> {
        let mut all = self.body.clone().all();
        all.extend(self.linear.clone());
        all
    }
}

fn exact(weights: &Weights<f32>) -> Weights<f64> {
    let wide = |values: &Vec<f32>| values.iter().copied().map(f64::from).collect::<Vec<f64>>();
    Weights {
        body: weights.body.clone().map(|values| wide(&values)),
        linear: weights.linear.each_ref().map(wide),
    }
}

/// A loss that needs all rows: the sum of y(row) · y(next row), halved.
fn loss_of(sizes: &Sizes, weights: &Weights<f64>, texts: &Texts) -> f64 {
    let outputs: Vec<Vec<f64>> = texts
        .rows()
        .iter()
        .map(|tokens| {
            let pooled = pooled_of(sizes, &weights.body, 0, tokens, &Dropout::none());
            dense(&weights.linear[0], &weights.linear[1], &pooled)
        })
        .collect();
    let pairs = outputs.iter().zip(&outputs[1..]);
    pairs.map(|(a, b)| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>()).sum::<f64>() / 2.0
}

/// The loss and its gradients by the kernels.
fn gradients(team: &Arc<Team>, sizes: &Sizes, weights: &Weights<f32>, texts: &Texts) -> (f64, Vec<Vec<f32>>) {
    let mut engine = Engine::new(*sizes, team.clone());
    let mut linear = Linear::new(sizes.pooled(), D, team.clone());
    let pooled = engine.pooled(&weights.body.views(), texts.rows());
    let [of_linear, biases] = &weights.linear;
    let outputs = linear.forward([of_linear, biases], &pooled);
    let stride = Linear::stride(D);
    let rows: Vec<&[f32]> = outputs.chunks_exact(stride).collect();
    assert!(rows.iter().all(|row| row[D..].iter().all(|&value| value == 0.0)), "padding");
    let mut loss = 0.0;
    let mut of_outputs = vec![0.0; outputs.len()];
    for at in 1..rows.len() {
        for d in 0..D {
            loss += f64::from(rows[at - 1][d]) * f64::from(rows[at][d]) / 2.0;
            of_outputs[(at - 1) * stride + d] += rows[at][d] / 2.0;
            of_outputs[at * stride + d] += rows[at - 1][d] / 2.0;
        }
    }
    let mut of_linear = weights.linear.each_ref().map(|values| vec![0.0; values.len()]);
    let [of_weights, of_biases] = &mut of_linear;
    let of_pooled = linear.backward(&pooled, &of_outputs, [of_weights, of_biases]);
    let mut of_body = sizes.lengths().map(|n| vec![0.0; n]);
    engine.pooled_back(&of_pooled, &mut of_body.views_mut());
    (loss, Weights { body: of_body, linear: of_linear }.all())
}

#[test]
fn gradients_of_a_loss_of_all_rows_match_finite_differences() {
    const STEP: f64 = 1e-5;
    // More rows than fit in one tile, in no order of length.
    let lengths: Vec<i64> = (0..31).map(|row| 1 + row * 5 % 9).collect();
    for sizes in [BODY, Sizes { layers: 2, pool: Pool::MeanMax, hidden: 32, ..BODY }] {
        let linear = [numbers(D * sizes.pooled(), 5), numbers(D, 6)];
        let weights = Weights { body: weights(&sizes, 7), linear };
        let texts = Texts::new(&lengths, sizes.ids);
        let moved = |which: usize, at: usize, by: f64| {
            let mut moved = exact(&weights);
            let mut number = 0;
            let mut change = |values: &mut Vec<f64>| {
                if number == which {
                    values[at] += by;
                }
                number += 1;
            };
            moved.body = moved.body.map(|mut values| {
                change(&mut values);
                values
            });
            moved.linear.iter_mut().for_each(change);
            loss_of(&sizes, &moved, &texts)
        };
        let expected_loss = loss_of(&sizes, &exact(&weights), &texts);
        let places: Vec<Vec<usize>> = weights
            .all()
            .iter()
            .map(|values| (0..values.len()).step_by((values.len() / 20).max(1)).collect())
            .collect();
        let slope = |which, at| (moved(which, at, STEP) - moved(which, at, -STEP)) / (2.0 * STEP);
        let slopes: Vec<Vec<f64>> = places
            .iter()
            .enumerate()
            .map(|(which, places)| places.iter().map(|&at| slope(which, at)).collect())
            .collect();
        for processor in Processor::all() {
            for n_threads in [1, 3] {
                let team = Arc::new(Team::new(n_threads, processor));
                let (loss, found) = gradients(&team, &sizes, &weights, &texts);
                assert!((loss - expected_loss).abs() < 1e-5 * expected_loss.abs(), "{loss} {expected_loss}");
                for (which, found) in found.iter().enumerate() {
                    let largest = found.iter().fold(0.0, |most, number| f32::max(most, number.abs()));
                    for (&at, slope) in places[which].iter().zip(&slopes[which]) {
                        let difference = (f64::from(found[at]) - slope).abs();
                        assert!(
                            difference <= 2e-5 * f64::from(largest) + 1e-8,
                            "{processor:?} {n_threads} threads, weight {which} at {at}: {} and {slope}, of {largest}",
                            found[at]
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_pooled_vector_does_not_depend_on_the_other_rows() {
    let lengths: Vec<i64> = (0..40).map(|row| 1 + row * 7 % 12).collect();
    let texts = Texts::new(&lengths, BODY.ids);
    let weights = weights(&BODY, 2);
    for processor in Processor::all() {
        let team = Arc::new(Team::new(3, processor));
        let mut engine = Engine::new(BODY, team);
        let together = engine.pooled(&weights.views(), texts.rows());
        for (row, expected) in together.chunks_exact(BODY.hidden).enumerate() {
            let tokens = &texts.tokens[row * texts.stride..][..texts.stride];
            let alone = crate::TokenRows { tokens, longest: texts.stride, lengths: &lengths[row..=row] };
            assert_eq!(engine.pooled(&weights.views(), alone), expected, "row {row}, {processor:?}");
        }
    }
}
