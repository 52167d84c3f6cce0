//! Each setting does what it does in the pipe.

use std::fs;

use tests::demo::{DEMO, raw};
use tests::pipe::text_of;

use crate::made::{Manner, Room, Settings};

const MANNERS: [Manner; 2] = [Manner { threads: 2, memory: "512MiB" }, Manner::SPARING];

#[test]
fn settings_of_rows_are_the_reducers() {
    let room = Room::new();
    room.write("list", "Great\n\nI\u{2019}m\nthe\r\nthe\n");
    let list = room.path("list");
    let all: [&[&str]; 12] = [
        &["--stopwords", "nltk"],
        &["--stopwords", "nltk-negations"],
        &["--stopwords", text_of(&list)],
        &["--max-tokens", "0"],
        &["--max-tokens", "1"],
        &["--max-tokens", "3"],
        &["--max-tokens", "1", "--keep", "last"],
        &["--max-tokens", "3", "--keep", "last"],
        &["--max-tokens", "3", "--keep", "ends"],
        &["--positive-from", "3"],
        &["--profile", "original"],
        &["--profile", "original", "--max-tokens", "7"],
    ];
    for rows in all {
        Settings { rows, ..Settings::default() }.check(&MANNERS, &DEMO.raw, &format!("{rows:?}"));
    }
}

#[test]
fn settings_of_the_dataset_are_merges() {
    // Some of its texts are the demo corpus's, some of its words are not.
    let test_set = [raw(1_500, 2).0, raw(300, 1).0].concat();
    let room = Room::new();
    room.write("train.h5", &DEMO.dataset);
    let train = room.path("train.h5");
    let train = text_of(&train);
    let all: [&[&str]; 7] = [
        &["--vocabulary-size", "1"],
        &["--vocabulary-size", "50"],
        &["--vocabulary", train],
        &["--without", train],
        &["--vocabulary", train, "--without", train],
        &["--padded", "1"],
        &["--padded", "60"],
    ];
    for dataset in all {
        Settings { dataset, ..Settings::default() }.check(&MANNERS, &test_set, &format!("{dataset:?}"));
    }
    let nothing_left = Settings { dataset: &["--without", train], ..Settings::default() };
    nothing_left.check(&MANNERS, &DEMO.raw, "a dataset without itself");
}

#[test]
fn vocabularies_and_texts_of_another_dataset_of_the_program_fit() {
    // Given a training set that the program made itself.
    let (train, room) = (Settings::default().by_mill(Manner::SPARING, &DEMO.raw), Room::new());
    room.write("train.h5", &train.dataset);
    let path = room.path("train.h5");
    let dataset = ["--vocabulary", text_of(&path), "--without", text_of(&path)];
    let settings = Settings { dataset: &dataset, ..Settings::default() };
    settings.check(&MANNERS, &raw(1_500, 1).0, "after a dataset of the program");
    assert!(fs::read(path).unwrap() == train.dataset);
}
