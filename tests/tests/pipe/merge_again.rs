//! A repeated merge does nothing, writes the same file again, or is refused. It never overwrites another
//! file.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tests::demo::DEMO;
use tests::files::{assert_same_bytes, snapshot};
use tests::pipe::{Pipe, merge, merge_with, text_of};
use tests::programs::{Finished, run};

use crate::made::manifest;

/// A folder with a run and its dataset.
struct Merged {
    folder: TempDir,
    run: PathBuf,
    dataset: PathBuf,
}

impl Merged {
    fn new(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let merge = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let pipe = Pipe { partitions: 3, merge, ..Pipe::default() };
        let dataset = pipe.dataset_of_records(&DEMO.records, folder.path());
        Self { run: folder.path().join("run"), dataset, folder }
    }

    fn again(&self, arguments: &[&str]) -> Finished {
        run(merge(&self.run, &self.dataset).args(arguments), b"")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

#[test]
fn merging_again_changes_nothing_and_reports_it() {
    let merged = Merged::new(&["--padded", "20"]);
    let before = snapshot(merged.folder.path());

    for arguments in [&["--padded", "20"][..], &[], &["--vocabulary-size", "10000"]] {
        let again = merged.again(arguments).succeeded();
        assert!(again.said().contains("already exists, complete and with these settings; nothing to do"));
    }

    assert!(snapshot(merged.folder.path()) == before, "no inode, no time and no byte changed");
}

#[test]
fn a_deleted_file_is_written_again() {
    let merged = Merged::new(&["--padded", "20"]);
    let names = ["reviews.h5", "reviews.manifest.json", "reviews.padded.h5"];
    let before = names.map(|name| fs::read(merged.path(name)).unwrap());
    let gone: [&[&str]; 4] = [&names[..1], &names[1..2], &names[2..], &names];
    for gone in gone {
        gone.iter().for_each(|name| fs::remove_file(merged.path(name)).unwrap());

        merged.again(&["--padded", "20"]).succeeded();

        for (name, before) in names.iter().zip(&before) {
            assert_same_bytes(&merged.path(name), before, name);
        }
    }
}

#[test]
fn a_merged_run_can_be_merged_to_another_path_and_with_other_settings() {
    let merged = Merged::new(&[]);
    let sealed = snapshot(&merged.run);
    let (copy, small) = (merged.path("elsewhere/copy.h5"), merged.path("small.h5"));

    run(&mut merge(&merged.run, &copy), b"").succeeded();
    run(merge(&merged.run, &small).args(["--vocabulary-size", "50"]), b"").succeeded();

    assert_same_bytes(&copy, &DEMO.dataset, "another --out");
    assert_eq!(manifest(&small).seal, manifest(&copy).seal);
    assert_eq!(manifest(&small).settings.vocabulary_size, 50);
    assert!(snapshot(&merged.run) == sealed, "the run is as it was");
}

#[test]
fn other_settings_for_the_same_file_are_refused() {
    let merged = Merged::new(&["--padded", "20"]);
    let other = merged.path("other.h5");
    run(merge(&merged.run, &other).args(["--vocabulary-size", "50"]), b"").succeeded();
    let before = snapshot(merged.folder.path());

    let settings: [&[&str]; 4] = [
        &["--vocabulary-size", "50"],
        &["--vocabulary", text_of(&other)],
        &["--without", text_of(&other)],
        &["--padded", "21"],
    ];
    for arguments in settings {
        let refused = merged.again(arguments).with_code(64);
        assert!(refused.stderr.contains(": already exists and is"), "{}", refused.stderr);
    }

    assert!(snapshot(merged.folder.path()) == before, "nothing was touched");
}

#[test]
fn another_file_at_the_path_of_the_dataset_is_refused() {
    let merged = Merged::new(&[]);
    let mut flipped = DEMO.dataset.clone();
    flipped[DEMO.dataset.len() / 2] ^= 1;
    let notes = b"my notes".to_vec();
    for (manifest_is_there, other) in [(true, &flipped), (true, &notes), (false, &flipped), (false, &notes)] {
        if !manifest_is_there {
            let _ = fs::remove_file(merged.path("reviews.manifest.json"));
        }
        fs::write(&merged.dataset, other).unwrap();
        let before = snapshot(merged.folder.path());

        merged.again(&[]).with_code(64);

        assert!(snapshot(merged.folder.path()) == before, "nothing was touched");
    }
}

#[test]
fn a_dataset_of_another_run_is_not_overwritten() {
    let [one, other] = [Merged::new(&[]), Merged::new(&[])];
    let before = snapshot(one.folder.path());
    let refused = run(&mut merge(&other.run, &one.dataset), b"").with_code(64);
    assert!(refused.stderr.contains("a dataset of other shards"), "{}", refused.stderr);
    assert!(snapshot(one.folder.path()) == before, "nothing was touched");
}

#[test]
fn a_merged_run_refuses_another_commit() {
    let merged = Merged::new(&[]);
    let commit = merged.run.join("commit/part-00001.json");
    let altered = fs::read_to_string(&commit).unwrap().replace("\"attempt\": \"", "\"attempt\": \"x");
    fs::write(&commit, altered).unwrap();
    let refused = run(&mut merge(&merged.run, &merged.path("other.h5")), b"").with_code(66);
    assert!(
        refused.stderr.contains("was merged before: the attempt of partition 1 is x"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_merge_leaves_no_temporary_files() {
    let merged = Merged::new(&["--padded", "20"]);
    let files: Vec<PathBuf> = snapshot(merged.folder.path()).into_keys().collect();
    let outside = |path: &&PathBuf| !path.starts_with(merged.run.join("data"));
    let expected = [
        "reviews.h5",
        "reviews.manifest.json",
        "reviews.padded.h5",
        "run/commit/part-00000.json",
        "run/commit/part-00001.json",
        "run/commit/part-00002.json",
        "run/manifest.json",
    ];
    let found: Vec<&Path> =
        files.iter().filter(outside).map(|path| path.strip_prefix(merged.folder.path()).unwrap()).collect();
    assert_eq!(found, expected.map(Path::new));
}

#[test]
fn check_recomputes_and_describe_prints_the_card_again() {
    let merged = Merged::new(&[]);
    let card = merged.again(&[]).succeeded().said();
    let digests = manifest(&merged.dataset).digests;

    let checked = merge_with(&["--check", text_of(&merged.dataset)]).succeeded().said();
    let described = merge_with(&["--describe", text_of(&merged.dataset)]).succeeded().said();

    assert!(checked.contains(": valid, "), "{checked}");
    for digest in [digests.id_digest, digests.vocabulary_digest] {
        assert!(
            checked.contains(&digest.to_string()) && described.contains(&digest.to_string()),
            "{checked}"
        );
    }
    assert!(card.ends_with(&described), "{card}");
}

#[test]
fn check_refuses_a_damaged_file_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.h5");
    let whole = &DEMO.dataset;
    let mut cases = vec![Vec::new(), b"my notes".to_vec(), whole[..whole.len() - 1].to_vec()];
    // Chunks of tokens are the largest part of a dataset.
    for part in 1..8 {
        let mut flipped = whole.clone();
        flipped[whole.len() * part / 8] ^= 1;
        cases.push(flipped);
    }
    for damaged in cases {
        fs::write(&path, damaged).unwrap();
        for look in ["--check", "--describe"] {
            let refused = merge_with(&[look, text_of(&path)]);
            assert!([66, 74].contains(&refused.code), "{} {}", refused.code, refused.stderr);
            assert!(refused.stderr.contains(text_of(&path)), "{}", refused.stderr);
            assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
        }
    }
    merge_with(&["--check", text_of(&folder.path().join("absent.h5"))]).with_code(66);
}

#[test]
fn check_detects_any_flipped_byte_if_there_is_a_manifest() {
    let merged = Merged::new(&[]);
    let mut longer = fs::read(&merged.dataset).unwrap();
    longer.push(0);
    fs::write(&merged.dataset, longer).unwrap();

    let refused = merge_with(&["--check", text_of(&merged.dataset)]).with_code(66);
    assert!(refused.stderr.contains("its manifest has"), "{}", refused.stderr);

    // The byte is not part of the content, so it cannot be detected without a manifest.
    fs::remove_file(merged.path("reviews.manifest.json")).unwrap();
    let checked = merge_with(&["--check", text_of(&merged.dataset)]).succeeded().said();
    assert!(checked.contains("it has no manifest, so only its content was checked"), "{checked}");
}
