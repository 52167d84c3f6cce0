//! The rules for messages of this project's programs contain the words of these messages, so that a changed message cannot
//! silently switch a rule off.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

use std::fs;
use std::path::{Path, PathBuf};

use emr::diagnose::rules;

/// Words of Rust's library and of the system, and a message that is composed of a cause and a remedy.
const OTHERS: [&str; 3] = ["panicked at ", "Too many open files", "no such file or folder; check the path"];
/// Shorter pieces occur anywhere.
const CHARACTERS_MIN: usize = 12;

#[test]
fn words_of_rules_for_programs_are_in_the_sources() {
    let sources = sources();
    // The section of the file with this heading, which is the first.
    let file = include_str!("../src/diagnose/rules.toml");
    let section =
        file.split("\n## ").nth(1).and_then(|text| text.strip_prefix("Messages of this project's programs."));
    let of_programs = rules().iter().take(section.unwrap().matches("[[rule]]").count());
    let mut n_pieces = 0;
    let mut wrong = Vec::new();
    for rule in of_programs {
        for piece in pieces(&rule.pattern) {
            n_pieces += 1;
            if !sources.contains(&piece) {
                wrong.push(format!("{}: no source has {piece:?}", rule.id));
            }
        }
    }
    assert!(n_pieces > 40, "{n_pieces}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The words of a pattern between its operators.
fn pieces(pattern: &str) -> Vec<String> {
    let without_names = pattern.replace("\\.", "\u{1}").replace("\\(", "(").replace("\\)", ")");
    let pieces = without_names
        .split(|c: char| "\\()[]{}|?*+.^$<>\u{1}".contains(c))
        .map(|piece| piece.trim_start_matches([':', ' ']));
    let is_text =
        |piece: &&str| piece.len() >= CHARACTERS_MIN && piece.contains(' ') && !OTHERS.contains(piece);
    pieces.filter(is_text).map(str::to_owned).collect()
}

/// The sources of programs and libraries, except the rules. String literals of several lines are joined as by the compiler.
fn sources() -> String {
    let mut folders: Vec<PathBuf> = [
        "crates",
        "mapper",
        "combiner",
        "reducer",
        "merge",
        "sentimill",
        "bootstrap",
        "ngrams",
        "vectors",
        "trainer",
    ]
    .map(|name| project().join(name))
    .to_vec();
    let mut sources = String::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "sh") {
                let text = fs::read_to_string(path).unwrap();
                let mut lines = text.lines();
                while let Some(line) = lines.next() {
                    let mut line = line.to_owned();
                    while line.ends_with('\\') {
                        line.pop();
                        line += lines.next().unwrap_or_default().trim_start();
                    }
                    sources += &line;
                    sources.push('\n');
                }
            }
        }
    }
    sources
}

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
