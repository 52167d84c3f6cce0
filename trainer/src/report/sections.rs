//! The parts of the page, from what a reader asks first to what is looked up.

use std::collections::BTreeSet;

use super::chart::{Chart, Series, Style, color};
use super::curves::{Calibration, calibration, roc};
use super::html::Html;
use super::numbers::{duration, json, measure, percent, short, whole};
use super::page::run_name;
use super::run::{EpochLine, Run};
use crate::batches::Part;
use crate::metrics::{Metrics, Scoring};
use crate::run::{EvaluationRecord, WrongRow};

/// The sections' names in addresses, and to readers.
pub const NAMES: [(&str, &str); 9] = [
    ("glance", "At a glance"),
    ("curves", "Curves"),
    ("epochs", "Epochs"),
    ("held-back", "Held-back rows"),
    ("wrong", "Most wrong"),
    ("speed", "Speed and waiting"),
    ("settings", "Settings"),
    ("data", "Data"),
    ("notes", "Notes"),
];

/// Of the most wrong reviews so many are shown at once; half of them where there are several runs.
const WRONG_SHOWN: usize = 8;

fn section(id: &'static str, html: &mut Html, content: impl FnOnce(&mut Html)) {
    let name = NAMES.iter().find(|(name, _)| *name == id).map_or(id, |(_, name)| name);
    html.element("section", &[("id", id), ("aria-labelledby", &format!("{id}-name"))], |html| {
        html.leaf("h2", &[("id", &format!("{id}-name"))], name);
        content(html);
    });
}

/// A table that scrolls by itself where it is wider than the page.
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

/// Columns for a thing that each run has, behind the thing's name.
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

/// What the page says, in a sentence.
pub fn lead(runs: &[Run]) -> String {
    let tested: Vec<(&Run, Metrics)> =
        runs.iter().filter_map(|run| run.tested.map(|(_, metrics)| (run, metrics))).collect();
    let rows_of =
        |run: &Run| run.evaluation.as_ref().map(|record| (record.dataset.clone(), record.metrics.rows));
    match (runs, &tested[..]) {
        ([run], [(_, metrics)]) => {
            let part = run.tested.map_or("test", |(part, _)| part_name(part));
            format!(
                "{} of {} {part} reviews are called what they are. {}",
                percent(metrics.accuracy),
                whole(metrics.rows),
                majority(metrics)
            )
        }
        ([_], _) => "No figures of held-back rows yet.".to_owned(),
        (_, []) => "None of these trainings has figures of held-back rows.".to_owned(),
        (_, tested) => {
            let mut order: Vec<&(&Run, Metrics)> = tested.iter().collect();
            order.sort_by(|one, other| other.1.accuracy.total_cmp(&one.1.accuracy));
            let best =
                format!("{} is ahead, with {} accuracy", order[0].0.name, percent(order[0].1.accuracy));
            let before = order.get(1).map(|next| {
                let points = 100.0 * (order[0].1.accuracy - next.1.accuracy);
                format!(", {points:.1} points before {}", next.0.name)
            });
            let first = rows_of(order[0].0);
            let same = if first.is_some() && order.iter().all(|(run, _)| rows_of(run) == first) {
                "."
            } else {
                ". They were not tested on the same rows, so compare with care."
            };
            format!("{best}{}{same}", before.unwrap_or_default())
        }
    }
}

/// What calling every row the same would reach.
fn majority(metrics: &Metrics) -> String {
    let positive = metrics.confusion.true_positive.saturating_add(metrics.confusion.false_negative);
    let negative = metrics.rows.saturating_sub(positive);
    let most = positive.max(negative);
    let word = if positive >= negative { "positive" } else { "negative" };
    format!(
        "Calling all of them {word} would be right for {}.",
        percent(most as f64 / metrics.rows.max(1) as f64)
    )
}

/// A card a run, and a table to compare by.
pub fn glance(runs: &[Run], html: &mut Html) {
    section("glance", html, |html| {
        html.class("div", "cards", |html| {
            for (at, run) in runs.iter().enumerate() {
                run_card(at, run, html);
            }
        });
        if runs.len() > 1 {
            comparison(runs, html);
        }
    });
}

fn run_card(at: usize, run: &Run, html: &mut Html) {
    html.class("article", &format!("card {}", color(at)), |html| {
        html.class("div", "card-head", |html| {
            html.leaf("h3", &[], &run.name);
            let (class, word) =
                if run.is_complete { ("pill done", "complete") } else { ("pill open", "not complete") };
            html.leaf("span", &[("class", class)], word);
        });
        html.paragraph("path", &run.path);
        match run.tested {
            None => html.paragraph("quiet", "No rows were held back, or they have not been looked at yet."),
            Some((part, metrics)) => {
                html.class("dl", "figures", |html| {
                    figure("accuracy", &percent(metrics.accuracy), html);
                    figure("F1", &measure(metrics.f1), html);
                    figure("AUC", &metrics.auc.map_or_else(|| "–".to_owned(), measure), html);
                    figure(&format!("{} loss", part_name(part)), &measure(metrics.loss), html);
                });
            }
        }
        let mut facts = vec![format!("{} epochs, {} steps", run.epochs.len(), whole(run.last_step))];
        if let Some((seconds, is_partial)) = run.training_seconds() {
            facts.push(format!("{}{}", duration(seconds), if is_partial { " and more" } else { "" }));
        }
        if let Some(speed) = run.reviews_per_s() {
            facts.push(format!("{} reviews/s", short(speed)));
        }
        if let Some(settings) = &run.settings {
            let ranks = if settings.world_size == 1 {
                "1 rank".to_owned()
            } else {
                format!("{} ranks", settings.world_size)
            };
            facts.push(format!("{ranks} on {}", settings.device));
            facts.push(format!("{} parameters", whole(settings.parameters)));
        }
        html.paragraph("facts", &facts.join(" · "));
        if let (false, Some(planned)) = (run.is_complete, run.steps_planned().filter(|&steps| steps > 0)) {
            let share = (run.last_step as f64 / planned as f64).min(1.0);
            let label = format!("{} of {} steps", whole(run.last_step), whole(planned));
            html.element("div", &[("class", "meter"), ("role", "img"), ("aria-label", &label)], |html| {
                html.element("div", &[("style", &format!("width:{:.1}%", 100.0 * share))], |_| ());
            });
        }
    });
}

fn figure(name: &str, value: &str, html: &mut Html) {
    html.element("div", &[], |html| {
        html.leaf("dt", &[], name);
        html.leaf("dd", &[], value);
    });
}

/// What a run is compared by: its name, how to find it, how to write it, and whether more is better.
type Measure = (&'static str, fn(&Run) -> Option<f64>, fn(f64) -> String, Better);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Better {
    More,
    Less,
    Neither,
}

fn tested(run: &Run, of: fn(&Metrics) -> f64) -> Option<f64> {
    run.tested.as_ref().map(|(_, metrics)| of(metrics))
}

const MEASURES: [Measure; 12] = [
    ("accuracy", |run| tested(run, |of| of.accuracy), measure, Better::More),
    ("F1", |run| tested(run, |of| of.f1), measure, Better::More),
    ("precision", |run| tested(run, |of| of.precision), measure, Better::More),
    ("recall", |run| tested(run, |of| of.recall), measure, Better::More),
    ("AUC", |run| run.tested.and_then(|(_, metrics)| metrics.auc), measure, Better::More),
    ("loss", |run| tested(run, |of| of.loss), measure, Better::Less),
    ("rows", |run| tested(run, |of| of.rows as f64), short_whole, Better::Neither),
    ("training loss, last epoch", |run| run.epochs.last().map(|epoch| epoch.loss), measure, Better::Neither),
    ("epochs", |run| Some(run.epochs.len() as f64), short_whole, Better::Neither),
    ("training time", |run| run.training_seconds().map(|(seconds, _)| seconds), duration, Better::Less),
    ("reviews/s", |run| run.reviews_per_s(), short, Better::More),
    (
        "parameters",
        |run| run.settings.as_ref().map(|settings| settings.parameters as f64),
        short_whole,
        Better::Neither,
    ),
];

fn short_whole(value: f64) -> String {
    whole(value as u64)
}

fn comparison(runs: &[Run], html: &mut Html) {
    table("The trainings compared", html, |html| {
        columns_of_runs("", runs, html);
        html.element("tbody", &[], |html| {
            for (name, of, text, better) in MEASURES {
                let values: Vec<Option<f64>> = runs.iter().map(of).collect();
                let known = || values.iter().flatten().copied();
                let best = match better {
                    Better::More => known().max_by(f64::total_cmp),
                    Better::Less => known().min_by(f64::total_cmp),
                    Better::Neither => None,
                };
                // Where all are equal, none is the best.
                let best = best.filter(|best| known().any(|value| value != *best));
                row_of(name, html, |html| {
                    for value in values {
                        match value {
                            None => cell("–", html),
                            Some(value) if Some(value) == best => {
                                html.element("td", &[("class", "best")], |html| {
                                    html.text(&text(value));
                                    html.leaf("span", &[("class", "spoken")], " (best)");
                                });
                            }
                            Some(value) => cell(&text(value), html),
                        }
                    }
                });
            }
        });
    });
}

/// Whose line it is, where there are several runs.
fn line_of(runs: &[Run], run: &Run) -> String {
    if runs.len() == 1 { String::new() } else { run.name.clone() }
}

/// Epochs as a number with a fraction, so that runs with other batches lie below each other.
fn epochs_at(run: &Run, step: u64) -> Option<f64> {
    run.steps_of_epoch().map(|steps| step as f64 / steps as f64)
}

/// A line a run, or a few.
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

fn over_steps(run: &Run, value: impl Fn(&super::run::StepsLine) -> f64) -> Vec<(f64, f64)> {
    run.steps.iter().filter_map(|line| Some((epochs_at(run, line.step)?, value(line)))).collect()
}

fn over_epochs(run: &Run, value: impl Fn(&EpochLine) -> Option<f64>) -> Vec<(f64, f64)> {
    run.epochs.iter().filter_map(|epoch| Some((f64::from(epoch.epoch), value(epoch)?))).collect()
}

/// The figure of the held-back rows, behind the last epoch.
fn at_the_end(run: &Run, value: impl Fn(&Metrics) -> f64) -> Vec<(f64, f64)> {
    let end = run.epochs.last().map(|epoch| f64::from(epoch.epoch));
    end.zip(run.tested.filter(|(part, _)| *part == Part::Test))
        .map(|(end, (_, metrics))| (end, value(&metrics)))
        .into_iter()
        .collect()
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
        x_range: None,
        diagonal: None,
        y_text,
        x_text: short,
        lines,
    }
}

/// How the training went.
pub fn curves(runs: &[Run], html: &mut Html) {
    section("curves", html, |html| {
        if runs.iter().all(|run| run.steps.is_empty()) {
            html.paragraph("quiet", "No step has been logged yet.");
            return;
        }
        html.class("div", "charts", |html| {
            let losses = series(runs, |run| {
                vec![
                    ("training, as it goes", Style::Faint, over_steps(run, |line| line.loss)),
                    ("training", Style::Dots, over_epochs(run, |epoch| Some(epoch.loss))),
                    (
                        "validation",
                        Style::Dashes,
                        over_epochs(run, |epoch| epoch.validation.map(|of| of.loss)),
                    ),
                ]
            });
            over_epoch_axis("Loss", "of a row, while the weights changed", short, losses).draw(html);
            let accuracies = series(runs, |run| {
                vec![
                    (
                        "validation",
                        Style::Dots,
                        over_epochs(run, |epoch| epoch.validation.map(|of| of.accuracy)),
                    ),
                    ("test", Style::Rings, at_the_end(run, |of| of.accuracy)),
                ]
            });
            over_epoch_axis("Accuracy", "of rows held back", percent, accuracies).draw(html);
            let f1s = series(runs, |run| {
                vec![
                    ("validation", Style::Dots, over_epochs(run, |epoch| epoch.validation.map(|of| of.f1))),
                    ("test", Style::Rings, at_the_end(run, |of| of.f1)),
                ]
            });
            over_epoch_axis("F1", "of rows held back", short, f1s).draw(html);
            let is_constant = |run: &Run| run.steps.windows(2).all(|at| at[0].rate == at[1].rate);
            if !runs.iter().all(is_constant) {
                let rates = series(runs, |run| vec![("", Style::Line, over_steps(run, |line| line.rate))]);
                over_epoch_axis("Learning rate", "", short, rates).draw(html);
            }
        });
    });
}

/// The table that the system before this one printed.
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
    if run.epochs.is_empty() && run.tested.is_none() {
        html.paragraph("quiet", "No epoch is over yet.");
        return;
    }
    table(&format!("Epochs of {}", run.name), html, |html| {
        columns(&["epoch", "time", "training loss", "loss", "accuracy", "F1"], html);
        html.element("tbody", &[], |html| {
            for epoch in &run.epochs {
                row_of(&epoch.epoch.to_string(), html, |html| {
                    let more = if run.is_partial(epoch) { " and more" } else { "" };
                    cell(&epoch.seconds.map_or_else(|| "–".to_owned(), |time| duration(time) + more), html);
                    cell(&measure(epoch.loss), html);
                    let of = |of: fn(&Metrics) -> f64| {
                        epoch.validation.as_ref().map_or("–".to_owned(), |on| measure(of(on)))
                    };
                    cell(&of(|on| on.loss), html);
                    cell(&of(|on| on.accuracy), html);
                    cell(&of(|on| on.f1), html);
                });
            }
            if let Some((part, metrics)) = run.tested {
                html.class("tr", "sum", |html| {
                    html.leaf("th", &[("scope", "row")], part_name(part));
                    let time = run.training_seconds();
                    cell(&time.map_or_else(|| "–".to_owned(), |(seconds, _)| duration(seconds)), html);
                    cell("", html);
                    [metrics.loss, metrics.accuracy, metrics.f1]
                        .iter()
                        .for_each(|&value| cell(&measure(value), html));
                });
            }
        });
    });
    if run.epochs.iter().any(|epoch| run.is_partial(epoch)) {
        html.paragraph(
            "quiet",
            "\u{201c}and more\u{201d}: the training was gone on with within that epoch, and the time is that of the rest.",
        );
    }
}

/// Confusion, ROC, calibration.
pub fn held_back(runs: &[Run], html: &mut Html) {
    section("held-back", html, |html| {
        if runs.iter().all(|run| run.tested.is_none()) {
            html.paragraph("quiet", "No rows were held back, or they have not been looked at yet.");
            return;
        }
        html.class("div", "charts", |html| {
            for (at, run) in runs.iter().enumerate() {
                if let Some((part, metrics)) = run.tested {
                    confusion(at, run, part, &metrics, html);
                }
            }
        });
        html.class("div", "charts", |html| {
            roc_chart(runs, html);
            calibration_chart(runs, html);
        });
    });
}

fn confusion(at: usize, run: &Run, part: Part, metrics: &Metrics, html: &mut Html) {
    let found = metrics.confusion;
    html.class("figure", &format!("chart confusion {}", color(at)), |html| {
        html.element("figcaption", &[], |html| {
            html.leaf("strong", &[], "Confusion");
            html.leaf(
                "span",
                &[],
                &format!("{}, {} rows of the {} part", run.name, whole(metrics.rows), part_name(part)),
            );
        });
        html.element("table", &[], |html| {
            columns(&["", "called negative", "called positive"], html);
            html.element("tbody", &[], |html| {
                let rows = [
                    ("is negative", [found.true_negative, found.false_positive]),
                    ("is positive", [found.false_negative, found.true_positive]),
                ];
                for (is, (name, counts)) in rows.into_iter().enumerate() {
                    let all = counts[0].saturating_add(counts[1]).max(1);
                    row_of(name, html, |html| {
                        for (called, count) in counts.into_iter().enumerate() {
                            let share = count as f64 / all as f64;
                            let class = if is == called { "right" } else { "astray" };
                            html.element(
                                "td",
                                &[("class", class), ("style", &format!("--share:{share:.3}"))],
                                |html| {
                                    html.leaf("b", &[], &whole(count));
                                    html.leaf("span", &[], &percent(share));
                                },
                            );
                        }
                    });
                }
            });
        });
    });
}

fn roc_chart(runs: &[Run], html: &mut Html) {
    let mut lines = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let Some(points) = run.scores.as_deref().and_then(roc) else { continue };
        let auc = run
            .tested
            .and_then(|(_, metrics)| metrics.auc)
            .map_or(String::new(), |auc| format!("AUC {}", measure(auc)));
        lines.push(Series { run: at, of: line_of(runs, run), what: auc, style: Style::Line, points });
    }
    let square = Some((0.0, 1.0));
    let chart = Chart {
        title: "ROC",
        note: "positive rows called positive, by negative rows called so",
        x_label: "negative called positive",
        y_range: square,
        from_zero: false,
        x_range: square,
        diagonal: Some("chance"),
        y_text: percent_whole,
        x_text: percent_whole,
        lines,
    };
    chart.draw(html);
}

fn percent_whole(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn calibration_chart(runs: &[Run], html: &mut Html) {
    let mut lines = Vec::new();
    let mut found: Vec<(usize, &Run, Calibration)> = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let (Some(record), Some(scores)) = (&run.evaluation, &run.scores) else { continue };
        let Some(calibration) = calibration(record.scoring, scores) else {
            html.class("figure", "chart", |html| {
                html.element("figcaption", &[], |html| html.leaf("strong", &[], "Calibration"));
                let why =
                    format!("{} was trained for the rating as a number, which is no probability.", run.name);
                html.paragraph("quiet", &why);
            });
            continue;
        };
        let points =
            calibration.bins.iter().filter(|bin| bin.rows > 0).map(|bin| (bin.probability, bin.positive));
        let what = format!("off by {} on average", percent(calibration.error));
        lines.push(Series {
            run: at,
            of: line_of(runs, run),
            what,
            style: Style::Dots,
            points: points.collect(),
        });
        found.push((at, run, calibration));
    }
    let square = Some((0.0, 1.0));
    let chart = Chart {
        title: "Calibration",
        note: "rows that are positive, by the probability that was given",
        x_label: "probability",
        y_range: square,
        from_zero: false,
        x_range: square,
        diagonal: Some("as told"),
        y_text: percent_whole,
        x_text: percent_whole,
        lines,
    };
    chart.draw(html);
    if !found.is_empty() {
        certainty(&found, html);
    }
}

/// How many rows got which probability.
fn certainty(found: &[(usize, &Run, Calibration)], html: &mut Html) {
    html.class("figure", "chart", |html| {
        html.element("figcaption", &[], |html| {
            html.leaf("strong", &[], "Certainty");
            html.leaf("span", &[], "rows by the probability that was given");
        });
        for (at, run, calibration) in found {
            let most = calibration.bins.iter().map(|bin| bin.rows).max().unwrap_or(0).max(1);
            let ends =
                [&calibration.bins[0], &calibration.bins[calibration.bins.len() - 1]].map(|bin| bin.rows);
            let all: u64 = calibration.bins.iter().map(|bin| bin.rows).sum();
            let sure = percent((ends[0] + ends[1]) as f64 / all.max(1) as f64);
            let label =
                format!("{}: {sure} of the rows got a probability below 10 % or above 90 %", run.name);
            html.element(
                "div",
                &[("class", &format!("bars {}", color(*at))), ("role", "img"), ("aria-label", &label)],
                |html| {
                    for (place, bin) in calibration.bins.iter().enumerate() {
                        let style = format!("height:{:.1}%", 100.0 * bin.rows as f64 / most as f64);
                        let title =
                            format!("{} to {} %: {} rows", 10 * place, 10 * place + 10, whole(bin.rows));
                        html.element("span", &[("title", &title)], |html| {
                            html.element("i", &[("style", &style)], |_| ());
                        });
                    }
                },
            );
        }
        html.markup("<div class=\"bars-axis\"><span>0 %</span><span>50 %</span><span>100 %</span></div>");
    });
}

/// What the model was sure of and was wrong.
pub fn wrong(runs: &[Run], html: &mut Html) {
    section("wrong", html, |html| {
        html.paragraph(
            "lede",
            "Reviews that were called with the greatest certainty what they are not, as cleaned. A box is a word that the \
             vocabulary lacks; what is grey was not read.",
        );
        for (at, run) in runs.iter().enumerate() {
            if runs.len() > 1 {
                html.element("h3", &[], |html| run_name(at, run, html));
            }
            match &run.evaluation {
                None => {
                    html.paragraph("quiet", "Not known: this folder has no evaluation of held-back rows.");
                }
                Some(record) if record.wrong.is_empty() => {
                    html.paragraph("quiet", "None: every row was called what it is.");
                }
                Some(record) => wrong_rows(at, record, WRONG_SHOWN / runs.len().min(2), html),
            }
        }
    });
}

fn wrong_rows(at: usize, record: &EvaluationRecord, n_shown: usize, html: &mut Html) {
    let (shown, others) = record.wrong.split_at(record.wrong.len().min(n_shown));
    let list = |rows: &[WrongRow], html: &mut Html| {
        html.class("ol", &format!("reviews {}", color(at)), |html| {
            rows.iter().for_each(|row| wrong_row(record, row, html));
        });
    };
    list(shown, html);
    if !others.is_empty() {
        html.element("details", &[], |html| {
            html.leaf("summary", &[], &format!("{} more", others.len()));
            list(others, html);
        });
    }
}

fn wrong_row(record: &EvaluationRecord, row: &WrongRow, html: &mut Html) {
    let word = |label: bool| if label { "positive" } else { "negative" };
    html.element("li", &[], |html| {
        html.class("p", "verdict", |html| {
            html.text("called ");
            html.leaf("b", &[], word(record.scoring.is_positive(row.score)));
            let sure = match (record.scoring.probability(row.score), record.scoring) {
                (Some(probability), _) => format!(" with {}", percent(probability.max(1.0 - probability))),
                (None, Scoring::Rating { positive_from }) => {
                    format!(" with a rating of {:.1}", f64::from(row.score) + f64::from(positive_from) - 0.5)
                }
                (None, _) => String::new(),
            };
            html.text(&sure);
            html.text(", is ");
            html.leaf("b", &[], word(row.label == 1));
            html.leaf("span", &[], &stars(row.votes));
            html.leaf("span", &[("class", "place")], &format!("row {}", whole(row.row)));
        });
        html.class("p", "review", |html| words(record, row, html));
    });
}

/// The ratings that a text got, `5★` or `1★ ×3, 5★`.
fn stars(votes: [u32; 5]) -> String {
    let each = (1..).zip(votes).filter(|(_, n)| *n > 0).map(|(rating, n)| match n {
        1 => format!("{rating}★"),
        n => format!("{rating}★ ×{n}"),
    });
    each.collect::<Vec<_>>().join(", ")
}

fn words(record: &EvaluationRecord, row: &WrongRow, html: &mut Html) {
    let n_read = if record.tokens_max == 0 { usize::MAX } else { record.tokens_max as usize };
    let write = |words: &[Option<String>], html: &mut Html| {
        for word in words {
            match word {
                Some(word) => html.text(word),
                None => {
                    html.markup("<span class=\"unknown\" title=\"a word that the vocabulary lacks\"></span>");
                }
            }
            html.text(" ");
        }
    };
    let (read, unread) = row.words.split_at(row.words.len().min(n_read));
    write(read, html);
    if !unread.is_empty() {
        html.element("span", &[("class", "unread"), ("title", "not read")], |html| write(unread, html));
    }
}

/// Reviews a second, and what ranks wait for.
pub fn speed(runs: &[Run], html: &mut Html) {
    section("speed", html, |html| {
        html.class("div", "charts", |html| {
            let speeds = series(runs, |run| {
                vec![("all ranks", Style::Line, over_steps(run, |line| line.reviews_per_s))]
            });
            Chart { from_zero: true, ..over_epoch_axis("Throughput", "reviews a second", short, speeds) }
                .draw(html);
            let waits =
                series(runs, |run| vec![("rank 0", Style::Line, over_steps(run, |line| line.waited_share))]);
            let chart =
                over_epoch_axis("Waiting for batches", "share of a step's time, of rank 0", percent, waits);
            Chart { from_zero: true, ..chart }.draw(html);
        });
        for (at, run) in runs.iter().enumerate() {
            by_rank(at, run, runs.len() > 1, html);
        }
    });
}

fn by_rank(at: usize, run: &Run, with_name: bool, html: &mut Html) {
    if with_name {
        html.element("h3", &[], |html| run_name(at, run, html));
    }
    let ranks = run.ranks();
    if ranks.is_empty() {
        html.paragraph("quiet", "By rank: known from the first epoch on that is over.");
        return;
    }
    table(&format!("Ranks of {}", run.name), html, |html| {
        columns(&["rank", "reviews", "reviews/s", "waits for batches", "waits for ranks", "time"], html);
        html.element("tbody", &[], |html| {
            for times in &ranks {
                let seconds = times.seconds.max(1e-9);
                let share = |waited_s: f64| (waited_s / seconds).clamp(0.0, 1.0);
                let for_batches = share(times.waited_for_batches_s);
                let for_ranks = times.waited_for_ranks_s.map(share);
                row_of(&times.rank.to_string(), html, |html| {
                    cell(&whole(times.rows), html);
                    cell(&short(times.rows as f64 / seconds), html);
                    cell(&percent(for_batches), html);
                    cell(&for_ranks.map_or_else(|| "not known".to_owned(), percent), html);
                    html.element("td", &[("class", "stack")], |html| {
                        let widths = [
                            1.0 - for_batches - for_ranks.unwrap_or(0.0),
                            for_batches,
                            for_ranks.unwrap_or(0.0),
                        ];
                        html.class("div", &format!("bar {}", color(at)), |html| {
                            for (class, width) in
                                ["computes", "for-batches", "for-ranks"].into_iter().zip(widths)
                            {
                                let style = format!("width:{:.1}%", 100.0 * width.max(0.0));
                                html.element("i", &[("class", class), ("style", &style)], |_| ());
                            }
                        });
                    });
                });
            }
        });
    });
    html.class("ul", &format!("legend {}", color(at)), |html| {
        html.markup("<li><i class=\"computes\"></i>computes</li><li><i class=\"for-batches\"></i>waits for batches</li>");
        html.markup("<li><i class=\"for-ranks\"></i>waits for other ranks, transfer included</li>");
    });
}

/// A setting's name, and its value in each run.
fn flattened(name: &str, value: &serde_json::Value, into: &mut Vec<(String, String)>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (field, value) in fields {
                let name = if name.is_empty() { field.clone() } else { format!("{name} › {field}") };
                flattened(&name, value, into);
            }
        }
        value => into.push((name.to_owned(), json(value))),
    }
}

/// What the runs were told; where they differ comes first.
pub fn settings(runs: &[Run], html: &mut Html) {
    section("settings", html, |html| {
        let of_runs: Vec<Vec<(String, String)>> = runs.iter().map(settings_of).collect();
        let mut names: Vec<&String> = Vec::new();
        let mut seen = BTreeSet::new();
        for (name, _) in of_runs.iter().flatten() {
            if seen.insert(name) {
                names.push(name);
            }
        }
        if names.is_empty() {
            html.paragraph("quiet", "Not known: none of these folders has settings.json.");
            return;
        }
        let value = |run: usize, name: &str| {
            of_runs[run].iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
        };
        let differs = |name: &&String| (1..runs.len()).any(|run| value(run, name) != value(0, name));
        let (other, same): (Vec<&String>, Vec<&String>) = names.into_iter().partition(differs);
        let write = |names: &[&String], label: &str, html: &mut Html| {
            table(label, html, |html| {
                columns_of_runs("setting", runs, html);
                html.element("tbody", &[], |html| {
                    for name in names {
                        row_of(name, html, |html| {
                            (0..runs.len()).for_each(|run| cell(value(run, name).unwrap_or("–"), html));
                        });
                    }
                });
            });
        };
        if runs.len() == 1 {
            write(&same, "Settings", html);
            return;
        }
        if other.is_empty() {
            html.paragraph("quiet", "The trainings were told the same.");
        } else {
            write(&other, "Settings that differ", html);
        }
        if !same.is_empty() {
            html.element("details", &[], |html| {
                html.leaf("summary", &[], &format!("{} settings that all have alike", same.len()));
                write(&same, "Settings that are the same", html);
            });
        }
    });
}

fn settings_of(run: &Run) -> Vec<(String, String)> {
    let mut all = Vec::new();
    if let Some(settings) = &run.settings {
        all.push(("training rows from".to_owned(), settings.dataset.path.clone()));
        if let Some(test) = &settings.test {
            all.push(("test rows from".to_owned(), test.path.clone()));
        }
        all.push(("ranks".to_owned(), settings.world_size.to_string()));
        all.push(("device".to_owned(), settings.device.clone()));
        flattened("", &settings.recipe, &mut all);
        all.push(("sentimill".to_owned(), settings.sentimill.clone()));
    }
    all
}

/// What the rows are.
pub fn cards(runs: &[Run], html: &mut Html) {
    section("data", html, |html| {
        let mut told: Vec<(&crate::run::DatasetRecord, Vec<usize>, &str)> = Vec::new();
        for (at, run) in runs.iter().enumerate() {
            let Some(settings) = &run.settings else { continue };
            for (record, what) in [(Some(&settings.dataset), ""), (settings.test.as_ref(), "test")] {
                let Some(record) = record else { continue };
                match told
                    .iter_mut()
                    .find(|(other, ..)| other.card == record.card && other.rows == record.rows)
                {
                    Some((_, of, _)) if of.last() != Some(&at) => of.push(at),
                    Some(_) => {}
                    None => told.push((record, vec![at], what)),
                }
            }
        }
        if told.is_empty() {
            html.paragraph("quiet", "Not known: none of these folders has settings.json.");
            return;
        }
        html.class("div", "pairs", |html| {
            for (record, of, what) in told {
                html.element("div", &[], |html| {
                    html.class("h3", "file", |html| {
                        let name = record.path.rsplit('/').next().unwrap_or(&record.path);
                        html.text(if name.is_empty() { &record.path } else { name });
                        if !what.is_empty() {
                            html.text(", for testing");
                        }
                        if runs.len() > 1 {
                            of.iter().for_each(|&at| run_name(at, &runs[at], html));
                        }
                    });
                    html.paragraph("path", &record.path);
                    data_card(record, html);
                });
            }
        });
    });
}

fn data_card(record: &crate::run::DatasetRecord, html: &mut Html) {
    table(&format!("Data card of {}", record.path), html, |html| {
        html.element("tbody", &[], |html| {
            for (part, at) in [("training", 0), ("validation", 1), ("test", 2)] {
                let (rows, positive) = (record.rows[at], record.positive[at]);
                if rows > 0 {
                    let text = format!(
                        "{} rows, {} of them positive",
                        whole(rows),
                        percent(positive as f64 / rows as f64)
                    );
                    row_of(part, html, |html| cell(&text, html));
                }
            }
            for (name, text) in &record.card {
                row_of(name, html, |html| cell(text, html));
            }
        });
    });
}

/// What the page cannot show, and why.
pub fn notes(runs: &[Run], html: &mut Html) {
    section("notes", html, |html| {
        if runs.iter().all(|run| run.notes.is_empty()) {
            html.paragraph("quiet", "Nothing is missing.");
            return;
        }
        html.class("ul", "notes", |html| {
            for (at, run) in runs.iter().enumerate() {
                for note in &run.notes {
                    html.element("li", &[], |html| {
                        if runs.len() > 1 {
                            run_name(at, run, html);
                        }
                        html.text(note);
                    });
                }
            }
        });
    });
}
