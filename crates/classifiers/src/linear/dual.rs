//! Trains a linear classifier with an L2 penalty by dual coordinate descent.
//!
//! Minimises `|w|^2 / 2 + C sum loss(y_i w x_i)` over `w`, which includes the bias as the weight of a constant 1. Each
//! text has a dual variable `a_i`, and `w = sum a_i y_i x_i`. A step minimises the dual objective over one variable:
//! squared hinge loss as in Hsieh et al. (2008), logistic loss by Newton's method as in Yu et al. (2011), here on the
//! logit `t` of `a_i / C`, which has no bounds.
//!
//! Threads take texts in random order and share the weights without locks, as PASSCoDe-Wild of Hsieh et al. (2015):
//! two threads can overwrite each other's update of a weight.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::descent::{Threads, descend};
use super::matrix::{NgramMatrix, Row};
use super::settings::{LinearSettings, MarginLoss};

/// A classifier: the score of a text is the sum of the values of its rows times `weights`, plus `bias`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trained {
    /// Includes the factors of the rows.
    pub weights: Vec<f32>,
    pub bias: f32,
}

/// A text with its dual variable.
#[derive(Debug)]
struct Dual {
    is_positive: bool,
    /// Factor of the values of all rows.
    scale: f32,
    /// Squared norm of the values, with the constant.
    square: f32,
    /// C times the weight of the text.
    cost: f32,
    /// Offset of the score.
    base: f32,
    variable: AtomicU32,
    /// Of the logistic loss.
    logit: AtomicU32,
}

/// The factor and the weight of a row, side by side in memory.
#[derive(Debug)]
struct Pair {
    factor: f32,
    weight: AtomicU32,
}

/// Number of texts that a thread takes at once.
const TOGETHER: usize = 32;

/// What a classifier is trained on.
pub(super) struct Problem<'a> {
    pub matrix: &'a NgramMatrix,
    /// The weights of rows before training.
    pub factors: &'a [f32],
    /// The factors of texts.
    pub scales: &'a [f32],
    /// The factors of their losses.
    pub costs: &'a [f32],
    /// What is added to their scores; empty if it is 0.
    pub bases: &'a [f32],
}

impl Problem<'_> {
    /// Offset of the score of a text.
    #[inline]
    pub fn base(&self, text: usize) -> f32 {
        self.bases.get(text).copied().unwrap_or(0.0)
    }
}

/// Trains. Returns also by how much each text raised its own margin.
pub(super) fn train(
    problem: &Problem<'_>,
    is_positive: &(impl Fn(Row<'_>) -> bool + Sync),
    settings: &LinearSettings,
    threads: Threads<'_>,
) -> (Trained, Vec<f32>) {
    let &Problem { matrix, factors, scales, costs, .. } = problem;
    let pairs: Vec<Pair> = factors.iter().map(|&factor| Pair { factor, weight: AtomicU32::new(0) }).collect();
    let duals = super::parallel::map(threads.n, matrix.parts.len(), |part| {
        let texts = matrix.part(part);
        let dual = texts.map(|(number, text)| {
            let scale = scales[number];
            Dual {
                is_positive: is_positive(text),
                scale,
                square: square(text, factors, scale),
                cost: costs[number],
                base: problem.base(number),
                variable: AtomicU32::new(0),
                logit: AtomicU32::new(0),
            }
        });
        dual.collect::<Vec<_>>()
    });
    let duals: Vec<Dual> = duals.into_iter().flatten().collect();
    let bias = AtomicU32::new(0);
    let step_of = |text: usize| step(matrix.text(text), &duals[text], &pairs, &bias, settings.loss);
    descend(settings, threads, matrix.n_texts(), TOGETHER, || (), step_of);
    let raised = duals.iter().map(|dual| load(&dual.variable) * dual.square).collect();
    let weights = pairs.iter().map(|pair| pair.factor * load(&pair.weight)).collect();
    (Trained { weights, bias: load(&bias) }, raised)
}

/// Squared norm of the values of a text, with the constant.
fn square(text: Row<'_>, factors: &[f32], scale: f32) -> f32 {
    let squares = |(at, &row): (usize, &u32)| (text.value(at) * factors[row as usize]).powi(2);
    let square: f32 = text.rows.iter().enumerate().map(squares).sum();
    square * scale * scale + 1.0
}

/// Minimises the dual objective over the variable of one text.
#[inline]
fn step(text: Row<'_>, dual: &Dual, pairs: &[Pair], bias: &AtomicU32, loss: MarginLoss) {
    let label = if dual.is_positive { 1.0 } else { -1.0 };
    let old_bias = load(bias);
    let margin = label * (dot(text, pairs) * dual.scale + old_bias + dual.base);
    let old = load(&dual.variable);
    let new = match loss {
        MarginLoss::SquaredHinge => hinge_step(old, margin, dual.square, dual.cost),
        MarginLoss::Logistic => {
            let (new, logit) = logistic_step(old, load(&dual.logit), margin, dual.square, dual.cost);
            store(&dual.logit, logit);
            new
        }
    };
    let change = (new - old) * label;
    if change == 0.0 {
        return;
    }
    store(&dual.variable, new);
    store(bias, old_bias + change);
    add(text, pairs, change * dual.scale);
}

/// Sum of the values of a text times factors and weights.
#[inline]
fn dot(text: Row<'_>, pairs: &[Pair]) -> f32 {
    // Four sums, because each addition waits for the one before it.
    let mut sums = [0.0; 4];
    if text.is_binary() {
        let (fours, rest) = text.rows.as_chunks::<4>();
        for rows in fours {
            for (sum, &row) in sums.iter_mut().zip(rows) {
                let pair = &pairs[row as usize];
                *sum += pair.factor * load(&pair.weight);
            }
        }
        for &row in rest {
            let pair = &pairs[row as usize];
            sums[0] += pair.factor * load(&pair.weight);
        }
    } else {
        for (at, &row) in text.rows.iter().enumerate() {
            let pair = &pairs[row as usize];
            sums[at % 4] += text.value(at) * pair.factor * load(&pair.weight);
        }
    }
    sums.iter().sum()
}

#[inline]
fn add(text: Row<'_>, pairs: &[Pair], change: f32) {
    if text.is_binary() {
        for &row in text.rows {
            let pair = &pairs[row as usize];
            store(&pair.weight, load(&pair.weight) + change * pair.factor);
        }
    } else {
        for (at, &row) in text.rows.iter().enumerate() {
            let pair = &pairs[row as usize];
            store(&pair.weight, load(&pair.weight) + change * text.value(at) * pair.factor);
        }
    }
}

/// The minimum of the dual objective of the squared hinge loss.
fn hinge_step(old: f32, margin: f32, square: f32, cost: f32) -> f32 {
    let diagonal = 0.5 / cost;
    (old - (margin - 1.0 + diagonal * old) / (square + diagonal)).max(0.0)
}

/// The minimum of the dual objective of the logistic loss, and its logit.
fn logistic_step(old: f32, logit: f32, margin: f32, square: f32, cost: f32) -> (f32, f32) {
    let [old, margin, square, cost] = [old, margin, square, cost].map(f64::from);
    // The derivative of the objective, `square (a - old) + margin + t` with `a = cost / (1 + exp(-t))`, increases
    // with t. Its root is between these bounds.
    let (mut low, mut high) = (-margin - square * (cost - old), -margin + square * old);
    let mut t = f64::from(logit).clamp(low, high);
    for _ in 0..NEWTON_MAX {
        let share = 1.0 / (1.0 + (-t).exp());
        let derivative = square * (cost * share - old) + margin + t;
        if derivative > 0.0 {
            high = t;
        } else {
            low = t;
        }
        let newton = t - derivative / (square * cost * share * (1.0 - share) + 1.0);
        let next = if (low..=high).contains(&newton) { newton } else { 0.5 * (low + high) };
        let is_close = (next - t).abs() < 1e-4;
        t = next;
        if is_close {
            break;
        }
    }
    ((cost / (1.0 + (-t).exp())) as f32, t as f32)
}

/// Maximum number of steps of Newton's method. Few texts need more than five.
const NEWTON_MAX: usize = 40;

#[inline]
pub(super) fn load(value: &AtomicU32) -> f32 {
    f32::from_bits(value.load(Relaxed))
}

#[inline]
pub(super) fn store(to: &AtomicU32, value: f32) {
    to.store(value.to_bits(), Relaxed);
}
