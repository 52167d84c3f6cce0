//! Converts scores to probabilities: `1 / (1 + exp(-(slope * score + offset)))`.
//!
//! The logistic loss has the slope 1 and the offset 0. For the squared hinge loss they are fitted as in Platt (1999)
//! with the targets and the Newton's method of Lin et al. (2007), on the scores of the training texts. From the score of
//! each text its own contribution to the weights is removed, `a_i |x_i|^2`, so that the score is close to that of a text
//! that was not seen. With an L1 penalty the scores of the training texts are used unchanged.

use serde::{Deserialize, Serialize};

/// A sigmoid of a score.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sigmoid {
    /// Factor of the score.
    pub slope: f32,
    /// Added to the product.
    pub offset: f32,
}

/// A text by which a sigmoid is fitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scored {
    pub score: f32,
    pub is_positive: bool,
    pub weight: f32,
}

impl Sigmoid {
    /// The logistic function.
    pub const LOGISTIC: Self = Self { slope: 1.0, offset: 0.0 };

    /// The probability of a score.
    #[inline]
    pub fn probability(self, score: f32) -> f32 {
        1.0 / (1.0 + (-(self.slope * score + self.offset)).exp())
    }

    /// Fits probabilities of texts with these scores and weights.
    pub(super) fn fitted(scores: &[Scored]) -> Self {
        let sum = |of: bool| -> f64 {
            scores.iter().filter(|text| text.is_positive == of).map(|text| f64::from(text.weight)).sum()
        };
        let (n_positive, n_negative) = (sum(true), sum(false));
        let (high, low) = ((n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0));
        let target = |is_positive: bool| if is_positive { high } else { low };
        let loss = |slope: f64, offset: f64| -> f64 {
            let of = |&Scored { score, is_positive, weight }: &Scored| {
                let logit = slope * f64::from(score) + offset;
                let softplus = logit.max(0.0) + (-logit.abs()).exp().ln_1p();
                f64::from(weight) * (softplus - target(is_positive) * logit)
            };
            scores.iter().map(of).sum()
        };
        let (mut slope, mut offset) = (0.0, ((n_positive + 1.0) / (n_negative + 1.0)).ln());
        let mut current = loss(slope, offset);
        for _ in 0..STEPS_MAX {
            let (mut g, mut h) = ([0.0; 2], [1e-12, 0.0, 1e-12]);
            for &Scored { score, is_positive, weight } in scores {
                let (score, weight) = (f64::from(score), f64::from(weight));
                let share = 1.0 / (1.0 + (-(slope * score + offset)).exp());
                let (difference, weight) =
                    (weight * (share - target(is_positive)), weight * share * (1.0 - share));
                g = [g[0] + difference * score, g[1] + difference];
                h = [h[0] + weight * score * score, h[1] + weight * score, h[2] + weight];
            }
            let determinant = h[0] * h[2] - h[1] * h[1];
            if g[0].abs().max(g[1].abs()) < 1e-5 || determinant <= 0.0 {
                break;
            }
            let step = [(h[2] * g[0] - h[1] * g[1]) / determinant, (h[0] * g[1] - h[1] * g[0]) / determinant];
            let halves = std::iter::successors(Some(1.0), |part| Some(part / 2.0)).take(20);
            let better = halves.map(|part| (slope - part * step[0], offset - part * step[1]));
            let Some((next, value)) =
                better.map(|next| (next, loss(next.0, next.1))).find(|(_, value)| *value < current)
            else {
                break;
            };
            (slope, offset) = next;
            current = value;
        }
        Self { slope: slope as f32, offset: offset as f32 }
    }
}

const STEPS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sigmoid_of_scores_is_found_again() {
        // Of 1000 texts with a score, the expected number is positive.
        let expected = Sigmoid { slope: 2.0, offset: -0.5 };
        let scores = (-20..=20).flat_map(|score| {
            let score = score as f32 / 10.0;
            let n_positive = (1000.0 * expected.probability(score)).round() as usize;
            (0..1000).map(move |n| Scored { score, is_positive: n < n_positive, weight: 1.0 })
        });
        let found = Sigmoid::fitted(&scores.collect::<Vec<_>>());
        assert!((found.slope - 2.0).abs() < 0.02 && (found.offset + 0.5).abs() < 0.02, "{found:?}");
    }

    #[test]
    fn texts_of_one_label_have_its_probability_near_one() {
        let all = Sigmoid::fitted(&[Scored { score: 1.5, is_positive: true, weight: 1.0 }; 50]);
        assert!(all.probability(1.5) > 0.95, "{all:?}");
        let none = Sigmoid::fitted(&[]);
        assert_eq!(none.probability(3.0), 0.5);
    }

    #[test]
    fn a_text_of_weight_3_counts_as_three_texts() {
        let text =
            |at: i32, weight| Scored { score: (at % 7) as f32 - 3.0, is_positive: at % 3 == 0, weight };
        let heavy: Vec<Scored> = (0..40).map(|at| text(at, if at % 3 == 0 { 3.0 } else { 1.0 })).collect();
        let repeated = (0..40).flat_map(|at| vec![text(at, 1.0); if at % 3 == 0 { 3 } else { 1 }]);
        let (one, other) = (Sigmoid::fitted(&heavy), Sigmoid::fitted(&repeated.collect::<Vec<_>>()));
        assert!((one.slope - other.slope).abs() < 1e-4 && (one.offset - other.offset).abs() < 1e-4);
    }
}
