//! A vocabulary with every word of the input, in numbers that 16 bits cannot hold.

use std::collections::BTreeMap;
use std::fs;

use corpus::digest::text_hash;
use dataset::vocabulary::FIRST_WORD;
use tests::demo::json_line;
use tests::files::assert_same_bytes;
use tests::pipe::{Pipe, text_of};
use tests::programs::{program, run};
use tests::prove;

use crate::made::open;

const WORDS_PER_TEXT: usize = 50;

/// Distinct words for distinct numbers.
fn word(number: usize) -> String {
    let letters = format!("{number:x}");
    letters.chars().map(|digit| char::from(b'a' + digit.to_digit(16).unwrap_or_default() as u8)).collect()
}

/// Texts that have each of `n_words` words once, and a few of them more often.
fn texts(n_words: usize) -> Vec<String> {
    let texts = (0..n_words).step_by(WORDS_PER_TEXT).map(|first| {
        let own = (first..n_words.min(first + WORDS_PER_TEXT)).map(word);
        let frequent = [first / WORDS_PER_TEXT % 7, first / WORDS_PER_TEXT % 1000].map(word);
        own.chain(frequent).collect::<Vec<_>>().join(" ")
    });
    texts.collect()
}

#[test]
fn a_vocabulary_of_all_words_is_carried_by_every_way_to_a_dataset() {
    let n_words = if prove() { 3_000_000 } else { 300_000 };
    let texts = texts(n_words);
    let raw: String = (1..).zip(&texts).map(|(n, text)| json_line(text, n % 5 + 1)).collect();
    let folder = tempfile::tempdir().unwrap();
    let all = |flags: &[&str]| flags.iter().map(|&flag| flag.to_owned()).collect::<Vec<_>>();
    let rows = ["--stopwords", "none", "--max-tokens", "0"];
    let vocabulary = ["--vocabulary-size", "4000000000"];
    // More shards than merge reads at once would take long here; same_bytes.rs has them.
    let pipe = Pipe { partitions: 3, reducer: all(&rows), merge: all(&vocabulary), ..Pipe::default() };
    let merged = pipe.dataset(raw.as_bytes(), folder.path());

    let (reviews, dataset) = (folder.path().join("reviews.json"), folder.path().join("all.h5"));
    fs::write(&reviews, &raw).unwrap();
    let mut sentimill = program("sentimill");
    // Words that do not fit are spilled.
    sentimill
        .arg(&reviews)
        .args(["--memory", "64MiB", "--out", text_of(&dataset)])
        .args(rows)
        .args(vocabulary);
    run(&mut sentimill, b"").succeeded();
    assert_same_bytes(&dataset, &fs::read(&merged).unwrap(), "sentimill");

    let dataset = open(&dataset);
    let words = &dataset.vocabulary().words;
    assert_eq!(words.len(), n_words);
    let by_hash: BTreeMap<u64, &String> =
        texts.iter().map(|text| (text_hash(text.as_bytes()), text)).collect();
    let mut expected = by_hash.iter();
    dataset
        .verify(|row| {
            let (&hash, text) = expected.next().unwrap();
            let found = row.tokens.iter().map(|&id| words.get((id - FIRST_WORD) as usize));
            assert!(row.hash == hash && found.eq(text.split(' ').map(str::as_bytes)), "{text}");
            Ok(())
        })
        .unwrap();
    assert_eq!(expected.next(), None);
}
