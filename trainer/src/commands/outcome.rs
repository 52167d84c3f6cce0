//! Formats the result of a training in three lines, with the majority-class baseline.

use batches::Part;
use scoring::{LargerClass, Metrics};

/// A model with a higher AUC ranks rows better than chance, even if no score crosses the threshold. This happens
/// if few rows have one of the labels.
const RANKS_ROWS: f64 = 0.6;

/// Accuracy, F1 and AUC, each with its baseline, and a fourth line if the model is not better than the baseline.
pub(super) fn lines(part: Part, metrics: &Metrics) -> Vec<String> {
    let LargerClass { label, accuracy, f1 } = metrics.larger_class();
    let rows = match part {
        Part::Training => "training",
        Part::Validation => "validation",
        Part::Test => "test",
    };
    let mut lines = vec![
        format!(
            "accuracy {:.4} on {} {rows} rows (majority-class baseline, label {label}: {accuracy:.4})",
            metrics.accuracy, metrics.rows
        ),
        format!("F1       {:.4} (baseline: {f1:.4})", metrics.f1),
        match metrics.auc {
            Some(auc) => format!("AUC      {auc:.4} (baseline: 0.5000)"),
            None => format!("AUC      none: every row has label {label}"),
        },
    ];
    if metrics.accuracy <= accuracy {
        let remedy = match metrics.auc {
            Some(auc) if auc >= RANKS_ROWS => {
                "the AUC shows that the model has learned: compare AUC, or train with --pos-weight balanced"
            }
            _ => "train on more rows, longer, or with another --rate",
        };
        lines.push(format!(
            "the accuracy is not above that of the majority-class baseline (label {label} for every row); {remedy}"
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use scoring::{Scoring, Tally};

    fn of(rows: &[(f32, u8)]) -> Vec<String> {
        let mut tally = Tally::default();
        rows.iter().for_each(|&(score, label)| tally.add(Scoring::Logit, score, label, 0.5));
        lines(Part::Test, &tally.metrics().unwrap())
    }

    #[test]
    fn three_lines_tell_what_came_out_beside_the_larger_class() {
        let found = of(&[(2.0, 1), (1.0, 1), (-1.0, 1), (-2.0, 0)]);

        assert_eq!(
            found,
            [
                "accuracy 0.7500 on 4 test rows (majority-class baseline, label 1: 0.7500)",
                "F1       0.8000 (baseline: 0.8571)",
                "AUC      1.0000 (baseline: 0.5000)",
                "the accuracy is not above that of the majority-class baseline (label 1 for every row); the AUC \
                 shows that the model has learned: compare AUC, or train with --pos-weight balanced",
            ]
        );
    }

    #[test]
    fn a_model_that_is_better_is_not_called_worse() {
        let found = of(&[(2.0, 1), (-1.0, 0), (-2.0, 0)]);

        assert_eq!(found.len(), 3);
        assert_eq!(found[1], "F1       1.0000 (baseline: 0.0000)");
    }

    #[test]
    fn rows_of_one_label_have_no_auc() {
        assert_eq!(of(&[(2.0, 0), (-2.0, 0)])[2], "AUC      none: every row has label 0");
    }
}
