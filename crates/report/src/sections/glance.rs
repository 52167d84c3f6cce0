//! One card per run, and a table that compares the runs.

use super::words::last_similarities;
use super::{are_comparable, cell, columns_of_runs, f1_name, part_name, row_of, section, table};
use crate::chart::color;
use crate::html::Html;
use crate::numbers::{counted, duration, measure, percent, short, whole};
use crate::run::{Evaluated, Run};

/// Cards and comparison.
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
        match (run.rates(), run.epochs.last()) {
            (None, Some(epoch)) if run.is_of_words() => {
                html.class("dl", "figures", |html| {
                    figure("loss of a next word", &epoch.loss.map_or_else(|| "–".to_owned(), measure), html);
                });
            }
            (None, None) if run.is_of_words() => html.paragraph("quiet", "No epoch is finished."),
            (None, _) if let Some(of_many) = run.of_many_labels() => {
                html.class("dl", "figures", |html| {
                    figure("precision at 1", &percent(of_many.precision_at_1), html);
                    figure("recall at 1", &percent(of_many.recall_at_1), html);
                    figure("macro F1", &measure(of_many.macro_f1), html);
                });
                let (texts, part) = (counted(of_many.texts, "text"), part_name(of_many.part));
                html.paragraph("quiet", &format!("{texts} of the {part} split"));
            }
            (None, _) if run.is_of_vectors() => of_vectors(run, html),
            (None, _) => {
                html.paragraph("quiet", "No rows were held out, or they are not evaluated yet.");
            }
            (Some(metrics), _) => {
                html.class("dl", "figures", |html| {
                    figure("accuracy", &percent(metrics.accuracy), html);
                    figure(f1_name(run), &measure(metrics.f1), html);
                    figure("AUC", &metrics.auc.map_or_else(|| "–".to_owned(), measure), html);
                    figure(&format!("{} loss", part_name(metrics.part)), &measure(metrics.loss), html);
                });
            }
        }
        let epochs = counted(run.n_epochs(), "epoch");
        let mut facts = vec![match (run.is_of_vectors(), run.is_of_ngrams()) {
            (true, _) => counted(run.last_step, "token"),
            // Its texts are not in steps.
            (_, true) => epochs,
            _ => format!("{epochs}, {}", counted(run.last_step, "step")),
        }];
        if let Some((seconds, is_partial)) = run.training_seconds() {
            facts.push(format!("{}{}", duration(seconds), if is_partial { " (partial)" } else { "" }));
        }
        if let Some(speed) = run.reviews_per_s() {
            facts.push(format!("{} reviews/s", short(speed)));
        }
        if let Some(settings) = &run.settings {
            let ranks = counted(settings.world_size as u64, "rank");
            facts.push(format!("{ranks} on {}", settings.device));
            match run.ngrams.as_ref().and_then(|top| top.weighted) {
                Some(n) => facts.push(format!("{} with a weight", counted(n, "n-gram"))),
                None if settings.parameters > 0 => facts.push(counted(settings.parameters, "parameter")),
                None => {}
            }
        }
        html.paragraph("facts", &facts.join(" · "));
        let has_steps = !run.is_of_vectors();
        if let (false, true, Some(planned)) =
            (run.is_complete, has_steps, run.steps_planned().filter(|&steps| steps > 0))
        {
            let share = (run.last_step as f64 / planned as f64).min(1.0);
            let label = format!("{} of {}", whole(run.last_step), counted(planned, "step"));
            html.element("div", &[("class", "meter"), ("role", "img"), ("aria-label", &label)], |html| {
                html.element("div", &[("style", &format!("width:{:.1}%", 100.0 * share))], |_| ());
            });
        }
    });
}

/// The last loss and speed, and the last comparison with each file.
fn of_vectors(run: &Run, html: &mut Html) {
    html.class("dl", "figures", |html| {
        if let Some(loss) = run.tokens.iter().rev().find_map(|line| line.loss) {
            figure("loss", &measure(loss), html);
        }
        if let Some(line) = run.tokens.last() {
            figure("tokens/s", &short(line.tokens_per_s), html);
        }
        for (name, line) in last_similarities(run) {
            figure(&name, &line.spearman.map_or_else(|| "–".to_owned(), measure), html);
        }
    });
    if let Some(skipped) = run.tokens.last().map(|line| line.skipped_lines).filter(|&lines| lines > 0) {
        html.paragraph("quiet", &format!("{} skipped", counted(skipped, "line")));
    }
}

fn figure(name: &str, value: &str, html: &mut Html) {
    html.element("div", &[], |html| {
        html.leaf("dt", &[], name);
        html.leaf("dd", &[], value);
    });
}

/// A quantity in the comparison: name, value of a run, format, and whether higher is better.
type Measure = (&'static str, fn(&Run) -> Option<f64>, fn(f64) -> String, Better);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Better {
    More,
    Less,
    Neither,
}

/// A metric of one of two classes.
fn of_label(run: &Run, of: fn(&Evaluated) -> f64) -> Option<f64> {
    tested(run, of).filter(|_| !run.has_classes())
}

/// A mean over three or more classes.
fn of_classes(run: &Run, of: fn(&Evaluated) -> f64) -> Option<f64> {
    tested(run, of).filter(|_| run.has_classes())
}

fn tested(run: &Run, of: fn(&Evaluated) -> f64) -> Option<f64> {
    run.rates().as_ref().map(of)
}

/// Metrics of the evaluated rows, by which only runs on the same rows are compared.
const METRICS: [Measure; 9] = [
    ("accuracy", |run| tested(run, |of| of.accuracy), measure, Better::More),
    ("F1", |run| of_label(run, |of| of.f1), measure, Better::More),
    ("precision", |run| of_label(run, |of| of.precision), measure, Better::More),
    ("recall", |run| of_label(run, |of| of.recall), measure, Better::More),
    ("macro F1", |run| of_classes(run, |of| of.f1), measure, Better::More),
    ("macro precision", |run| of_classes(run, |of| of.precision), measure, Better::More),
    ("macro recall", |run| of_classes(run, |of| of.recall), measure, Better::More),
    ("AUC", |run| run.rates()?.auc, measure, Better::More),
    ("loss", |run| tested(run, |of| of.loss), measure, Better::Less),
];

const OTHERS: [Measure; 9] = [
    ("rows", |run| tested(run, |of| of.rows as f64), short_whole, Better::Neither),
    ("distinct texts", |run| run.distinct_texts().map(|n| n as f64), short_whole, Better::Neither),
    ("training loss, last epoch", |run| run.epochs.last()?.loss, measure, Better::Neither),
    ("epochs", |run| Some(run.n_epochs() as f64), short_whole, Better::Neither),
    ("training time", |run| run.training_seconds().map(|(seconds, _)| seconds), duration, Better::Less),
    ("reviews/s", |run| run.reviews_per_s(), short, Better::More),
    ("tokens", |run| run.is_of_vectors().then_some(run.last_step as f64), short_whole, Better::Neither),
    ("tokens/s", |run| run.tokens.last().map(|line| line.tokens_per_s), short, Better::More),
    (
        "parameters",
        |run| run.settings.as_ref().map(|settings| settings.parameters as f64).filter(|&n| n > 0.0),
        short_whole,
        Better::Neither,
    ),
];

fn short_whole(value: f64) -> String {
    whole(value as u64)
}

fn comparison(runs: &[Run], html: &mut Html) {
    let are_ranked = are_comparable(runs) == Some(true);
    let measures = METRICS.map(|of| (of, are_ranked)).into_iter().chain(OTHERS.map(|of| (of, true)));
    table("The trainings compared", html, |html| {
        columns_of_runs("", runs, html);
        html.element("tbody", &[], |html| {
            for ((name, of, text, better), is_ranked) in measures {
                let values: Vec<Option<f64>> = runs.iter().map(of).collect();
                let known = || values.iter().flatten().copied();
                // Metrics of another number of classes than that of all runs.
                let is_of_family = ["macro", "tokens", "distinct"].iter().any(|of| name.starts_with(of));
                if (is_of_family || runs.iter().all(Run::is_of_vectors)) && known().next().is_none() {
                    continue;
                }
                let best = match better {
                    Better::More => known().max_by(f64::total_cmp),
                    Better::Less => known().min_by(f64::total_cmp),
                    Better::Neither => None,
                };
                // If all values are equal, none is marked as the best.
                let best = best.filter(|best| is_ranked && known().any(|value| value != *best));
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
