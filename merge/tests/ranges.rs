//! The dataset is the same file in whatever ranges of hashes the rows are merged, and on however many threads.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use corpus::digest::{Digest, RowDigester, split};
use corpus::ledger::{Limits, ReducerCounts, Share};
use corpus::record::Votes;
use corpus::settings::Settings;
use dataset::commit::{Commit, commit_key, shard_key};
use dataset::shard::{ShardSize, ShardWriter};
use dataset::{Row, RowsSize, SCHEMA_VERSION};
use making::{DatasetFile, DatasetOptions, Existing, Output, ProgressBars, VocabularyFrom};
use merge::{Options, Outcome, Ranges};
use store::{S3Options, Store};

/// A text: its hash, its words and its votes.
type Text = (u64, Vec<String>, Votes);

/// The n-th text of [`texts`]. Hashes are distributed evenly; two in a hundred texts share theirs with another one.
fn text(n: u64) -> Text {
    let hash = (n - u64::from(n % 50 == 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let words = (0..1 + n % 7).map(|at| word((n * 7 + at * at) % 90)).chain([word(1000 + n)]);
    let rating = (n % 5) as usize;
    let mut votes = [0; 5];
    votes[rating] = 1 + (n % 3) as u32;
    (hash, words.collect(), Votes(votes))
}

/// A word for each number, because cleaned words have no digits.
fn word(n: u64) -> String {
    n.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
}

fn texts(n: u64) -> Vec<Text> {
    (0..n).map(text).collect()
}

fn settings() -> Settings {
    Settings { max_tokens: 0, ..Settings::default() }
}

/// Writes a run of these texts, which are dealt to this number of shards.
fn write_run(folder: &Path, texts: &[Text], n_shards: u32) {
    for name in ["data", "commit"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    for partition in 0..n_shards {
        let of_shard = texts.iter().skip(partition as usize).step_by(n_shards as usize);
        let commit = write_shard(folder, &of_shard.cloned().collect::<Vec<_>>(), (partition, n_shards));
        fs::write(folder.join(commit_key(partition)), serde_json::to_vec(&commit).unwrap()).unwrap();
    }
}

fn write_shard(folder: &Path, texts: &[Text], (partition, partitions): (u32, u32)) -> Commit {
    let settings = settings();
    let words: BTreeSet<&String> = texts.iter().flat_map(|(_, words, _)| words).collect();
    let words: Vec<&String> = words.into_iter().collect();
    let (mut digester, mut row_digest) = (RowDigester::default(), Digest::default());
    let mut counts = vec![0; words.len()];
    let mut rows: Vec<Row> = Vec::new();
    for (hash, text, votes) in texts {
        let tokens: Vec<u32> = text.iter().map(|word| words.binary_search(&word).unwrap() as u32).collect();
        tokens.iter().for_each(|&token| counts[token as usize] += 1);
        let (joined, label) = (text.join(" "), settings.label(*votes).unwrap());
        row_digest += digester.of_words(*hash, label, *votes, text.len(), joined.as_bytes());
        rows.push(Row {
            hash: *hash,
            tokens,
            votes: *votes,
            label,
            split: split(joined.as_bytes()),
            source: 0,
        });
    }
    rows.sort_unstable();
    let RowsSize { rows: n_rows, tokens } = RowsSize::of(&rows);
    let word_bytes = words.iter().map(|word| word.len() as u64).sum();
    let size = ShardSize { rows: n_rows, tokens, words: words.len() as u64, word_bytes };
    let object = shard_key(partition, "host", "attempt");
    let path = folder.join(&object);
    let mut shard = ShardWriter::create(&path, &settings, size).unwrap();
    words.iter().zip(&counts).for_each(|(word, count)| shard.word(word.as_bytes(), *count).unwrap());
    rows.iter().for_each(|row| shard.row(row).unwrap());
    shard.finish(row_digest).unwrap();
    let reviews = rows.iter().map(|row| row.votes.total()).sum();
    let counts = ReducerCounts { reviews, distinct: n_rows, rows: n_rows, ..ReducerCounts::none(&settings) };
    Commit {
        schema_version: SCHEMA_VERSION,
        run: "run".to_owned(),
        partition,
        partitions,
        object,
        bytes: fs::metadata(&path).unwrap().len(),
        sha256: durable::sha256::of_file(&path).unwrap(),
        etag: None,
        host: "host".to_owned(),
        attempt: "attempt".to_owned(),
        job: None,
        committed_unix_s: 0,
        counts,
        kept_words: tokens,
        distinct_words: words.len() as u64,
        row_digest,
        settings,
    }
}

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
        mapper: None,
        limits: Limits { bad_lines_max: Share::OF_BAD_LINES, invalid_utf8_max: Share::OF_INVALID_UTF8 },
        threads: NonZeroUsize::new(manner.threads).unwrap(),
        ranges: manner.ranges.clone(),
        scratch: std::env::temp_dir(),
    };
    let store = Store::open_with(run.to_str().unwrap(), &S3Options::default())?;
    merge::run(&store, &options, &ProgressBars::to_nobody())
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
