//! Datasets with valid digests that break a rule of FORMAT.md. Every command refuses them, and none prints
//! control characters from the file.

use std::path::Path;

use corpus::digest::Digest;
use corpus::record::Votes;
use corpus::settings::Settings;
use dataset::DatasetSettings;
use dataset::dataset_file::DatasetWriter;
use dataset::vocabulary::Vocabulary;
use dataset::{Row, RowsSize};

use crate::job::Job;

/// Writes a crafted dataset of rows with one token each and these hashes.
fn write(path: &Path, words: &[&str], hashes: &[u64]) {
    let settings = DatasetSettings {
        rows: Settings::original(),
        vocabulary_size: words.len() as u64,
        vocabulary_of: None,
        without: None,
    };
    let mut vocabulary = Vocabulary::default();
    for (word, count) in words.iter().zip((1..=words.len() as u64).rev()) {
        vocabulary.words.push(word.as_bytes());
        vocabulary.counts.push(count);
    }
    let (votes, split) = (Votes([0, 0, 0, 0, 1]), corpus::digest::split(words[0].as_bytes()));
    let row = |&hash: &u64| Row { hash, tokens: vec![2], votes, label: 1, split, source: 0 };
    let rows: Vec<Row> = hashes.iter().map(row).collect();
    let mut dataset = DatasetWriter::create(path, &settings, &vocabulary, RowsSize::of(&rows)).unwrap();
    dataset.rows(&rows).unwrap();
    dataset.finish(Digest::default()).unwrap();
}

/// Checks that every command that opens a dataset refuses this one with the same message, and changes
/// nothing.
fn refused(job: &Job, said: &str) {
    let message = |program: &str| {
        format!(
            "{program}: crafted.h5: {said}; the file was altered, or made by another program: fetch or make it again"
        )
    };
    for option in ["--check", "--describe"] {
        job.refuses(|| job.program("merge", &[option, "crafted.h5"], ""), 66, &message("merge"));
    }
    for option in ["--vocabulary", "--without"] {
        job.refuses(|| job.merge(&[option, "crafted.h5"]), 66, &message("merge"));
        let arguments = ["--input", "reviews.json", "--out", "milled.h5", option, "crafted.h5"];
        job.refuses(|| job.program("sentimill", &arguments, ""), 66, &message("sentimill"));
    }
}

#[test]
fn a_word_with_control_characters_is_refused_and_not_shown() {
    let job = Job::done(1);
    write(&job.path("crafted.h5"), &["warm", "\u{1b}[31mred"], &[5, 7]);
    refused(&job, "word 1 of the vocabulary is \"\\u{1b}[31mred\", expected a cleaned word (FORMAT.md, F18)");
    job.merges();
}

#[test]
fn rows_out_of_order_are_refused() {
    let job = Job::done(1);
    write(&job.path("crafted.h5"), &["warm"], &[7, 5]);
    refused(
        &job,
        "row 1 is less than the previous row, expected rows ascending by hash, then by kept words and votes (FORMAT.md, F32)",
    );
    job.merges();
}

#[test]
fn a_manifest_of_another_dataset_is_refused() {
    let job = Job::done(1);
    assert_eq!(job.merge(&[]).code, 0);
    let manifest = String::from_utf8(job.read("out.manifest.json")).unwrap();
    let value = |name: &str| {
        let (_, behind) = manifest.rsplit_once(&format!("\"{name}\": ")).unwrap();
        behind[..behind.find([',', '\n']).unwrap()].to_owned()
    };
    let check = || job.program("merge", &["--check", "out.h5"], "");
    for (what, name, other) in [
        ("the SHA-256", "sha256", format!("\"{:064}\"", 0)),
        ("the size", "bytes", "7".to_owned()),
        ("the number of rows", "rows", "99".to_owned()),
        ("the list of digests", "id_digest", format!("\"{:032}\"", 0)),
        ("the vocabulary size", "vocabulary_size", "7".to_owned()),
        ("without", "without", format!("\"{:032}\"", 0)),
    ] {
        let (before, behind) = manifest.rsplit_once(&format!("\"{name}\": {}", value(name))).unwrap();
        job.with_content(
            "out.manifest.json",
            format!("{before}\"{name}\": {other}{behind}").as_bytes(),
            || {
                let ended = check();
                assert_eq!(ended.code, 66, "{name}: {}", ended.stderr);
                assert!(ended.stderr.starts_with(&format!("merge: out.h5: {what} is ")), "{}", ended.stderr);
                assert!(
                    ended.stderr.ends_with("one of the two was altered: merge the run again\n"),
                    "{}",
                    ended.stderr
                );
            },
        );
    }
    assert_eq!(check().code, 0);
}
