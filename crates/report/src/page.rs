//! The whole page.

use crate::html::Html;
use crate::run::Run;
use crate::sections;

/// The first lines of every report. A file that starts otherwise is not overwritten.
pub const BEGIN: &str = "<!doctype html>\n<!-- sentimill report -->\n";

/// Returns a page that compares these runs.
pub fn page(runs: &[Run]) -> String {
    let mut html = Html::default();
    html.markup(BEGIN);
    html.element("html", &[("lang", "en")], |html| {
        html.element("head", &[], |html| {
            html.markup("<meta charset=\"utf-8\">");
            // The page loads nothing and runs no scripts, whatever it contains.
            html.markup(
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            );
            html.markup("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
            html.markup("<meta name=\"color-scheme\" content=\"light dark\">");
            html.markup("<meta name=\"referrer\" content=\"no-referrer\">");
            html.leaf("title", &[], &format!("{} · sentimill", title(runs)));
            html.markup(concat!("<style>\n", include_str!("style.css"), "</style>"));
        });
        html.element("body", &[], |html| body(runs, html));
    });
    let mut page = html.finish();
    page.push('\n');
    page
}

fn title(runs: &[Run]) -> String {
    match runs {
        [run] => run.name.clone(),
        runs => format!("{} trainings side by side", runs.len()),
    }
}

/// Writes a section about trainings.
type Section = fn(&[Run], &mut Html);

fn body(runs: &[Run], html: &mut Html) {
    html.element("header", &[], |html| {
        html.class("p", "brand", |html| {
            html.markup(MARK);
            html.text("sentimill");
        });
        html.leaf("h1", &[], &title(runs));
        html.paragraph("lead", &sections::lead(runs));
        navigation(runs, html);
    });
    html.element("main", &[], |html| {
        let all: [(&str, Section); 12] = [
            ("glance", sections::glance),
            ("folds", sections::folds),
            ("curves", sections::curves),
            ("epochs", sections::epochs),
            ("held-out", sections::held_out),
            ("wrong", sections::wrong),
            ("ngrams", sections::ngrams),
            ("words", sections::words),
            ("speed", sections::speed),
            ("settings", sections::settings),
            ("data", sections::cards),
            ("notes", sections::notes),
        ];
        let shown = all.into_iter().filter(|(id, _)| sections::is_shown(id, runs));
        shown.for_each(|(_, section)| section(runs, html));
    });
    html.element("footer", &[], |html| {
        html.text(concat!(
            "Written by sentimill ",
            env!("CARGO_PKG_VERSION"),
            ". One file: nothing is loaded from elsewhere, and nothing runs."
        ));
    });
}

/// A logo of three growing bars, the last of them solid.
const MARK: &str = "<svg class=\"mark\" viewBox=\"0 0 24 24\" aria-hidden=\"true\"><path d=\"M3 14h4v7H3zM10 9h4v12h-4z\" \
    opacity=\".45\"/><path d=\"M17 3h4v18h-4z\"/></svg>";

fn navigation(runs: &[Run], html: &mut Html) {
    html.element("nav", &[("aria-label", "Sections")], |html| {
        for (id, name) in sections::NAMES.into_iter().filter(|(id, _)| sections::is_shown(id, runs)) {
            html.leaf("a", &[("href", &format!("#{id}"))], name);
        }
    });
}
