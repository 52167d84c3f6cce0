//! For real reviews, the programs and an independent implementation of the contract compute the same counts
//! and digests.

use std::ffi::OsStr;
use std::fs;

use dataset::Row;
use tests::files::assert_same_bytes;
use tests::pipe::{self, Pipe, Splitter};
use tests::programs::{program, run};
use tests::{lines, oracle, real_data};

use crate::made::{commits, manifest, open};

struct Expected {
    input: &'static str,
    format: &'static str,
    lines: u64,
    no_text: u64,
    empty_text: u64,
    distinct: u64,
    only_stopwords: u64,
    rows: u64,
    label_1: u64,
    kept_words: u64,
    distinct_words: u64,
    row_digest: &'static str,
    id_digest: &'static str,
    vocabulary_digest: &'static str,
}

const ALL_BEAUTY: Expected = Expected {
    input: "amazon/All_Beauty_5",
    format: "json",
    lines: 5_269,
    no_text: 5,
    empty_text: 6,
    distinct: 1_333,
    only_stopwords: 0,
    rows: 1_333,
    label_1: 1_213,
    kept_words: 34_957,
    distinct_words: 5_551,
    row_digest: "8e253c9b8866b8362ad36e43b2f19c81",
    id_digest: "67c3d87222caba5700d2bcc945cdbb08",
    vocabulary_digest: "8a068666ae34bb199ec37000518b10e6",
};

const GIFT_CARDS: Expected = Expected {
    input: "amazon/Gift_Cards_5",
    format: "json",
    lines: 2_972,
    no_text: 6,
    empty_text: 5,
    distinct: 1_767,
    only_stopwords: 2,
    rows: 1_765,
    label_1: 1_712,
    kept_words: 15_990,
    distinct_words: 2_531,
    row_digest: "52a3cbf624a3821fc681fbeaf58b4850",
    id_digest: "78ff016fdd9b47ffb0ddfd2b682e0532",
    vocabulary_digest: "507f3c59850dd83d0745a7ac10480b6b",
};

const IMDB_TRAIN: Expected = Expected {
    input: "imdb/train",
    format: "json",
    lines: 25_000,
    no_text: 0,
    empty_text: 0,
    distinct: 24_901,
    only_stopwords: 0,
    rows: 24_901,
    label_1: 12_470,
    kept_words: 1_985_183,
    distinct_words: 79_845,
    row_digest: "c89362abc60fd0a039635a1edef7ed47",
    id_digest: "6fdc7e22bf053228346689c1a26557f8",
    vocabulary_digest: "3f73c2e52ae2cb2041a1090f1e94f7b1",
};

const IMDB_TEST: Expected = Expected {
    input: "imdb/test",
    format: "json",
    lines: 25_000,
    no_text: 0,
    empty_text: 0,
    distinct: 24_798,
    only_stopwords: 0,
    rows: 24_798,
    label_1: 12_439,
    kept_words: 1_962_301,
    distinct_words: 78_786,
    row_digest: "870b58c0c745c04620c521cca45f3f65",
    id_digest: "345a41ccfc971034d4f19ccb7570c8cf",
    vocabulary_digest: "0fae0bf39288710c67ef586c269b5971",
};

const YELP_SENTENCES: Expected = Expected {
    input: "yelp/sentences_polarity",
    format: "polarity-csv",
    lines: 190_153,
    no_text: 0,
    empty_text: 12,
    distinct: 165_421,
    only_stopwords: 108,
    rows: 165_313,
    label_1: 96_528,
    kept_words: 720_441,
    distinct_words: 8_922,
    row_digest: "66427baf22f9e6c750d1ac42e8fa524d",
    id_digest: "763a9640f3f3a255ebc4063d30739e11",
    vocabulary_digest: "77f496b7f7d02e046d033cb2c7e45b13",
};

#[test]
fn all_beauty_gives_the_known_dataset() {
    check_numbers(&ALL_BEAUTY);
}

#[test]
fn gift_cards_give_the_known_dataset() {
    check_numbers(&GIFT_CARDS);
}

#[test]
fn imdb_train_gives_the_known_dataset() {
    check_numbers(&IMDB_TRAIN);
}

#[test]
fn imdb_test_gives_the_known_dataset() {
    check_numbers(&IMDB_TEST);
}

#[test]
fn yelp_sentences_give_the_known_dataset() {
    check_numbers(&YELP_SENTENCES);
}

#[test]
fn a_compressed_file_gives_the_records_of_its_content() {
    let (Some(file), Some(raw)) = (real_data::file(GIFT_CARDS.input), real_data::raw(GIFT_CARDS.input))
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let records = pipe::mapped(&raw, &folder.path().join("counts.json"));

    let inflated = run(program("mapper").arg("--input").arg(&file), b"").succeeded();

    assert!(inflated.stdout == records);
}

fn check_numbers(expected: &Expected) {
    let Some(raw) = real_data::raw(expected.input) else { return };
    let folder = tempfile::tempdir().unwrap();

    let mapper = ["--format", expected.format].map(str::to_owned).to_vec();
    let reducer = ["--profile", "original"].map(str::to_owned).to_vec();
    let path = Pipe { mapper, reducer, ..Pipe::default() }.dataset(&raw, folder.path());

    let counts: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("mapper.json")).unwrap()).unwrap();
    let reviews = expected.lines - expected.no_text - expected.empty_text;
    let ledger = serde_json::json!({
        "lines": expected.lines, "blank": 0, "line_too_long": 0, "bad_line": 0, "no_text": expected.no_text,
        "bad_rating": 0, "empty_text": expected.empty_text, "reviews": reviews,
    });
    assert_eq!(counts, ledger);
    let manifest = manifest(&path);
    assert_eq!(serde_json::to_value(manifest.seal.ledger.mapper).unwrap(), ledger);
    let reduced = manifest.seal.ledger.reducer;
    assert_eq!(
        (reduced.reviews, reduced.distinct, reduced.only_stopwords, reduced.rows),
        (reviews, expected.distinct, expected.only_stopwords, expected.rows)
    );
    assert_eq!(commits(&folder.path().join("run"))[0].distinct_words, expected.distinct_words);

    let dataset = open(&path);
    let mut positive = 0;
    dataset
        .verify(|row: &Row| {
            positive += u64::from(row.label);
            Ok(())
        })
        .unwrap();
    assert_eq!(
        (dataset.n_rows(), positive, dataset.n_tokens()),
        (expected.rows, expected.label_1, expected.kept_words)
    );
    let digests = dataset.digests();
    assert_eq!(digests, manifest.digests);
    assert_eq!(
        [digests.row_digest, digests.id_digest, digests.vocabulary_digest].map(|digest| digest.to_string()),
        [expected.row_digest, expected.id_digest, expected.vocabulary_digest]
    );
}

#[test]
fn amazon_reviews_give_the_same_bytes_for_any_split() {
    for input in [ALL_BEAUTY.input, GIFT_CARDS.input] {
        let Some(raw) = real_data::raw(input) else { return };
        let folder = tempfile::tempdir().unwrap();
        let plain = fs::read(Pipe::default().dataset(&raw, &folder.path().join("plain"))).unwrap();
        let cuts = [(2, vec![1], 0), (7, vec![0, 1, 3], 1), (64, vec![2, 2], 3)];
        for (partitions, passes_before_sort, passes_after_sort) in cuts {
            let splitter = if partitions == 7 { Splitter::Select } else { Splitter::Hadoop };
            let pipe =
                Pipe { partitions, passes_before_sort, passes_after_sort, splitter, ..Pipe::default() };
            let shuffled = lines::shuffled(&raw, u64::from(partitions));

            let dataset = pipe.dataset(&shuffled, &folder.path().join(partitions.to_string()));

            assert_same_bytes(&dataset, &plain, &format!("{input} by {pipe:?}"));
        }
    }
}

#[test]
fn imdb_gives_the_same_bytes_when_split_combined_and_spilled() {
    let Some(raw) = real_data::raw(IMDB_TRAIN.input) else { return };
    let folder = tempfile::tempdir().unwrap();
    let plain = fs::read(Pipe::default().dataset(&raw, &folder.path().join("plain"))).unwrap();
    let spilling = ["--memory", "1MiB"].map(str::to_owned).to_vec();
    let pipe = Pipe {
        partitions: 7,
        passes_before_sort: vec![1, 0],
        passes_after_sort: 1,
        reducer: spilling,
        ..Pipe::default()
    };

    let dataset = pipe.dataset(&lines::shuffled(&raw, 1), &folder.path().join("cut"));

    assert_same_bytes(&dataset, &plain, "IMDB in 7 partitions of 1 MiB");
}

#[test]
fn the_oracle_agrees_about_amazon_reviews() {
    for input in [ALL_BEAUTY.input, GIFT_CARDS.input] {
        let (Some(file), Some(raw)) = (real_data::file(input), real_data::raw(input)) else { return };
        let folder = tempfile::tempdir().unwrap();

        let dataset = Pipe { partitions: 3, ..Pipe::default() }.dataset(&raw, folder.path());

        oracle::agrees(&dataset, &[&file], &[]);
    }
}

#[test]
fn the_oracle_agrees_about_yelp_sentences() {
    let input = YELP_SENTENCES.input;
    let (Some(file), Some(raw)) = (real_data::file(input), real_data::raw(input)) else { return };
    let folder = tempfile::tempdir().unwrap();
    let format = ["--format", YELP_SENTENCES.format];
    let mapper = format.map(str::to_owned).to_vec();

    let dataset = Pipe { partitions: 3, mapper, ..Pipe::default() }.dataset(&raw, folder.path());

    oracle::agrees(&dataset, &[&file], &format.map(OsStr::new));
}
