//! The data card of each dataset, and the runs that use it.

use super::{cell, row_of, section, table};
use crate::html::Html;
use crate::name::run_name;
use crate::numbers::{counted, percent};
use crate::run::Run;

/// Data cards.
pub fn cards(runs: &[Run], html: &mut Html) {
    section("data", html, |html| {
        let mut told: Vec<(&runs::training::DatasetRecord, Vec<usize>, &str)> = Vec::new();
        for (at, run) in runs.iter().enumerate() {
            let Some(settings) = &run.settings else { continue };
            let of_run = [
                (Some(&settings.dataset), ""),
                (settings.validation.as_ref(), ", for validation"),
                (settings.test.as_ref(), ", for testing"),
            ];
            for (record, what) in of_run {
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
            html.paragraph("quiet", "Unknown: none of these folders has settings.json.");
            return;
        }
        html.class("div", "pairs", |html| {
            for (record, of, what) in told {
                html.element("div", &[], |html| {
                    html.class("h3", "file", |html| {
                        let name = record.path.rsplit('/').next().unwrap_or(&record.path);
                        html.text(if name.is_empty() { &record.path } else { name });
                        html.text(what);
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

fn data_card(record: &runs::training::DatasetRecord, html: &mut Html) {
    table(&format!("Data card of {}", record.path), html, |html| {
        html.element("tbody", &[], |html| {
            for (part, at) in [("training", 0), ("validation", 1), ("test", 2)] {
                let (rows, positive) = (record.rows[at], record.positive[at]);
                if rows > 0 {
                    let share = |n: u64| percent(n as f64 / rows as f64);
                    let of_classes =
                        record.classes.iter().map(|(name, of)| format!("{} {name}", share(of[at])));
                    let text = match record.classes.is_empty() {
                        true => format!("{}, {} of them positive", counted(rows, "row"), share(positive)),
                        false => {
                            format!("{}: {}", counted(rows, "row"), of_classes.collect::<Vec<_>>().join(", "))
                        }
                    };
                    row_of(part, html, |html| cell(&text, html));
                }
            }
            for (name, text) in &record.card {
                row_of(name, html, |html| cell(text, html));
            }
        });
    });
}
