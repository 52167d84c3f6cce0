//! Computes metrics of three or more classes from integer counts, as [`crate::metrics()`] does for two.
//!
//! A model has one output per class, its logit. The probabilities are their softmax, rounded to 32-bit floats. The
//! predicted class is the one with the largest probability, and of equal ones the first. Each row counts once,
//! whatever its number of reviews. For a class, rows "have" it by their label.
//!
//! | Metric | Formula | Value if the divisor is 0 |
//! |---|---|---|
//! | loss | sum of the rows' losses / rows | an error: no rows |
//! | accuracy | rows whose predicted class is their label / rows | |
//! | precision of a class | rows that have it and are predicted as it / rows predicted as it | 0: none is predicted as it |
//! | recall of a class | rows that have it and are predicted as it / rows that have it | 0: none has it |
//! | f1 of a class | 2 rows that have it and are predicted as it / (rows that have it + rows predicted as it) | 0: both |
//! | f1, precision, recall | mean over all classes: macro F1, macro precision, macro recall | |
//! | auc | mean over all classes of the area under the ROC curve of the class's probability, for the rows that have the class against all others | `None` (null in JSON): a class has no rows |
//!
//! These are the definitions of scikit-learn: `f1_score(average="macro", zero_division=0)` with all classes in
//! `labels`, and `roc_auc_score(multi_class="ovr", average="macro")`.

use crate::confusion::Confusion;
use crate::error::Result;
use crate::loss::LossSum;
use crate::metrics::{Metrics, auc, counted};
use crate::scoring::{Probabilities, ascending, of_ascending};

/// Bits of a label in an element of [`ClassAccumulator::ranked`].
const LABEL_BITS: u32 = 3;

/// One rank's share of an evaluation of three or more classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassAccumulator {
    confusion: Confusion,
    /// Rows with a probability or loss that is not finite. No other count includes them.
    not_finite: u64,
    loss: LossSum,
    ranked: Vec<i64>,
}

impl ClassAccumulator {
    /// No rows of this number of classes, 3 to [`crate::CLASSES_MAX`].
    pub fn new(n_classes: usize) -> Self {
        Self {
            confusion: Confusion::new(n_classes),
            not_finite: 0,
            loss: LossSum::default(),
            ranked: Vec::new(),
        }
    }

    /// Adds a row: its probabilities, its label and its loss. The label must be one of the classes.
    pub fn add(&mut self, probabilities: &Probabilities, label: u8, loss: f64) {
        if !probabilities.all().iter().all(|one| one.is_finite()) || !loss.is_finite() {
            self.not_finite += 1;
            return;
        }
        self.confusion.add(label, probabilities.predicted());
        self.loss += loss;
        let rank = |&probability| i64::from(ascending(probability)) << LABEL_BITS | i64::from(label);
        self.ranked.extend(probabilities.all().iter().map(rank));
    }

    /// All counts and the loss: N² + 5 integers for N classes. Ranks sum these element by element.
    pub fn sums(&self) -> Vec<i64> {
        let counts = self.confusion.counts().iter().chain([&self.not_finite]).map(|&n| n as i64);
        counts.chain(self.loss.limbs()).collect()
    }

    /// One integer per row and class, in the order of rows. Ranks concatenate theirs.
    pub fn ranked(&self) -> &[i64] {
        &self.ranked
    }
}

/// The label and the probabilities of each row, from concatenated [`ClassAccumulator::ranked`] integers.
pub fn unranked_classes(n_classes: usize, ranked: &[i64]) -> impl Iterator<Item = (u8, Probabilities)> + '_ {
    ranked.chunks_exact(n_classes).map(move |of_row| {
        let all = of_row.iter().map(|of_class| of_ascending((of_class >> LABEL_BITS) as u32));
        (label_of(of_row[0]), Probabilities::new(all))
    })
}

fn label_of(ranked: i64) -> u8 {
    (ranked & ((1 << LABEL_BITS) - 1)) as u8
}

/// Computes metrics from the sum over ranks of [`ClassAccumulator::sums`] and the concatenated [`ClassAccumulator::ranked`]
/// integers.
pub fn class_metrics(n_classes: usize, sums: &[i64], ranked: &[i64]) -> Result<Metrics> {
    let (confusion, loss) = counted(sums, (ranked.len() / n_classes) as u64)?;
    Ok(Metrics::of(confusion, loss, macro_auc(n_classes, ranked)))
}

/// The mean area of each class against all others; `None` if a class has no rows.
fn macro_auc(n_classes: usize, ranked: &[i64]) -> Option<f64> {
    let mut sum = 0.0;
    for class in 0..n_classes {
        let mut of_class: Vec<i64> = ranked
            .iter()
            .skip(class)
            .step_by(n_classes)
            .map(|&row| row >> LABEL_BITS << 1 | i64::from(usize::from(label_of(row)) == class))
            .collect();
        sum += auc(&mut of_class)?;
    }
    Some(sum / n_classes as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Error, LargerClass, OfClass};

    /// Probabilities as they are; tests need not have a sum of 1.
    fn of(all: &[f32]) -> Probabilities {
        Probabilities::new(all.iter().copied())
    }

    fn accumulator(n_classes: usize, rows: &[(Vec<f32>, u8, f64)]) -> ClassAccumulator {
        let mut accumulator = ClassAccumulator::new(n_classes);
        rows.iter().for_each(|(all, label, loss)| accumulator.add(&of(all), *label, *loss));
        accumulator
    }

    fn metrics(n_classes: usize, rows: &[(Vec<f32>, u8, f64)]) -> Result<Metrics> {
        let accumulator = accumulator(n_classes, rows);
        class_metrics(n_classes, &accumulator.sums(), accumulator.ranked())
    }

    #[test]
    fn metrics_match_a_manual_calculation() {
        // Labels 0 0 0 1 2 2, predicted 0 0 1 1 2 0. The figures are those of scikit-learn 1.9: f1_score and of
        // roc_auc_score and confusion_matrix.
        let rows = [
            (vec![0.5, 0.25, 0.25], 0, 0.5),
            (vec![0.5, 0.375, 0.125], 0, 0.5),
            (vec![0.25, 0.5, 0.25], 0, 1.0),
            (vec![0.125, 0.75, 0.125], 1, 0.25),
            (vec![0.25, 0.125, 0.625], 2, 0.25),
            (vec![0.5, 0.25, 0.25], 2, 0.5),
        ];
        let json = serde_json::to_string(&metrics(3, &rows).unwrap()).unwrap();
        assert_eq!(
            json,
            "{\"loss\":0.5,\"accuracy\":0.6666666666666666,\"f1\":0.6666666666666666,\
             \"precision\":0.7222222222222222,\"recall\":0.7222222222222222,\"auc\":0.8657407407407408,\
             \"confusion\":[[2,1,0],[0,1,0],[1,0,1]],\"rows\":6}"
        );
        let classes = metrics(3, &rows).unwrap().confusion.classes();
        let third = 1.0 / 3.0;
        let of = |precision, recall, rows| OfClass { precision, recall, f1: 2.0 * third, rows };
        assert_eq!(classes, [of(2.0 * third, 2.0 * third, 3), of(0.5, 1.0, 1), of(1.0, 0.5, 2)]);
    }

    #[test]
    fn the_baseline_predicts_the_most_frequent_class() {
        let rows = [0, 0, 0, 1, 2, 2].map(|label| (vec![0.25, 0.5, 0.25], label, 0.0));
        // F1 of class 0 is 2·3 / (3 + 6), and 0 for the others.
        let expected = LargerClass { label: 0, accuracy: 0.5, f1: 6.0 / 9.0 / 3.0 };
        assert_eq!(metrics(3, &rows).unwrap().larger_class(), expected);
    }

    #[test]
    fn undefined_metrics_are_zero_or_null() {
        let found = metrics(3, &[(vec![0.5, 0.5, 0.0], 0, 0.0), (vec![0.25, 0.75, 0.0], 1, 0.0)]).unwrap();
        assert_eq!((found.accuracy, found.f1, found.auc), (1.0, 2.0 / 3.0, None));
        let absent = found.confusion.classes()[2];
        assert_eq!((absent.precision, absent.recall, absent.f1, absent.rows), (0.0, 0.0, 0.0, 0));
        assert!(matches!(metrics(3, &[]), Err(Error::NothingEvaluated)));
    }

    #[test]
    fn an_output_or_loss_that_is_not_finite_is_an_error() {
        for (logit, loss) in [
            (f64::NAN, 0.0),
            (f64::INFINITY, 0.0),
            (f64::NEG_INFINITY, 0.0),
            (0.0, f64::NAN),
            (0.0, f64::INFINITY),
        ] {
            let mut accumulator = ClassAccumulator::new(3);
            accumulator.add(&Probabilities::of_logits(&[0.0, 1.0, 2.0]), 1, 0.5);
            accumulator.add(&Probabilities::of_logits(&[0.0, logit, 2.0]), 1, loss);
            let error = class_metrics(3, &accumulator.sums(), accumulator.ranked()).unwrap_err();
            assert!(matches!(error, Error::NotFinite { found: 1, rows: 2 }), "{logit} {loss}: {error}");
        }
    }

    #[test]
    fn sums_without_their_rows_are_a_defect() {
        let accumulator = accumulator(3, &[(vec![0.5, 0.25, 0.25], 0, 0.0)]);
        let error = class_metrics(3, &accumulator.sums(), &[]).unwrap_err();
        assert!(matches!(error, Error::Uncounted { ranked: 0, counted: 1 }), "{error}");
        assert!(class_metrics(3, &accumulator.sums()[1..], accumulator.ranked()).is_err());
    }

    fn any_row() -> impl Strategy<Value = (Vec<f32>, u8, f64)> {
        let probability = prop_oneof![(0u8..4).prop_map(|part| f32::from(part) / 4.0), 0.0f32..1.0];
        (prop::collection::vec(probability, 4), 0u8..4, 0.0f64..30.0)
    }

    proptest! {
        #[test]
        fn metrics_do_not_depend_on_the_number_of_ranks(
            rows in prop::collection::vec((any_row(), 0usize..3), 1..100),
        ) {
            let of_rank = |rank| rows.iter().filter(|row| row.1 == rank).map(|row| row.0.clone()).collect::<Vec<_>>();
            let ranks = [2, 0, 1].map(|rank| accumulator(4, &of_rank(rank)));
            let mut sums = vec![0; 21];
            ranks.iter().for_each(|rank| sums.iter_mut().zip(rank.sums()).for_each(|(sum, n)| *sum += n));
            let ranked: Vec<i64> = ranks.iter().flat_map(|rank| rank.ranked().to_vec()).collect();
            let together = class_metrics(4, &sums, &ranked).unwrap();
            let all: Vec<_> = rows.iter().map(|row| row.0.clone()).collect();
            prop_assert_eq!(together, metrics(4, &all).unwrap());
        }

        #[test]
        fn metrics_match_counted_rows(rows in prop::collection::vec(any_row(), 1..60)) {
            let found = metrics(4, &rows).unwrap();
            let predicted: Vec<u8> = rows.iter().map(|row| of(&row.0).predicted()).collect();
            let count = |is: &dyn Fn(u8, u8) -> bool| {
                rows.iter().zip(&predicted).filter(|(row, predicted)| is(row.1, **predicted)).count() as f64
            };
            let (mut sum, classes) = (0.0, found.confusion.classes());
            for class in 0..4u8 {
                let right = count(&|label, predicted| label == class && predicted == class);
                let wrong = count(&|label, predicted| (label == class) != (predicted == class));
                let f1 = if right == 0.0 { 0.0 } else { 2.0 * right / (2.0 * right + wrong) };
                prop_assert!((classes[usize::from(class)].f1 - f1).abs() < 1e-12);
                sum += f1;
            }
            prop_assert!((found.f1 - sum / 4.0).abs() < 1e-12);
            let right = count(&|label, predicted| label == predicted);
            prop_assert!((found.accuracy - right / rows.len() as f64).abs() < 1e-12);
        }

        #[test]
        fn ranked_rows_keep_labels_and_probabilities(rows in prop::collection::vec(any_row(), 0..20)) {
            let accumulator = accumulator(4, &rows);
            let found: Vec<_> = unranked_classes(4, accumulator.ranked()).collect();
            let expected: Vec<_> = rows.iter().map(|(all, label, _)| (*label, of(all))).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
