//! A dataset is the same file in whatever parts its rows are written, and on however many threads.
#![allow(clippy::unwrap_used)]

mod fixture;

use std::num::NonZeroUsize;
use std::path::Path;

use corpus::digest::Digest;
use dataset::dataset_file::DatasetWriter;
use dataset::vocabulary::Vocabulary;
use dataset::{Error, Row, RowsSize};
use fixture::{Given, many_rows};
use proptest::prelude::*;

/// The file of these rows, in parts of these numbers of rows.
fn written(rows: &[Row], parts: &[usize], threads: usize) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dataset.h5");
    write(&path, rows, parts, threads);
    std::fs::read(path).unwrap()
}

fn write(path: &Path, rows: &[Row], parts: &[usize], threads: usize) {
    let Given { settings, words, counts, .. } = Given::sound();
    let mut vocabulary = Vocabulary { counts, ..Vocabulary::default() };
    words.iter().for_each(|word| vocabulary.words.push(word));
    let mut rest = rows;
    let parts: Vec<&[Row]> = parts
        .iter()
        .map(|&n| {
            let (part, later) = rest.split_at(n);
            rest = later;
            part
        })
        .collect();
    let sizes: Vec<RowsSize> = parts.iter().map(|part| RowsSize::of(part)).collect();
    let mut dataset = DatasetWriter::create(path, &settings, &vocabulary, RowsSize::of(rows)).unwrap();
    let mut in_order = Vec::new();
    dataset
        .parts::<Error>(
            &sizes,
            NonZeroUsize::new(threads).unwrap(),
            |part, visit| parts[part].iter().try_for_each(visit),
            |part| {
                in_order.push(part);
                Ok(())
            },
        )
        .unwrap();
    assert_eq!(in_order, (0..parts.len()).collect::<Vec<_>>());
    dataset.finish(Digest::default()).unwrap();
}

/// Rows of 1 to 3 tokens with ids of the vocabulary.
fn rows(n: u64) -> Vec<Row> {
    let ids = |row: Row| Row { tokens: row.tokens.iter().map(|token| token + 2).collect(), ..row };
    many_rows(n).into_iter().map(ids).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn parts_and_threads_change_no_byte(mut ends in prop::collection::vec(0..=200_usize, 0..9), threads in 1..5_usize) {
        // Each part is smaller than a chunk, and some are empty.
        let rows = rows(200);
        ends.push(200);
        ends.sort_unstable();
        let parts: Vec<usize> =
            ends.iter().scan(0, |from, &end| Some(end - std::mem::replace(from, end))).collect();
        prop_assert!(written(&rows, &parts, threads) == written(&rows, &[200], 1), "{parts:?}");
    }
}

#[test]
fn a_part_of_one_row_each_changes_no_byte() {
    let rows = rows(64);
    assert!(written(&rows, &[1; 64], 3) == written(&rows, &[64], 1));
}

#[test]
fn parts_that_begin_and_end_within_chunks_or_between_them_change_no_byte() {
    // Chunks have 16 Ki rows of votes, 32 Ki of hashes and of offsets, 64 Ki of labels, and 64 Ki tokens, two per row.
    let rows = rows(200_000);
    let expected = written(&rows, &[200_000], 1);
    for parts in [
        vec![65_536, 65_536, 65_536, 3392],
        vec![65_535, 0, 65_537, 1, 65_535, 3392],
        vec![16_384, 49_152, 100_000, 34_464],
        vec![199_999, 1],
        vec![1, 199_999],
        vec![0, 200_000, 0],
    ] {
        for threads in [1, 2, 3] {
            assert!(written(&rows, &parts, threads) == expected, "{parts:?} on {threads} threads");
        }
    }
}

#[test]
fn a_row_of_several_chunks_of_tokens_changes_no_byte() {
    let mut rows = rows(9);
    rows[4].tokens = (0..200_000).map(|n| 2 + n % 3).collect();
    let expected = written(&rows, &[9], 1);
    for parts in [vec![4, 1, 4], vec![5, 4], vec![4, 5], vec![1; 9]] {
        assert!(written(&rows, &parts, 2) == expected, "{parts:?}");
    }
}

#[test]
fn a_part_of_another_size_than_counted_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let Given { settings, words, counts, .. } = Given::sound();
    let mut vocabulary = Vocabulary { counts, ..Vocabulary::default() };
    words.iter().for_each(|word| vocabulary.words.push(word));
    let rows = rows(3);
    let path = folder.path().join("dataset.h5");
    let mut dataset = DatasetWriter::create(&path, &settings, &vocabulary, RowsSize::of(&rows)).unwrap();
    let sizes = [RowsSize::of(&rows[..1]), RowsSize::of(&rows[1..])];
    let refused = dataset.parts::<Error>(
        &sizes,
        NonZeroUsize::MIN,
        |part, visit| rows[2 * part..].iter().try_for_each(visit),
        |_| Ok(()),
    );
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("part 0 of the rows has"), "{said}");
}
