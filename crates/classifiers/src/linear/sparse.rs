//! Trains a linear classifier with an L1 penalty by coordinate descent on the weights.
//!
//! Minimises `sum |w_j| + C sum loss(y_i (w x_i + b))`; the bias `b` has no penalty. A step takes one n-gram and
//! minimises an upper bound of the objective: the second derivative of the loss is at most 2 for the squared hinge loss
//! and 1/4 for the logistic loss. So the objective never increases in one thread, and most weights stay zero.
//!
//! Threads take n-grams in random order and share the scores of texts without locks, as Shotgun of Bradley et al.
//! (2011).

use std::sync::atomic::AtomicU32;

use super::descent::{Threads, descend};
use super::dual::{Problem, Trained, load, store};
use super::matrix::{NgramMatrix, Row};
use super::settings::{LinearSettings, MarginLoss};

/// The texts of each row with their values.
struct Columns {
    ends: Vec<usize>,
    entries: Vec<(u32, f32)>,
    /// Upper bound of the second derivative of the objective.
    bounds: Vec<f32>,
}

/// Number of n-grams that a thread takes at once.
const TOGETHER: usize = 256;

/// Trains.
pub(super) fn train(
    problem: &Problem<'_>,
    is_positive: &impl Fn(Row<'_>) -> bool,
    settings: &LinearSettings,
    threads: Threads<'_>,
) -> Trained {
    let &Problem { matrix, factors, scales, costs, .. } = problem;
    let curvature = match settings.loss {
        MarginLoss::Logistic => 0.25,
        MarginLoss::SquaredHinge => 2.0,
    };
    let curvatures: Vec<f32> = costs.iter().map(|cost| cost * curvature).collect();
    let columns = Columns::of(matrix, factors, scales, &curvatures);
    let labels: Vec<f32> = matrix.texts().map(|text| if is_positive(text) { 1.0 } else { -1.0 }).collect();
    let score = |text| AtomicU32::new(problem.base(text).to_bits());
    let scores: Vec<AtomicU32> = (0..labels.len()).map(score).collect();
    let weights: Vec<AtomicU32> = factors.iter().map(|_| AtomicU32::new(0)).collect();
    let bias = AtomicU32::new(0);
    let slope = |text: usize| costs[text] * derivative(settings.loss, labels[text], load(&scores[text]));
    let move_bias = || {
        let change = bias_step(&scores, slope, &curvatures);
        store(&bias, load(&bias) + change);
    };
    descend(settings, threads, matrix.n_rows, TOGETHER, move_bias, |row| {
        step(row, &columns, &weights, &scores, slope);
    });
    let weights = weights.iter().zip(factors).map(|(weight, factor)| load(weight) * factor).collect();
    Trained { weights, bias: load(&bias) }
}

impl Columns {
    fn of(matrix: &NgramMatrix, factors: &[f32], scales: &[f32], curvatures: &[f32]) -> Self {
        let mut ends = vec![0; matrix.n_rows];
        for text in matrix.texts() {
            text.rows.iter().for_each(|&row| ends[row as usize] += 1);
        }
        let mut n = 0;
        for end in &mut ends {
            // The start, which becomes the end while entries are added.
            n += std::mem::replace(end, n);
        }
        let mut columns = Self { entries: vec![(0, 0.0); n], bounds: vec![0.0; matrix.n_rows], ends };
        for (number, text) in (0..).zip(matrix.texts()) {
            for (at, &row) in text.rows.iter().enumerate() {
                let row = row as usize;
                let value = text.value(at) * scales[number as usize] * factors[row];
                columns.entries[columns.ends[row]] = (number, value);
                columns.ends[row] += 1;
                columns.bounds[row] += curvatures[number as usize] * value * value;
            }
        }
        columns
    }

    fn of_row(&self, row: usize) -> &[(u32, f32)] {
        &self.entries[if row == 0 { 0 } else { self.ends[row - 1] }..self.ends[row]]
    }
}

/// Minimises the upper bound of the objective over one weight.
#[inline]
fn step(
    row: usize,
    columns: &Columns,
    weights: &[AtomicU32],
    scores: &[AtomicU32],
    slope: impl Fn(usize) -> f32,
) {
    let (entries, bound) = (columns.of_row(row), columns.bounds[row]);
    if bound == 0.0 {
        return;
    }
    let gradient: f32 = entries.iter().map(|&(text, value)| value * slope(text as usize)).sum();
    let old = load(&weights[row]);
    let free = old - gradient / bound;
    let new = free.signum() * (free.abs() - 1.0 / bound).max(0.0);
    if new != old {
        store(&weights[row], new);
        for &(text, value) in entries {
            let score = &scores[text as usize];
            store(score, load(score) + (new - old) * value);
        }
    }
}

/// Moves the bias, and returns by how much.
fn bias_step(scores: &[AtomicU32], slope: impl Fn(usize) -> f32, curvatures: &[f32]) -> f32 {
    let gradient: f64 = (0..scores.len()).map(|text| f64::from(slope(text))).sum();
    let curvature: f64 = curvatures.iter().map(|&curvature| f64::from(curvature)).sum();
    let change = -(gradient / curvature.max(f64::MIN_POSITIVE)) as f32;
    scores.iter().for_each(|score| store(score, load(score) + change));
    change
}

/// Derivative of the loss by the score.
#[inline]
fn derivative(loss: MarginLoss, label: f32, score: f32) -> f32 {
    let margin = label * score;
    match loss {
        MarginLoss::Logistic => -label / (1.0 + margin.exp()),
        MarginLoss::SquaredHinge => -2.0 * label * (1.0 - margin).max(0.0),
    }
}
