//! N-gram models: training, evaluation, predictions, explanations, the report and exports, as a user runs them.
#![allow(clippy::unwrap_used)]

mod answers;
mod choices;
mod exports;
mod in_s3;
mod inputs;
mod labels;
mod learning;
mod refusals;
mod resuming;
mod splits;
mod starts;
mod tested;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tests::command::{ended, program, run};

/// Words that occur with one label, and words that do not.
const GOOD: [&str; 6] = ["great", "lovely", "perfect", "solid", "charming", "bright"];
const BAD: [&str; 6] = ["awful", "broken", "useless", "flimsy", "dull", "noisy"];
const OTHERS: [&str; 12] =
    ["the", "kettle", "lid", "handle", "was", "very", "box", "and", "spout", "came", "with", "a"];

/// Lines of fastText's format: label 2 has more good words, label 1 more bad words.
fn lines(n: usize, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut lines = String::new();
    for _ in 0..n {
        let label = draw(2);
        let own = if label == 1 { GOOD } else { BAD };
        let _ = write!(lines, "__label__{}", label + 1);
        for _ in 0..10 {
            let word = if draw(4) == 0 { own[draw(own.len())] } else { OTHERS[draw(OTHERS.len())] };
            let _ = write!(lines, " {word}");
        }
        let _ = writeln!(lines, " {}", own[draw(own.len())]);
    }
    lines
}

/// A folder with the files `train.txt` and `test.txt`.
fn corpus() -> (TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (train, test) = (folder.path().join("train.txt"), folder.path().join("test.txt"));
    fs::write(&train, lines(2000, 1)).unwrap();
    fs::write(&test, lines(500, 2)).unwrap();
    (folder, train, test)
}

fn ngrams(input: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = program("ngrams");
    command
        .arg("train")
        .arg("--input")
        .arg(input)
        .args(["--format", "fasttext", "--out"])
        .arg(out)
        .args(more);
    command
}

#[track_caller]
fn trained(input: &Path, out: &Path, more: &[&str]) -> String {
    let (code, told) = ended(ngrams(input, out, more));
    assert_eq!(code, Some(0), "{told}");
    told
}

fn command_of(command: &str, model: &Path, more: &[&str]) -> Command {
    let mut ngrams = program("ngrams");
    ngrams.arg(command).arg(model).args(more);
    ngrams
}

#[track_caller]
fn evaluated(model: &Path, file: &Path, more: &[&str]) -> Value {
    let mut command = command_of("evaluate", model, &[]);
    command.arg(file).args(["--format", "fasttext"]).args(more);
    let (code, said, told) = run(command);
    assert_eq!(code, Some(0), "{told}");
    serde_json::from_str(&said).unwrap()
}

/// Standard output of a command that reads `input`.
#[track_caller]
fn said(mut command: Command, input: impl AsRef<[u8]>) -> String {
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    process.stdin.take().unwrap().write_all(input.as_ref()).unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Names and content of all files below a folder, without the times in metrics.
fn model_files(out: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(out.join("model"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

/// The flags of each kind of model.
const MODELS: [&[&str]; 2] = [&["--model", "linear"], &["--model", "fasttext", "--buckets", "20000"]];
