//! Trainings of word vectors: their loss, speed and similarities over tokens, neighbours of words, and a map of words.

use super::{cell, columns, row_of, section, series, table};
use crate::chart::{Chart, FROM_ZERO, Series, Style, UNLIMITED, color};
use crate::html::Html;
use crate::name::run_name;
use crate::numbers::{counted, measure, short};
use crate::run::{Run, Words};
use runs::training::{SimilarityLine, TokensLine};

/// Width and height of a map in its own units, and the margin around the outermost words.
const MAP: [f32; 2] = [1000.0, 640.0];
const MARGIN: [f32; 2] = [60.0, 24.0];
/// Width of a character and height of a line of a label on the map.
const CHARACTER: f32 = 9.0;
const LINE: f32 = 20.0;

/// Charts, neighbours and maps.
pub fn words(runs: &[Run], html: &mut Html) {
    section("words", html, |html| {
        html.class("div", "charts", |html| {
            let loss = series(runs, |run| {
                let mut lines = vec![("", Style::Line, points(run, |line| line.loss))];
                if !run.held_out.is_empty() {
                    lines[0].0 = "training";
                    let held_out = run.held_out.iter().map(|&(n_tokens, loss)| (n_tokens as f64, loss));
                    lines.push(("held out", Style::Dashes, held_out.collect()));
                }
                lines
            });
            over_tokens("Loss", "a pair of words with its negative samples", loss).draw(html);
            let speed =
                series(runs, |run| vec![("", Style::Line, points(run, |line| Some(line.tokens_per_s)))]);
            over_tokens("Tokens per second", "", speed).draw(html);
            let similarity = Chart {
                y_limits: UNLIMITED,
                y_text: measure,
                ..over_tokens(
                    "Similarity",
                    "Spearman's rank correlation of scores and cosines",
                    similarities(runs),
                )
            };
            similarity.draw(html);
            let pip = series(runs, |run| vec![("", Style::Line, pips(run))]);
            over_tokens("PIP loss", "to other vectors, divided by that of random vectors", pip).draw(html);
        });
        for (at, run) in runs.iter().enumerate() {
            let Some(words) = &run.words else { continue };
            if runs.len() > 1 {
                html.element("h3", &[], |html| run_name(at, run, html));
            }
            compared(run, html);
            neighbours(words, html);
            map(at, words, html);
        }
    });
}

fn over_tokens<'a>(title: &'a str, note: &'a str, lines: Vec<Series>) -> Chart<'a> {
    Chart {
        title,
        note,
        x_label: "tokens",
        y_range: None,
        from_zero: false,
        y_limits: FROM_ZERO,
        x_range: None,
        diagonal: None,
        y_text: short,
        x_text: short,
        lines,
    }
}

fn points(run: &Run, value: impl Fn(&TokensLine) -> Option<f64>) -> Vec<(f64, f64)> {
    run.tokens.iter().filter_map(|line| Some((line.step as f64, value(line)?))).collect()
}

/// A line per run and file.
fn similarities(runs: &[Run]) -> Vec<Series> {
    let styles = [Style::Dots, Style::Dashes, Style::Rings];
    let mut lines = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        for (number, (what, last)) in last_similarities(run).into_iter().enumerate() {
            let of_file = run.similarities.iter().filter(|line| line.file == last.file);
            let points = of_file.filter_map(|line| Some((line.step as f64, line.spearman?))).collect();
            let (run_color, of) = match runs.len() {
                1 => (number, String::new()),
                _ => (at, run.name.clone()),
            };
            lines.push(Series { run: run_color, of, what, style: styles[number % styles.len()], points });
        }
    }
    lines
}

fn pips(run: &Run) -> Vec<(f64, f64)> {
    run.pips.iter().map(|line| (line.step as f64, line.loss / line.random)).collect()
}

/// The last comparison with each file, and the name of the file without its folder and extension.
pub fn last_similarities(run: &Run) -> Vec<(String, &SimilarityLine)> {
    let mut last: Vec<&SimilarityLine> = Vec::new();
    for line in &run.similarities {
        match last.iter_mut().find(|other| other.file == line.file) {
            Some(other) => *other = line,
            None => last.push(line),
        }
    }
    let name = |file: &str| {
        let name = file.rsplit('/').next().unwrap_or(file);
        name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned()
    };
    last.into_iter().map(|line| (name(&line.file), line)).collect()
}

fn compared(run: &Run, html: &mut Html) {
    if let Some(line) = run.pips.last() {
        table("PIP loss", html, |html| {
            columns(&["other vectors", "loss", "of random vectors", "words"], html);
            html.element("tbody", &[], |html| {
                row_of(&line.reference, html, |html| {
                    [line.loss, line.random].iter().for_each(|loss| cell(&measure(*loss), html));
                    cell(&crate::numbers::whole(line.words), html);
                });
            });
        });
    }
    let last = last_similarities(run);
    if last.is_empty() {
        return;
    }
    table("Similarity", html, |html| {
        columns(&["file", "Spearman", "pairs found"], html);
        html.element("tbody", &[], |html| {
            for (_, line) in last {
                row_of(&line.file, html, |html| {
                    cell(&line.spearman.map_or_else(|| "–".to_owned(), measure), html);
                    cell(&format!("{} of {}", line.found, line.pairs), html);
                });
            }
        });
    });
}

fn neighbours(words: &Words, html: &mut Html) {
    html.paragraph("lede", "The nearest words, by the cosine of their vectors.");
    html.class("div", "pairs", |html| {
        for (word, near) in &words.neighbours {
            html.element("div", &[], |html| {
                table(&format!("Neighbours of {word}"), html, |html| {
                    columns(&[word, "cosine"], html);
                    html.element("tbody", &[], |html| {
                        for (other, cosine) in near {
                            row_of(other, html, |html| cell(&format!("{cosine:.3}"), html));
                        }
                    });
                });
            });
        }
    });
}

/// The words at their places. A label that would cover an earlier one is left out; the dot has it as its title.
fn map(run: usize, words: &Words, html: &mut Html) {
    if words.map.is_empty() {
        return;
    }
    let ends = |axis: usize| {
        let values = words.map.iter().map(|(_, place)| place[axis]);
        values
            .fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
    };
    let ends = [ends(0), ends(1)];
    let at = |place: [f32; 2], axis: usize| {
        let (low, high) = ends[axis];
        let share = if high > low { (place[axis] - low) / (high - low) } else { 0.5 };
        let share = if axis == 1 { 1.0 - share } else { share };
        MARGIN[axis] + share * (MAP[axis] - 2.0 * MARGIN[axis])
    };
    let note = format!("The two principal components of {}.", counted(words.map.len() as u64, "word"));
    html.class("figure", "chart", |html| {
        html.element("figcaption", &[], |html| {
            html.leaf("strong", &[], "Map");
            html.leaf("span", &[], &note);
        });
        let view = format!("0 0 {} {}", MAP[0], MAP[1]);
        let attributes = [("class", "map"), ("viewBox", &*view), ("role", "img"), ("aria-label", &*note)];
        html.element("svg", &attributes, |html| {
            let mut covered: Vec<[f32; 3]> = Vec::new();
            for (word, place) in &words.map {
                let (x, y) = (at(*place, 0), at(*place, 1));
                let half = CHARACTER * word.chars().count() as f32 / 2.0;
                let is_free = covered.iter().all(|[other_x, other_y, other_half]| {
                    (x - other_x).abs() > half + other_half || (y - other_y).abs() > LINE
                });
                html.class("g", color(run), |html| {
                    html.leaf("title", &[], word);
                    html.leaf(
                        "circle",
                        &[("cx", &format!("{x:.1}")), ("cy", &format!("{y:.1}")), ("r", "3")],
                        "",
                    );
                    if is_free {
                        let above = format!("{:.1}", y - 7.0);
                        html.leaf("text", &[("x", &format!("{x:.1}")), ("y", &above)], word);
                        covered.push([x, y, half]);
                    }
                });
            }
        });
    });
}
