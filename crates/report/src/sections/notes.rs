//! Lists files and values that are missing in the folders or could not be read.

use super::section;
use crate::html::Html;
use crate::name::run_name;
use crate::run::Run;

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
