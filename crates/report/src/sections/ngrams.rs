//! The n-grams with the largest weights, one table per label.

use super::{cell, columns, row_of, section, table};
use crate::html::Html;
use crate::name::run_name;
use crate::run::Run;
use runs::training::{TopNgrams, TopOfLabel};

/// Labels shown for one run.
const LABELS_SHOWN: usize = 10;

/// Whether the page has the section.
pub fn has_ngrams(runs: &[Run]) -> bool {
    runs.iter().any(|run| run.ngrams.is_some())
}

/// One table per label and run.
pub fn ngrams(runs: &[Run], html: &mut Html) {
    if !has_ngrams(runs) {
        return;
    }
    section("ngrams", html, |html| {
        html.paragraph(
            "lede",
            "The n-grams that speak most for each label: their weight for this label, less the mean weight of all labels.",
        );
        for (at, run) in runs.iter().enumerate() {
            let Some(top) = &run.ngrams else { continue };
            if runs.len() > 1 {
                html.element("h3", &[], |html| run_name(at, run, html));
            }
            of_run(top, html);
        }
    });
}

fn of_run(TopNgrams { labels, .. }: &TopNgrams, html: &mut Html) {
    html.class("div", "pairs", |html| {
        for TopOfLabel { name, ngrams } in labels.iter().take(LABELS_SHOWN) {
            html.element("div", &[], |html| {
                table(&format!("N-grams of {name}"), html, |html| {
                    columns(&[name, "weight"], html);
                    html.element("tbody", &[], |html| {
                        for of in ngrams {
                            row_of(&of.ngram, html, |html| cell(&format!("{:.3}", of.weight), html));
                        }
                    });
                });
            });
        }
    });
    if labels.len() > LABELS_SHOWN {
        html.paragraph("quiet", &format!("and {} more labels", labels.len() - LABELS_SHOWN));
    }
}
