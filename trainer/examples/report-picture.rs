//! Writes a picture of a report, as a browser shows it: `report-picture CHROMIUM PAGE PNG WIDTH HEIGHT`.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(clippy::disallowed_methods, reason = "it shares the browser of the tests")]

#[allow(dead_code, reason = "the tests of the report use the rest")]
#[path = "../tests/report/browser.rs"]
mod browser;

use std::path::Path;
use std::{env, fs};

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let [chromium, page, picture, width, height] = &words[..] else {
        panic!("usage: report-picture CHROMIUM PAGE PNG WIDTH HEIGHT");
    };
    let height: u32 = height.parse().unwrap();
    let mut browser = browser::Browser::start(Path::new(chromium));
    let page = fs::canonicalize(page).unwrap();
    browser.open(&page, (width.parse().unwrap(), height), "light");
    fs::write(picture, browser.picture(height.into())).unwrap();
}
