//! The program as a command: small trainings, and what came of them.
#![allow(dead_code, reason = "each test program uses a part of this")]

use std::path::Path;
use std::process::Command;

/// Settings of a training that has neither dropout nor validation, for those that are not asked for.
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

/// What is asked for, and [`PLAIN`], so that a test does not depend on defaults.
pub fn plain<'a>(asked: &[&'a str]) -> Vec<&'a str> {
    with(&PLAIN, asked)
}

/// The same for a pretraining, which has fewer flags.
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

/// The program, on one thread. On another machine than the tests were built on, SENTIMILL_TRAINER says where it is.
pub fn trainer() -> Command {
    let elsewhere = std::env::var_os("SENTIMILL_TRAINER");
    let mut command = Command::new(elsewhere.unwrap_or_else(|| env!("CARGO_BIN_EXE_trainer").into()));
    command.env("OMP_NUM_THREADS", "1");
    command
}

/// A training on a small model, of one epoch unless more are asked for.
pub fn fit(dataset: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = trainer();
    command.arg("fit").arg(dataset).arg("--out").arg(out).args(["--device", "cpu", "--batch", "32"]);
    command.args(["--embedding", "8", "--hidden", "6", "--linear", "5"]).args(more);
    if !more.contains(&"--epochs") {
        command.args(["--epochs", "1"]);
    }
    command
}

/// The exit code, and what was told on standard error.
pub fn ended(command: Command) -> (Option<i32>, String) {
    let (code, _, told) = run(command);
    (code, told)
}

/// The exit code, and what was said on both streams.
pub fn run(mut command: Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    let [said, told] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code(), said, told.trim_end().to_owned())
}
