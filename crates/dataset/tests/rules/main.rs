//! One file per numbered rule of FORMAT.md: its digests are valid, it breaks that rule, and the error names
//! the rule.
#![allow(clippy::unwrap_used)]

mod attributes;
mod case;
mod files;
#[path = "../fixture/mod.rs"]
mod fixture;
mod rows;
mod words;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use corpus::digest::{Digest, split};
use corpus::labels::Labels;
use corpus::record::Votes;
use dataset::Row;
use dataset::dataset_file::DatasetReader;
use hdf5::File;

use attributes::of_attributes;
use case::Case;
use files::of_files;
use fixture::reseal::{altered, put_column, put_number, put_text};
use fixture::{Given, rows, write_dataset};
use rows::{of_half, of_rows};
use words::of_words;

fn assert_refused(cases: Vec<Case>) {
    for case in cases {
        let Case { rule, said: expected, .. } = case;
        let said = case.refused();
        assert!(said.starts_with(expected), "{rule}: {said}\nexpected {expected}");
        assert!(!said.contains(char::is_control) && said.chars().count() < 400, "{rule}: {said:?}");
        if let Some((_, found)) = said.split_once("(FORMAT.md, ") {
            assert!(found.starts_with(&format!("{rule})")), "{rule}: {said}");
        }
    }
}

#[test]
fn a_file_that_breaks_a_rule_of_files_is_refused() {
    assert_refused(of_files());
}

#[test]
fn attributes_that_break_a_rule_are_refused() {
    assert_refused(of_attributes());
}

#[test]
fn words_that_break_a_rule_are_refused() {
    assert_refused(of_words());
}

#[test]
fn rows_that_break_a_rule_are_refused() {
    assert_refused(of_rows());
}

/// The rules about other files of a dataset are covered by the tests of the programs.
#[test]
fn every_numbered_rule_of_files_has_a_case() {
    let document = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/FORMAT.md")).unwrap();
    let numbers = document.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" |"));
    let numbered: BTreeSet<String> = numbers
        .map(|(number, _)| number.to_owned())
        .filter(|number| number.strip_prefix('F').is_some_and(|digits| digits.parse::<u8>().is_ok()))
        .collect();
    let cases = [of_files(), of_attributes(), of_words(), of_rows()];
    let with_files: BTreeSet<String> = cases.iter().flatten().map(|case| case.rule.to_owned()).collect();
    assert_eq!(with_files, numbered);
}

#[test]
fn a_resealed_file_without_changes_is_valid() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reviews.h5");
    write_dataset(&path, &rows());
    altered(&path, |file| {
        put_column::<u8>(file, "label", &[1, 0, 1]);
        put_number(file, "max_tokens", 100);
        put_text::<5>(file, "keep", "first");
    });
    DatasetReader::open(&path).unwrap().verify(|_| Ok(())).unwrap();
}

#[test]
fn a_file_with_named_classes_is_valid() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reviews.h5");
    let mut given = Given::sound();
    given.settings.rows.labels = Labels::Classes("1-2=bad,4=fine,5=it's \u{e9}".parse().unwrap());
    given.rows[0].label = 2;
    given.write(&path);
    let written = DatasetReader::open(&path).unwrap();
    written.verify(|_| Ok(())).unwrap();
    assert_eq!(written.settings(), &given.settings);
    assert_eq!(written.settings().rows.labels.names(), ["bad", "fine", "it's \u{e9}"]);
}

#[test]
fn a_sample_is_valid_and_a_dataset_of_all_texts_has_no_attribute_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let (path, whole) = (folder.path().join("reviews.h5"), folder.path().join("whole.h5"));
    let mut given = Given::sound();
    of_half(&mut given, 0x5_7fff_ffff);
    given.write(&path);
    let written = DatasetReader::open(&path).unwrap();
    written.verify(|_| Ok(())).unwrap();
    assert_eq!(written.settings(), &given.settings);
    let sample =
        |path: &Path| File::open(path).unwrap().attr("sample").and_then(|sample| sample.read_scalar::<u64>());
    assert_eq!(sample(&path).unwrap(), 1 << 31);
    write_dataset(&whole, &rows());
    assert!(sample(&whole).is_err());
}

#[test]
fn a_reused_vocabulary_keeps_its_order_and_may_have_zero_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reviews.h5");
    let mut given = Given::sound();
    given.settings.vocabulary_of = Some(Digest(7));
    given.settings.vocabulary_size = 3;
    given.counts = vec![0, 11, 8];
    given.write(&path);
    DatasetReader::open(&path).unwrap().verify(|_| Ok(())).unwrap();
}

#[test]
fn rows_of_one_hash_with_unknown_words_are_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reviews.h5");
    let mut given = Given::sound();
    let of = |tokens: &[u32], ones: u32| Row {
        hash: 5,
        tokens: tokens.to_vec(),
        votes: Votes([0, 0, 0, ones, 0]),
        split: if tokens == [2] { split(b"fit") } else { 0 },
        ..given.rows[2].clone()
    };
    // Shorter rows first, equal by votes. After an unknown word the order cannot be checked.
    given.rows =
        vec![of(&[2], 1), of(&[2], 2), of(&[2, 1], 2), of(&[3, 1], 2), of(&[1], 2), of(&[2, 1, 2], 1)];
    given.write(&path);
    DatasetReader::open(&path).unwrap().verify(|_| Ok(())).unwrap();
}

#[test]
fn the_split_is_checked_if_all_words_of_a_row_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reviews.h5");
    let mut given = Given::sound();
    given.rows[1].split = (given.rows[1].split + 1) % 1000;
    given.rows[2] = Row { tokens: vec![2, 1], split: 7, ..given.rows[2].clone() };
    given.write(&path);
    let dataset = DatasetReader::open(&path).unwrap();
    let mut row = Row::default();
    let checked = [0, 1, 2].map(|at| {
        dataset.rows().read(at, &mut row).unwrap();
        dataset.check_split(at, &row).map_err(|error| error.to_string())
    });
    assert!(checked[0].is_ok() && checked[2].is_ok(), "{checked:?}");
    let said = checked[1].as_ref().unwrap_err();
    assert!(
        said.contains("the split of row 1 is ") && said.contains("computed from its words (FORMAT.md, F31)"),
        "{said}"
    );
}
