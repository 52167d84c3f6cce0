//! The name of a run in the page.

use crate::chart::color;
use crate::html::Html;
use crate::run::Run;

/// Writes a run's name with its colour.
pub(crate) fn run_name(at: usize, run: &Run, html: &mut Html) {
    html.class("span", &format!("name {}", color(at)), |html| {
        html.markup("<i></i>");
        html.text(&run.name);
    });
}
