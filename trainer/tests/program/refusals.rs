//! Datasets, settings and checkpoints that are refused, and why.

use std::fs;
use std::path::{Path, PathBuf};

use corpus::record::Votes;
use dataset::Row;
use fixtures::{dataset_of, dataset_with, review, reviews, word};

use super::Job;
use crate::command::{ended, trainer};

fn row(at: u32, label: u8) -> Row {
    let votes = if label == 1 { Votes([0, 0, 0, 0, 1]) } else { Votes([1, 0, 0, 0, 0]) };
    Row {
        hash: u64::from(at),
        tokens: vec![2 + at % 50; 1 + at as usize % 40],
        votes,
        label,
        split: 900,
        source: 0,
    }
}

fn refused(dataset: &Path, more: &[&str]) -> (Option<i32>, String, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut command = trainer();
    command
        .arg("fit")
        .arg(dataset)
        .arg("--out")
        .arg(&out)
        .args(["--device", "cpu", "--epochs", "2"])
        .args(more);
    let (code, told) = ended(command);
    let left = match fs::read_dir(&out) {
        Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
        Err(_) => Vec::new(),
    };
    (code, told.lines().last().unwrap_or_default().to_owned(), left)
}

#[test]
fn a_dataset_that_cannot_be_trained_on_is_refused() {
    let (_one_class, path) = dataset_of(50, 50, |at| row(at, 1));
    let (code, told, left) = refused(&path, &[]);
    assert_eq!((code, left.len()), (Some(65), 0));
    assert!(
        told.ends_with(
            "all 50 rows for training have label 1, expected both labels; check the ratings of the reviews, or add reviews"
        ),
        "{told}"
    );

    let (_no_rows, path) = dataset_of(0, 50, |at| row(at, 1));
    let (code, told, left) = refused(&path, &[]);
    assert_eq!((code, left.len()), (Some(65), 0), "{told}");

    let (_flipped, path) = reviews(300);
    let mut bytes = fs::read(&path).unwrap();
    // Some bytes of the file do not affect its content.
    let quarter = bytes.len() / 4;
    bytes[quarter..3 * quarter].iter_mut().for_each(|byte| *byte ^= 0x10);
    fs::write(&path, bytes).unwrap();
    let (code, told, left) = refused(&path, &[]);
    assert_eq!((code, left.len()), (Some(66), 0), "{told}");

    let other = tempfile::NamedTempFile::new().unwrap();
    fs::write(other.path(), b"no HDF5").unwrap();
    let (code, told, left) = refused(other.path(), &[]);
    assert_eq!((code, left.len()), (Some(66), 0), "{told}");
}

#[test]
fn a_dataset_that_breaks_a_rule_of_its_format_is_refused_before_training() {
    let with = |first: &str| {
        let words: Vec<String> =
            (0..50).map(|at| if at == 0 { first.to_owned() } else { word(at) }).collect();
        dataset_with(300, &words, review)
    };
    for (of, rule) in [
        (with("a\nb"), "word 0 of the vocabulary is \"a\\nb\", expected a cleaned word (FORMAT.md, F18)"),
        (
            with("\u{1b}[31m"),
            "word 0 of the vocabulary is \"\\u{1b}[31m\", expected a cleaned word (FORMAT.md, F18)",
        ),
        (
            with(&word(7)),
            "word 7 of the vocabulary is \"waaaah\", expected a word that is listed once (FORMAT.md, F20)",
        ),
        (
            dataset_of(300, 50, |at| Row { hash: u64::from(300 - at), ..review(at) }),
            "row 1 is less than the previous row",
        ),
        (
            dataset_of(300, 50, |at| Row { tokens: vec![52], ..review(at) }),
            "a token of row 0 is 52, expected 1 to 51",
        ),
    ] {
        let (code, told, left) = refused(&of.1, &[]);
        assert_eq!((code, left.len()), (Some(66), 0), "{told}");
        assert!(told.contains(rule), "{told}");
    }
}

#[test]
fn a_loss_that_is_no_number_ends_the_training() {
    let (_data, path) = reviews(300);
    let (code, told, left) = refused(&path, &["--optimizer", "sgd", "--rate", "1e30", "--loss", "rating"]);
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("the training diverged: the loss is not a finite number; lower --rate"), "{told}");
    let kept = ["model", "checkpoints", "evaluation.json", "scores.npy"];
    assert!(!left.iter().any(|path| kept.iter().any(|name| path.ends_with(name))), "{left:?}");
}

#[test]
fn invalid_settings_are_refused() {
    let (_data, path) = reviews(60);
    for (arguments, code, told) in [
        (&["--batch", "0"][..], 64, "--batch 0: expected a whole number from 1 to 16777216"),
        (&["--dropout-head", "1"], 64, "--dropout-head 1: expected a number from 0 to less than 1"),
        (
            &["--patience", "2", "--validation-fraction", "0"],
            78,
            "--validation-fraction is 0, expected more than 0 with --patience",
        ),
        (&["--precision", "bf16"], 78, "--precision is bf16, expected f32 or f64 on a CPU"),
        (&["--rate", "-1"], 64, "--rate -1: expected a number above 0"),
        (&["--pos-weight", "none"], 64, "expected a number above 0, or balanced"),
        (&["--loss", "rating", "--pos-weight", "2"], 64, "--pos-weight has no effect without --loss label"),
        (
            &["--optimizer", "adam", "--momentum", "0.5"],
            64,
            "--momentum has no effect without --optimizer sgd",
        ),
        (&["--test-fraction", "1.5"], 64, "--test-fraction 1.5: expected a number from 0 to less than 1"),
    ] {
        let (found, last, left) = refused(&path, arguments);
        assert_eq!((found, left.len()), (Some(code), 0), "{arguments:?}: {last}");
        assert!(last.contains(told), "{arguments:?}: {last}");
    }
}

#[test]
fn a_gpu_that_is_not_there_is_said_to_be_missing() {
    let mut command = trainer();
    command.args(["fit", "reviews.h5", "--out", "out", "--device", "cuda"]).env("CUDA_VISIBLE_DEVICES", "");
    let (code, told) = ended(command);
    assert_eq!(code, Some(78), "{told}");
    assert_eq!(told.trim_end().lines().count(), 1, "{told}");
}

#[test]
fn a_checkpoint_of_another_training_is_refused() {
    let job = Job::new();
    job.train("out", 1, &["--checkpoint-steps", "10"]);
    fs::remove_dir_all(job.out("out").join("model")).unwrap();

    let (code, told) = ended(job.fit("out", &["--resume", "--seed", "2"]));
    assert_eq!(code, Some(78), "{told}");
    assert!(
        told.trim_end()
            .ends_with(
                "settings.json: --seed is 1 in the training and 2 in this command; resume with the flags with which the training was started"
            ),
        "{told}"
    );

    // A checkpoint in another folder is compared by its own settings.
    let newest = fs::read_to_string(job.out("out").join("checkpoints/latest")).unwrap();
    let newest = job.out("out").join("checkpoints").join(newest);
    let (code, told) = ended(job.fit("other", &["--resume", newest.to_str().unwrap(), "--seed", "2"]));
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("training.json: --seed is 1 in the training and 2 in this command; "), "{told}");
}
