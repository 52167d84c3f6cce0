//! Commits and objects that do not belong to one complete run.

use std::fs;

use crate::job::{Job, commit, flipped, place_of};

#[test]
fn a_run_without_a_commit_is_refused() {
    let job = Job::mapped(3);
    job.refuses(
        || job.merge(&[]),
        66,
        "merge: file://JOB/run: found no committed partition, expected all; check --run, or run the reducers first",
    );
}

#[test]
fn a_missing_partition_is_refused_by_number() {
    let job = Job::done(3);
    let message =
        "merge: file://JOB/run has 2 of 3 partitions: missing 1; run the missing reducers, or check --run";
    job.without(&commit(1), || job.refuses(|| job.merge(&[]), 66, message));
    job.merges();
}

#[test]
fn several_missing_partitions_are_listed() {
    let job = Job::mapped(14);
    job.reduce("run", 3, &[]);
    job.refuses(
        || job.merge(&[]),
        66,
        "merge: file://JOB/run has 1 of 14 partitions: missing 0 1 2 4 5 6 7 8 9 10 and 3 more; run the missing reducers, or check --run",
    );
    (0..14).filter(|&partition| partition != 3).for_each(|partition| job.reduce("run", partition, &[]));
    job.merges();
}

#[test]
fn an_extra_partition_is_refused_by_number() {
    let job = Job::done(3);
    let mut record: serde_json::Value = serde_json::from_slice(&job.read(&commit(2))).unwrap();
    record["partition"] = 5.into();
    record["object"] = "data/part-00005.HOST.attempt5.h5".into();
    job.write(&commit(5), record.to_string());
    job.refuses(
        || job.merge(&[]),
        66,
        "merge: file://JOB/run has 3 of 3 partitions: extra 5; run the missing reducers, or check --run",
    );
    fs::remove_file(job.path(&commit(5))).unwrap();
    job.merges();
}

#[test]
fn a_commit_of_another_run_is_refused() {
    let job = Job::done(3);
    job.reduce("other", 1, &[]);
    job.with_content(&commit(1), &job.read("other/commit/part-00001.json"), || {
        job.refuses(
            || job.merge(&[]),
            66,
            "merge: partitions 1 and 0 belong to different runs, because they differ in name: file://JOB/other and file://JOB/run; \
             restore the commit record of this run",
        );
    });
    job.merges();
}

#[test]
fn a_commit_of_a_run_of_another_size_is_refused() {
    let job = Job::done(2);
    job.with_json(&commit(1), |commit| commit["partitions"] = 4_000_000_000_u32.into(), || {
        job.refuses(
            || job.merge(&[]),
            66,
            "merge: partitions 1 and 0 belong to different runs, because they differ in number of partitions: 4000000000 and 2; \
             restore the commit record of this run",
        );
    });
    job.merges();
}

#[test]
fn a_commit_that_claims_billions_of_partitions_is_refused() {
    let job = Job::done(1);
    job.with_json(&commit(0), |commit| commit["partitions"] = u32::MAX.into(), || {
        job.refuses(
            || job.merge(&[]),
            66,
            "merge: file://JOB/run has 1 of 4294967295 partitions: missing 1 2 3 4 5 6 7 8 9 10 and 4294967284 more; \
             run the missing reducers, or check --run",
        );
    });
    job.merges();
}

#[test]
fn shards_with_different_settings_are_refused_with_the_setting() {
    let cases: [(&[&str], &str); 6] = [
        (&["--sample", "0.50"], "sample: 0.5 and 1"),
        (&["--max-tokens", "5"], "max-tokens: 5 and 100"),
        (&["--labels", "1=a,5=b"], "labels: --labels 1=a,5=b and --positive-from 4"),
        (&["--keep", "last"], "keep: last and first"),
        (&["--positive-from", "3"], "positive-from: 3 and 4"),
        (&["--stopwords", "nltk-negations"], "stop words: 180 words (DIGEST) and 201 words (DIGEST)"),
    ];
    for (options, difference) in cases {
        let job = Job::mapped(2);
        job.reduce("run", 0, &[]);
        job.reduce("run", 1, options);
        job.refuses(
            || job.merge(&[]),
            78,
            &format!(
                "merge: partitions 1 and 0 differ in {difference}; run all reducers with the same settings, into a new \
                 --run"
            ),
        );
        fs::remove_dir_all(job.path("run")).unwrap();
        (0..2).for_each(|partition| job.reduce("run", partition, &[]));
        job.merges();
    }
}

#[test]
fn shards_of_other_cleaning_versions_are_refused() {
    let job = Job::done(2);
    for (name, value, difference) in [
        ("cleaning_version", 2.into(), "cleaning version: 2 (--punctuation) and 1"),
        ("unicode_version", "18.0.0".into(), "Unicode version: 18.0.0 and 17.0.0"),
    ] {
        let edit = |commit: &mut serde_json::Value| commit["settings"][name] = value;
        job.with_json(&commit(1), edit, || {
            job.refuses(
                || job.merge(&[]),
                78,
                &format!(
                    "merge: partitions 1 and 0 differ in {difference}; run all reducers with the same settings, into a \
                     new --run"
                ),
            );
        });
    }
    job.merges();
}

#[test]
fn an_altered_number_in_a_commit_is_detected() {
    let job = Job::done(3);
    let object =
        job.object(0).replace(&job.object(0)[job.object(0).find('.').unwrap()..], ".HOST.attempt0.h5");
    let altered = |what: &str| {
        format!(
            "merge: file://JOB/{object} has {what}; the object was altered: restore it, or run its reducer again into \
             a new --run"
        )
    };
    let ledger = "merge: the ledger does not balance: the reducers read ";
    let cases = [
        (
            "/counts/rows",
            9,
            65,
            format!("{ledger}8 distinct texts and account for 14; a commit record was altered, restore it"),
        ),
        (
            "/counts/distinct",
            9,
            65,
            format!("{ledger}14 distinct texts and account for 8; a commit record was altered, restore it"),
        ),
        (
            "/counts/reviews",
            2,
            66,
            altered("number of reviews 3 and 0 texts of stop words only, its commit record has 2"),
        ),
        (
            "/counts/reviews",
            4,
            66,
            altered("number of reviews 3 and 0 texts of stop words only, its commit record has 4"),
        ),
        ("/kept_words", 1, 66, altered("number of kept words 7, its commit record has 1")),
        ("/distinct_words", 1, 66, altered("number of distinct words 7, its commit record has 1")),
        (
            "/bytes",
            1,
            66,
            altered(&format!("size {}, its commit record has 1", job.read(&job.object(0)).len())),
        ),
    ];
    for (pointer, value, code, message) in cases {
        job.with_json(
            &commit(0),
            |commit| *commit.pointer_mut(pointer).unwrap() = value.into(),
            || {
                job.refuses(|| job.merge(&[]), code, &message);
            },
        );
    }
    job.merges();
}

#[test]
fn a_commit_whose_counters_contradict_its_labels_is_refused() {
    let refusal = |labels: &str, counter: &str| {
        format!(
            "merge: file://JOB/run/data/part-00000.HOST.attempt0.h5 has labels {labels}, its commit record has {counter} \
             counter not_labelled; the object was altered: restore it, or run its reducer again into a new --run"
        )
    };
    let job = Job::done(1);
    job.with_json(
        &commit(0),
        |commit| commit["counts"]["not_labelled"] = 0.into(),
        || {
            job.refuses(|| job.merge(&[]), 66, &refusal("--positive-from 4", "a"));
        },
    );
    job.merges();
    let job = Job::mapped(1);
    job.reduce("run", 0, &["--labels", "1-2=bad,3-5=good"]);
    let remove = |commit: &mut serde_json::Value| {
        commit["counts"].as_object_mut().unwrap().remove("not_labelled").unwrap();
    };
    job.with_json(&commit(0), remove, || {
        job.refuses(|| job.merge(&[]), 66, &refusal("--labels 1-2=bad,3-5=good", "no"));
    });
    assert_eq!(job.merge(&[]).code, 0);
}

#[test]
fn a_commit_whose_counters_contradict_its_sample_is_refused() {
    let refusal = |sample: &str, counter: &str| {
        format!(
            "merge: file://JOB/run/data/part-00000.HOST.attempt0.h5 has sample {sample}, its commit record has {counter} \
             counter not_sampled; the object was altered: restore it, or run its reducer again into a new --run"
        )
    };
    let job = Job::done(1);
    job.with_json(
        &commit(0),
        |commit| commit["counts"]["not_sampled"] = 0.into(),
        || {
            job.refuses(|| job.merge(&[]), 66, &refusal("1", "a"));
        },
    );
    job.merges();
    let job = Job::mapped(1);
    job.reduce("run", 0, &["--sample", "0.5"]);
    let remove = |commit: &mut serde_json::Value| {
        let counts = commit["counts"].as_object_mut().unwrap();
        let not_sampled = counts.remove("not_sampled").unwrap().as_u64().unwrap();
        // The counters balance, so only the setting contradicts them.
        counts["only_stopwords"] = (counts["only_stopwords"].as_u64().unwrap() + not_sampled).into();
    };
    job.with_json(&commit(0), remove, || {
        job.refuses(|| job.merge(&[]), 66, &refusal("0.5", "no"));
    });
    assert_eq!(job.merge(&[]).code, 0);
}

#[test]
fn an_altered_digest_in_a_commit_is_detected() {
    let job = Job::done(1);
    for (name, digits, what) in [("sha256", 64, "SHA-256"), ("row_digest", 32, "row digest")] {
        job.with_json(&commit(0), |commit| commit[name] = "0".repeat(digits).into(), || {
            job.refuses(
                || job.merge(&[]),
                66,
                &format!(
                    "merge: file://JOB/run/data/part-00000.HOST.attempt0.h5 has {what} DIGEST, its commit record has DIGEST; \
                     the object was altered: restore it, or run its reducer again into a new --run"
                ),
            );
        });
    }
    job.merges();
}

#[test]
fn a_commit_that_names_another_object_is_not_followed() {
    let job = Job::done(2);
    let long = format!("data/part-00001.{}.h5", "x".repeat(100_000));
    let cut: String = long.chars().take(512).collect();
    for (object, shown) in [
        ("data/part-00000.HOST.attempt0.h5", "data/part-00000.HOST.attempt0.h5"),
        ("data/part-00001./../../../other.h5", "data/part-00001./../../../other.h5"),
        ("../data/part-00001.HOST.attempt1.h5", "../data/part-00001.HOST.attempt1.h5"),
        ("data/part-00001.\u{1b}[2J.h5", "data/part-00001.\\u{1b}[2J.h5"),
        (&long, &cut),
    ] {
        job.with_json(
            &commit(1),
            |commit| commit["object"] = object.into(),
            || {
                job.refuses(
                    || job.merge(&[]),
                    66,
                    &format!(
                        "merge: file://JOB/run/commit/part-00001.json names object \"{shown}\", expected \
                     data/part-00001.*.h5; the record was altered or moved: restore it"
                    ),
                );
            },
        );
    }
    job.merges();
}

#[test]
fn a_commit_under_the_name_of_another_is_refused() {
    let job = Job::done(2);
    job.with_content(&commit(1), &job.read(&commit(0)), || {
        job.refuses(
            || job.merge(&[]),
            66,
            "merge: file://JOB/run/commit/part-00001.json names partition 0, expected 1; the record was altered or moved: restore it",
        );
    });
    job.merges();
}

#[test]
fn a_commit_of_another_version_is_refused() {
    let job = Job::done(2);
    let refused = |found: &str| {
        job.refuses(
            || job.merge(&[]),
            66,
            &format!(
                "merge: file://JOB/run/commit/part-00001.json is not a commit record ({found}), expected one of schema \
                 version 1; restore it, or use the version of the programs that wrote it"
            ),
        );
    };
    job.with_content(&commit(1), b"", || refused("EOF while parsing a value at line 1 column 0"));
    job.with_content(&commit(1), b"no JSON\n", || refused("expected ident at line 1 column 2"));
    job.with_content(&commit(1), b"[1]", || {
        refused("invalid type: sequence, expected an object at line 1 column 0");
    });
    job.with_content(&commit(1), b"{}", || refused("missing field `schema_version` at line 1 column 2"));
    job.with_json(&commit(1), |commit| commit["schema_version"] = 2.into(), || refused("schema version 2"));
    job.with_content(&commit(1), b"{", || refused("EOF while parsing an object at line 1 column 1"));
    job.merges();
}

#[test]
fn a_commit_with_an_unknown_field_is_refused() {
    let job = Job::done(1);
    job.with_json(&commit(0), |commit| commit["colour"] = "red".into(), || {
        let ended = job.merge(&[]);
        assert_eq!(ended.code, 66);
        let expected = "merge: file://JOB/run/commit/part-00000.json is not a commit record (unknown field `colour`), expected one of schema version 1; ";
        assert!(ended.stderr.starts_with(expected), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1);
    });
    job.merges();
}

#[test]
fn a_missing_object_is_refused_by_name() {
    let job = Job::done(2);
    job.without(&job.object(1), || {
        job.refuses(
            || job.merge(&[]),
            66,
            "merge: file://JOB/run/data/part-00001.HOST.attempt1.h5: no such object; check the run's name, or run the \
             job that writes it again",
        );
    });
    job.merges();
}

#[test]
fn an_object_that_differs_from_its_commit_is_refused() {
    let job = Job::done(2);
    let (object, whole) = (job.object(1), job.read(&job.object(1)));
    let altered = |what: &str| {
        job.refuses(
            || job.merge(&[]),
            66,
            &format!(
                "merge: file://JOB/run/data/part-00001.HOST.attempt1.h5 has {what}; the object was altered: restore it, \
                 or run its reducer again into a new --run"
            ),
        );
    };
    for at in [12, place_of(&whole, b"yourself"), place_of(&whole, b"sentimill digests 1"), whole.len() - 1] {
        job.with_content(&object, &flipped(&whole, at), || {
            altered("SHA-256 DIGEST, its commit record has DIGEST");
        });
    }
    let size = whole.len();
    job.with_content(&object, &whole[..size - 1], || {
        altered(&format!("size {}, its commit record has {size}", size - 1));
    });
    job.with_content(&object, b"", || altered(&format!("size 0, its commit record has {size}")));
    // Small shards may have equal sizes. Their digests differ.
    let other = job.read(&job.object(0));
    let found = match other.len() {
        n if n == size => "SHA-256 DIGEST, its commit record has DIGEST".to_owned(),
        n => format!("size {n}, its commit record has {size}"),
    };
    job.with_content(&object, &other, || altered(&found));
    job.merges();
}

/// An attacker who alters an object can alter its commit too. The content of the file must still be
/// consistent.
#[test]
fn damage_with_a_matching_commit_is_refused() {
    let job = Job::done(2);
    let (object, whole) = (job.object(1), job.read(&job.object(1)));
    let tokens = chunk(&job, &object, "tokens");
    for (bytes, what) in [
        (
            flipped(&whole, 12),
            "the file is not readable as HDF5, expected a complete HDF5 file of this project; it is another file, or was cut or damaged; fetch or make it again",
        ),
        (
            flipped(&whole, place_of(&whole, b"yourself")),
            "the list of attributes does not match its digest: the file was damaged or altered; fetch or make it again",
        ),
        (
            flipped(&whole, place_of(&whole, b"sentimill digests 1")),
            "digests does not match its digest: the file was damaged or altered; fetch or make it again",
        ),
        (
            flipped(&whole, tokens),
            "chunk 0 of tokens does not match its digest: the file was damaged or altered; fetch or make it again",
        ),
        (
            whole[..whole.len() - 100].to_vec(),
            "the file is not readable as HDF5, expected a complete HDF5 file of this project; it is another file, or was cut or damaged; fetch or make it again",
        ),
    ] {
        job.write("altered.h5", &bytes);
        let sha256 = durable::sha256::of_file(&job.path("altered.h5")).unwrap();
        let edit = |commit: &mut serde_json::Value| {
            commit["sha256"] = sha256.into();
            commit["bytes"] = bytes.len().into();
        };
        job.with_content(&object, &bytes, || {
            job.with_json(&commit(1), edit, || {
                job.refuses(
                    || job.merge(&[]),
                    66,
                    &format!("merge: JOB/run/data/part-00001.HOST.attempt1.h5: {what}"),
                );
            });
        });
    }
    job.merges();
}

/// Offset of a column's first chunk in the file.
pub fn chunk(job: &Job, file: &str, column: &str) -> usize {
    let file = hdf5::File::open(job.path(file)).unwrap();
    let mut address = None;
    let visited = file.dataset(column).unwrap().chunks_visit(|chunk| {
        address = Some(chunk.addr as usize + chunk.size as usize / 2);
        1
    });
    visited.unwrap();
    address.unwrap()
}

#[test]
fn a_text_in_two_partitions_is_refused() {
    for other_votes in ["0,0,0,0,1", "9,0,0,0,0"] {
        let job = Job::mapped(2);
        // As a random partitioner would: both partitions get the same text.
        let streams =
            ["nice colour\t0,0,0,0,1\nwarm gloves\t0,0,0,1,0\n", &format!("nice colour\t{other_votes}\n")];
        for (partition, stream) in (0..).zip(streams) {
            let reduced = job.reducer("run", partition, &["--any-partitioner"], stream);
            assert_eq!(reduced.code, 0, "{}", reduced.stderr);
        }
        job.refuses(
            || job.merge(&[]),
            65,
            "merge: the text with hash DIGEST is in file://JOB/run/data/part-00000.HOST.attempt0.h5 and in \
             file://JOB/run/data/part-00001.HOST.attempt1.h5, expected in one shard only; the reducers' input was not partitioned by text: run the reducers again with a partitioner that uses only the text",
        );
        fs::remove_dir_all(job.path("run")).unwrap();
        (0..2).for_each(|partition| job.reduce("run", partition, &[]));
        job.merges();
    }
}
