//! The most wrong reviews, word by word.

use super::section;
use crate::chart::color;
use crate::html::Html;
use crate::name::run_name;
use crate::numbers::{counted, percent, whole};
use crate::origins::{OriginUnit, ReviewOrigin, RowOrigins};
use crate::run::Run;
use runs::training::{EvaluationRecord, WrongRow, WrongText};
use scoring::Scoring;

/// Number of most wrong reviews shown without a click; half of it if there are several runs.
const WRONG_SHOWN: usize = 8;

/// The misclassified rows with the most confident scores.
pub fn wrong(runs: &[Run], html: &mut Html) {
    section("wrong", html, |html| {
        html.paragraph(
            "lede",
            "Wrong predictions with the highest confidence, as the words that the model reads. Of a dataset, a box is a word \
             outside the vocabulary; grey words were not read.",
        );
        for (at, run) in runs.iter().enumerate() {
            if runs.len() > 1 {
                html.element("h3", &[], |html| run_name(at, run, html));
            }
            let of_many = run.of_many_labels().and_then(|of_many| of_many.wrong.as_ref());
            let found: Option<Vec<Wrong<'_>>> = match (&run.evaluation, of_many) {
                (Some(record), _) => Some(record.wrong.iter().map(|row| of_row(run, record, row)).collect()),
                (None, Some(wrong)) => Some(wrong.iter().map(of_text).collect()),
                (None, None) => None,
            };
            match found.as_deref() {
                None => {
                    html.paragraph("quiet", "Unknown: this folder has no evaluation of held-out rows.");
                }
                Some([]) => {
                    html.paragraph("quiet", "None: every row was predicted correctly.");
                }
                Some(found) => wrong_rows((at, run), found, WRONG_SHOWN / runs.len().min(2), html),
            }
        }
    });
}

/// A wrong prediction.
struct Wrong<'a> {
    /// The predicted label.
    predicted: String,
    /// The confidence in words.
    sure: String,
    /// The labels.
    labels: String,
    /// The ratings.
    stars: String,
    /// Its number.
    place: String,
    /// Its hash.
    hash: Option<&'a String>,
    /// Its words; `None` for a word outside the vocabulary.
    words: Vec<Option<&'a str>>,
    /// Number of words that were read.
    n_read: usize,
}

/// A row, or a text of a model of n-grams, of one label of few.
fn of_row<'a>(run: &Run, record: &EvaluationRecord, row: &'a WrongRow) -> Wrong<'a> {
    let names = run.class_names(record.metrics.confusion.n_classes());
    let name = |label: u8| names.get(usize::from(label)).cloned().unwrap_or_default();
    let decision = record.decision();
    let predicted = row.predicted.unwrap_or_else(|| u8::from(decision.is_positive(row.score)));
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
    Wrong {
        predicted: name(predicted),
        sure,
        labels: name(row.label),
        stars: stars(row.votes),
        place: match run.is_of_ngrams() {
            true => text_place(row.row),
            false => format!("row {}", whole(row.row)),
        },
        hash: row.hash.as_ref(),
        words: row.words.iter().map(Option::as_deref).collect(),
        n_read: if record.tokens_max == 0 { usize::MAX } else { record.tokens_max as usize },
    }
}

/// A text of a model of n-grams, of many labels.
fn of_text(text: &WrongText) -> Wrong<'_> {
    Wrong {
        predicted: text.predicted.clone(),
        sure: format!(" with {}", percent(text.probability.into())),
        labels: text.labels.join(", "),
        stars: String::new(),
        place: text_place(text.text),
        hash: text.hash.as_ref(),
        words: text.words.iter().map(|word| Some(word.as_str())).collect(),
        n_read: usize::MAX,
    }
}

/// The number of a text among the evaluated ones, from 1.
fn text_place(index: u64) -> String {
    format!("text {}", whole(index.saturating_add(1)))
}

fn wrong_rows((at, run): (usize, &Run), found: &[Wrong<'_>], n_shown: usize, html: &mut Html) {
    let (shown, others) = found.split_at(found.len().min(n_shown));
    let list = |rows: &[Wrong<'_>], html: &mut Html| {
        html.class("ol", &format!("reviews {}", color(at)), |html| {
            rows.iter().for_each(|row| wrong_row(run, row, html));
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

fn wrong_row(run: &Run, row: &Wrong<'_>, html: &mut Html) {
    html.element("li", &[], |html| {
        html.class("p", "verdict", |html| {
            html.text("predicted ");
            html.leaf("b", &[], &row.predicted);
            html.text(&row.sure);
            html.text(", is ");
            html.leaf("b", &[], &row.labels);
            html.leaf("span", &[], &row.stars);
            html.leaf("span", &[("class", "place")], &row.place);
        });
        html.class("p", "review", |html| words(row, html));
        if let Some(origins) = row.hash.and_then(|hash| run.origins.get(hash)) {
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

fn words(row: &Wrong<'_>, html: &mut Html) {
    let write = |words: &[Option<&str>], html: &mut Html| {
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
    let (read, unread) = row.words.split_at(row.words.len().min(row.n_read));
    write(read, html);
    if !unread.is_empty() {
        html.element("span", &[("class", "unread"), ("title", "not read")], |html| write(unread, html));
    }
}
