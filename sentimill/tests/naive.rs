//! Runs the job in this process and compares it with a naive implementation: rows, counts, vocabulary and digests
//! of generated reviews. It runs with ample memory, and with so little that every partition takes several passes
//! and words are spilled to disk.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use corpus::digest::{Digest, RowDigester, split, text_hash};
use corpus::encoding::UTF_8;
use corpus::format::Format;
use corpus::ledger::{Limits, ReducerCounts};
use corpus::record::Votes;
use corpus::settings::{Keep, Settings};
use dataset::Row;
use dataset::dataset_file::DatasetReader;
use making::{DatasetOptions, Making, ProgressBars, VocabularyFrom};
use reading::Reading;
use sentimill::{Made, Options, run};
use serde_json::json;
use store::S3Options;
use tempfile::TempDir;

const VOCABULARY_SIZE: usize = 40;
const MAX_TOKENS: usize = 5;
const STOP_WORD: &str = "the";

/// Texts and ratings. Texts repeat with different ratings, have 1 to 9 words, frequent and rare ones, and some consist
/// of stop words.
fn reviews() -> Vec<(String, u8)> {
    let letters =
        |n: usize| format!("{n:04}").bytes().map(|digit| char::from(digit + 49)).collect::<String>();
    let word = |n: usize| match n % 7 {
        0 => STOP_WORD.to_owned(),
        1..=4 => ["good", "bad", "battery", "works"][n % 4].to_owned(),
        _ => format!("rare{}", letters(n)),
    };
    let text = |n: usize| match n % 40 {
        0 => vec![STOP_WORD; n % 3 + 1].join(" "),
        _ => (0..n % 9 + 1).map(|at| word(n * 31 + at * at * 17)).collect::<Vec<_>>().join(" "),
    };
    (0..3000).map(|n| (text(n * n % 1231), (n % 5) as u8 + 1)).collect()
}

/// The expected result of the job.
#[derive(Debug, PartialEq)]
struct Expected {
    counts: ReducerCounts,
    /// Number of rows that are excluded because another dataset contains them.
    left_out: u64,
    row_digest: Digest,
    /// Words and counts in the order of their ids.
    vocabulary: Vec<(String, u64)>,
    rows: Vec<Row>,
}

fn expected(reviews: &[(String, u8)], without: &HashSet<u64>) -> Expected {
    let mut texts: BTreeMap<&str, [u32; 5]> = BTreeMap::new();
    for (text, rating) in reviews {
        texts.entry(text).or_default()[usize::from(*rating) - 1] += 1;
    }
    let (reviews, distinct) = (reviews.len() as u64, texts.len() as u64);
    let mut counts = ReducerCounts { reviews, distinct, ..ReducerCounts::default() };
    let mut words: HashMap<&str, u64> = HashMap::new();
    let mut rows = Vec::new();
    let (mut left_out, mut row_digest) = (0, Digest::default());
    for (text, votes) in texts {
        let all: Vec<&str> = text.split(' ').filter(|&word| word != STOP_WORD).collect();
        if all.is_empty() {
            counts.only_stopwords += 1;
            continue;
        }
        counts.rows += 1;
        all.iter().for_each(|word| *words.entry(word).or_default() += 1);
        let kept = if all.len() > MAX_TOKENS { [&all[..3], &all[all.len() - 2..]].concat() } else { all };
        // The most frequent rating; on a tie, the smaller one.
        let most = *votes.iter().max().unwrap();
        let label = u8::from(votes.iter().position(|&n| n == most).unwrap() >= 3);
        let (hash, joined, votes) = (text_hash(text.as_bytes()), kept.join(" "), Votes(votes));
        if without.contains(&hash) {
            left_out += 1;
            continue;
        }
        row_digest += RowDigester::default().of_words(hash, label, votes, kept.len(), joined.as_bytes());
        rows.push((hash, kept, votes, label, split(joined.as_bytes())));
    }
    let mut vocabulary: Vec<(String, u64)> =
        words.into_iter().map(|(word, count)| (word.to_owned(), count)).collect();
    vocabulary.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    vocabulary.truncate(VOCABULARY_SIZE);
    let id = |word: &str| vocabulary.iter().position(|known| known.0 == word).map_or(1, |at| at as u32 + 2);
    let row = |(hash, kept, votes, label, split): (u64, Vec<&str>, _, _, _)| Row {
        hash,
        tokens: kept.into_iter().map(id).collect(),
        votes,
        label,
        split,
        source: 0,
    };
    let mut rows: Vec<Row> = rows.into_iter().map(row).collect();
    rows.sort();
    Expected { counts, left_out, row_digest, vocabulary, rows }
}

fn made(folder: &Path, without: Option<PathBuf>, memory_bytes: usize, threads: usize) -> Expected {
    made_with_texts(folder, without, None, memory_bytes, threads)
}

fn made_with_texts(
    folder: &Path,
    without: Option<PathBuf>,
    texts: Option<&str>,
    memory_bytes: usize,
    threads: usize,
) -> Expected {
    let line = |(text, rating): &(String, u8)| json!({"reviewText": text, "overall": rating}).to_string();
    let (input, threads) = (folder.join("reviews.json"), NonZeroUsize::new(threads).unwrap());
    fs::write(&input, reviews().iter().map(line).collect::<Vec<_>>().join("\n")).unwrap();
    let sources = reading::find(&[input.to_str().unwrap().to_owned()], &S3Options::default()).unwrap();
    let options = Options {
        format: Format::default(),
        encoding: UTF_8,
        limits: Limits::default(),
        settings: Settings {
            stop_words: vec![STOP_WORD.to_owned()],
            max_tokens: MAX_TOKENS as u32,
            keep: Keep::Ends,
            ..Settings::default()
        },
        dataset: DatasetOptions {
            out: folder.join("reviews.h5").into(),
            vocabulary: VocabularyFrom::Frequency(VOCABULARY_SIZE as u64),
            without: without.map(Into::into),
            padded: None,
            ids: false,
            texts: texts.map(|name| name.parse().unwrap()),
            existing: making::Existing::Keep,
        },
        memory_bytes,
        threads,
        scratch: folder.to_path_buf(),
        rejects: None,
        origins: None,
    };
    let reading = Reading::start(sources, &options.reading()).unwrap();
    let progress = ProgressBars::to_nobody();
    let making = Making::ready(&options.dataset, &options.settings).unwrap();
    let made = run(&reading, &making, &options, &AtomicBool::new(false), &progress, io::sink()).unwrap();
    read(&folder.join("reviews.h5"), &made)
}

/// The content of a dataset and of its manifest.
fn read(path: &Path, made: &Made) -> Expected {
    let dataset = DatasetReader::open(path).unwrap();
    let mut reader = dataset.rows();
    let row_at = |at| {
        let mut row = Row::default();
        reader.read(at, &mut row).unwrap();
        row
    };
    let words = dataset.vocabulary();
    let word = |at: usize| String::from_utf8(words.words.get(at).to_vec()).unwrap();
    Expected {
        counts: made.manifest.seal.ledger.reducer,
        left_out: made.manifest.left_out,
        row_digest: dataset.digests().row_digest,
        vocabulary: words.counts.iter().enumerate().map(|(at, &count)| (word(at), count)).collect(),
        rows: (0..dataset.n_rows()).map(row_at).collect(),
    }
}

/// Memory in bytes and threads. The least memory makes every partition take several passes.
const MACHINES: [(usize, usize); 3] = [(512 << 20, 1), (1 << 16, 4), (1 << 12, 1)];

#[test]
fn rows_counts_and_vocabulary_are_those_of_a_naive_version_whatever_the_memory() {
    let expected = expected(&reviews(), &HashSet::new());
    assert!(expected.counts.only_stopwords > 1 && expected.rows.len() > 400, "{:?}", expected.counts);
    for (memory_bytes, threads) in MACHINES {
        let folder = TempDir::new().unwrap();
        assert_eq!(made(folder.path(), None, memory_bytes, threads), expected, "{memory_bytes} bytes");
    }
}

#[test]
fn rows_of_another_dataset_are_excluded_and_counted_and_their_words_still_count() {
    // The other dataset contains every second row.
    let all = expected(&reviews(), &HashSet::new());
    let other: Vec<Row> = all.rows.iter().step_by(2).cloned().collect();
    let settings = Settings { max_tokens: MAX_TOKENS as u32, ..Settings::default() };
    let row = |at| other[at as usize].clone();
    let (_other, without) =
        fixtures::dataset_prepared(other.len() as u32, VOCABULARY_SIZE as u32, settings, row);
    let expected = expected(&reviews(), &other.iter().map(|row| row.hash).collect());
    assert_eq!((expected.left_out as usize, &expected.vocabulary), (other.len(), &all.vocabulary));
    for (memory_bytes, threads) in MACHINES {
        let folder = TempDir::new().unwrap();
        let made = made(folder.path(), Some(without.clone()), memory_bytes, threads);
        assert_eq!(made, expected, "{memory_bytes} bytes");
    }
}

#[test]
fn rows_and_counts_are_the_same_when_texts_are_written() {
    let expected = expected(&reviews(), &HashSet::new());
    for (memory_bytes, threads) in MACHINES {
        let folder = TempDir::new().unwrap();
        let made = made_with_texts(folder.path(), None, Some("texts.parquet"), memory_bytes, threads);
        assert_eq!(made, expected, "{memory_bytes} bytes");
    }
}
