//! Runs the program as a process: small trainings, and their exit code and output.
#![allow(dead_code, unused_imports, reason = "each test program uses a part of this")]

use std::fs;
use std::path::Path;
use std::process::Command;

use batches::balance::{Decision, Reason};
use runs::training::Line;
use serde_json::Value;
pub use tests::command::{ended, program, run};

/// Runs a command that succeeds. Returns what it wrote to standard output and to standard error.
#[track_caller]
pub fn done(command: Command) -> (String, String) {
    let (code, said, told) = run(command);
    assert_eq!(code, Some(0), "{told}");
    (said, told)
}

/// Runs a command that ends with this exit code, and with a message that contains this text.
#[track_caller]
pub fn refused(command: Command, code: i32, expected: &str) {
    let (found, told) = ended(command);
    assert_eq!(found, Some(code), "{told}");
    assert!(told.contains(expected), "{told}");
}

/// Settings of a training without dropout and validation split. They apply unless a test passes other values.
const PLAIN: [&str; 10] = [
    "--validation-fraction=0",
    "--pool=last",
    "--hidden=32",
    "--layers=2",
    "--epochs=5",
    "--rate=0.001",
    "--decay=constant",
    "--dropout-words=0",
    "--dropout-head=0",
    "--batch=512",
];

/// The flags `asked`, and those of [`PLAIN`] that are not among them, so that a test does not depend on
/// defaults.
pub fn plain<'a>(asked: &[&'a str]) -> Vec<&'a str> {
    with(&PLAIN, asked)
}

/// The flags as in [`plain`], for a pretraining, which has fewer flags.
pub fn plain_of_words<'a>(asked: &[&'a str]) -> Vec<&'a str> {
    let of_words: Vec<&str> = PLAIN
        .into_iter()
        .filter(|setting| {
            !["--validation-fraction", "--pool"].iter().any(|option| setting.starts_with(option))
        })
        .collect();
    with(&of_words, asked)
}

fn with<'a>(settings: &[&'a str], asked: &[&'a str]) -> Vec<&'a str> {
    let has = |option: &str| asked.iter().any(|asked| asked.split('=').next() == Some(option));
    let is_wanted = |setting: &&&str| {
        let option = setting.split('=').next().unwrap_or_default();
        let is_of_rate = option == "--rate" && asked.contains(&"sgd");
        !has(option) && !is_of_rate
    };
    asked.iter().chain(settings.iter().filter(is_wanted)).copied().collect()
}

/// The program, on one thread.
pub fn trainer() -> Command {
    program("trainer")
}

/// A training of a small model, with one epoch unless `more` contains another number.
pub fn fit(dataset: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = trainer();
    command.arg("fit").arg(dataset).arg("--out").arg(out).args(["--device", "cpu", "--batch", "32"]);
    command.args(["--embedding", "8", "--hidden", "6", "--linear", "5"]).args(more);
    if !more.contains(&"--epochs") {
        command.args(["--epochs", "1"]);
    }
    command
}

/// The lines of an event in the metrics of a training folder.
pub fn events(out: &Path, event: &str) -> Vec<Value> {
    let lines = fs::read_to_string(out.join("metrics.jsonl")).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["event"] == event).collect()
}

/// The losses in the lines of an event.
pub fn losses(out: &Path, event: &str) -> Vec<f64> {
    events(out, event).iter().map(|line| line["loss"].as_f64().unwrap()).collect()
}

/// Makes a training folder for `--balance replay`: steps, and the parts of batches that are decided in them.
pub fn decide(out: &Path, decided: &[(u64, Vec<usize>)]) {
    let line = |(step, parts): &(u64, Vec<usize>)| {
        let reason = Reason::Faster { before: 2, after: 1 };
        let decision = Decision { from_batch: step + 3, parts: parts.clone(), reason };
        serde_json::to_string(&Line::Shares { step: *step, decision }).unwrap()
    };
    fs::create_dir(out).unwrap();
    fs::write(out.join("metrics.jsonl"), decided.iter().map(line).collect::<Vec<_>>().join("\n")).unwrap();
}
