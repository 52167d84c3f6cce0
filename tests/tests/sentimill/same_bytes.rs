//! With any number of threads, any memory and any order of lines, the dataset equals that of the pipe.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use synthetic::new_words::each_text;
use tests::demo::{DEMO, json_line, raw};
use tests::lines::shuffled;

use crate::made::{BY_PIPE, Flags, Manner};

#[test]
fn neither_threads_nor_memory_change_a_byte() {
    for threads in [1, 2, 3, 5] {
        for memory in ["1MiB", "3MiB", "512MiB"] {
            let manner = Manner { threads, memory };
            let made = Flags::default().by_mill(manner, &DEMO.raw);
            made.assert_same(&BY_PIPE, &format!("{manner:?}"));
        }
    }
    assert!(BY_PIPE.dataset == DEMO.dataset);
}

#[test]
fn the_order_of_lines_changes_no_byte() {
    for seed in 1..=3 {
        let lines = shuffled(&DEMO.raw, seed);
        for manner in [Manner::ALONE, Manner::SPARING] {
            let made = Flags::default().by_mill(manner, &lines);
            made.assert_same(&BY_PIPE, &format!("lines in order {seed}, {manner:?}"));
        }
    }
}

#[test]
fn more_words_than_codes_and_memory_are_all_counted() {
    // The codes are assigned to other words, or to only a few of these.
    let mut lines = Vec::new();
    each_text(4_000_000, |text| lines.extend(json_line(text, 5).into_bytes()));
    let flags = Flags { dataset: &["--vocabulary-size", "400000"], ..Flags::default() };
    let lines = [DEMO.raw.clone(), shuffled(&lines, 1)].concat();
    flags.check(&[Manner { threads: 2, memory: "512MiB" }, Manner::SPARING], &lines, "new words");
}

#[test]
fn vocabularies_beyond_16_bits_contain_words_without_a_code() {
    let mut lines = String::new();
    each_text(600_000, |text| lines += &json_line(text, 2));
    for size in ["65534", "65535", "70000"] {
        let flags = Flags { dataset: &["--vocabulary-size", size], ..Flags::default() };
        flags.check(&[Manner::ALONE, Manner::SPARING], lines.as_bytes(), size);
    }
}

#[test]
fn unusual_texts_give_the_same_bytes() {
    let long = |bytes: usize| "supercalifragilistic".repeat(bytes / 20 + 1);
    let (many, some) = ("the soap was fine and cheap ".repeat(40_000), "warm ".repeat(101));
    let texts = [
        // A key holds 15 bytes of a word by themselves.
        "fifteen letters: uncopyrightable, sixteen: uncopyrightables, and both: uncopyrightable uncopyrightables",
        "extraordinarily extraordinariest extraordinarily",
        &long(66_000),
        &format!("{} x {0}", long(70_000)),
        &many,
        &format!("{many}\u{e9}t\u{e9}"),
        &some,
        "the and of",
        "Would get the product",
        "x",
        "\u{3b1}\u{3b2}\u{3b3} \u{6700}\u{9ad8}",
    ];
    let review = |number: usize| {
        json_line(texts[number % texts.len()], 1 + (number as u64 * 7 + number as u64 / 5) % 5)
    };
    let lines: String = (0..5 * texts.len()).map(review).collect();
    for rows in [&[][..], &["--max-tokens", "0"], &["--max-tokens", "3", "--keep", "ends"]] {
        let flags = Flags { rows, ..Flags::default() };
        flags.check(&[Manner::ALONE, Manner::SPARING], lines.as_bytes(), &format!("{rows:?}"));
    }
}

#[test]
fn one_review_makes_a_dataset() {
    let padded = Flags { dataset: &["--padded", "10"], ..Flags::default() };
    let no_review = "\n \t\n{\"overall\": 5}\n{\"reviewText\": \"5/5 :)\", \"overall\": 5}\nnonsense";
    let review = json_line("Lovely soap", 5);
    for lines in [&review, &format!("{no_review}\n{review}")] {
        padded.check(&[Manner::ALONE, Manner::SPARING], lines.as_bytes(), lines);
    }
}

/// Few by default; more with PROVE=1.
fn cases() -> u32 {
    if tests::prove() { 256 } else { 30 }
}

/// Texts of few words, so that many are equal, with words of all kinds.
fn reviews() -> impl Strategy<Value = Vec<(String, u64)>> {
    let words = [
        "the",
        "product",
        "good",
        "Good",
        "bad",
        "don't",
        "fits",
        "uncopyrightables",
        "9",
        "&amp;",
        "\u{3c3}",
        "caf\u{e9}",
        "<br>",
        "it's",
        "'",
        "honorificabilitudinitatibus",
        "\u{1f60d}",
        "a",
        "b",
        "c",
    ];
    let text = prop::collection::vec(prop::sample::select(words.to_vec()), 0..6);
    prop::collection::vec((text.prop_map(|words| words.join(" ")), 0u64..7), 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_corpus_gives_the_dataset_of_the_pipe(
        reviews in reviews(),
        (n_lines, seed) in (0u64..4_000, any::<u64>()),
        threads in 1usize..6,
        memory in prop::sample::select(vec!["1MiB", "2MiB", "64MiB"]),
        max_tokens in prop::sample::select(vec!["0", "1", "2", "100"]),
        keep in prop::sample::select(vec!["first", "last", "ends"]),
        vocabulary_size in prop::sample::select(vec!["1", "7", "10000"]),
    ) {
        let lines = reviews.iter().map(|(text, stars)| json_line(text, *stars)).collect::<String>();
        let lines = shuffled(&[lines.into_bytes(), raw(n_lines, seed).0].concat(), seed);
        let flags = Flags {
            lines: &["--bad-lines-max", "1"],
            rows: &["--max-tokens", max_tokens, "--keep", keep],
            dataset: &["--vocabulary-size", vocabulary_size],
        };
        flags.check(&[Manner { threads, memory }], &lines, "a corpus by chance");
    }
}
