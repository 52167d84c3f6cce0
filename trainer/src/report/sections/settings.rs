//! The settings, a row each, a column a run.

use std::collections::BTreeSet;

use super::{cell, columns_of_runs, row_of, section, table};
use crate::report::html::Html;
use crate::report::numbers::json;
use crate::report::run::Run;

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
