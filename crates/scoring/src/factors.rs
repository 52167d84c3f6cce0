//! Fits the factors by which the log-odds of two models are added.
//!
//! The factors are those with the highest posterior probability: the likelihood of the labels of the validation split, times
//! a normal distribution of each factor around 1/2 with the standard deviation 1. It keeps the factors finite if few rows
//! are held out and both models separate them. They are fitted by Newton's method in 64-bit floats, over the rows in the
//! order of the dataset.

use crate::calibration::{STEPS_MAX, logits, rounded};
use crate::counted::Scores;

/// The mean of the factors before any row is seen, by which the sum is the mean of both log-odds.
const PRIOR: f64 = 0.5;
/// How often a step is halved that does not reduce the loss.
const HALVES_MAX: usize = 20;

/// The factors for the scores of two models on the same rows. The scores of labels are log-odds. `weight` is the weight of
/// a label in the loss.
pub fn factors(first: &Scores, second: &Scores, weight: impl Fn(u8) -> f64) -> [f64; 2] {
    let pairs = labelled(first).into_iter().zip(labelled(second));
    let rows: Vec<Row> = pairs
        .map(|((label, first), (_, second))| Row {
            label: label.into(),
            weight: weight(label),
            logits: first.into_iter().zip(second).map(|(first, second)| [first, second]).collect(),
        })
        .collect();
    let loss = |factors: [f64; 2]| -> f64 {
        let prior = factors.iter().map(|factor| (factor - PRIOR).powi(2)).sum::<f64>() / 2.0;
        prior + rows.iter().map(|row| row.loss(factors)).sum::<f64>()
    };
    let mut factors = [PRIOR; 2];
    let mut least = loss(factors);
    for _ in 0..STEPS_MAX {
        let mut sums =
            Derivatives { slope: factors.map(|factor| factor - PRIOR), curvature: [1.0, 0.0, 1.0] };
        rows.iter().for_each(|row| row.add_derivatives(factors, &mut sums));
        let step = sums.step();
        // The loss is convex, so a part of the step reduces it, unless the factors are the best ones.
        let shares = std::iter::successors(Some(1.0), |share| Some(share / 2.0)).take(HALVES_MAX);
        let shorter = shares.map(|share| [0, 1].map(|at| factors[at] - share * step[at]));
        let Some(better) = shorter.map(|of| (of, loss(of))).find(|(_, loss)| *loss < least) else { break };
        (factors, least) = better;
    }
    factors.map(rounded)
}

/// A row: for each class, the logits of both models.
struct Row {
    label: usize,
    weight: f64,
    logits: Vec<[f64; 2]>,
}

/// Derivatives of the loss by the factors.
struct Derivatives {
    slope: [f64; 2],
    /// By the first factor twice, by both, by the second one twice.
    curvature: [f64; 3],
}

impl Derivatives {
    /// The step of Newton's method.
    fn step(&self) -> [f64; 2] {
        let ([first, second], [a, b, c]) = (self.slope, self.curvature);
        let determinant = a * c - b * b;
        [(c * first - b * second) / determinant, (a * second - b * first) / determinant]
    }
}

impl Row {
    /// The probability of each class.
    fn probabilities(&self, [first, second]: [f64; 2]) -> Vec<f64> {
        let sums: Vec<f64> =
            self.logits.iter().map(|logits| first * logits[0] + second * logits[1]).collect();
        let largest = sums.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let powers = sums.iter().map(|sum| (sum - largest).exp());
        let all: f64 = powers.clone().sum();
        powers.map(|power| power / all).collect()
    }

    fn loss(&self, factors: [f64; 2]) -> f64 {
        -self.weight * self.probabilities(factors)[self.label].max(f64::MIN_POSITIVE).ln()
    }

    /// The slopes are the mean logits under the probabilities, minus those of the label; the curvatures are the variances
    /// and the covariance of the logits.
    fn add_derivatives(&self, factors: [f64; 2], sums: &mut Derivatives) {
        let probabilities = self.probabilities(factors);
        let mean = |of: &dyn Fn([f64; 2]) -> f64| -> f64 {
            probabilities
                .iter()
                .zip(&self.logits)
                .map(|(probability, &logits)| probability * of(logits))
                .sum()
        };
        let means = [mean(&|logits| logits[0]), mean(&|logits| logits[1])];
        for (at, slope) in sums.slope.iter_mut().enumerate() {
            *slope += self.weight * (means[at] - self.logits[self.label][at]);
        }
        for (curvature, [one, other]) in sums.curvature.iter_mut().zip([[0, 0], [0, 1], [1, 1]]) {
            let covariance = mean(&|logits| (logits[one] - means[one]) * (logits[other] - means[other]));
            *curvature += self.weight * covariance;
        }
    }
}

/// The label and the logits of each row.
fn labelled(scores: &Scores) -> Vec<(u8, Vec<f64>)> {
    match scores {
        Scores::Label(rows) => rows.iter().map(|row| (row.label, vec![0.0, f64::from(row.score)])).collect(),
        Scores::Classes(rows) => {
            rows.iter().map(|row| (row.label, logits(&row.probabilities).collect())).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoring::{ClassScore, Probabilities, RowScore, sigmoid};

    fn scores(rows: &[(u8, f64)]) -> Scores {
        let row = |(row, &(label, score)): (u32, &(u8, f64))| RowScore { row, label, score: score as f32 };
        Scores::Label((0..).zip(rows).map(row).collect())
    }

    /// A label and log-odds.
    type Labelled = (u8, f64);

    /// Rows on a grid of log-odds; of each point, the number that has label 1 follows from the factors.
    fn grid(expected: [f64; 2]) -> (Vec<Labelled>, Vec<Labelled>) {
        let points = (-8..=8).flat_map(|first| (-8..=8).map(move |second| [first, second].map(f64::from)));
        let rows = points.flat_map(|[first, second]| {
            let positive = (500.0 * sigmoid(expected[0] * first + expected[1] * second)).round() as usize;
            (0..500).map(move |at| (u8::from(at < positive), first, second))
        });
        rows.map(|(label, first, second)| ((label, first), (label, second))).unzip()
    }

    #[test]
    fn factors_of_labels_are_found_again() {
        for expected in [[0.3, 0.6], [1.2, -0.1]] {
            let (first, second) = grid(expected);
            let found = factors(&scores(&first), &scores(&second), |_| 1.0);
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() < 0.01, "{found} {expected}");
            }
        }
    }

    #[test]
    fn two_classes_have_the_factors_of_their_log_odds() {
        let (first, second) = grid([0.3, 0.6]);
        let of_classes = |rows: &[(u8, f64)]| {
            let row = |(row, &(label, score)): (u32, &(u8, f64))| ClassScore {
                row,
                label,
                probabilities: Probabilities::of_logits(&[0.0, score]),
            };
            Scores::Classes((0..).zip(rows).map(row).collect())
        };
        let weight = |label: u8| [1.0, 3.0][usize::from(label)];
        let labels = factors(&scores(&first), &scores(&second), weight);
        let classes = factors(&of_classes(&first), &of_classes(&second), weight);
        for (label, class) in labels.iter().zip(classes) {
            assert!((label - class).abs() < 1e-4, "{labels:?} {classes:?}");
        }
    }

    #[test]
    fn few_rows_that_both_models_separate_have_finite_factors() {
        let rows = [(1, 4.0), (0, -3.0), (1, 6.0)];
        let [first, second] = factors(&scores(&rows), &scores(&rows), |_| 1.0);
        assert!(first == second && (0.5..2.0).contains(&first), "{first} {second}");
        assert_eq!(factors(&scores(&[]), &scores(&[]), |_| 1.0), [0.5, 0.5]);
    }
}
