//! Objects are deleted only if no program can need them.

use std::fs;

use crate::job::{Job, commit};

const GC: [&str; 3] = ["gc", "--run", "run"];
const DELETE: [&str; 4] = ["gc", "--run", "run", "--delete"];

/// A run with an object that no commit names, as an attempt that was not elected leaves it.
fn with_an_orphan() -> Job {
    let job = Job::done(2);
    job.write("run/data/part-00001.elsewhere.attempt9.h5", "left over");
    job
}

#[test]
fn nothing_is_deleted_while_partitions_are_missing() {
    let job = with_an_orphan();
    let why = "file://JOB/run: 1 of 2 partitions are committed, and an attempt that still runs may need its object; \
               nothing is deleted until all partitions are committed";
    job.without(&commit(1), || {
        job.refuses(|| job.program("merge", &DELETE, ""), 75, &format!("merge: {why}"));
        let listed = job.program("merge", &GC, "");
        assert_eq!((listed.code, &listed.stderr[..]), (0, ""));
        assert_eq!(listed.stdout.lines().count(), 3, "{}", listed.stdout);
        assert!(
            listed.stdout.contains("2 objects that no commit record names (yet): file://"),
            "{}",
            listed.stdout
        );
    });
    job.merges();
}

#[test]
fn nothing_is_deleted_if_a_commit_names_another_object() {
    let job = with_an_orphan();
    job.with_json(&commit(1), |commit| commit["object"] = "data/part-00001.elsewhere.attempt8.h5".into(), || {
        job.refuses(
            || job.program("merge", &DELETE, ""),
            66,
            "merge: file://JOB/run: found 1 of the 2 objects that commit records name, expected all; nothing was deleted: restore the missing objects",
        );
    });
    job.merges();
}

#[test]
fn a_run_without_commits_has_no_garbage() {
    let job = Job::mapped(1);
    job.refuses(
        || job.program("merge", &DELETE, ""),
        66,
        "merge: file://JOB/run: found no committed partition, expected all; check --run, or run the reducers first",
    );
}

#[test]
fn objects_without_a_commit_in_a_complete_run_are_deleted() {
    let job = with_an_orphan();
    let listed = job.program("merge", &GC, "");
    assert_eq!(
        listed.stdout,
        "data/part-00001.elsewhere.attempt9.h5 9 bytes\n1 objects that no commit record names; --delete removes them\n"
    );
    let removed = job.program("merge", &DELETE, "");
    assert_eq!(removed.code, 0, "{}", removed.stderr);
    assert_eq!(fs::read_dir(job.path("run/data")).unwrap().count(), 2);
    job.merges();
}

#[test]
fn objects_that_no_reducer_put_are_kept() {
    let job = with_an_orphan();
    for name in ["amz.json", "part-00001.h5", "part-00001.elsewhere.attempt9.h5.copy"] {
        job.write(&format!("run/data/{name}"), "somebody else's");
    }
    let left_alone = "15 bytes: its name is not one that a reducer writes, so it is not deleted";
    let foreign = format!(
        "data/amz.json {left_alone}\ndata/part-00001.elsewhere.attempt9.h5.copy {left_alone}\n\
         data/part-00001.h5 {left_alone}\n"
    );
    let removed = job.program("merge", &DELETE, "");
    assert_eq!(removed.code, 0, "{}", removed.stderr);
    assert_eq!(
        removed.stdout,
        format!("data/part-00001.elsewhere.attempt9.h5 9 bytes\n{foreign}objects deleted: 1\n")
    );
    assert_eq!(job.read("run/data/amz.json"), b"somebody else's");
    assert_eq!(fs::read_dir(job.path("run/data")).unwrap().count(), 5);
    assert_eq!(job.program("merge", &DELETE, "").stdout, format!("{foreign}objects deleted: 0\n"));
    job.merges();
}
