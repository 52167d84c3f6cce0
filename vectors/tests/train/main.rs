//! Word vectors, as a user trains them: from files, streams, folders that grow and datasets.
#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "a panic of a test is its failure")]

mod characters;
mod resuming;
mod served;
mod served_streams;
mod several_ranks;
mod spelled;
mod spelled_shared;
mod spelled_streams;
mod streams;
mod streams_killed;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use embeddings::Embedding;
use serde_json::Value;
use tests::command::{ended, program, run};

/// Words of two topics. A sentence has words of one topic.
const TOPICS: [[&str; 8]; 2] = [
    ["kettle", "water", "boil", "steam", "lid", "spout", "tea", "cup"],
    ["novel", "chapter", "author", "page", "story", "plot", "reader", "ending"],
];
const OTHERS: [&str; 6] = ["the", "and", "was", "with", "very", "a"];

/// Sentences of 10 words.
fn sentences(n: usize, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut text = String::new();
    for _ in 0..n {
        let topic = &TOPICS[draw(2)];
        for at in 0..10 {
            let word = if draw(4) == 0 { OTHERS[draw(OTHERS.len())] } else { topic[draw(topic.len())] };
            let _ = write!(text, "{}{word}", if at == 0 { "" } else { " " });
        }
        text.push('\n');
    }
    text
}

fn embed(input: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = program("vectors");
    command.arg("train").arg("--input").arg(input).arg("--out").arg(out);
    command.args(["--dim", "16", "--rate", "0.05", "--json"]).args(more);
    command
}

/// The summary of a training that succeeds.
#[track_caller]
fn trained(command: Command) -> Value {
    let (code, said, told) = run(command);
    assert_eq!(code, Some(0), "{told}");
    serde_json::from_str(&said).unwrap()
}

fn model(out: &Path) -> Embedding {
    embeddings::folder::read(&out.join("model")).unwrap()
}

/// The mean cosine of words of one topic, less that of words of different topics.
fn separation(out: &Path) -> f32 {
    let model = model(out);
    let vector = |word: &str| {
        let vector = model.vector_of(word.as_bytes()).unwrap_or_else(|| panic!("no vector of {word}"));
        let norm = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        vector.iter().map(|value| value / norm).collect::<Vec<f32>>()
    };
    let cosine = |a: &str, b: &str| vector(a).iter().zip(vector(b)).map(|(a, b)| a * b).sum::<f32>();
    let (mut same, mut different) = (0.0, 0.0);
    let [first, second] = TOPICS;
    let pairs = |a: [&'static str; 8], b: [&'static str; 8]| a.into_iter().zip(b.into_iter().cycle().skip(1));
    pairs(first, first).chain(pairs(second, second)).for_each(|(a, b)| same += cosine(a, b) / 16.0);
    pairs(first, second).for_each(|(a, b)| different += cosine(a, b) / 8.0);
    same - different
}

#[test]
fn words_of_one_topic_are_neighbours() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    fs::write(&input, sentences(4000, 1)).unwrap();
    let summary = trained(embed(&input, &out, &["--threads", "2"]));
    assert_eq!((&summary["words"], &summary["tokens"]), (&Value::from(22), &Value::from(40_000)));
    assert_eq!((&summary["trained_tokens"], &summary["lines"]), (&Value::from(200_000), &Value::from(4000)));
    assert!(separation(&out) > 0.5, "{}", separation(&out));
    for command in ["predict", "evaluate", "explain", "export"] {
        let mut other = program("ngrams");
        other.arg(command).arg(&out);
        if command == "evaluate" {
            other.arg(&input);
        }
        let (code, told) = ended(other);
        assert_eq!(code, Some(78), "{command}: {told}");
        assert!(told.contains("word vectors, expected a classifier; train one with"), "{command}: {told}");
    }
    // Text is cleaned, and rare words have no vector.
    let model = model(&out);
    assert!(model.counts().unwrap().is_sorted_by(|a, b| a >= b));
    fs::write(&input, "Kettle, KETTLE! <b>kettle</b> kettle kettle\nrare words\n").unwrap();
    let summary = trained(embed(&input, &folder.path().join("other"), &[]));
    assert_eq!((&summary["words"], &summary["lines"]), (&Value::from(1), &Value::from(2)));
}

#[test]
fn one_thread_gives_the_same_vectors_with_sentences_in_memory_or_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("text");
    fs::write(&input, sentences(40_000, 2)).unwrap();
    let of = |name: &str, more: &[&str]| {
        let out = folder.path().join(name);
        trained(embed(&input, &out, &[&["--threads", "1", "--epochs", "2"], more].concat()));
        fs::read(out.join("model/vectors.npy")).unwrap()
    };
    let first = of("first", &[]);
    assert_eq!(first, of("second", &[]));
    assert_eq!(first, of("file", &["--memory", "1MiB"]));
    assert_ne!(first, of("seed", &["--seed", "2"]));
}

#[test]
fn json_lines_and_a_dataset_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("reviews.json"), folder.path().join("json"));
    let texts = sentences(3000, 3);
    let lines: String = texts
        .lines()
        .enumerate()
        .map(|(at, text)| format!("{{\"reviewText\":\"{text}\",\"overall\":{}}}\n", 1 + 4 * (at % 2)))
        .collect();
    let without_text = "{\"overall\":1}\n";
    fs::write(&input, lines + without_text).unwrap();
    let (code, said, told) = run(embed(&input, &out, &[]));
    assert_eq!(code, Some(0), "{told}");
    let expected = format!("1 of 3,001 lines of {} have no text in the format json", input.display());
    assert!(told.contains(&expected), "{told}");
    let summary: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(summary["tokens"], Value::from(30_000));
    assert!(separation(&out) > 0.5);
    // A full vocabulary has the input read again.
    let (code, told) =
        ended(embed(&input, &folder.path().join("few"), &["--format", "json", "--words-max", "10"]));
    assert_eq!((code, told.matches(&expected).count()), (Some(0), 1), "{told}");
    let (code, told) = ended(embed(
        &folder.path().join("reviews.json"),
        &folder.path().join("x"),
        &["--format", "polarity-csv"],
    ));
    assert_eq!(code, Some(65), "{told}");
    assert!(told.contains("no line is of the format polarity-csv; check --format"), "{told}");
}

#[test]
fn a_training_that_diverges_ends_with_its_first_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("text");
    fs::write(&input, sentences(2000, 7)).unwrap();
    let characters = ["--char-ngrams", "3-4", "--buckets", "500"];
    let spelled = ["--model", "char-lstm", "--hidden", "16", "--char-dim", "4"];
    for (at, more) in [&[][..], &characters, &spelled].into_iter().enumerate() {
        let mut command = program("vectors");
        command.arg("train").arg("--input").arg(&input).arg("--out").arg(folder.path().join(at.to_string()));
        command.args(["--dim", "16", "--rate", "1e30", "--threads", "1"]).args(more);
        let (code, told) = ended(command);
        let expected = "epoch 1, token 20,000: the training diverged: a vector is not finite; lower --rate, and start again \
                        with --force";
        assert_eq!((code, told.contains(expected)), (Some(78), true), "{more:?}: {told}");
        assert!(!told.contains("epoch 2 of 5"), "{more:?}: {told}");
    }
    let mut command = program("vectors");
    command.arg("train").args(["--input", "-", "--dim", "16", "--rate", "1e30", "--out"]);
    command.arg(folder.path().join("stream")).stdin(fs::File::open(&input).unwrap());
    let (code, told) = ended(command);
    let expected = "token 20,000: the training diverged: a vector is not finite; lower --rate";
    assert_eq!((code, told.contains(expected)), (Some(78), true), "{told}");
}

#[test]
fn a_full_vocabulary_keeps_frequent_words_and_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    let mut text = String::new();
    for (at, line) in sentences(4000, 4).lines().enumerate() {
        let letters = |mut n: usize| {
            let mut word = String::from("q");
            while n > 0 {
                word.push(char::from(b'a' + (n % 26) as u8));
                n /= 26;
            }
            word
        };
        let _ = writeln!(text, "{line} {}", letters(at));
    }
    fs::write(&input, &text).unwrap();
    let mut command = embed(&input, &out, &["--words-max", "60"]);
    command.arg("--min-count=20");
    let (code, said, told) = run(command);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("the vocabulary was full: "), "{told}");
    let summary: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(summary["words"], Value::from(22));
    assert!(separation(&out) > 0.5, "{}", separation(&out));
}

#[test]
fn contradictory_flags_and_useless_inputs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    fs::write(&input, "one two\n").unwrap();
    let refused = |more: &[&str], code: i32, expected: &str| {
        let (found, told) = ended(embed(&input, &out, more));
        assert_eq!(found, Some(code), "{more:?}: {told}");
        assert!(told.contains(expected), "{more:?}: {told}");
    };
    refused(&[], 65, "no word occurs 5 times; lower --min-count, or check --format");
    refused(&["--words", "5"], 78, "--words is set for files, expected standard input or --follow");
    refused(&["--if-slow", "skip"], 78, "--if-slow is skip for files, expected standard input or --follow");
    refused(&["--follow", "--epochs", "2"], 78, "--epochs is 2, expected 1 for standard input and --follow");
    refused(&["--preset", "yelp"], 64, "--preset");
    refused(&["--dim", "0"], 64, "--dim");
    // A mistake that ends a command before it trains does not occupy the folder.
    let missing = ["--min-count", "1", "--held-out", "no-such-file"];
    refused(&missing, 66, "no-such-file");
    refused(&missing, 66, "no-such-file");
    trained(embed(&input, &out, &["--min-count", "1"]));
    refused(&["--min-count", "1"], 64, "a training");
    refused(&["--min-count", "2", "--resume"], 78, "--min-count is 1 in the training and 2 in this command");
    let format = ["--min-count", "1", "--resume", "--format", "json"];
    refused(&format, 78, "--format is text in the training and json in this command");
    // Older versions did not write the format.
    let settings = out.join("settings.json");
    let mut older: Value = serde_json::from_slice(&fs::read(&settings).unwrap()).unwrap();
    older["recipe"].as_object_mut().unwrap().retain(|name, _| name != "format" && name != "text-field");
    fs::write(&settings, older.to_string()).unwrap();
    let summary = trained(embed(&input, &out, &["--min-count", "1", "--resume"]));
    assert_eq!(summary["was_complete"], Value::from(true));
}

#[test]
fn lines_of_another_format_than_the_default_are_refused_with_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    for (line, expected) in [
        (
            r#"{"reviewText": "a good kettle"}"#,
            "the first line is of JSON, expected a sentence; pass --format json",
        ),
        (
            "__label__1 a good kettle",
            "the first line is of fastText's format, expected a sentence; pass --format fasttext",
        ),
    ] {
        fs::write(&input, format!("\n{line}\n{line}\n")).unwrap();
        let (code, told) = ended(embed(&input, &out, &["--min-count", "1"]));
        assert_eq!(code, Some(65), "{told}");
        assert!(told.contains(expected) && !out.exists(), "{told}");
    }
    let table = folder.path().join("reviews.CSV.gz");
    fs::write(&table, "text,stars\na good kettle,5\n").unwrap();
    let (code, told) = ended(embed(&table, &out, &["--min-count", "1"]));
    assert_eq!(code, Some(65), "{told}");
    assert!(told.contains("found the name of a table, expected sentences; make a dataset of it"), "{told}");
    // Other lines are sentences, whatever they contain.
    fs::write(&input, "{a good kettle}\n{\"reviewText\": 1}\n__label__1\n").unwrap();
    trained(embed(&input, &out, &["--min-count", "1"]));
}
