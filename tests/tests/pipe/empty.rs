//! Empty input.

use std::fs;
use std::path::Path;

use tests::files::assert_same_bytes;
use tests::pipe::{Pipe, combined, merge};
use tests::programs::{program, run};

use crate::made::{commits, objects};

/// Checks that no dataset is made without rows. Returns the message.
fn refused(pipe: &Pipe, records: &[u8], folder: &Path) -> String {
    pipe.reduce(&pipe.sorted(records), &folder.join("run"));
    let out = folder.join("reviews.h5");
    let refused = run(merge(&folder.join("run"), &out).args(&pipe.merge), b"").with_code(65);
    let made = fs::read_dir(folder).unwrap().filter(|entry| entry.as_ref().unwrap().file_name() != "run");
    assert_eq!(made.count(), 0, "something was written");
    assert!(!folder.join("run/manifest.json").exists(), "the run was sealed");
    refused.stderr.lines().last().unwrap().replace(out.to_str().unwrap(), "OUT")
}

const REMEDY: &str = "check the input, its format, --stopwords, --sample and --without";

#[test]
fn partitions_without_a_record_are_committed_and_no_dataset_is_made_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = Pipe { partitions: 3, ..Pipe::default() };
    let refused = refused(&pipe, b"", folder.path());
    let commits = commits(&folder.path().join("run"));
    assert_eq!(commits.iter().map(|commit| commit.counts.rows).collect::<Vec<_>>(), [0; 3]);
    assert_eq!(objects(&folder.path().join("run")).len(), 3);
    let counts = "0 reviews, 0 distinct, 0 only_stopwords, 0 rows";
    assert_eq!(
        refused,
        format!("merge: OUT: not written, because no row remains: {counts}, 0 omitted; {REMEDY}")
    );
}

#[test]
fn texts_of_stop_words_only_make_no_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let reducer = ["--profile", "original"].map(str::to_owned).to_vec();
    let pipe = Pipe { reducer, ..Pipe::default() };
    let refused = refused(&pipe, b"would get the product\t0,0,0,0,1\n", folder.path());
    let counts = "1 reviews, 1 distinct, 1 only_stopwords, 0 rows";
    assert_eq!(
        refused,
        format!("merge: OUT: not written, because no row remains: {counts}, 0 omitted; {REMEDY}")
    );
}

#[test]
fn an_empty_partition_among_others_changes_no_byte() {
    let raw = b"{\"reviewText\": \"Lovely soap\", \"overall\": 5}\n{\"reviewText\": \"Broken on day 2\", \"overall\": 1}\n";
    let folder = tempfile::tempdir().unwrap();
    let one = Pipe::default().dataset(raw, &folder.path().join("one"));

    let many = Pipe { partitions: 7, ..Pipe::default() }.dataset(raw, &folder.path().join("many"));

    let empty =
        commits(&folder.path().join("many/run")).iter().filter(|commit| commit.counts.rows == 0).count();
    assert!(empty >= 5, "{empty} empty partitions");
    assert_same_bytes(&many, &std::fs::read(one).unwrap(), "two reviews in seven partitions");
}

#[test]
fn mapper_and_combiner_write_nothing_for_empty_input() {
    let folder = tempfile::tempdir().unwrap();
    let counts = folder.path().join("mapper.json");
    let refused = run(program("mapper").arg("--counts").arg(&counts), b"").with_code(65);
    assert!(refused.stdout.is_empty() && !counts.exists());
    assert!(combined(b"").is_empty());
}
