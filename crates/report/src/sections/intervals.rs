//! A table of metrics with their confidence intervals, and the quality of probabilities.

use super::{cell, columns_of_runs, row_of, table};
use crate::html::Html;
use crate::numbers::measure;
use crate::run::{Evaluated, Run};
use runs::training::EvaluationRecord;
use scoring::{Criterion, Interval};

/// A row of the table: its name, and a run's value with its interval.
type Line = (&'static str, fn(&Evaluated, Option<&EvaluationRecord>) -> Option<(f64, Option<Interval>)>);

const LINES: [Line; 10] = [
    ("accuracy", |of, _| Some((of.accuracy, of.intervals.map(|all| all.accuracy)))),
    ("F1", |of, _| Some((of.f1, of.intervals.map(|all| all.f1)))),
    ("precision", |of, _| Some((of.precision, of.intervals.map(|all| all.precision)))),
    ("recall", |of, _| Some((of.recall, of.intervals.map(|all| all.recall)))),
    ("AUC", |of, _| Some((of.auc?, of.intervals.and_then(|all| all.auc)))),
    ("loss", |of, _| Some((of.loss, of.intervals.map(|all| all.loss)))),
    ("Brier score", |of, record| {
        Some((record?.probabilities?.quality.brier, of.intervals.and_then(|all| all.brier)))
    }),
    ("Brier score, uncalibrated", |_, record| Some((record?.probabilities?.uncalibrated?.brier, None))),
    ("calibration error", |_, record| Some((record?.probabilities?.quality.calibration_error, None))),
    ("calibration error, uncalibrated", |_, record| {
        Some((record?.probabilities?.uncalibrated?.calibration_error, None))
    }),
];

/// The table, if a run has intervals, and the thresholds that were chosen.
pub(super) fn intervals(runs: &[Run], html: &mut Html) {
    let with_intervals = |run: &Run| run.rates().filter(|of| of.intervals.is_some());
    let evaluated: Vec<Option<Evaluated>> = runs.iter().map(with_intervals).collect();
    if evaluated.iter().all(Option::is_none) {
        return;
    }
    let record = |run: &Run| run.evaluation.clone().filter(|record| record.intervals.is_some());
    let records: Vec<Option<EvaluationRecord>> = runs.iter().map(record).collect();
    table("Metrics with 95 % confidence intervals", html, |html| {
        columns_of_runs("95 % confidence intervals", runs, html);
        html.element("tbody", &[], |html| {
            for (name, of) in LINES {
                let value = |(evaluated, record): (&Option<Evaluated>, &Option<EvaluationRecord>)| {
                    of(evaluated.as_ref()?, record.as_ref())
                };
                let values: Vec<_> = evaluated.iter().zip(&records).map(value).collect();
                if values.iter().all(Option::is_none) {
                    continue;
                }
                let is_mean =
                    matches!(name, "F1" | "precision" | "recall") && runs.iter().any(Run::has_classes);
                let mean = if runs.iter().all(Run::has_classes) { "macro" } else { "label 1, or macro" };
                let name = if is_mean { format!("{name} ({mean})") } else { name.to_owned() };
                row_of(&name, html, |html| {
                    for value in values {
                        cell(&value.map_or_else(|| "–".to_owned(), shown), html);
                    }
                });
            }
            if records.iter().flatten().any(|record| record.threshold.is_some()) {
                row_of("threshold", html, |html| {
                    for record in &records {
                        cell(&record.as_ref().map_or_else(|| "–".to_owned(), threshold), html);
                    }
                });
            }
        });
    });
}

fn shown((value, interval): (f64, Option<Interval>)) -> String {
    let interval = interval
        .map_or_else(String::new, |Interval(low, high)| format!(" ({} to {})", measure(low), measure(high)));
    format!("{}{interval}", measure(value))
}

/// The threshold as a probability, or as a score if there is no probability.
fn threshold(record: &EvaluationRecord) -> String {
    let Some(threshold) = record.threshold else { return "default".to_owned() };
    let by = match threshold.by {
        Criterion::F1 => " (highest F1)",
        Criterion::Accuracy => " (highest accuracy)",
        Criterion::Probability => "",
    };
    match record.decision().probability(threshold.score) {
        Some(probability) => format!("probability {}{by}", measure(probability)),
        None => format!("score {}{by}", measure(f64::from(threshold.score))),
    }
}
