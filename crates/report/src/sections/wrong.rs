//! The most wrong reviews, word by word.

use super::section;
use crate::chart::color;
use crate::html::Html;
use crate::name::run_name;
use crate::numbers::{counted, percent, whole};
use crate::origins::{OriginUnit, ReviewOrigin, RowOrigins};
use crate::run::Run;
use runs::training::{EvaluationRecord, WrongRow};
use scoring::Scoring;

/// Number of most wrong reviews shown without a click; half of it if there are several runs.
const WRONG_SHOWN: usize = 8;

/// The misclassified rows with the most confident scores.
pub fn wrong(runs: &[Run], html: &mut Html) {
    section("wrong", html, |html| {
        html.paragraph(
            "lede",
            "Wrong predictions with the highest confidence, as cleaned texts. A box is a word outside the vocabulary; grey \
             words were not read.",
        );
        for (at, run) in runs.iter().enumerate() {
            if runs.len() > 1 {
                html.element("h3", &[], |html| run_name(at, run, html));
            }
            match &run.evaluation {
                None => {
                    html.paragraph("quiet", "Unknown: this folder has no evaluation of held-out rows.");
                }
                Some(record) if record.wrong.is_empty() => {
                    html.paragraph("quiet", "None: every row was predicted correctly.");
                }
                Some(record) => wrong_rows((at, run), record, WRONG_SHOWN / runs.len().min(2), html),
            }
        }
    });
}

fn wrong_rows((at, run): (usize, &Run), record: &EvaluationRecord, n_shown: usize, html: &mut Html) {
    let (shown, others) = record.wrong.split_at(record.wrong.len().min(n_shown));
    let list = |rows: &[WrongRow], html: &mut Html| {
        html.class("ol", &format!("reviews {}", color(at)), |html| {
            rows.iter().for_each(|row| wrong_row(run, record, row, html));
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

fn wrong_row(run: &Run, record: &EvaluationRecord, row: &WrongRow, html: &mut Html) {
    let names = run.class_names(record.metrics.confusion.n_classes());
    let name = |label: u8| names.get(usize::from(label)).map_or("", String::as_str);
    let decision = record.decision();
    let predicted = row.predicted.unwrap_or_else(|| u8::from(decision.is_positive(row.score)));
    html.element("li", &[], |html| {
        html.class("p", "verdict", |html| {
            html.text("predicted ");
            html.leaf("b", &[], name(predicted));
            // A chosen threshold can predict the label with the lower probability.
            let sure = match (decision.probability(row.score), record.scoring) {
                (Some(positive), _) => {
                    format!(" with {}", percent(if predicted == 1 { positive } else { 1.0 - positive }))
                }
                (None, Scoring::Rating { positive_from }) => {
                    format!(" with a rating of {:.1}", f64::from(row.score) + f64::from(positive_from) - 0.5)
                }
                (None, Scoring::Classes { .. }) => format!(" with {}", percent(row.score.into())),
                (None, _) => String::new(),
            };
            html.text(&sure);
            html.text(", is ");
            html.leaf("b", &[], name(row.label));
            html.leaf("span", &[], &stars(row.votes));
            html.leaf("span", &[("class", "place")], &format!("row {}", whole(row.row)));
        });
        html.class("p", "review", |html| words(record, row, html));
        if let Some(origins) = row.hash.as_ref().and_then(|hash| run.origins.get(hash)) {
            of_reviews(origins, html);
        }
    });
}

/// The places of the first reviews of a row, with their texts before cleaning.
fn of_reviews(origins: &RowOrigins, html: &mut Html) {
    for ReviewOrigin { file, number, unit, text } in &origins.first {
        html.class("p", "origin", |html| {
            html.leaf("span", &[("class", "place")], &unit.place(*number, file));
            let missing = match unit {
                OriginUnit::Row => "texts of Parquet and Arrow files are not shown",
                _ => "not readable there now",
            };
            match text {
                Some(text) => html.leaf("q", &[], text),
                None => html.leaf("span", &[("class", "quiet")], missing),
            }
        });
    }
    let others = origins.n_reviews.saturating_sub(origins.first.len() as u64);
    if others > 0 {
        html.paragraph("origin quiet", &format!("and {} more", counted(others, "review")));
    }
}

/// The ratings of a text, `5★` or `1★ ×3, 5★`.
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
                    html.markup("<span class=\"unknown\" title=\"a word outside the vocabulary\"></span>");
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
