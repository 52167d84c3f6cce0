//! The columns of rows read by this crate's threads equal those read by the HDF5 library.
#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "a panic of a test is its failure")]

mod fixture;

use std::fmt::Debug;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;

use corpus::digest::{Digest, split};
use dataset::dataset_file::{DatasetReader, write_padded};
use dataset::{Column, Error, Row, RowColumns, Scratch, TokenColumn};
use fixture::{many_rows, write_dataset, write_dataset_of};

const NONE: [&str; 0] = [];

fn threads(n: usize) -> NonZeroUsize {
    NonZeroUsize::new(n).unwrap()
}

/// The library without its chunk cache.
fn library(path: &Path) -> hdf5::File {
    hdf5::File::with_options().with_fapl(|access| access.chunk_cache(0, 0, 0.0)).open(path).unwrap()
}

/// A dataset in a new folder.
fn dataset_of(rows: &[Row]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reviews.h5");
    write_dataset(&path, rows);
    (folder, path)
}

#[track_caller]
fn assert_as_the_library<T>(column: &Column<T>, path: &Path, name: &str)
where
    T: hdf5::H5Type + dataset::Scalar + PartialEq + Debug,
{
    let expected: Vec<T> = library(path).dataset(name).unwrap().read_raw().unwrap();
    assert_eq!(expected.len(), column.n_rows() * column.width(), "{name}");
    for n in [1, 2, 3, 8] {
        assert!(column.read(threads(n)).unwrap() == expected, "{name} by {n} threads");
    }
    // Several threads at once, each in its own order through all chunks.
    thread::scope(|scope| {
        for first in 0..4 {
            let expected = &expected;
            scope.spawn(move || {
                let mut scratch = Scratch::default();
                for n in 0..column.n_chunks() {
                    let chunk = (first + n) % column.n_chunks();
                    let rows = column.rows_of_chunk(chunk);
                    let expected = &expected[rows.start * column.width()..rows.end * column.width()];
                    let mut elements = vec![T::default(); expected.len()];
                    column.read_chunk(chunk, &mut scratch, &mut elements).unwrap();
                    assert!(elements == *expected, "{name}: chunk {chunk}");
                }
            });
        }
    });
}

fn assert_columns(columns: &RowColumns, path: &Path) {
    match &columns.tokens {
        TokenColumn::U16(column) => assert_as_the_library(column, path, "tokens"),
        TokenColumn::U32(column) => assert_as_the_library(column, path, "tokens"),
    }
    assert_as_the_library(&columns.offsets, path, "offsets");
    assert_as_the_library(&columns.label, path, "label");
    assert_as_the_library(&columns.votes, path, "votes");
    assert_as_the_library(&columns.hash, path, "hash");
    assert_as_the_library(&columns.split, path, "split");
}

#[test]
fn columns_equal_those_read_by_the_library() {
    // Zero rows, one row, one row less and one row more than a chunk of votes, and several chunks of each
    // column, of which the last is incomplete.
    for n in [0, 1, 16_383, 16_384, 16_385, 140_000] {
        let (_folder, path) = dataset_of(&many_rows(n));
        let dataset = DatasetReader::open(&path).unwrap();
        let columns = dataset.columns();
        assert!(matches!(columns.tokens, TokenColumn::U16(_)));
        assert_eq!(columns.votes.width(), 5);
        assert_eq!(columns.votes.n_chunks() as u64, n.div_ceil(16_384));
        assert_columns(columns, &path);
    }
}

#[test]
fn wide_tokens_equal_those_read_by_the_library() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reviews.h5");
    let letter = |n: u32| char::from(b'a' + (n % 26) as u8);
    // None of the words is a stop word.
    let word = |n: u32| ['q', 'x', letter(n / 17_576), letter(n / 676), letter(n / 26), letter(n)];
    let words: Vec<String> = (0..70_000).map(|n| word(n).iter().collect()).collect();
    let rows: Vec<Row> = many_rows(70_000)
        .into_iter()
        .map(|row| Row { tokens: vec![1 + row.hash as u32, 70_001], ..row })
        .collect();
    write_dataset_of(&path, &words, &rows, Digest(0));
    let dataset = DatasetReader::open(&path).unwrap();
    assert!(matches!(dataset.columns().tokens, TokenColumn::U32(_)));
    assert_columns(dataset.columns(), &path);
}

#[test]
fn a_dataset_without_words_or_rows_survives_the_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reviews.h5");
    write_dataset_of(&path, &NONE, &[], Digest(0));
    assert_columns(DatasetReader::open(&path).unwrap().columns(), &path);
}

#[test]
fn several_threads_verify_all_rows_in_order() {
    for n in [0, 1, 32_768, 140_000] {
        let (_folder, path) = dataset_of(&many_rows(n));
        let dataset = DatasetReader::open(&path).unwrap();
        let mut expected = Vec::new();
        let mut at = 0;
        let in_order = dataset.verify(|row| {
            expected.push((at, row.clone()));
            at += 1;
            Ok(())
        });
        in_order.unwrap();
        assert_eq!(expected.len() as u64, n);
        for n_threads in [1, 2, 5] {
            let mut read = Vec::new();
            let push = |block: &mut Vec<(u64, Row)>, at, row: &Row| block.push((at, row.clone()));
            let take = |block| -> dataset::Result<()> {
                read.extend::<Vec<_>>(block);
                Ok(())
            };
            dataset.verify_blocks(threads(n_threads), Vec::new, push, take).unwrap();
            assert!(read == expected, "{n} rows by {n_threads} threads");
        }
    }
}

#[test]
fn rows_out_of_order_between_two_blocks_are_refused() {
    // Rows of one hash that are not in the order of their words. Rows out of order by hash would be refused
    // on opening.
    let mut rows = many_rows(40_000);
    for (at, tokens) in [(32_767, 1), (32_768, 0)] {
        rows[at] = Row { hash: 32_767, tokens: vec![tokens], ..rows[at].clone() };
        rows[at].split = split([&b"fit"[..], b"good"][tokens as usize]);
    }
    let (_folder, path) = dataset_of(&rows);
    let dataset = DatasetReader::open(&path).unwrap();
    for n_threads in [1, 2] {
        let take = |()| -> dataset::Result<()> { Ok(()) };
        let verified = dataset.verify_blocks(threads(n_threads), || (), |(), _, _| (), take);
        let error = verified.unwrap_err().to_string();
        assert!(error.contains("row 32768 is less than the previous row"), "{error}");
    }
}

#[test]
fn equal_rows_are_in_order() {
    let mut rows = many_rows(3);
    rows[1] = rows[0].clone();
    let (_folder, path) = dataset_of(&rows);
    let dataset = DatasetReader::open(&path).unwrap();
    dataset.verify(|_| Ok(())).unwrap();
}

#[test]
fn the_split_of_each_row_can_be_read_by_itself() {
    let rows = many_rows(300);
    assert!(rows.iter().any(|row| row.split != rows[0].split));
    let (_folder, path) = dataset_of(&rows);
    let dataset = DatasetReader::open(&path).unwrap();
    let mut reader = dataset.rows();
    for (at, row) in (0..).zip(&rows) {
        assert_eq!(reader.split(at).unwrap(), row.split);
    }
}

#[test]
fn a_padded_copy_can_be_stopped_at_intervals() {
    let (folder, path) = dataset_of(&many_rows(2500));
    let dataset = DatasetReader::open(&path).unwrap();
    let mut calls = Vec::new();
    let go_on = |at| {
        calls.push(at);
        Ok::<(), Error>(())
    };
    write_padded(&dataset, &folder.path().join("padded.h5"), 4, go_on).unwrap();
    assert_eq!(calls, [0, 1024, 2048]);
}

#[test]
fn replacing_the_file_does_not_change_an_open_dataset() {
    let (folder, path) = dataset_of(&many_rows(20_000));
    let dataset = DatasetReader::open(&path).unwrap();
    let before = dataset.columns().hash.read(threads(2)).unwrap();

    let other = folder.path().join("other.h5");
    write_dataset(&other, &many_rows(3));
    fs::rename(&other, &path).unwrap();

    assert_eq!(DatasetReader::open(&path).unwrap().n_rows(), 3);
    assert!(dataset.columns().hash.read(threads(2)).unwrap() == before);
    dataset.verify(|_| Ok(())).unwrap();
}
