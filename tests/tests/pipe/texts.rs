//! `reducer --texts`: beside each shard, the texts of its rows, with the bytes of `sentimill --texts`.

use std::fs;
use std::path::Path;

use dataset::commit::{Commit, ListedFile};
use durable::sha256;
use tests::demo::DEMO;
use tests::files::{assert_same_bytes, snapshot};
use tests::lines::sorted_as_c;
use tests::oracle::texts_agree;
use tests::pipe::{Pipe, merge, merge_with, reducer, split_by_hadoop, text_of};
use tests::programs::{program, run};

use crate::made::{commits, manifest, objects};

/// Settings by which texts are no rows, and an average of several reviews has another rating.
const ROWS: [&str; 8] =
    ["--labels", "1-2=bad,4-5=good", "--sample", "0.9", "--max-tokens", "7", "--stopwords", "nltk"];

fn reduced(run_folder: &Path, partitions: u32, more: &[&str]) -> Vec<Commit> {
    let reducer = ROWS.iter().chain(&["--texts"]).chain(more).map(|flag| (*flag).to_owned()).collect();
    Pipe { partitions, reducer, ..Pipe::default() }.reduce(&sorted_as_c(&DEMO.records), run_folder);
    commits(run_folder)
}

/// The file of `sentimill --texts`.
fn by_sentimill(folder: &Path) -> Vec<u8> {
    let mut sentimill = program("sentimill");
    sentimill.args(ROWS).args(["-", "--texts", "corpus.parquet", "--out"]).arg(folder.join("reviews.h5"));
    run(&mut sentimill, &DEMO.raw).succeeded();
    fs::read(folder.join("corpus.parquet")).unwrap()
}

fn texts(commit: &Commit) -> &ListedFile {
    commit.texts.as_ref().expect("the reducer wrote texts")
}

#[test]
fn the_texts_of_one_partition_are_the_file_of_sentimill_whatever_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let expected = by_sentimill(folder.path());
    for memory in ["128MiB", "1MiB"] {
        let run_folder = folder.path().join(memory);
        let [commit] = &reduced(&run_folder, 1, &["--memory", memory])[..] else { panic!("one partition") };
        let ListedFile { name, bytes, sha256 } = texts(commit);
        assert_eq!(*name, format!("data/part-00000.{}.{}.texts.parquet", commit.host, commit.attempt));
        assert_same_bytes(&run_folder.join(name), &expected, memory);
        assert_eq!((*bytes, sha256), (expected.len() as u64, &sha256::of_bytes(&expected)));
    }
}

#[test]
fn the_texts_of_all_partitions_are_the_rows_of_sentimill_and_merge_lists_them() {
    let folder = tempfile::tempdir().unwrap();
    by_sentimill(folder.path());
    let run_folder = folder.path().join("run");
    let commits = reduced(&run_folder, 3, &["--memory", "1MiB"]);

    let dataset = folder.path().join("merged.h5");
    run(&mut merge(&run_folder, &dataset), b"").succeeded();
    assert_same_bytes(&dataset, &fs::read(folder.path().join("reviews.h5")).unwrap(), "with texts");
    let listed = manifest(&dataset).seal.shards.into_iter().map(|shard| shard.texts);
    assert!(listed.eq(commits.iter().map(|commit| commit.texts.clone())));
    let said = merge_with(&["gc", "--run", text_of(&run_folder)]).succeeded().said();
    assert_eq!(said, "0 objects that no commit record names; --delete removes them\n");

    let whole = folder.path().join("corpus.parquet");
    let parts: Vec<_> = commits.iter().map(|commit| run_folder.join(&texts(commit).name)).collect();
    texts_agree(&whole, &parts, commits.iter().map(|commit| commit.counts.rows).sum());
}

#[test]
fn an_empty_partition_has_a_file_without_rows() {
    let folder = tempfile::tempdir().unwrap();
    run(reducer(folder.path(), 0, 2).arg("--texts"), b"").succeeded();
    let commit = commits(folder.path()).remove(0);
    assert_eq!((commit.counts.rows, texts(&commit).bytes > 0), (0, true));
}

#[test]
fn a_task_with_texts_that_starts_again_finds_its_commit_and_one_with_other_objects_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let sorted = sorted_as_c(&DEMO.records);
    let attempt = |run_folder: &str, name: &str, more: &[&str]| {
        let mut reducer = reducer(&folder.path().join(run_folder), 0, 1);
        run(reducer.args(["--attempt", name]).args(more), &sorted)
    };
    let first = attempt("with", "first", &["--texts"]).succeeded();
    attempt("without", "first", &[]).succeeded();
    let before = snapshot(folder.path());

    let again = attempt("with", "second", &["--texts"]).succeeded();
    let refusals = [
        (attempt("without", "second", &["--texts"]), "shard, this attempt has shard + texts"),
        (attempt("with", "second", &[]), "shard + texts, this attempt has shard"),
    ];

    assert_eq!(again.stdout, first.stdout);
    for (refused, what) in refusals {
        let expected = format!(
            "reducer: partition 0 was committed by attempt first with the objects {what}; nothing was changed; for other \
             data or settings, pass a new run: --run NEW\n"
        );
        assert!(refused.with_code(78).stderr.ends_with(&expected), "{expected}");
    }
    assert!(snapshot(folder.path()) == before, "nothing was touched");
}

#[test]
fn an_attempt_killed_before_its_commit_reuses_its_texts_and_gc_removes_those_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let (run_folder, sorted) = (folder.path().join("run"), sorted_as_c(&DEMO.records));
    let attempt = |name: &str| {
        let mut reducer = reducer(&run_folder, 0, 1);
        run(reducer.args(["--texts", "--attempt", name]), &sorted).succeeded();
    };
    let record = run_folder.join("commit/part-00000.json");
    for name in ["first", "second"] {
        attempt(name);
        fs::remove_file(&record).unwrap();
    }
    let texts_of_first = run_folder
        .join("data")
        .join(objects(&run_folder).into_iter().find(|name| name.ends_with(".first.texts.parquet")).unwrap());
    let whole = fs::read(&texts_of_first).unwrap();

    fs::write(&texts_of_first, &whole[1..]).unwrap();
    let mut damaged = reducer(&run_folder, 0, 1);
    let refused = run(damaged.args(["--texts", "--attempt", "first"]), &sorted).with_code(70);
    assert!(
        refused.stderr.contains(".first.texts.parquet: exists with other content, "),
        "{}",
        refused.stderr
    );
    fs::write(&texts_of_first, whole).unwrap();
    let before = snapshot(&run_folder);
    attempt("first");

    let mut expected = before;
    expected.insert(record.clone(), snapshot(&run_folder).remove(&record).unwrap());
    assert!(snapshot(&run_folder) == expected, "only the record is new");
    expected.retain(|path, _| !text_of(path).contains(".second."));
    merge_with(&["gc", "--delete", "--run", text_of(&run_folder)]).succeeded();
    assert!(snapshot(&run_folder) == expected, "only the objects of the second attempt are gone");
}

#[test]
fn partitions_with_and_without_texts_are_not_merged() {
    let folder = tempfile::tempdir().unwrap();
    let (run_folder, dataset) = (folder.path().join("run"), folder.path().join("reviews.h5"));
    for (number, records) in split_by_hadoop(&sorted_as_c(&DEMO.records), 2).iter().enumerate() {
        let texts = ["--texts"].into_iter().take(number);
        run(reducer(&run_folder, number as u32, 2).args(texts), records).succeeded();
    }

    let refused = run(&mut merge(&run_folder, &dataset), b"").with_code(78);

    let expected = "partitions 1 and 0 differ in objects: shard + texts and shard; run all reducers with the same settings";
    assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    assert!(!dataset.exists());
}
