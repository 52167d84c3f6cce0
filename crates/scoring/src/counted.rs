//! One interface to the evaluation of two classes ([`Accumulator`]) and of more ([`ClassAccumulator`]).

use crate::classes::{ClassAccumulator, class_metrics, unranked_classes};
use crate::decision::Decision;
use crate::error::{Error, Result};
use crate::metrics::{Accumulator, Metrics, N_SUMS, metrics, unranked};
use crate::scoring::{ClassScore, Probabilities, RowScore, Scoring};

/// A model's results for all rows, in the order of the dataset.
#[derive(Clone, Debug, PartialEq)]
pub enum Scores {
    /// Labels 0 and 1.
    Label(Vec<RowScore>),
    /// Three or more classes.
    Classes(Vec<ClassScore>),
}

/// One rank's share of an evaluation, for any number of classes.
#[derive(Clone, Debug)]
pub enum Counted {
    /// Labels 0 and 1.
    Label(Decision, Accumulator),
    /// Three or more classes.
    Classes(ClassAccumulator),
}

impl Counted {
    /// No rows of a model whose outputs have this meaning.
    pub fn new(decision: impl Into<Decision>) -> Self {
        let decision = decision.into();
        match decision.scoring() {
            Scoring::Classes { classes } => Self::Classes(ClassAccumulator::new(usize::from(classes))),
            Scoring::Logit | Scoring::Rating { .. } | Scoring::FiveRatings { .. } => {
                Self::Label(decision, Accumulator::default())
            }
        }
    }

    /// Adds a row: its outputs, its label and its loss.
    pub fn add(&mut self, outputs: &[f64], label: u8, loss: f64) {
        match self {
            Self::Label(decision, accumulator) => {
                accumulator.add(*decision, decision.score(outputs), label, loss);
            }
            Self::Classes(accumulator) => accumulator.add(&Probabilities::of_logits(outputs), label, loss),
        }
    }

    /// Integers that ranks sum element by element.
    pub fn sums(&self) -> Vec<i64> {
        match self {
            Self::Label(_, accumulator) => accumulator.sums().to_vec(),
            Self::Classes(accumulator) => accumulator.sums(),
        }
    }

    /// Integers that ranks concatenate.
    pub fn ranked(&self) -> &[i64] {
        match self {
            Self::Label(_, accumulator) => accumulator.ranked(),
            Self::Classes(accumulator) => accumulator.ranked(),
        }
    }
}

/// Computes metrics from the sum over ranks of [`Counted::sums`] and the concatenated [`Counted::ranked`] integers,
/// whose order may change.
pub fn metrics_of(scoring: Scoring, sums: &[i64], ranked: &mut [i64]) -> Result<Metrics> {
    match scoring {
        Scoring::Classes { classes } => class_metrics(usize::from(classes), sums, ranked),
        Scoring::Logit | Scoring::Rating { .. } | Scoring::FiveRatings { .. } => {
            let n_ranked = ranked.len() as u64;
            let sums: &[i64; N_SUMS] =
                sums.try_into().map_err(|_| Error::Uncounted { ranked: n_ranked, counted: 0 })?;
            metrics(sums, ranked)
        }
    }
}

/// The results of all rows, from their indices and the concatenated [`Counted::ranked`] integers of the same rows.
/// Rows with outputs that are not finite must be refused before, by [`metrics_of`].
pub fn scores_of(scoring: Scoring, rows: &[i64], ranked: &[i64]) -> Scores {
    match scoring {
        Scoring::Classes { classes } => {
            let of_rows = rows.iter().zip(unranked_classes(usize::from(classes), ranked));
            let mut scores: Vec<ClassScore> = of_rows
                .map(|(&row, (label, probabilities))| ClassScore { row: row as u32, label, probabilities })
                .collect();
            scores.sort_unstable_by_key(|score| score.row);
            Scores::Classes(scores)
        }
        Scoring::Logit | Scoring::Rating { .. } | Scoring::FiveRatings { .. } => {
            let of_row = |(&row, &ranked): (&i64, &i64)| {
                let (score, label) = unranked(ranked);
                RowScore { row: row as u32, label, score }
            };
            let mut scores: Vec<RowScore> = rows.iter().zip(ranked).map(of_row).collect();
            scores.sort_unstable_by_key(|score| score.row);
            Scores::Label(scores)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASSES: Scoring = Scoring::Classes { classes: 3 };

    fn counted(scoring: Scoring, rows: &[(&[f64], u8)]) -> Counted {
        let mut counted = Counted::new(scoring);
        rows.iter().for_each(|(outputs, label)| counted.add(outputs, *label, 0.5));
        counted
    }

    #[test]
    fn two_and_three_classes_have_the_same_interface() {
        let of_label = counted(Scoring::Logit, &[(&[1.0], 1), (&[-1.0], 1)]);
        let of_classes = counted(CLASSES, &[(&[1.0, 0.0, 0.0], 0), (&[1.0, 0.0, 0.0], 2)]);
        for (scoring, counted, n_classes) in [(Scoring::Logit, of_label, 2), (CLASSES, of_classes, 3)] {
            let found = metrics_of(scoring, &counted.sums(), &mut counted.ranked().to_vec()).unwrap();
            assert_eq!((found.loss, found.accuracy, found.auc, found.rows), (0.5, 0.5, None, 2));
            assert_eq!(found.confusion.n_classes(), n_classes);
            let json = serde_json::to_string(&found).unwrap();
            assert_eq!(serde_json::from_str::<Metrics>(&json).unwrap(), found);
            assert_eq!(scoring.is_of_label(), n_classes == 2);
        }
        assert_eq!(serde_json::to_string(&CLASSES).unwrap(), "{\"classes\":{\"classes\":3}}");
    }

    #[test]
    fn scores_are_in_the_order_of_the_dataset() {
        let of_classes = counted(CLASSES, &[(&[1.0, 0.0, 0.0], 0), (&[0.0, 0.0, 9.0], 1)]);
        let Scores::Classes(found) = scores_of(CLASSES, &[7, 4], of_classes.ranked()) else {
            panic!("scores of another kind");
        };
        let found: Vec<_> =
            found.iter().map(|row| (row.row, row.label, row.probabilities.predicted())).collect();
        assert_eq!(found, [(4, 1, 2), (7, 0, 0)]);
        let of_label = counted(Scoring::Logit, &[(&[1.5], 0), (&[-2.0], 1)]);
        let expected =
            vec![RowScore { row: 4, label: 1, score: -2.0 }, RowScore { row: 7, label: 0, score: 1.5 }];
        assert_eq!(scores_of(Scoring::Logit, &[7, 4], of_label.ranked()), Scores::Label(expected));
    }
}
