//! Chooses the threshold between label 0 and label 1 on the validation split.
//!
//! Every threshold that separates the scores in another way is tried. The candidates are: the default threshold; the
//! middle of two adjacent scores; a number below all scores; the greatest score. Counts are compared as integers, so the
//! best candidate is exact. Of several best candidates, the one closest to the default is chosen, and of two at the same
//! distance the lower one.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::scoring::RowScore;

/// How the threshold between label 0 and label 1 is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThresholdRule {
    /// The highest F1 on the validation split.
    F1,
    /// The highest accuracy on the validation split.
    Accuracy,
    /// A probability of label 1, above 0 and below 1.
    Probability(f64),
}

/// A chosen threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// How it was chosen.
    pub by: Criterion,
    /// A row with a greater score has label 1.
    pub score: f32,
}

/// How a threshold is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Criterion {
    /// The highest F1 on the validation split.
    F1,
    /// The highest accuracy on the validation split.
    Accuracy,
    /// A probability set by the user.
    Probability,
}

impl Threshold {
    /// The best threshold for the scores of the validation split, of which there must be at least one. `default` is the
    /// threshold without a choice; of equal ones, the nearest to it is taken.
    pub fn best(by: Criterion, default: f32, scores: &[RowScore]) -> Self {
        let mut sorted: Vec<(f32, bool)> =
            scores.iter().map(|row| (row.score + 0.0, row.label == 1)).collect();
        sorted.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        let all_positive = sorted.iter().filter(|row| row.1).count() as u64;
        let mut best = Cut { true_positive: all_positive, called: sorted.len() as u64, ..Cut::default() };
        best.score = below(default, sorted.first().map_or(default, |row| row.0));
        let mut cut = best;
        let mut groups = sorted.chunk_by(|one, other| one.0 == other.0).peekable();
        while let Some(equal) = groups.next() {
            cut.called -= equal.len() as u64;
            cut.true_positive -= equal.iter().filter(|row| row.1).count() as u64;
            cut.score = between(default, equal[0].0, groups.peek().map(|next| next[0].0));
            let is_better = match cut.compare(&best, by, all_positive, sorted.len() as u64) {
                Ordering::Greater => true,
                // Candidates ascend, so the first of two at the same distance is the lower one.
                Ordering::Equal => (cut.score - default).abs() < (best.score - default).abs(),
                Ordering::Less => false,
            };
            if is_better {
                best = cut;
            }
        }
        Self { by, score: best.score }
    }

    /// Refuses a number that no score can be compared with. A file may contain any.
    pub fn check(self) -> Result<(), (&'static str, f64, &'static str)> {
        match self.score.is_finite() {
            true => Ok(()),
            false => Err(("threshold", f64::from(self.score), "a finite number")),
        }
    }
}

/// A candidate, and the rows with greater scores.
#[derive(Clone, Copy, Default)]
struct Cut {
    score: f32,
    /// Rows with a greater score.
    called: u64,
    /// Those with label 1.
    true_positive: u64,
}

impl Cut {
    fn compare(&self, other: &Self, by: Criterion, positive: u64, rows: u64) -> Ordering {
        match by {
            // 2 TP / (called + positive), as fractions.
            Criterion::F1 => {
                let side =
                    |one: &Self, of: &Self| u128::from(one.true_positive) * u128::from(of.called + positive);
                side(self, other).cmp(&side(other, self))
            }
            // TP + TN, where TN = (rows - called) - (positive - TP).
            Criterion::Accuracy | Criterion::Probability => {
                let right = |cut: &Self| 2 * cut.true_positive + rows - cut.called;
                right(self).cmp(&right(other))
            }
        }
    }
}

/// The candidate below all scores.
fn below(default: f32, lowest: f32) -> f32 {
    if default < lowest { default } else { lowest.next_down().max(f32::MIN) }
}

/// The candidate between a score and the next greater one: the default if it separates them, otherwise the middle. The
/// candidate after the greatest score is the default or that score.
fn between(default: f32, score: f32, next: Option<f32>) -> f32 {
    match next {
        _ if score <= default && next.is_none_or(|next| default < next) => default,
        None => score,
        Some(next) => {
            let middle = ((f64::from(score) + f64::from(next)) / 2.0) as f32;
            if middle < next { middle } else { score }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::decision::Decision;
    use crate::metrics::Accumulator;
    use crate::scoring::Scoring;

    fn rows(scores: &[(f32, u8)]) -> Vec<RowScore> {
        scores.iter().map(|&(score, label)| RowScore { row: 0, label, score }).collect()
    }

    fn best(by: Criterion, scores: &[(f32, u8)]) -> f32 {
        Threshold::best(by, 0.0, &rows(scores)).score
    }

    #[test]
    fn the_best_threshold_separates_the_labels_in_the_middle() {
        let scores = [(3.0, 1), (1.0, 0), (2.0, 1), (-1.0, 0)];
        assert_eq!(best(Criterion::F1, &scores), 1.5);
        assert_eq!(best(Criterion::Accuracy, &scores), 1.5);
        assert_eq!(best(Criterion::Accuracy, &[(3.0, 1), (-1.0, 0)]), 0.0, "the default is as good");
    }

    #[test]
    fn of_equally_good_thresholds_the_closest_to_the_default_is_chosen() {
        // Above 5 and above 1, one row of three is misclassified.
        assert_eq!(best(Criterion::Accuracy, &[(1.0, 0), (3.0, 1), (5.0, 0)]), 2.0);
        // Above -2 and above 2, one row is misclassified; at the default, two are.
        let scores = [(-3.0, 0), (-1.0, 1), (1.0, 0), (3.0, 1)];
        assert_eq!(best(Criterion::Accuracy, &scores), -2.0);
    }

    #[test]
    fn rows_of_one_label_keep_the_default_or_get_a_threshold_outside() {
        assert_eq!(best(Criterion::F1, &[(1.0, 1), (2.0, 1)]), 0.0);
        assert_eq!(best(Criterion::F1, &[(-1.0, 1), (2.0, 1)]), (-1.0f32).next_down());
        assert_eq!(best(Criterion::Accuracy, &[(1.0, 0), (2.0, 0)]), 2.0);
        assert_eq!(best(Criterion::F1, &[(f32::MIN, 1)]), f32::MIN);
    }

    #[test]
    fn a_middle_that_rounds_to_the_next_score_is_not_used() {
        let next = 1.0f32.next_up();
        assert_eq!(best(Criterion::Accuracy, &[(1.0, 0), (next, 1)]), 1.0);
    }

    fn metric(by: Criterion, threshold: f32, scores: &[RowScore]) -> f64 {
        let decision = Decision::new(Scoring::Logit, None, Some(Threshold { by, score: threshold }));
        let mut accumulator = Accumulator::default();
        scores.iter().for_each(|row| accumulator.add(decision, row.score, row.label, 0.0));
        let metrics = accumulator.metrics().unwrap();
        if by == Criterion::F1 { metrics.f1 } else { metrics.accuracy }
    }

    proptest! {
        #[test]
        fn no_threshold_is_better_and_the_order_of_rows_has_no_effect(
            scores in prop::collection::vec(((-6i8..6).prop_map(f32::from), 0u8..2), 1..40),
            by in prop_oneof![Just(Criterion::F1), Just(Criterion::Accuracy)],
        ) {
            let found = Threshold::best(by, 0.0, &rows(&scores)).score;
            let value = metric(by, found, &rows(&scores));
            for other in -14..14 {
                prop_assert!(metric(by, other as f32 / 2.0, &rows(&scores)) <= value, "{}", other);
            }
            let mut reversed = scores;
            reversed.reverse();
            prop_assert_eq!(Threshold::best(by, 0.0, &rows(&reversed)).score, found);
        }
    }
}
