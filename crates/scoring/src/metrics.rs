//! Computes metrics from integer counts, so that the distribution of rows over ranks does not change them.
//!
//! Each rank adds its rows to a [`Accumulator`]: score, label and loss per row. The score determines the predicted class. A
//! sum of floating-point losses would depend on the order, so each loss is rounded to a multiple of 2^-32, ties to
//! even, and summed as an integer. The ranks sum their [`Accumulator::sums`] and concatenate their [`Accumulator::ranked`] rows
//! in any order. [`metrics`] computes the same values from them on each rank.
//!
//! The positive class is label 1. Each row counts once, whatever its number of reviews.
//! [`crate::ClassAccumulator`] computes the same metrics of three or more classes.
//!
//! | Metric | Formula | Value if the divisor is 0 |
//! |---|---|---|
//! | loss | sum of the rows' losses / rows | an error: no rows |
//! | accuracy | (true positive + true negative) / rows | |
//! | precision | true positive / (true positive + false positive) | 0: no row predicted positive |
//! | recall | true positive / (true positive + false negative) | 0: no row with label 1 |
//! | f1 | 2 true positive / (2 true positive + false positive + false negative) | 0: both |
//! | auc | pairs of a positive and a negative row whose scores are in that order, of equal scores half / all such pairs | `None` (null in JSON): the rows have one label |
//!
//! The area under the ROC curve is exact. Scores are compared as 32-bit floats, also for the predicted class.

use serde::{Deserialize, Serialize};

use crate::confusion::{Confusion, Rates, rates, ratio};
use crate::decision::Decision;
use crate::error::{Error, Result};
use crate::loss::{LOSS_LIMBS, LossSum};
use crate::scoring::{ascending, of_ascending};

/// One rank's share of an evaluation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accumulator {
    confusion: Confusion,
    /// Rows with a score or loss that is not finite. No other count includes them.
    not_finite: u64,
    loss: LossSum,
    ranked: Vec<i64>,
}

/// Length of [`Accumulator::sums`].
pub const N_SUMS: usize = 9;

impl Accumulator {
    /// Adds a row: its score from [`crate::Scoring::score`], its label and its unweighted loss.
    pub fn add(&mut self, decision: impl Into<Decision>, score: f32, label: u8, loss: f64) {
        if !score.is_finite() || !loss.is_finite() {
            self.not_finite += 1;
            return;
        }
        let is_positive = decision.into().is_positive(score);
        self.confusion.add(u8::from(label != 0), u8::from(is_positive));
        self.loss += loss;
        self.ranked.push(ranked(score, label));
    }

    /// All counts and the loss. Ranks sum these element by element. No sum can overflow, because the loss is split
    /// into limbs of 32 bits.
    pub fn sums(&self) -> [i64; N_SUMS] {
        let counts = self.confusion.counts().iter().copied().chain([self.not_finite]);
        let mut sums = [0; N_SUMS];
        let (count_sums, loss_sums) = sums.split_at_mut(N_SUMS - LOSS_LIMBS);
        for (sum, n) in count_sums.iter_mut().zip(counts) {
            *sum = n as i64;
        }
        loss_sums.copy_from_slice(&self.loss.limbs());
        sums
    }

    /// One integer per row, in the order of the scores. Ranks concatenate theirs.
    pub fn ranked(&self) -> &[i64] {
        &self.ranked
    }

    /// Metrics of a process that has evaluated all rows.
    pub fn metrics(mut self) -> Result<Metrics> {
        metrics(&self.sums(), &mut self.ranked)
    }
}

/// The score's bits, transformed so that integers sort as scores do, followed by the label.
fn ranked(score: f32, label: u8) -> i64 {
    i64::from(ascending(score)) << 1 | i64::from(label)
}

/// The score and label of an element of [`Accumulator::ranked`].
pub fn unranked(row: i64) -> (f32, u8) {
    (of_ascending((row >> 1) as u32), (row & 1) as u8)
}

/// Metrics of an evaluation. For two classes, the module's documentation defines them. For three or more, `f1`,
/// `precision`, `recall` and `auc` are means over the classes, which [`crate::ClassAccumulator`] defines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    /// Mean loss per row.
    pub loss: f64,
    /// Fraction of rows predicted correctly.
    pub accuracy: f64,
    /// The harmonic mean of precision and recall.
    pub f1: f64,
    /// Fraction of rows predicted positive that are positive.
    pub precision: f64,
    /// Fraction of positive rows that are predicted positive.
    pub recall: f64,
    /// Area under the ROC curve.
    pub auc: Option<f64>,
    /// Rows by label and predicted class.
    pub confusion: Confusion,
    /// Number of rows.
    pub rows: u64,
}

/// Metrics of the majority-class baseline: a classifier that predicts the most frequent label for every row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LargerClass {
    /// The most frequent label; of equally frequent labels, the last.
    pub label: u8,
    /// Fraction of rows with this label.
    pub accuracy: f64,
    /// The F1 of this prediction: 0 if the label is 0; for three or more classes the mean over the classes.
    pub f1: f64,
}

impl Metrics {
    /// All metrics except counts, by their names in JSON.
    pub fn named(&self) -> Vec<(&'static str, Option<f64>)> {
        vec![
            ("loss", Some(self.loss)),
            ("accuracy", Some(self.accuracy)),
            ("f1", Some(self.f1)),
            ("precision", Some(self.precision)),
            ("recall", Some(self.recall)),
            ("auc", self.auc),
        ]
    }

    /// The majority-class baseline for these rows.
    pub fn larger_class(&self) -> LargerClass {
        let label = self.confusion.largest_label();
        let classes = self.confusion.classes();
        let largest = classes[usize::from(label)].rows;
        let rows = self.confusion.rows();
        let f1 = 2.0 * largest as f64 / (largest as f64 + rows as f64).max(1.0);
        let f1 = match (classes.len(), label) {
            (2, 0) => 0.0,
            (2, _) => f1,
            // The F1 of all other classes is 0.
            (n, _) => f1 / n as f64,
        };
        LargerClass { label, accuracy: ratio(largest, rows), f1 }
    }

    /// Metrics that follow from counts of rows, whose sum of losses is `loss`.
    pub(crate) fn of(confusion: Confusion, loss: LossSum, auc: Option<f64>) -> Self {
        let Rates { accuracy, f1, precision, recall } = rates(confusion.counts());
        let rows = confusion.rows();
        Self { loss: loss.mean(rows), accuracy, f1, precision, recall, auc, confusion, rows }
    }
}

/// Computes metrics from the sum over ranks of [`Accumulator::sums`] and the concatenated [`Accumulator::ranked`] rows, which are
/// sorted in place.
pub fn metrics(sums: &[i64; N_SUMS], ranked: &mut [i64]) -> Result<Metrics> {
    let (confusion, loss) = counted(sums, ranked.len() as u64)?;
    Ok(Metrics::of(confusion, loss, auc(ranked)))
}

/// The counts and the loss of sums: the confusion matrix, the rows that are not finite, and the limbs of the loss.
/// `ranked`: the number of ranked rows.
pub(crate) fn counted(sums: &[i64], ranked: u64) -> Result<(Confusion, LossSum)> {
    let (counts, limbs) = sums.split_at(sums.len().saturating_sub(LOSS_LIMBS));
    let counts: Vec<u64> = counts.iter().map(|&n| n as u64).collect();
    let (&not_finite, counts) = counts.split_last().unwrap_or((&0, &[]));
    let confusion = Confusion::of_counts(counts).ok_or(Error::Uncounted { ranked, counted: 0 })?;
    let rows = confusion.rows();
    if not_finite > 0 {
        return Err(Error::NotFinite { found: not_finite, rows: rows + not_finite });
    }
    if rows == 0 {
        return Err(Error::NothingEvaluated);
    }
    if ranked != rows {
        return Err(Error::Uncounted { ranked, counted: rows });
    }
    Ok((confusion, LossSum::of_limbs(limbs)))
}

/// Sorts the rows and counts pairs by ascending score; rows with equal scores form one group.
pub(crate) fn auc(ranked: &mut [i64]) -> Option<f64> {
    ranked.sort_unstable();
    // Twice the number of ordered pairs, so that a tie is an integer.
    let mut in_order: u128 = 0;
    let (mut positive, mut negative) = (0u128, 0u128);
    for equal in ranked.chunk_by(|one, other| one >> 1 == other >> 1) {
        let equal_positive = equal.iter().map(|row| (row & 1) as u128).sum::<u128>();
        let equal_negative = equal.len() as u128 - equal_positive;
        in_order += equal_positive * (2 * negative + equal_negative);
        positive += equal_positive;
        negative += equal_negative;
    }
    let pairs = positive * negative;
    (pairs > 0).then(|| in_order as f64 / (2 * pairs) as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Scoring;
    use crate::loss::{LOSS_MAX, LOSS_UNITS};

    fn accumulator(rows: &[(f32, u8, f64)]) -> Accumulator {
        let mut accumulator = Accumulator::default();
        rows.iter().for_each(|&(score, label, loss)| accumulator.add(Scoring::Logit, score, label, loss));
        accumulator
    }

    #[test]
    fn metrics_match_a_manual_calculation() {
        // Of six pairs of a positive and a negative score, four are ordered: (2, 1), (2, -1), (2, -3) and (-1, -3).
        // (-1, -1) is a tie and (-1, 1) is not ordered. The result is 4.5 of 6.
        let rows = [(2.0, 1, 0.5), (1.0, 0, 1.25), (-1.0, 1, 1.0), (-1.0, 0, 0.25), (-3.0, 0, 0.0)];
        let json = serde_json::to_string(&accumulator(&rows).metrics().unwrap()).unwrap();
        assert_eq!(
            json,
            "{\"loss\":0.6,\"accuracy\":0.6,\"f1\":0.5,\"precision\":0.5,\"recall\":0.5,\"auc\":0.75,\"confusion\":\
             {\"true_negative\":2,\"false_positive\":1,\"false_negative\":1,\"true_positive\":1},\"rows\":5}"
        );
    }

    #[test]
    fn undefined_metrics_are_zero_or_null() {
        let all_negative = accumulator(&[(-1.0, 0, 0.0), (-2.0, 0, 0.0)]).metrics().unwrap();
        assert_eq!((all_negative.precision, all_negative.recall, all_negative.f1), (0.0, 0.0, 0.0));
        assert_eq!((all_negative.accuracy, all_negative.auc), (1.0, None));
        assert!(matches!(Accumulator::default().metrics(), Err(Error::NothingEvaluated)));
    }

    #[test]
    fn a_score_or_loss_that_is_not_finite_is_an_error_on_any_rank() {
        for (score, loss) in [(f32::NAN, 0.0), (0.0, f64::NAN), (f32::INFINITY, 0.0), (0.0, f64::INFINITY)] {
            let one = accumulator(&[(1.0, 1, 0.1)]);
            let other = accumulator(&[(score, 0, loss)]);
            let mut all: Vec<i64> = [one.ranked(), other.ranked()].concat();
            let error = metrics(&sum(&[one, other]), &mut all).unwrap_err();
            assert!(matches!(error, Error::NotFinite { found: 1, rows: 2 }), "{error}");
        }
    }

    #[test]
    fn the_sum_of_the_largest_losses_does_not_overflow() {
        let row = accumulator(&[(0.0, 1, f64::MAX)]);
        let most = Accumulator { loss: LossSum(row.loss.0 << 32), ..row.clone() };
        let twice = sum(&[most.clone(), Accumulator { confusion: Confusion::default(), ..most }]);
        let loss = metrics(&twice, &mut row.ranked.clone()).unwrap().loss;
        assert_eq!(loss, 2.0 * LOSS_MAX * LOSS_UNITS);
        assert_eq!(
            metrics(&sum(&[accumulator(&[(0.0, 1, -1.5)])]), &mut row.ranked.clone()).unwrap().loss,
            -1.5
        );
    }

    #[test]
    fn negative_zero_ties_with_zero() {
        assert_eq!(accumulator(&[(-0.0, 1, 0.0), (0.0, 0, 0.0)]).metrics().unwrap().auc, Some(0.5));
    }

    fn sum(parts: &[Accumulator]) -> [i64; N_SUMS] {
        let mut sums = [0; N_SUMS];
        for accumulator in parts {
            sums.iter_mut().zip(accumulator.sums()).for_each(|(sum, n)| *sum += n);
        }
        sums
    }

    /// Compares every pair.
    fn slow_auc(rows: &[(f32, u8, f64)]) -> Option<f64> {
        let of = |label| rows.iter().filter(move |row| row.1 == label).map(|row| row.0);
        let pairs: Vec<f64> = of(1)
            .flat_map(|positive| {
                of(0).map(move |negative| match positive.partial_cmp(&negative) {
                    Some(std::cmp::Ordering::Greater) => 1.0,
                    Some(std::cmp::Ordering::Equal) => 0.5,
                    _ => 0.0,
                })
            })
            .collect();
        (!pairs.is_empty()).then(|| pairs.iter().sum::<f64>() / pairs.len() as f64)
    }

    fn any_row() -> impl Strategy<Value = (f32, u8, f64)> {
        let score = prop_oneof![(-3i8..3).prop_map(|score| f32::from(score) / 2.0), -1e30f32..1e30];
        (score, 0u8..2, 0.0f64..30.0)
    }

    proptest! {
        #[test]
        fn auc_is_the_fraction_of_ordered_pairs(rows in prop::collection::vec(any_row(), 1..60)) {
            prop_assert_eq!(accumulator(&rows).metrics().unwrap().auc, slow_auc(&rows));
        }

        #[test]
        fn metrics_do_not_depend_on_the_number_of_ranks(
            rows in prop::collection::vec((any_row(), 0usize..3), 1..200),
        ) {
            let of = |rank| rows.iter().filter(|row| row.1 == rank).map(|row| row.0).collect::<Vec<_>>();
            let ranks = [0, 1, 2].map(|rank| accumulator(&of(rank)));
            let alone = accumulator(&rows.iter().map(|row| row.0).collect::<Vec<_>>());
            let mut ranked: Vec<i64> = ranks.iter().rev().flat_map(|accumulator| accumulator.ranked().to_vec()).collect();
            let together = metrics(&sum(&ranks), &mut ranked).unwrap();
            prop_assert_eq!(together, alone.metrics().unwrap());
            let exact: f64 = rows.iter().map(|row| row.0.2).sum::<f64>() / rows.len() as f64;
            prop_assert!((together.loss - exact).abs() < 1e-9);
        }

        #[test]
        fn ranked_rows_sort_as_their_scores(a: f32, b: f32) {
            prop_assume!(a.is_finite() && b.is_finite());
            let (one, other) = (ranked(a, 0) >> 1, ranked(b, 0) >> 1);
            prop_assert_eq!(one.cmp(&other), a.partial_cmp(&b).unwrap());
            prop_assert_eq!(unranked(ranked(a, 1)), (a, 1));
        }
    }
}
