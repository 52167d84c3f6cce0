//! Results of each epoch, one table per run.

use super::{cell, columns, f1_name, part_name, row_of, section, table};
use crate::html::Html;
use crate::name::run_name;
use crate::numbers::{duration, measure};
use crate::run::Run;
use runs::training::EpochLine;
use scoring::Measured;

/// Writes the tables, with the columns of the original system's table.
pub fn epochs(runs: &[Run], html: &mut Html) {
    section("epochs", html, |html| {
        html.class("div", "pairs", |html| {
            for (at, run) in runs.iter().enumerate() {
                html.element("div", &[], |html| {
                    if runs.len() > 1 {
                        html.element("h3", &[], |html| run_name(at, run, html));
                    }
                    epoch_table(run, html);
                });
            }
        });
    });
}

fn epoch_table(run: &Run, html: &mut Html) {
    if run.epochs.is_empty() && run.measured.is_none() {
        let is_linear = run.n_epochs() > 0;
        html.paragraph(
            "quiet",
            if is_linear { "A linear model has no metrics per epoch." } else { "No epoch is finished." },
        );
        return;
    }
    table(&format!("Epochs of {}", run.name), html, |html| {
        let is_tested = run.epochs.iter().any(|epoch| epoch.test.is_some());
        let (f1, test_f1) = (f1_name(run), format!("test {}", f1_name(run)));
        let by_epoch: &[&str] = if is_tested { &["test loss", "test accuracy", &test_f1] } else { &[] };
        columns(&[&["epoch", "time", "training loss", "loss", "accuracy", f1], by_epoch].concat(), html);
        html.element("tbody", &[], |html| {
            for epoch in &run.epochs {
                row_of(&numbers(run, epoch), html, |html| {
                    let more = if run.is_partial(epoch) { " (partial)" } else { "" };
                    cell(&epoch.seconds.map_or_else(|| "–".to_owned(), |time| duration(time) + more), html);
                    cell(&epoch.loss.map_or_else(|| "–".to_owned(), measure), html);
                    cells(epoch.validation, html);
                    if is_tested {
                        cells(epoch.test, html);
                    }
                });
            }
            if let Some((part, metrics)) = run.measured {
                html.class("tr", "sum", |html| {
                    html.leaf("th", &[("scope", "row")], part_name(part));
                    let time = run.training_seconds();
                    cell(&time.map_or_else(|| "–".to_owned(), |(seconds, _)| duration(seconds)), html);
                    cell("", html);
                    cells(Some(metrics), html);
                    by_epoch.iter().for_each(|_| cell("", html));
                });
            }
        });
    });
    if run.epochs.iter().any(|epoch| run.is_partial(epoch)) {
        html.paragraph(
            "quiet",
            "\u{201c}partial\u{201d}: the training was resumed within that epoch; the time is that of the part after it.",
        );
    }
}

/// The number of an epoch, or those of several that were logged together.
fn numbers(run: &Run, line: &EpochLine) -> String {
    let epoch = line.epoch;
    let first =
        line.from_step.zip(run.steps_of_epoch()).map_or(epoch.into(), |(from, steps)| 1 + from / steps);
    if first < u64::from(epoch) { format!("{first} to {epoch}") } else { epoch.to_string() }
}

/// Loss, accuracy and F1.
fn cells(metrics: Option<Measured>, html: &mut Html) {
    for of in [Measured::loss, Measured::accuracy, Measured::f1] {
        cell(&metrics.as_ref().map_or("–".to_owned(), |on| measure(of(on))), html);
    }
}
