//! The settings: one row per setting, one column per run.

use std::collections::BTreeSet;

use super::{cell, columns_of_runs, row_of, section, table};
use crate::html::Html;
use crate::numbers::{counted, json};
use crate::run::Run;
use runs::recipe::setting_name as name_of;

/// Writes the settings. Those that differ between runs come first.
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
            html.paragraph("quiet", "Unknown: none of these folders has settings.json.");
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
            html.paragraph("quiet", "All settings are the same.");
        } else {
            write(&other, "Settings that differ", html);
        }
        if !same.is_empty() {
            html.element("details", &[], |html| {
                html.leaf(
                    "summary",
                    &[],
                    &format!("{} that are the same", counted(same.len() as u64, "setting")),
                );
                write(&same, "Settings that are the same", html);
            });
        }
    });
}

fn settings_of(run: &Run) -> Vec<(String, String)> {
    let mut all = Vec::new();
    if let Some(settings) = &run.settings {
        all.push(("training rows from".to_owned(), settings.dataset.path.clone()));
        if let Some(unlabelled) = &settings.unlabelled {
            let rows = counted(unlabelled.rows, "row");
            all.push(("training rows without labels".to_owned(), format!("{rows} of {}", unlabelled.path)));
        }
        if !settings.soft_labels.is_empty() {
            all.push(("--soft-labels".to_owned(), settings.soft_labels.join(", ")));
        }
        if let Some(validation) = &settings.validation {
            all.push(("validation rows from".to_owned(), validation.path.clone()));
        }
        if let Some(test) = &settings.test {
            all.push(("test rows from".to_owned(), test.path.clone()));
        }
        if let Some(path) = &settings.init_from {
            all.push(("--init-from".to_owned(), path.clone()));
        }
        all.extend(settings.input.iter().map(|(name, value)| (name_of(name), value.clone())));
        all.push(("ranks".to_owned(), settings.world_size.to_string()));
        all.push(("device".to_owned(), settings.device.clone()));
        flattened("", &settings.recipe, &mut all);
        all.push(("sentimill".to_owned(), settings.sentimill.clone()));
    }
    all
}

/// Adds the settings below a path of the recipe to `into`, by their names.
fn flattened(place: &str, value: &serde_json::Value, into: &mut Vec<(String, String)>) {
    let serde_json::Value::Object(fields) = value else {
        into.push((name_of(place), json(value)));
        return;
    };
    for (field, value) in fields {
        // An enum: its variant, followed by the settings of the variant.
        if matches!(place, "balance" | "family" | "family.classifier.objective" | "rule" | "schedule.decay") {
            into.push((name_of(place), field.clone()));
        }
        let place = if place.is_empty() { field.clone() } else { format!("{place}.{field}") };
        flattened(&place, value, into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_enum_is_shown_as_its_variant_and_settings() {
        let recipe = serde_json::json!({
            "rule": {"sgd": {"momentum": 0.9}},
            "family": {"classifier": {"objective": {"label": {"pos_weight": 0.2}}}},
            "schedule": {"decay": "constant", "warm_up_steps": 0},
            "balance": {"dynamic": {"every": 10}},
            "patience": null,
            "of_a_newer_version": {"some_thing": 1},
        });
        let mut found = Vec::new();
        flattened("", &recipe, &mut found);

        let expected = [
            ("--balance", "dynamic"),
            ("--balance-every", "10"),
            ("model", "classifier"),
            ("--loss", "label"),
            ("--pos-weight", "0.2"),
            ("of a newer version › some thing", "1"),
            ("--patience", "none"),
            ("--optimizer", "sgd"),
            ("--momentum", "0.9"),
            ("--decay", "constant"),
            ("--warm-up", "0"),
        ];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
