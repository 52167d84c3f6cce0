//! Next-word pretraining, and classifiers that start from its weights.
#![allow(clippy::unwrap_used)]

mod command;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use command::{losses, plain, plain_of_words};
use corpus::record::Votes;
use dataset::Row;
use fixtures::dataset_of;
use fixtures::free_port;
use tch::Tensor;
use tempfile::TempDir;
use tests::ranks::{Rank, placed};

const N_WORDS: u32 = 50;
const SIZES: &[&str] = &["--tokens", "20", "--batch", "32", "--embedding", "12"];

/// Rows in which each word determines the next word: its id is greater by seven, modulo the number of words.
/// All rows have one label.
fn unlabelled() -> (TempDir, PathBuf) {
    dataset_of(400, N_WORDS, |at| ring(at, 1 + at % 12, 1))
}

fn labelled() -> (TempDir, PathBuf) {
    dataset_of(200, N_WORDS, |at| ring(at, 5, if at % 3 == 0 { 1 } else { 5 }))
}

fn ring(at: u32, length: u32, rating: usize) -> Row {
    let mut votes = [0; 5];
    votes[rating - 1] = 1;
    Row {
        hash: u64::from(at),
        tokens: (0..length).map(|n| 2 + (at + 7 * n) % N_WORDS).collect(),
        votes: Votes(votes),
        label: u8::from(rating > 3),
        split: (at * 37 % 1000) as u16,
        source: 0,
    }
}

fn trainer(asked: &[&str]) -> Command {
    let mut command = command::trainer();
    command.args(asked);
    command
}

fn fit(dataset: &Path, out: &Path, asked: &[&str]) -> Command {
    let mut command = trainer(&["fit"]);
    command.arg(dataset).arg("--out").arg(out).args(plain(&[SIZES, asked].concat()));
    command
}

fn pretrain(dataset: &Path, out: &Path, asked: &[&str]) -> Command {
    let mut command = trainer(&["pretrain"]);
    command.arg(dataset).arg("--out").arg(out).args(plain_of_words(&[SIZES, asked].concat()));
    command
}

/// The exit code and the output.
fn said(mut command: Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

fn succeed(command: Command) {
    let (code, said) = said(command);
    assert_eq!(code, Some(0), "{said}");
}

fn weights_file(model: &Path) -> PathBuf {
    model.join("model.safetensors")
}

fn weights(model: &Path) -> Vec<(String, Tensor)> {
    Tensor::read_safetensors(weights_file(model)).unwrap()
}

#[test]
fn next_words_are_learned_and_a_classifier_begins_with_them() {
    let (folder, dataset) = unlabelled();
    let (_labelled, reviews) = labelled();
    let [words, begun] = ["words", "begun"].map(|name| folder.path().join(name));
    succeed(pretrain(&dataset, &words, &["--epochs", "30", "--rate", "0.01"]));
    let losses = losses(&words, "epoch");
    // A random guess among 50 words has the loss ln 50 = 3.9. After training, the loss is close to 0, because
    // each word determines the next.
    assert!(losses[0] > 2.0 && losses[29] < 0.3, "{losses:?}");

    let model = words.join("model");
    let from = ["--init-from", model.to_str().unwrap(), "--epochs", "1", "--rate", "1e-12"];
    succeed(fit(&reviews, &begun, &from));
    // A job that is restarted after a failure passes --resume from its first start.
    let resumed = folder.path().join("resumed");
    succeed(fit(&reviews, &resumed, &[&from[..], &["--resume"]].concat()));
    let [found, expected] = [&resumed, &begun].map(|out| fs::read(weights_file(&out.join("model"))).unwrap());
    assert_eq!(found, expected);
    let (learned, begun) = (weights(&model), weights(&begun.join("model")));
    let in_common = |name: &str| name.starts_with("embedding.") || name.starts_with("lstm.");
    assert_eq!(begun.iter().filter(|(name, _)| in_common(name)).count(), 9);
    for (name, found) in begun.iter().filter(|(name, _)| in_common(name)) {
        let (_, expected) = learned.iter().find(|(learned, _)| learned == name).unwrap();
        assert!((found - expected).abs().max().double_value(&[]) < 1e-9, "{name}");
    }
}

#[test]
fn ranks_learn_next_words_as_one_does() {
    let (folder, dataset) = unlabelled();
    let asked = ["--epochs", "3", "--precision", "f64", "--log-steps", "1", "--candidates", "20"];
    let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
    succeed(pretrain(&dataset, &one, &asked));
    let port = free_port();
    let start = |rank| Rank::start(rank, placed(pretrain(&dataset, &two, &asked), rank, 2, port));
    for mut rank in [0, 1].map(start) {
        let (code, output) = rank.end();
        assert_eq!(code, Some(0), "{}", output.join("\n"));
    }
    let (found, expected) = (losses(&two, "steps"), losses(&one, "steps"));
    assert_eq!((found.len(), expected.len()), (39, 39));
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() <= 1e-9 * expected, "{found}, of one rank {expected}");
    }
}

#[test]
fn a_model_of_next_words_is_not_taken_for_a_classifier() {
    let (folder, dataset) = unlabelled();
    let (_labelled, reviews) = labelled();
    let out = folder.path().join("words");
    succeed(pretrain(&dataset, &out, &["--epochs", "1"]));
    let model = out.join("model");
    let (model, reviews_text) = (model.to_str().unwrap(), reviews.to_str().unwrap());
    let exported = folder.path().join("exported");
    for asked in [
        &["predict", model] as &[&str],
        &["evaluate", model, reviews_text],
        &["export", model, "--out", exported.to_str().unwrap()],
    ] {
        let (code, said) = said(trainer(asked));
        assert_eq!(code, Some(78), "{asked:?}: {said}");
        assert!(said.contains("a next-word model") && said.contains("fit DATASET --init-from"), "{said}");
    }
    assert!(!exported.exists());

    let other = folder.path().join("other");
    let (code, said_of_sizes) = said(fit(&reviews, &other, &["--init-from", model, "--hidden", "16"]));
    assert_eq!(code, Some(78), "{said_of_sizes}");
    assert!(said_of_sizes.contains("--hidden is 16, expected 32 as in "), "{said_of_sizes}");
    let (code, said_of_layers) = said(fit(&reviews, &other, &["--init-from", model, "--layers", "1"]));
    assert_eq!(code, Some(78), "{said_of_layers}");
    assert!(said_of_layers.contains("--layers is 1, expected 2 as in "), "{said_of_layers}");
    let (code, said_of_std) = said(fit(&reviews, &other, &["--init-from", model, "--embedding-std", "0.1"]));
    assert_eq!(code, Some(78), "{said_of_std}");
    assert!(said_of_std.contains("--embedding-std is 0.1, expected no --embedding-std: "), "{said_of_std}");
}

#[test]
fn what_only_a_classifier_has_is_refused() {
    let (folder, dataset) = unlabelled();
    for more in
        ["--bidirectional", "--pool=mean-max", "--test-fraction=0.1", "--pos-weight=2", "--patience=1"]
    {
        let (code, said) = said(pretrain(&dataset, &folder.path().join("out"), &[more]));
        assert_eq!(code, Some(64), "{said}");
        let option = more.split('=').next().unwrap();
        assert!(said.contains(&format!("unexpected argument '{option}'")), "{said}");
    }
    let mut fit = trainer(&["fit", "--candidates", "9", "--out", "out"]);
    fit.arg(&dataset);
    let (code, said) = said(fit);
    assert_eq!(code, Some(64), "{said}");
    assert!(said.contains("unexpected argument '--candidates'"), "{said}");
}
