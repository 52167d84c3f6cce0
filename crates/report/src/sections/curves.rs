//! Loss, metrics and learning rate over epochs.

use super::{over_epoch_axis, over_steps, section, series};
use crate::chart::{Chart, FROM_ZERO, SHARE, Series, Style};
use crate::html::Html;
use crate::numbers::{percent, short};
use crate::run::Run;
use batches::Part;
use runs::training::EpochLine;
use scoring::Measured;

/// The course of the training.
pub fn curves(runs: &[Run], html: &mut Html) {
    section("curves", html, |html| {
        if runs.iter().all(|run| run.steps.is_empty() && run.epochs.is_empty()) {
            html.paragraph("quiet", "No step has been logged yet.");
            return;
        }
        html.class("div", "charts", |html| {
            // The losses of words and of rows are not comparable.
            let note = "mean over rows, during training";
            positive(over_epoch_axis("Loss", note, short, losses(runs, |run| !run.is_of_words()))).draw(html);
            let note = "sampled softmax, during training";
            positive(over_epoch_axis("Loss of a next word", note, short, losses(runs, Run::is_of_words)))
                .draw(html);
            let note = "held-out rows";
            share(over_epoch_axis("Accuracy", note, percent, held_out(runs, Measured::accuracy))).draw(html);
            let note = match runs.iter().any(Run::has_classes) {
                true => "held-out rows; for three or more classes the macro F1",
                false => note,
            };
            share(over_epoch_axis("F1", note, short, held_out(runs, Measured::f1))).draw(html);
            let is_constant = |run: &Run| run.steps.windows(2).all(|at| at[0].rate == at[1].rate);
            if !runs.iter().all(is_constant) {
                let rates = series(runs, |run| vec![("", Style::Line, over_steps(run, |line| line.rate))]);
                positive(over_epoch_axis("Learning rate", "", short, rates)).draw(html);
            }
        });
    });
}

fn positive(chart: Chart<'_>) -> Chart<'_> {
    Chart { y_limits: FROM_ZERO, ..chart }
}

fn share(chart: Chart<'_>) -> Chart<'_> {
    Chart { y_limits: SHARE, ..chart }
}

fn losses(runs: &[Run], is_of: impl Fn(&Run) -> bool) -> Vec<Series> {
    series(runs, |run| {
        if !is_of(run) {
            return Vec::new();
        }
        let validation = over_epochs(run, |epoch| epoch.validation.as_ref().map(Measured::loss));
        vec![
            ("training, by step", Style::Faint, over_steps(run, |line| line.loss)),
            ("training", Style::Dots, over_epochs(run, |epoch| epoch.loss)),
            ("validation", Style::Dashes, validation),
            (
                "test, by epoch",
                Style::Rings,
                over_epochs(run, |epoch| epoch.test.as_ref().map(Measured::loss)),
            ),
        ]
    })
}

fn held_out(runs: &[Run], measure: fn(&Measured) -> f64) -> Vec<Series> {
    series(runs, |run| {
        let validation = over_epochs(run, |epoch| epoch.validation.as_ref().map(measure));
        vec![
            ("validation", Style::Dots, validation),
            ("test, by epoch", Style::Dashes, over_epochs(run, |epoch| epoch.test.as_ref().map(measure))),
            ("test", Style::Rings, at_the_end(run, measure)),
        ]
    })
}

fn over_epochs(run: &Run, value: impl Fn(&EpochLine) -> Option<f64>) -> Vec<(f64, f64)> {
    run.epochs.iter().filter_map(|epoch| Some((f64::from(epoch.epoch), value(epoch)?))).collect()
}

/// The metric of the test split, drawn at the last epoch.
fn at_the_end(run: &Run, value: impl Fn(&Measured) -> f64) -> Vec<(f64, f64)> {
    let end = run.epochs.last().map(|epoch| f64::from(epoch.epoch));
    end.zip(run.measured.filter(|(part, _)| *part == Part::Test))
        .map(|(end, (_, metrics))| (end, value(&metrics)))
        .into_iter()
        .collect()
}
