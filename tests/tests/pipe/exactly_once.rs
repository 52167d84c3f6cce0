//! A partition is committed once, whatever the number of attempts.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use tests::demo::DEMO;
use tests::files::{assert_same_bytes, snapshot};
use tests::lines::{sorted_as_c, split};
use tests::pipe::{Pipe, merge, merge_with, reducer, split_by_hadoop, text_of};
use tests::programs::{Finished, finish, run, start};

use crate::made::{commits, objects};

fn attempt(run_folder: &Path, name: &str) -> Command {
    let mut reducer = reducer(run_folder, 0, 1);
    reducer.args(["--attempt", name]);
    reducer
}

/// The records without the last one, which give other rows.
fn one_less(sorted: &[u8]) -> Vec<u8> {
    let records = split(sorted);
    records[..records.len() - 1].concat()
}

#[test]
fn a_restarted_reducer_finds_its_commit() {
    let folder = tempfile::tempdir().unwrap();
    let sorted = sorted_as_c(&DEMO.records);
    let first = run(&mut attempt(folder.path(), "first"), &sorted).succeeded();
    let before = snapshot(folder.path());

    let second = run(&mut attempt(folder.path(), "second"), &sorted).succeeded();
    let spilling = run(attempt(folder.path(), "third").args(["--memory", "1MiB"]), &sorted).succeeded();

    for again in [&second, &spilling] {
        assert!(
            again.stderr.contains("partition 0 was already committed, with the same rows"),
            "{}",
            again.stderr
        );
        assert_eq!(again.stdout, first.stdout, "the record that was elected");
    }
    assert_eq!(objects(folder.path()).len(), 1);
    assert!(snapshot(folder.path()) == before, "nothing was touched");
}

#[test]
fn a_committed_partition_refuses_other_rows_and_settings() {
    let folder = tempfile::tempdir().unwrap();
    let sorted = sorted_as_c(&DEMO.records);
    run(&mut attempt(folder.path(), "first"), &sorted).succeeded();
    let before = snapshot(folder.path());

    let rows = run(&mut attempt(folder.path(), "second"), &one_less(&sorted));
    let settings = run(attempt(folder.path(), "third").args(["--max-tokens", "5"]), &sorted);
    let mut of_another_number = reducer(folder.path(), 0, 2);
    let partitions = run(of_another_number.arg("--select"), &sorted);

    let expected =
        [(rows, "the row digest"), (settings, "max-tokens 400"), (partitions, "the number of partitions 1")];
    for (refused, what) in expected {
        let refused = refused.with_code(70);
        assert!(refused.stderr.contains("was committed by attempt first with"), "{}", refused.stderr);
        assert!(refused.stderr.contains(what), "{}", refused.stderr);
    }
    assert!(snapshot(folder.path()) == before, "nothing was touched");
}

/// Runs attempts that all find no commit and then commit at once. A pipe holds 64 KiB, so an attempt that has
/// read more input than that has already looked for a commit.
fn race(run_folder: &Path, inputs: &[&[u8]]) -> Vec<Finished> {
    let mut racers: Vec<_> =
        (0..inputs.len()).map(|i| start(&mut attempt(run_folder, &format!("racer{i}")))).collect();
    let open: Vec<_> = racers
        .iter_mut()
        .zip(inputs)
        .map(|(racer, input)| {
            assert!(input.len() > 128 << 10);
            let mut stdin = racer.stdin.take().unwrap();
            stdin.write_all(input).unwrap();
            stdin
        })
        .collect();
    drop(open);
    let finishing: Vec<_> =
        racers.into_iter().map(|racer| thread::spawn(|| finish(racer, "a racer"))).collect();
    finishing.into_iter().map(|racer| racer.join().unwrap()).collect()
}

#[test]
fn one_of_several_racing_attempts_is_elected_and_all_succeed() {
    let folder = tempfile::tempdir().unwrap();
    let sorted = sorted_as_c(&DEMO.records);

    let finished = race(folder.path(), &[&sorted[..]; 4]);

    let commit = commits(folder.path()).remove(0);
    let elected = format!("attempt {} was elected, with the same rows", commit.attempt);
    let counts = commit.counts;
    let echo = format!(
        "part-00000 committed by attempt {}: {} reviews, {} distinct = {} only_stopwords + {} rows\n",
        commit.attempt, counts.reviews, counts.distinct, counts.only_stopwords, counts.rows
    );
    let mut lost = 0;
    for racer in finished {
        let racer = racer.succeeded();
        assert_eq!(racer.said(), echo);
        lost += usize::from(racer.stderr.contains(&elected));
    }
    assert_eq!((lost, commits(folder.path()).len(), objects(folder.path()).len()), (3, 1, 4));
}

#[test]
fn a_racing_attempt_with_other_rows_fails() {
    let folder = tempfile::tempdir().unwrap();
    let sorted = sorted_as_c(&DEMO.records);

    let mut codes: Vec<i32> =
        race(folder.path(), &[&sorted, &one_less(&sorted)]).into_iter().map(|racer| racer.code).collect();

    codes.sort_unstable();
    assert_eq!((codes, commits(folder.path()).len()), (vec![0, 70], 1));
}

#[test]
fn a_reducer_killed_before_its_commit_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let sorted = sorted_as_c(&DEMO.records);
    let mut killed = start(&mut attempt(folder.path(), "first"));
    let mut stdin = killed.stdin.take().unwrap();
    stdin.write_all(&sorted).unwrap();

    killed.kill().unwrap();
    killed.wait().unwrap();

    assert!(snapshot(folder.path()).is_empty());
    run(&mut attempt(folder.path(), "first"), &sorted).succeeded();
    assert_eq!(commits(folder.path()).len(), 1);
}

#[test]
fn a_restarted_attempt_with_the_same_name_reuses_its_object() {
    // Given an attempt that was killed between its object and its commit.
    let folder = tempfile::tempdir().unwrap();
    let sorted = sorted_as_c(&DEMO.records);
    run(&mut attempt(folder.path(), "first"), &sorted).succeeded();
    std::fs::remove_file(folder.path().join("commit/part-00000.json")).unwrap();

    let other_rows = run(&mut attempt(folder.path(), "first"), &one_less(&sorted)).with_code(70);
    run(&mut attempt(folder.path(), "first"), &sorted).succeeded();

    assert!(other_rows.stderr.contains("exists with other content"), "{}", other_rows.stderr);
    assert_eq!((commits(folder.path()).len(), objects(folder.path()).len()), (1, 1));
}

/// A run of two partitions. Two concurrent attempts reduced the first, so one of their shards is not committed.
fn run_with_an_orphan(folder: &Path) -> (PathBuf, String) {
    let run_folder = folder.join("run");
    let split = split_by_hadoop(&sorted_as_c(&DEMO.records), 2);
    run(&mut reducer(&run_folder, 1, 2), &split[1]).succeeded();
    let mut racers = ["one", "two"].map(|name| start(reducer(&run_folder, 0, 2).args(["--attempt", name])));
    let open = racers.each_mut().map(|racer| {
        let mut stdin = racer.stdin.take().unwrap();
        stdin.write_all(&split[0]).unwrap();
        stdin
    });
    drop(open);
    racers.into_iter().for_each(|racer| drop(finish(racer, "a racer").succeeded()));
    let named: Vec<String> = commits(&run_folder).into_iter().map(|commit| commit.object).collect();
    let mut orphans = objects(&run_folder);
    orphans.retain(|object| !named.contains(&format!("data/{object}")));
    assert_eq!((named.len(), orphans.len()), (2, 1));
    (run_folder, orphans.remove(0))
}

#[test]
fn gc_removes_the_orphan_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (run_folder, orphan) = run_with_an_orphan(folder.path());
    let before = snapshot(&run_folder);

    let listed = merge_with(&["gc", "--run", text_of(&run_folder)]).succeeded().said();
    assert!(listed.starts_with(&format!("data/{orphan} ")), "{listed}");
    assert!(listed.ends_with("1 objects that no commit record names; --delete removes them\n"), "{listed}");
    assert!(snapshot(&run_folder) == before, "listing touches nothing");

    merge_with(&["gc", "--delete", "--run", text_of(&run_folder)]).succeeded();
    let mut expected = before;
    assert!(expected.remove(&run_folder.join("data").join(&orphan)).is_some());
    assert!(snapshot(&run_folder) == expected, "only the orphan is gone");

    let again = merge_with(&["gc", "--delete", "--run", text_of(&run_folder)]).succeeded().said();
    assert_eq!(again, "objects deleted: 0\n");
    let dataset = folder.path().join("reviews.h5");
    run(&mut merge(&run_folder, &dataset), b"").succeeded();
    assert_same_bytes(&dataset, &DEMO.dataset, "after gc");
}

#[test]
fn gc_deletes_nothing_while_a_partition_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let (run_folder, orphan) = run_with_an_orphan(folder.path());
    std::fs::remove_file(run_folder.join("commit/part-00001.json")).unwrap();
    let before = snapshot(&run_folder);

    let refused = merge_with(&["gc", "--delete", "--run", text_of(&run_folder)]).with_code(75);

    assert!(refused.said().contains(&orphan), "{}", refused.said());
    assert!(refused.stderr.contains("1 of 2 partitions are committed"), "{}", refused.stderr);
    assert!(snapshot(&run_folder) == before, "nothing was touched");
}

#[test]
fn merge_requires_every_partition_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let (run_folder, dataset) = (folder.path().join("run"), folder.path().join("reviews.h5"));
    let none = run(&mut merge(&run_folder, &dataset), b"").with_code(66);
    Pipe { partitions: 4, ..Pipe::default() }.reduce(&sorted_as_c(&DEMO.records), &run_folder);
    std::fs::remove_file(run_folder.join("commit/part-00002.json")).unwrap();

    let missing = run(&mut merge(&run_folder, &dataset), b"").with_code(66);

    assert!(none.stderr.contains("found no committed partition"), "{}", none.stderr);
    assert!(missing.stderr.contains("3 of 4 partitions: missing 2;"), "{}", missing.stderr);
    assert!(!dataset.exists() && !run_folder.join("manifest.json").exists());
}

#[test]
fn an_object_that_differs_from_its_commit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (run_folder, dataset) = (folder.path().join("run"), folder.path().join("reviews.h5"));
    Pipe { partitions: 2, ..Pipe::default() }.reduce(&sorted_as_c(&DEMO.records), &run_folder);
    let object = run_folder.join("data").join(&objects(&run_folder)[1]);
    let whole = std::fs::read(&object).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let cut = whole[..whole.len() - 1].to_vec();
    for (damaged, what) in [(flipped, "SHA-256"), (cut, "size")] {
        std::fs::write(&object, damaged).unwrap();
        let refused = run(&mut merge(&run_folder, &dataset), b"").with_code(66);
        assert!(refused.stderr.contains(what), "{}", refused.stderr);
    }
    std::fs::remove_file(&object).unwrap();
    run(&mut merge(&run_folder, &dataset), b"").with_code(66);

    assert!(!dataset.exists() && !run_folder.join("manifest.json").exists());
    std::fs::write(&object, whole).unwrap();
    run(&mut merge(&run_folder, &dataset), b"").succeeded();
    assert_same_bytes(&dataset, &DEMO.dataset, "after repair");
}
