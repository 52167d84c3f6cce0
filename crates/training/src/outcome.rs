//! Formats the result of a training in some lines, with confidence intervals and the majority-class baseline.

use batches::Part;
use runs::training::EvaluationRecord;
use scoring::{Calibrator, Choice, Criterion, Interval, LargerClass, Metrics, Scoring};

/// A model with a higher AUC ranks rows better than chance, even if no score crosses the threshold. This happens
/// if few rows have one of the labels.
const RANKS_ROWS: f64 = 0.6;

/// A warning of metrics of the validation split, on which the model was fitted.
pub const FITTED: &str = "warning: threshold or calibration was fitted on these rows, so the metrics are better than on other \
                          rows; hold out a test split with --test-fraction, or pass --test";

/// A warning of scores that cannot be calibrated.
pub const NOT_CALIBRATED: &str = "warning: --calibrate platt: higher scores do not go with label 1 in the validation split, so \
                                  probabilities are not calibrated";

/// Calibration and threshold in words; `None` without both.
pub fn chosen(choice: Choice, scoring: Scoring) -> Option<String> {
    let calibration = choice.calibration.map(|calibration| match calibration {
        Calibrator::Temperature(temperature) => format!("temperature {temperature:.4}"),
        Calibrator::Platt { slope, intercept } => {
            format!("Platt calibration with slope {slope:.4} and intercept {intercept:.4}")
        }
    });
    let threshold = choice.threshold.map(|threshold| {
        let by = match threshold.by {
            Criterion::F1 => ", the highest F1 on the validation split",
            Criterion::Accuracy => ", the highest accuracy on the validation split",
            Criterion::Probability => "",
        };
        match choice.decision(scoring).probability(threshold.score) {
            Some(probability) => format!("threshold at probability {probability:.4}{by}"),
            None => format!("threshold at score {:.4}{by}", threshold.score),
        }
    });
    let chosen: Vec<String> = [calibration, threshold].into_iter().flatten().collect();
    (!chosen.is_empty()).then(|| chosen.join("; "))
}

/// What can help a model that is not better than the majority-class baseline.
pub struct Remedies<'a> {
    /// What the command calls a row.
    pub row: &'a str,
    /// The flag of the weights of labels, for a model that ranks rows better than chance.
    pub weight: &'a str,
    /// The advice for any other model.
    pub not_learned: &'a str,
}

/// Accuracy, F1 and AUC, each with its interval and its baseline; for three or more classes a line per class; and another
/// line if the model is not better than the baseline.
pub fn lines(record: &EvaluationRecord) -> Vec<String> {
    let EvaluationRecord { part, ref metrics, ref classes, intervals, .. } = *record;
    let LargerClass { label, accuracy, f1 } = metrics.larger_class();
    let of_accuracy = range(intervals.map(|of| of.accuracy));
    let of_f1 = range(intervals.map(|of| of.f1));
    let of_auc = range(intervals.and_then(|of| of.auc));
    let is_of_label = metrics.confusion.n_classes() == 2;
    let largest = match classes.get(usize::from(label)) {
        Some(name) => format!("class {name}"),
        None => format!("label {label}"),
    };
    let rows = match part {
        Part::Training => "training",
        Part::Validation => "validation",
        Part::Test => "test",
    };
    let mut lines = vec![format!(
        "accuracy {:.4}{of_accuracy} on {} {rows} rows (majority-class baseline, {largest}: {accuracy:.4})",
        metrics.accuracy, metrics.rows
    )];
    let f1_of = match classes.get(1) {
        Some(name) if is_of_label => format!("of class {name}; "),
        _ => String::new(),
    };
    let name = if is_of_label { "F1      " } else { "macro F1" };
    lines.push(format!("{name} {:.4}{of_f1} ({f1_of}baseline: {f1:.4})", metrics.f1));
    lines.push(match metrics.auc {
        Some(auc) if is_of_label => format!("AUC      {auc:.4}{of_auc} (baseline: 0.5000)"),
        Some(auc) => {
            format!("AUC      {auc:.4}{of_auc} (mean of each class against the others; baseline: 0.5000)")
        }
        None if is_of_label => format!("AUC      none: every row has {largest}"),
        None => "AUC      none: a class has no rows".to_owned(),
    });
    if !is_of_label {
        let of_classes = classes.iter().zip(metrics.confusion.classes());
        lines.extend(of_classes.map(|(name, of)| {
            let (f1, precision, recall) = (of.f1, of.precision, of.recall);
            format!(
                "class {name}: F1 {f1:.4}, precision {precision:.4}, recall {recall:.4}, {} rows",
                of.rows
            )
        }));
    }
    if record.is_fitted() {
        lines.push(FITTED.to_owned());
    }
    let weight = if is_of_label { "--pos-weight" } else { "--class-weight" };
    let remedies =
        Remedies { row: "row", weight, not_learned: "train on more rows, longer, or with another --rate" };
    lines.extend(not_above_baseline(metrics, &largest, &remedies));
    lines
}

/// A line if the model is not better than the majority-class baseline, which predicts `largest` for every row.
pub fn not_above_baseline(metrics: &Metrics, largest: &str, remedies: &Remedies<'_>) -> Option<String> {
    let Remedies { row, weight, not_learned } = *remedies;
    if metrics.accuracy > metrics.larger_class().accuracy {
        return None;
    }
    let n_labels = metrics.confusion.labels().filter(|counts| counts.iter().any(|&n| n > 0)).count();
    if n_labels == 1 {
        return Some(format!(
            "warning: every evaluated {row} has {largest}, so these metrics do not show whether the model distinguishes \
             labels; test on {row}s of all labels: pass another --test, or a larger --test-fraction"
        ));
    }
    let remedy = match metrics.auc {
        Some(auc) if auc >= RANKS_ROWS => {
            let compared = if metrics.confusion.n_classes() == 2 { "AUC" } else { "macro F1" };
            format!(
                "the AUC of {auc:.4} shows that the model has learned: compare {compared}. With {weight} balanced, the model \
                 predicts rare labels more often, mostly at a lower accuracy"
            )
        }
        _ => not_learned.to_owned(),
    };
    Some(format!(
        "the accuracy is not above that of the majority-class baseline ({largest} for every {row}); {remedy}"
    ))
}

/// A confidence interval, if it was computed.
fn range(interval: Option<Interval>) -> String {
    interval.map_or_else(String::new, |Interval(low, high)| format!(" [95 %: {low:.4} to {high:.4}]"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use scoring::{Accumulator, ClassAccumulator, Probabilities, RowScore, RowTexts, class_metrics};

    fn record(metrics: Metrics, classes: &[String]) -> EvaluationRecord {
        EvaluationRecord {
            version: 2,
            part: Part::Test,
            dataset: String::new(),
            rows_digest: None,
            step: 0,
            scoring: Scoring::Logit,
            tokens_max: 0,
            classes: classes.to_vec(),
            calibration: None,
            threshold: None,
            metrics,
            intervals: None,
            probabilities: None,
            scores_sha256: String::new(),
            wrong: Vec::new(),
        }
    }

    fn metrics(rows: &[(f32, u8)]) -> Metrics {
        let mut accumulator = Accumulator::default();
        rows.iter().for_each(|&(score, label)| accumulator.add(Scoring::Logit, score, label, 0.5));
        accumulator.metrics().unwrap()
    }

    fn of(rows: &[(f32, u8)]) -> Vec<String> {
        named(rows, &[])
    }

    fn named(rows: &[(f32, u8)], classes: &[String]) -> Vec<String> {
        lines(&record(metrics(rows), classes))
    }

    #[test]
    fn each_metric_has_its_interval() {
        let rows = [(2.0, 1), (1.0, 1), (-1.0, 1), (-2.0, 0)];
        let scores = rows.map(|(score, label)| RowScore { row: 0, label, score });
        let record = record(metrics(&rows), &[]);
        let intervals = scoring::intervals(Scoring::Logit, &scores, &[0.5; 4], RowTexts::Distinct);
        let found = lines(&EvaluationRecord { intervals: Some(intervals), ..record });

        assert_eq!(
            found[..3],
            [
                "accuracy 0.7500 [95 %: 0.0000 to 1.0000] on 4 test rows (majority-class baseline, label 1: 0.7500)",
                "F1       0.8000 [95 %: 0.0000 to 1.0000] (baseline: 0.8571)",
                "AUC      1.0000 [95 %: 1.0000 to 1.0000] (baseline: 0.5000)",
            ]
        );
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
                "the accuracy is not above that of the majority-class baseline (label 1 for every row); the AUC of \
                 1.0000 shows that the model has learned: compare AUC. With --pos-weight balanced, the model predicts rare labels \
                 more often, mostly at a lower accuracy",
            ]
        );
    }

    #[test]
    fn named_classes_are_shown_by_their_names() {
        let names = ["bad", "good"].map(str::to_owned);
        let found = named(&[(2.0, 1), (1.0, 1), (-1.0, 1), (-2.0, 0)], &names);
        assert_eq!(found[0], "accuracy 0.7500 on 4 test rows (majority-class baseline, class good: 0.7500)");
        assert_eq!(found[1], "F1       0.8000 (of class good; baseline: 0.8571)");
        assert_eq!(named(&[(2.0, 0)], &names)[2], "AUC      none: every row has class bad");
    }

    #[test]
    fn three_classes_have_a_macro_f1_and_a_line_each() {
        let mut accumulator = ClassAccumulator::new(3);
        for (logits, label) in
            [([2.0, 0.0, 0.0], 0), ([1.0, 0.0, 0.0], 0), ([0.0, 3.0, 0.0], 1), ([1.0, 0.0, 0.5], 2)]
        {
            accumulator.add(&Probabilities::of_logits(&logits), label, 0.5);
        }
        let metrics = class_metrics(3, &accumulator.sums(), accumulator.ranked()).unwrap();
        let names = ["bad", "fair", "good"].map(str::to_owned);
        assert_eq!(
            lines(&record(metrics, &names)),
            [
                "accuracy 0.7500 on 4 test rows (majority-class baseline, class bad: 0.5000)",
                "macro F1 0.6000 (baseline: 0.2222)",
                "AUC      1.0000 (mean of each class against the others; baseline: 0.5000)",
                "class bad: F1 0.8000, precision 0.6667, recall 1.0000, 2 rows",
                "class fair: F1 1.0000, precision 1.0000, recall 1.0000, 1 rows",
                "class good: F1 0.0000, precision 0.0000, recall 0.0000, 1 rows",
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
    fn rows_of_one_label_have_no_auc_and_need_another_test() {
        for rows in [[(2.0, 0), (-2.0, 0)], [(-2.0, 0), (-2.0, 0)]] {
            assert_eq!(
                of(&rows)[2..],
                [
                    "AUC      none: every row has label 0",
                    "warning: every evaluated row has label 0, so these metrics do not show whether the model distinguishes \
                     labels; test on rows of all labels: pass another --test, or a larger --test-fraction",
                ]
            );
        }
    }
}
