//! The dataset is the same file in whatever ranges of hashes the rows are merged, and on however many threads.
#![allow(clippy::unwrap_used)]

mod run;

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use corpus::ledger::{Limits, Share};
use making::{DatasetFile, DatasetOptions, Existing, Output, ProgressBars, VocabularyFrom};
use merge::{Counted, Options, Outcome, Ranges, Sources};
use store::{S3Options, Store};

use crate::run::{text, texts, write_run};

/// A way of merging.
#[derive(Clone, Debug)]
struct Manner {
    threads: usize,
    ranges: Option<Ranges>,
    vocabulary: VocabularyFrom,
    without: Option<PathBuf>,
}

impl Default for Manner {
    fn default() -> Self {
        Self { threads: 1, ranges: None, vocabulary: VocabularyFrom::Frequency(10_000), without: None }
    }
}

fn merge(run: &Path, out: &Path, manner: &Manner) -> merge::Result<Outcome> {
    let dataset = DatasetOptions {
        out: Output::Folder(out.to_owned()),
        vocabulary: manner.vocabulary.clone(),
        without: manner.without.clone().map(DatasetFile::from),
        padded: None,
        ids: false,
        texts: None,
        existing: Existing::Keep,
    };
    let options = Options {
        dataset,
        counted: Counted {
            mapper: None,
            limits: Limits { bad_lines_max: Share::OF_BAD_LINES, invalid_utf8_max: Share::OF_INVALID_UTF8 },
        },
        threads: NonZeroUsize::new(manner.threads).unwrap(),
        ranges: manner.ranges.clone(),
        keep: None,
        scratch: std::env::temp_dir(),
    };
    let store = Store::open_with(run.to_str().unwrap(), &S3Options::default())?;
    let sources = Sources { runs: vec![store], datasets: Vec::new() };
    merge::run(&sources, &options, &ProgressBars::to_nobody())
}

/// Merges a run into a new file, and returns its bytes.
fn merged(run: &Path, out: &Path, manner: &Manner) -> Vec<u8> {
    for path in [out.to_owned(), out.with_extension("manifest.json")] {
        let _ = fs::remove_file(path);
    }
    let outcome = merge(run, out, manner).unwrap();
    assert!(matches!(outcome, Outcome::Made(..)), "{manner:?}");
    fs::read(out).unwrap()
}

fn equal(n: usize) -> Ranges {
    Ranges::equal(NonZeroUsize::new(n).unwrap())
}

#[test]
fn ranges_and_threads_change_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let (run, out) = (folder.path().join("run"), folder.path().join("reviews.h5"));
    let texts = texts(400);
    write_run(&run, &texts, 3);
    let mut hashes: Vec<u64> = texts.iter().map(|(hash, ..)| *hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    let middle = hashes[200];
    // The words of other texts, and texts of this run.
    let other_run = folder.path().join("other-run");
    write_run(&other_run, &(200..300).map(text).chain((2000..2100).map(text)).collect::<Vec<_>>(), 1);
    let other = folder.path().join("other.h5");
    merged(&other_run, &other, &Manner::default());
    for manner in [
        Manner::default(),
        Manner { vocabulary: VocabularyFrom::Frequency(60), ..Manner::default() },
        Manner { without: Some(other.clone()), ..Manner::default() },
        Manner {
            vocabulary: VocabularyFrom::Dataset(other.as_path().into()),
            without: Some(other),
            ..Manner::default()
        },
    ] {
        let expected = merged(&run, &out, &Manner { ranges: Some(equal(1)), ..manner.clone() });
        let ranges = [
            None,
            Some(equal(1)),
            Some(equal(2)),
            Some(equal(3)),
            Some(equal(7)),
            // One row per range, or several of one hash; the first range is empty.
            Some(Ranges::starting_at(&hashes)),
            // Equal boundaries, at a hash and at the ends.
            Some(Ranges::starting_at(&[0, 0, middle, middle, middle, u64::MAX, u64::MAX])),
        ];
        for ranges in ranges {
            for threads in [1, 2, 5] {
                let manner = Manner { threads, ranges: ranges.clone(), ..manner.clone() };
                assert!(merged(&run, &out, &manner) == expected, "{manner:?}");
            }
        }
    }
}

#[test]
fn the_number_of_shards_changes_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("reviews.h5");
    let texts = texts(100);
    let mut expected = None;
    // More than 64 shards are merged in groups, and some of 130 are empty.
    for n_shards in [1, 2, 64, 65, 130] {
        let run = folder.path().join(format!("run-{n_shards}"));
        write_run(&run, &texts, n_shards);
        for (threads, n_ranges) in [(1, 1), (2, 2), (3, 7)] {
            let found =
                merged(&run, &out, &Manner { threads, ranges: Some(equal(n_ranges)), ..Manner::default() });
            assert!(
                *expected.get_or_insert_with(|| found.clone()) == found,
                "{n_shards} shards, {threads} threads"
            );
        }
    }
}

#[test]
fn a_text_in_two_shards_is_refused_in_any_range() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    // The copy of text 30 is dealt to another shard.
    write_run(&run, &(0..100).map(text).chain([text(30)]).collect::<Vec<_>>(), 3);
    for (threads, n_ranges) in [(1, 1), (2, 2), (3, 7)] {
        let manner = Manner { threads, ranges: Some(equal(n_ranges)), ..Manner::default() };
        let refused = merge(&run, &folder.path().join("reviews.h5"), &manner).unwrap_err();
        assert!(refused.message.contains("expected in one shard only"), "{}", refused.message);
    }
}
