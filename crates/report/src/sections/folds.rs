//! Metrics of the folds of a cross-validation, their mean and standard deviation.

use super::{cell, columns, row_of, section, table};
use crate::html::Html;
use crate::numbers::{counted, measure, percent, whole};
use crate::run::Run;
use scoring::{Estimate, Metrics, estimates};

/// Mean or deviation.
type OfEstimate = fn(&Estimate) -> f64;

/// One cross-validation: its folder, the number of its folds, and those of them that are on the page.
struct CrossValidation<'a> {
    folder: &'a str,
    n_folds: u16,
    runs: Vec<(u16, &'a Run)>,
}

impl CrossValidation<'_> {
    /// Metrics of the evaluated folds.
    fn metrics(&self) -> Vec<Metrics> {
        self.runs.iter().filter_map(|(_, run)| Some(run.tested()?.1)).collect()
    }
}

/// The cross-validations of the runs, in the order of their first fold.
fn cross_validations(runs: &[Run]) -> Vec<CrossValidation<'_>> {
    let mut found: Vec<CrossValidation<'_>> = Vec::new();
    for run in runs {
        let Some(fold) = run.fold else { continue };
        let folder = run.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        match found.iter_mut().find(|known| known.folder == folder && known.n_folds == fold.of) {
            Some(known) => known.runs.push((fold.number, run)),
            None => {
                found.push(CrossValidation { folder, n_folds: fold.of, runs: vec![(fold.number, run)] });
            }
        }
    }
    found.iter_mut().for_each(|known| known.runs.sort_by_key(|(number, _)| *number));
    found
}

/// Whether the page has the section.
pub fn has_folds(runs: &[Run]) -> bool {
    runs.iter().any(|run| run.fold.is_some())
}

/// One table per cross-validation.
pub fn folds(runs: &[Run], html: &mut Html) {
    if !has_folds(runs) {
        return;
    }
    section("folds", html, |html| {
        html.paragraph(
            "lede",
            "Each fold is one training; its metrics are those of the rows that it holds back. The deviation is the sample \
             standard deviation over the folds.",
        );
        for known in cross_validations(runs) {
            html.paragraph("path", known.folder);
            table_of(&known, html);
            let n_evaluated = known.metrics().len();
            if n_evaluated < usize::from(known.n_folds) {
                let folds = counted(u64::from(known.n_folds), "fold");
                html.paragraph("quiet", &format!("{n_evaluated} of {folds} are evaluated."));
            }
        }
    });
}

fn table_of(known: &CrossValidation<'_>, html: &mut Html) {
    let metrics = known.metrics();
    let Some(first) = metrics.first() else { return };
    let names: Vec<&str> = first.named().into_iter().map(|(name, _)| name).collect();
    let has_classes = known.runs.iter().any(|(_, run)| run.has_classes());
    let heads: Vec<&str> = names.iter().map(|name| head(name, has_classes)).collect();
    table(&format!("Folds of {}", known.folder), html, |html| {
        columns(&[&["fold"][..], &heads, &["rows"]].concat(), html);
        html.element("tbody", &[], |html| {
            for (number, run) in &known.runs {
                let Some((_, metrics)) = run.tested() else { continue };
                row_of(&number.to_string(), html, |html| {
                    for (_, value) in metrics.named() {
                        cell(&value.map_or_else(|| "–".to_owned(), measure), html);
                    }
                    cell(&whole(metrics.rows), html);
                });
            }
            let estimates = estimates(&metrics);
            let of: [(&str, OfEstimate); 2] = [("mean", |of| of.mean), ("deviation", |of| of.deviation)];
            for (what, of) in of {
                html.class("tr", "sum", |html| {
                    html.leaf("th", &[("scope", "row")], what);
                    for name in &names {
                        let value = estimates.get(*name).map(of);
                        cell(&value.map_or_else(|| "–".to_owned(), measure), html);
                    }
                    cell("", html);
                });
            }
        });
    });
}

/// A metric's name. Of three or more classes, F1, precision and recall are means over the classes.
fn head(name: &str, has_classes: bool) -> &str {
    match (name, has_classes) {
        ("f1", false) => "F1",
        ("f1", true) => "macro F1",
        ("precision", true) => "macro precision",
        ("recall", true) => "macro recall",
        ("auc", _) => "AUC",
        (other, _) => other,
    }
}

/// The sentence below the title, if all runs are folds of one cross-validation.
pub(super) fn lead(runs: &[Run]) -> Option<String> {
    let all = cross_validations(runs);
    let [known] = &all[..] else { return None };
    if known.runs.len() < runs.len() {
        return None;
    }
    let metrics = known.metrics();
    let accuracy = *estimates(&metrics).get("accuracy")?;
    Some(format!(
        "{}: {} of the held-out rows are predicted correctly on average, with a standard deviation of {:.1} points.",
        counted(metrics.len() as u64, "fold"),
        percent(accuracy.mean),
        100.0 * accuracy.deviation
    ))
}
