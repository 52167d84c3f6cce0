//! Shards and datasets as files: what is written reads back, the same bytes each time, and damage is noticed.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use corpus::digest::{Digest, RowDigester, split};
use corpus::record::Votes;
use corpus::settings::Settings;
use dataset::dataset_file::{DatasetReader, DatasetSettings, DatasetWriter};
use dataset::shard::{ShardReader, ShardSize, ShardWriter};
use dataset::vocabulary::Vocabulary;
use dataset::{Error, Row};

const WORDS: [&[u8]; 3] = [b"fit", b"good", "größe".as_bytes()];

fn rows() -> Vec<Row> {
    let row = |hash, tokens: &[u32], votes, label| Row {
        hash,
        tokens: tokens.to_vec(),
        votes: Votes(votes),
        label,
        split: split(&words_of(tokens).join(&b' ')),
        source: 0,
    };
    vec![
        row(5, &[1, 0], [0, 0, 0, 0, 2], 1),
        row(7, &[2, 2, 2], [3, 0, 0, 0, 2], 0),
        row(u64::MAX, &[0], [0, 0, 0, 1, 0], 1),
    ]
}

fn words_of(tokens: &[u32]) -> Vec<&'static [u8]> {
    tokens.iter().map(|&token| WORDS[token as usize]).collect()
}

fn row_digest(rows: &[Row]) -> Digest {
    let mut digester = RowDigester::default();
    let mut sum = Digest::default();
    for row in rows {
        sum += digester.of_words(
            row.hash,
            row.label,
            row.votes,
            row.tokens.len(),
            &words_of(&row.tokens).join(&b' '),
        );
    }
    sum
}

fn write_shard(path: &Path, rows: &[Row]) {
    let tokens = rows.iter().map(|row| row.tokens.len() as u64).sum();
    let size = ShardSize { rows: rows.len() as u64, tokens, words: 3, word_bytes: 14 };
    let mut shard = ShardWriter::create(path, &Settings::default(), size).unwrap();
    for (at, word) in WORDS.iter().enumerate() {
        shard.word(word, at as u64 + 1).unwrap();
    }
    rows.iter().for_each(|row| shard.row(row).unwrap());
    shard.finish(row_digest(rows)).unwrap();
}

fn read_shard(path: &Path) -> Result<Vec<Row>, Error> {
    let mut shard = ShardReader::open(path)?;
    shard.keep_dictionary(1 << 20)?;
    let mut rows = Vec::new();
    shard.verify(|row| {
        rows.push(row.clone());
        Ok(())
    })?;
    Ok(rows)
}

fn write_dataset(path: &Path, rows: &[Row]) {
    let settings = DatasetSettings {
        rows: Settings::default(),
        vocabulary_size: 10_000,
        vocabulary_of: None,
        without: Some(Digest(9)),
    };
    let mut vocabulary = Vocabulary::default();
    for (at, word) in WORDS.iter().enumerate() {
        vocabulary.words.push(word);
        vocabulary.counts.push(10 - at as u64);
    }
    let tokens = rows.iter().map(|row| row.tokens.len() as u64).sum();
    let mut dataset = DatasetWriter::create(path, &settings, &vocabulary, rows.len() as u64, tokens).unwrap();
    for row in rows {
        let ids = Row { tokens: row.tokens.iter().map(|token| token + 2).collect(), ..row.clone() };
        dataset.row(&ids).unwrap();
    }
    dataset.finish(row_digest(rows)).unwrap();
}

#[test]
fn a_shard_reads_back_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shard.h5");
    write_shard(&path, &rows());
    assert_eq!(read_shard(&path).unwrap(), rows());
    let mut shard = ShardReader::open(&path).unwrap();
    assert_eq!(shard.settings(), &Settings::default());
    assert_eq!(shard.rows_with_hash(7).unwrap(), 1..2);
    assert_eq!(shard.rows_with_hash(6).unwrap(), 1..1);
    let mut joined = Vec::new();
    shard.join_words(&rows()[1], &mut joined).unwrap();
    assert_eq!(joined, "größe größe größe".as_bytes());
}

#[test]
fn a_shard_without_rows_is_a_shard() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shard.h5");
    let size = ShardSize::default();
    ShardWriter::create(&path, &Settings::default(), size).unwrap().finish(Digest::default()).unwrap();
    assert_eq!(read_shard(&path).unwrap(), []);
}

#[test]
fn the_same_rows_are_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = ["a", "b"].map(|name| {
        let path = folder.path().join(name);
        write_dataset(&path, &rows());
        std::fs::read(path).unwrap()
    });
    assert!(bytes[0] == bytes[1]);
    // The file as it has always been: times of objects, or another version of a library, would change it.
    assert_eq!(Digest::of(&bytes[0]).to_string(), "99226fd23c1d33bad292f9448fd5f126");
}

#[test]
fn more_rows_than_a_chunk_holds_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shard.h5");
    let many: Vec<Row> = (0..70_000).map(|n| Row { hash: n, ..rows()[(n % 3) as usize].clone() }).collect();
    write_shard(&path, &many);
    assert!(read_shard(&path).unwrap() == many);
}

#[test]
fn a_promise_of_more_rows_than_come_is_a_defect() {
    let folder = tempfile::tempdir().unwrap();
    let size = ShardSize { rows: 1, tokens: 0, words: 0, word_bytes: 0 };
    let shard = ShardWriter::create(&folder.path().join("shard.h5"), &Settings::default(), size).unwrap();
    assert!(matches!(shard.finish(Digest::default()), Err(Error::Internal { .. })));
}

#[test]
fn a_dataset_reads_back_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dataset.h5");
    write_dataset(&path, &rows());
    let mut dataset = DatasetReader::open(&path).unwrap();
    assert_eq!(dataset.settings().without, Some(Digest(9)));
    assert_eq!(dataset.vocabulary().counts, [10, 9, 8]);
    let mut read = Vec::new();
    let result = dataset.verify(|row| {
        read.push(row.tokens.clone());
        Ok(())
    });
    result.unwrap();
    assert_eq!(read, [vec![3, 2], vec![4, 4, 4], vec![2]]);
}

#[test]
fn a_shard_is_no_dataset_and_a_text_is_neither() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shard.h5");
    write_shard(&path, &rows());
    let error = DatasetReader::open(&path).err().unwrap().to_string();
    assert!(
        error.contains("attribute format is \"sentimill shard\", expected \"sentimill dataset\""),
        "{error}"
    );
    std::fs::write(&path, "reviews").unwrap();
    let error = DatasetReader::open(&path).err().unwrap().to_string();
    assert!(error.contains("the file is not readable as HDF5"), "{error}");
}

#[test]
fn a_flipped_byte_changes_no_row_unnoticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shard.h5");
    write_shard(&path, &rows());
    let whole = std::fs::read(&path).unwrap();
    let mut noticed = 0;
    for at in (0..whole.len()).step_by(7) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x55;
        std::fs::write(&path, &flipped).unwrap();
        match read_shard(&path) {
            Ok(read) => assert_eq!(read, rows(), "byte {at}"),
            Err(_) => noticed += 1,
        }
    }
    assert!(noticed > whole.len() / 7 / 4, "{noticed} of {}", whole.len() / 7);
}
