//! The sections of the page, the most important first, and code that several of them use.

mod curves;
mod data;
mod epochs;
mod folds;
mod glance;
mod held_out;
mod intervals;
mod lead;
mod ngrams;
mod notes;
mod settings;
mod speed;
mod words;
mod wrong;

pub use self::curves::curves;
pub use self::data::cards;
pub use self::epochs::epochs;
pub use self::folds::{folds, has_folds};
pub use self::glance::glance;
pub use self::held_out::held_out;
pub use self::lead::lead;
pub use self::ngrams::{has_ngrams, ngrams};
pub use self::notes::notes;
pub use self::settings::settings;
pub use self::speed::speed;
pub use self::words::words;
pub use self::wrong::wrong;
use crate::chart::{Chart, Series, Style, UNLIMITED};
use crate::html::Html;
use crate::name::run_name;
use crate::numbers::short;
use crate::run::Run;
use batches::Part;
use runs::training::StepsLine;

/// Ids of the sections and their titles.
pub const NAMES: [(&str, &str); 12] = [
    ("glance", "At a glance"),
    ("folds", "Folds"),
    ("curves", "Curves"),
    ("epochs", "Epochs"),
    ("held-out", "Held-out rows"),
    ("wrong", "Most wrong"),
    ("ngrams", "N-grams"),
    ("words", "Word vectors"),
    ("speed", "Speed and waiting"),
    ("settings", "Settings"),
    ("data", "Data"),
    ("notes", "Notes"),
];

/// Whether a page has a section. Sections that are empty for every run are omitted.
pub fn is_shown(id: &str, runs: &[Run]) -> bool {
    let are_of_ngrams = runs.iter().all(Run::is_of_ngrams);
    let are_of_vectors = runs.iter().all(Run::is_of_vectors);
    match id {
        "words" => runs.iter().any(Run::is_of_vectors),
        // Word vectors have no rows, splits and data card.
        "curves" | "epochs" | "held-out" | "wrong" | "speed" | "data" if are_of_vectors => false,
        "folds" => has_folds(runs),
        "ngrams" => has_ngrams(runs),
        // An n-gram training has no ranks in its log.
        "speed" => !are_of_ngrams,
        "wrong" => !are_of_ngrams || runs.iter().any(Run::has_wrong),
        // Linear models have no loss of an epoch.
        "curves" | "epochs" => !are_of_ngrams || runs.iter().any(Run::has_losses),
        _ => true,
    }
}

fn section(id: &'static str, html: &mut Html, content: impl FnOnce(&mut Html)) {
    let name = NAMES.iter().find(|(name, _)| *name == id).map_or(id, |(_, name)| name);
    html.element("section", &[("id", id), ("aria-labelledby", &format!("{id}-name"))], |html| {
        html.leaf("h2", &[("id", &format!("{id}-name"))], name);
        content(html);
    });
}

/// A table that scrolls if it is wider than the page.
fn table(label: &str, html: &mut Html, content: impl FnOnce(&mut Html)) {
    html.element(
        "div",
        &[("class", "scroll"), ("role", "region"), ("tabindex", "0"), ("aria-label", label)],
        |html| {
            html.element("table", &[], content);
        },
    );
}

fn row_of(head: &str, html: &mut Html, content: impl FnOnce(&mut Html)) {
    html.element("tr", &[], |html| {
        html.leaf("th", &[("scope", "row")], head);
        content(html);
    });
}

fn cell(text: &str, html: &mut Html) {
    html.leaf("td", &[], text);
}

fn columns(heads: &[&str], html: &mut Html) {
    html.element("thead", &[], |html| {
        html.element("tr", &[], |html| {
            for head in heads {
                html.leaf("th", &[("scope", "col")], head);
            }
        });
    });
}

/// A header row with one column per run.
fn columns_of_runs(head: &str, runs: &[Run], html: &mut Html) {
    html.element("thead", &[], |html| {
        html.element("tr", &[], |html| {
            html.leaf("th", &[("scope", "col")], head);
            for (at, run) in runs.iter().enumerate() {
                html.element("th", &[("scope", "col")], |html| run_name(at, run, html));
            }
        });
    });
}

fn part_name(part: Part) -> &'static str {
    match part {
        Part::Training => "training",
        Part::Validation => "validation",
        Part::Test => "test",
    }
}

/// Whether all runs with metrics were evaluated on the same rows; `None` if that is not known.
fn are_comparable(runs: &[Run]) -> Option<bool> {
    let mut tested = runs.iter().filter(|run| run.rates().is_some());
    let Some(first) = tested.next() else { return Some(true) };
    let others: Vec<Option<bool>> = tested.map(|run| first.has_rows_of(run)).collect();
    match others.contains(&Some(false)) {
        true => Some(false),
        false => others.into_iter().collect::<Option<Vec<_>>>().map(|_| true),
    }
}

/// The name of the F1 of a run: that of label 1, or the mean over three or more classes.
fn f1_name(run: &Run) -> &'static str {
    if run.has_classes() { "macro F1" } else { "F1" }
}

/// Name of the run for a line, if there are several runs.
fn line_of(runs: &[Run], run: &Run) -> String {
    if runs.len() == 1 { String::new() } else { run.name.clone() }
}

/// Epochs as a fractional number, so that runs with different batch sizes are comparable.
fn epochs_at(run: &Run, step: u64) -> Option<f64> {
    run.steps_of_epoch().map(|steps| step as f64 / steps as f64)
}

/// One or several lines per run.
fn series<'a>(
    runs: &'a [Run],
    mut of: impl FnMut(&'a Run) -> Vec<(&'static str, Style, Vec<(f64, f64)>)>,
) -> Vec<Series> {
    let mut lines = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        for (what, style, points) in of(run) {
            lines.push(Series { run: at, of: line_of(runs, run), what: what.to_owned(), style, points });
        }
    }
    lines
}

fn over_steps(run: &Run, value: impl Fn(&StepsLine) -> f64) -> Vec<(f64, f64)> {
    run.steps.iter().filter_map(|line| Some((epochs_at(run, line.step)?, value(line)))).collect()
}

fn over_epoch_axis<'a>(
    title: &'a str,
    note: &'a str,
    y_text: fn(f64) -> String,
    lines: Vec<Series>,
) -> Chart<'a> {
    Chart {
        title,
        note,
        x_label: "epoch",
        y_range: None,
        from_zero: false,
        y_limits: UNLIMITED,
        x_range: None,
        diagonal: None,
        y_text,
        x_text: short,
        lines,
    }
}
