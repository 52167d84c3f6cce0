//! Each setting has the same effect as in the pipe.

use std::fs;

use tests::demo::{DEMO, json_line, raw};
use tests::pipe::text_of;
use tests::programs::run;

use crate::made::{Flags, Manner, Room};

const MANNERS: [Manner; 2] = [Manner { threads: 2, memory: "512MiB" }, Manner::SPARING];

#[test]
fn settings_of_rows_have_the_effect_of_the_reducer() {
    let room = Room::new();
    room.write("list", "Great\n\nI\u{2019}m\nthe\r\nthe\n");
    let list = room.path("list");
    let all: [&[&str]; 19] = [
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
        &["--labels", "1-2=negative,3=neutral,4-5=positive"],
        &["--labels", "5=very good,1-2=bad"],
        &["--labels", "4-5=good,1=bad", "--profile", "original"],
        &["--sample", "1"],
        &["--sample", "0.25"],
        &["--sample", "0.5", "--labels", "4-5=good,1=bad"],
        &["--sample", "0.001", "--profile", "original"],
        &["--profile", "original"],
        &["--profile", "original", "--max-tokens", "7"],
    ];
    for rows in all {
        Flags { rows, ..Flags::default() }.check(&MANNERS, &DEMO.raw, &format!("{rows:?}"));
    }
}

#[test]
fn words_of_texts_without_a_class_are_not_in_the_vocabulary() {
    let lines = ["Good soap", "good fit", "plain soap", "plain rope"].map(|text| {
        let stars = if text.starts_with("plain") { 3 } else { 5 };
        json_line(text, stars)
    });
    let lines = lines.concat() + &json_line("bad", 1);
    let labels = ["--labels", "1-2=negative,4-5=positive"];
    let other = Flags { rows: &labels, ..Flags::default() }.by_pipe(&DEMO.raw).dataset;
    let room = Room::new();
    room.write("other.h5", &other);
    let other = room.path("other.h5");
    for dataset in [&[][..], &["--vocabulary", text_of(&other)], &["--without", text_of(&other)]] {
        let flags = Flags { rows: &labels, dataset, ..Flags::default() };
        flags.check(&MANNERS, lines.as_bytes(), &format!("{dataset:?}"));
    }
    let flags = Flags { rows: &labels, ..Flags::default() };
    let made = run(&mut room.sentimill(MANNERS[0], &flags, &["-"]), lines.as_bytes()).succeeded().said();
    assert!(made.contains("most often        good 2, bad 1, fit 1, soap 1\n"), "{made}");
    assert!(made.contains("5 reviews, 5 distinct = 2 not_labelled + 0 only_stopwords + 3 rows\n"), "{made}");
}

#[test]
fn a_sample_is_not_taken_over_with_the_vocabulary() {
    let room = Room::new();
    let rows = ["--sample", "0.25", "--max-tokens", "30"];
    room.write("train.h5", &Flags { rows: &rows, ..Flags::default() }.by_pipe(&DEMO.raw).dataset);
    let train = room.path("train.h5");
    let dataset = ["--vocabulary", text_of(&train)];
    let test_set = raw(1_500, 2).0;
    for sample in [&[][..], &["--sample", "0.5"]] {
        let rows = [&["--max-tokens", "30"], sample].concat();
        let expected = Flags { rows: &rows, dataset: &dataset, ..Flags::default() }.by_pipe(&test_set);
        let flags = Flags { rows: sample, dataset: &dataset, ..Flags::default() };
        for manner in MANNERS {
            let made = flags.by_mill(manner, &test_set);
            assert!(made.dataset == expected.dataset, "{sample:?}");
        }
    }
}

#[test]
fn settings_of_the_dataset_have_the_effect_of_merge() {
    // Some of its texts are in the demo corpus, and some of its words are not.
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
        Flags { dataset, ..Flags::default() }.check(&MANNERS, &test_set, &format!("{dataset:?}"));
    }
}

#[test]
fn a_reused_vocabulary_sets_the_row_settings_of_its_dataset() {
    let room = Room::new();
    room.write("list", "great\nthe\n");
    let list = room.path("list");
    let own = ["--stopwords", text_of(&list), "--max-tokens", "7", "--keep", "last", "--positive-from", "3"];
    let three = ["--labels", "1=negative,3=neutral,4-5=positive"];
    for rows in [&["--profile", "original"][..], &own, &three] {
        room.write("train.h5", &Flags { rows, ..Flags::default() }.by_pipe(&DEMO.raw).dataset);
        let train = room.path("train.h5");
        let dataset = ["--vocabulary", text_of(&train)];
        let expected = Flags { rows, dataset: &dataset, ..Flags::default() }.by_pipe(&raw(1_500, 2).0);
        let taken_over = Flags { dataset: &dataset, ..Flags::default() };
        let same_flags = Flags { rows, dataset: &dataset, ..Flags::default() };
        for flags in [taken_over, same_flags] {
            flags.by_mill(MANNERS[0], &raw(1_500, 2).0).assert_same(&expected, &format!("{rows:?}"));
        }
    }
}

#[test]
fn flags_that_contradict_the_dataset_of_the_vocabulary_are_refused() {
    let room = Room::new();
    let rows = ["--profile", "original", "--positive-from", "3"];
    room.write("train.h5", &Flags { rows: &rows, ..Flags::default() }.by_pipe(&DEMO.raw).dataset);
    room.write("list", "great\n");
    room.write("reviews.json", &DEMO.raw);
    let cases: [(&[&str], &str); 7] = [
        (&["--labels", "1=a,5=b"], "labels is --positive-from 3, the flags set --labels 1=a,5=b;"),
        (&["--max-tokens", "400"], "max-tokens is 100, the flags set 400;"),
        (&["--keep", "ends"], "keep is first, the flags set ends;"),
        (&["--positive-from", "4"], "positive-from is 3, the flags set 4;"),
        (&["--stopwords", "none"], "stop words is 201 words ("),
        (&["--stopwords", "list"], "stop words is 201 words ("),
        (&["--profile", "modern"], "stop words is 201 words ("),
    ];
    for (rows, difference) in cases {
        let flags = Flags { rows, dataset: &["--vocabulary", "train.h5"], ..Flags::default() };
        let refused = run(&mut room.sentimill(MANNERS[0], &flags, &["reviews.json"]), b"").with_code(78);
        let begin = format!("sentimill: --vocabulary train.h5: its {difference}");
        assert!(refused.stderr.starts_with(&begin), "{rows:?}: {}", refused.stderr);
        let remedy = "remove the flags that differ: the settings of the dataset are used\n";
        assert!(refused.stderr.ends_with(remedy), "{}", refused.stderr);
        assert!(!room.path("out").exists());
    }
}

#[test]
fn vocabulary_and_without_accept_a_dataset_of_the_program() {
    // Given a training set made by the program itself.
    let (train, room) = (Flags::default().by_mill(Manner::SPARING, &DEMO.raw), Room::new());
    room.write("train.h5", &train.dataset);
    let path = room.path("train.h5");
    let dataset = ["--vocabulary", text_of(&path), "--without", text_of(&path)];
    let flags = Flags { dataset: &dataset, ..Flags::default() };
    let test_set = [raw(1_500, 1).0, raw(300, 2).0].concat();
    flags.check(&MANNERS, &test_set, "after a dataset of the program");
    assert!(fs::read(path).unwrap() == train.dataset);
}
