//! Runs whose manifest and commits do not match.

use std::fs;

use crate::job::{Job, commit};

const SEAL: &str = "run/manifest.json";

fn sealed() -> Job {
    let job = Job::done(2);
    assert_eq!(job.merge(&[]).code, 0);
    job
}

fn refused(job: &Job, what: &str) {
    for out in ["out.h5", "another.h5"] {
        job.refuses(
            || job.program("merge", &["--run", "run", "--out", out], ""),
            66,
            &format!(
                "merge: file://JOB/run was merged before: {what}; restore the commit records and the manifest of the run"
            ),
        );
    }
}

#[test]
fn a_commit_changed_after_the_run_manifest_is_refused() {
    let job = sealed();
    job.with_json(
        &commit(1),
        |commit| commit["attempt"] = "another".into(),
        || {
            refused(&job, "the attempt of partition 1 is another, the run's manifest has attempt1");
        },
    );
    job.with_json(&commit(1), |commit| commit["counts"]["reviews"] = 99.into(), || {
        refused(
            &job,
            "the ledger is 107 reviews, 8 distinct, 1 only_stopwords, 7 rows, the run's manifest has 9 reviews, 8 distinct, \
             1 only_stopwords, 7 rows",
        );
    });
    job.merges();
}

#[test]
fn another_attempt_after_the_run_manifest_changes_nothing() {
    let job = sealed();
    let before = job.read(&commit(0));
    job.reduce("run", 0, &["--attempt", "later"]);
    assert!(job.read(&commit(0)) == before);
    job.merges();
}

#[test]
fn an_altered_run_manifest_is_refused() {
    let job = sealed();
    let mut seal: serde_json::Value = serde_json::from_slice(&job.read(SEAL)).unwrap();
    let mut with_texts = seal["shards"][1].take();
    with_texts["texts"] =
        serde_json::json!({ "name": "data/part-00001.x.y.texts.parquet", "bytes": 1, "sha256": "9f" });
    let cases: [(&str, serde_json::Value, &str); 5] = [
        (
            "/run",
            "file:///elsewhere".into(),
            "the run's name is file://JOB/run, the run's manifest has file:///elsewhere",
        ),
        ("/row_digest", "0".repeat(32).into(), "the row digest is DIGEST, the run's manifest has DIGEST"),
        (
            "/shards/1",
            with_texts,
            "the object of texts of partition 1 is none, the run's manifest has data/part-00001.x.y.texts.parquet of SHA-256 9f",
        ),
        ("/settings/max_tokens", 7.into(), "max-tokens is 100, the run's manifest has 7"),
        (
            "/ledger/reducer/rows",
            6.into(),
            "the ledger is 9 reviews, 8 distinct, 1 only_stopwords, 7 rows, the run's manifest has 9 reviews, 8 distinct, \
             1 only_stopwords, 6 rows",
        ),
    ];
    for (pointer, value, what) in cases {
        job.with_json(SEAL, |seal| *seal.pointer_mut(pointer).unwrap() = value, || refused(&job, what));
    }
    let edit = |seal: &mut serde_json::Value| {
        seal["shards"].as_array_mut().unwrap().pop();
    };
    job.with_json(SEAL, edit, || refused(&job, "the number of shards is 2, the run's manifest has 1"));
    job.merges();
}

#[test]
fn an_invalid_run_manifest_is_refused() {
    let job = sealed();
    for (content, found) in [
        ("", "EOF while parsing a value at line 1 column 0"),
        ("[]", "invalid type: sequence, expected an object at line 1 column 0"),
    ] {
        job.with_content(SEAL, content.as_bytes(), || {
            job.refuses(
                || job.merge(&[]),
                66,
                &format!(
                    "merge: file://JOB/run/manifest.json is not a manifest of a run ({found}), expected one of schema version 1; restore it, or use the version of the programs that wrote it"
                ),
            );
        });
    }
    job.merges();
}

#[test]
fn a_deleted_run_manifest_is_recreated() {
    let job = sealed();
    let before = job.read(SEAL);
    fs::remove_file(job.path(SEAL)).unwrap();
    assert_eq!(job.program("merge", &["--run", "run", "--out", "another.h5"], "").code, 0);
    assert!(job.read(SEAL) == before);
    job.merges();
}
