//! `--force` replaces a dataset of merge or sentimill and nothing else.

use std::fs;
use std::path::Path;
use std::process::Command;

use tests::demo::DEMO;
use tests::files::{assert_same_bytes, snapshot};
use tests::pipe::{Pipe, merge};
use tests::programs::{program, run};

/// A folder with a run and the dataset `reviews.h5` with a padded copy, of other settings than the default.
struct Old(tempfile::TempDir);

impl Old {
    fn new() -> Self {
        let old = Self(tempfile::tempdir().unwrap());
        let pipe = Pipe::default();
        pipe.reduce(&pipe.sorted(&DEMO.records), &old.0.path().join("run"));
        fs::write(old.0.path().join("reviews.json"), &DEMO.raw).unwrap();
        run(old.merge().args(["--vocabulary-size", "5", "--padded", "3"]), b"").succeeded();
        old
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn merge(&self) -> Command {
        merge(&self.path("run"), &self.path("reviews.h5"))
    }

    fn sentimill(&self) -> Command {
        let mut sentimill = program("sentimill");
        sentimill.arg(self.path("reviews.json")).arg("--out").arg(self.path("reviews.h5"));
        sentimill
    }
}

fn check(dataset: &Path) {
    run(program("merge").arg("--check").arg(dataset), b"").succeeded();
}

#[test]
fn a_dataset_is_replaced_with_its_manifest_and_padded_copy() {
    for replace in [Old::merge, Old::sentimill] {
        let old = Old::new();
        let before = snapshot(old.0.path());
        run(&mut replace(&old), b"").with_code(64);
        assert!(snapshot(old.0.path()) == before, "without --force");

        run(replace(&old).args(["--force", "--padded", "4"]), b"").succeeded();

        assert_same_bytes(&old.path("reviews.h5"), &DEMO.dataset, "--force");
        check(&old.path("reviews.h5"));
        let manifest = fs::read_to_string(old.path("reviews.manifest.json")).unwrap();
        assert!(manifest.contains("\"padded\": 4"), "{manifest}");

        // Without a padded copy none is left that does not belong to the dataset.
        run(replace(&old).args(["--force", "--vocabulary-size", "7"]), b"").succeeded();
        assert!(!old.path("reviews.padded.h5").exists());
        check(&old.path("reviews.h5"));
    }
}

#[test]
fn a_file_that_is_not_the_one_of_its_manifest_is_not_replaced() {
    const REMEDY: &str =
        "--force replaces only datasets of merge and sentimill: move it away or choose another --out\n";
    for replace in [Old::merge, Old::sentimill] {
        let refuses = |old: &Old, file: &str, why: &str| {
            let before = snapshot(old.0.path());
            let refused = run(replace(old).args(["--force", "--padded", "4"]), b"").with_code(64);
            let expected =
                format!("{}: already exists and is not replaced: {why}; {REMEDY}", old.path(file).display());
            assert!(refused.stderr.ends_with(&expected), "{}", refused.stderr);
            assert!(snapshot(old.0.path()) == before, "something was touched");
        };
        let other = "its SHA-256 is not the one in the manifest beside it";
        let old = Old::new();
        let padded = fs::read(old.path("reviews.padded.h5")).unwrap();
        fs::write(old.path("reviews.padded.h5"), "notes").unwrap();
        refuses(&old, "reviews.padded.h5", other);
        fs::write(old.path("reviews.padded.h5"), padded).unwrap();
        fs::write(old.path("reviews.h5"), "notes").unwrap();
        refuses(&old, "reviews.h5", other);
        fs::remove_file(old.path("reviews.manifest.json")).unwrap();
        refuses(&old, "reviews.h5", "no manifest in its folder lists it");
    }
}

#[test]
fn a_replaced_dataset_leaves_a_padded_file_that_is_not_its_own() {
    let old = Old::new();
    fs::write(old.path("reviews.padded.h5"), "notes").unwrap();
    run(old.merge().arg("--force"), b"").succeeded();
    assert_eq!(fs::read_to_string(old.path("reviews.padded.h5")).unwrap(), "notes");
    assert_same_bytes(&old.path("reviews.h5"), &DEMO.dataset, "--force");
}

#[test]
fn the_same_dataset_stays_untouched() {
    let old = Old::new();
    let before = snapshot(old.0.path());
    let same = ["--force", "--vocabulary-size", "5", "--padded", "3"];
    let again = run(old.merge().args(same), b"").succeeded();
    assert!(again.said().contains("nothing to do"), "{}", again.said());
    assert!(snapshot(old.0.path()) == before, "something was touched");
}
