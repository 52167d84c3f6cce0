//! A text to predict is prepared as in the job. The model gets the ids of the row that mapper, reducer and
//! merge make from the same line.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::io;
use std::path::Path;

use corpus::clean::Rules;
use corpus::digest::text_hash;
use corpus::encoding::UTF_8;
use corpus::ledger::Limits;
use corpus::lines::LINE_BYTES_MAX;
use corpus::settings::{Keep, Settings};
use dataset::WordList;
use dataset::dataset_file::DatasetReader;
use dataset::vocabulary::UNKNOWN;
use kernels::TokenRows;
use making::{DatasetOptions, ProgressBars, VocabularyFrom};
use program::hadoop::Runner;
use proptest::prelude::*;
use reducer::task::{Others, Task};
use scoring::Scoring;
use store::Store;
use trainer::families::classifier::predict::{PredictOptions, Tokenizer, run};
use training::answers::{AnswersError, Format, LineOptions};

/// The records of these lines.
fn mapped(lines: &str, rules: Rules) -> Vec<u8> {
    let options = mapper::Options {
        rules,
        format: corpus::format::Format::default(),
        line_bytes_max: LINE_BYTES_MAX,
        encoding: UTF_8,
        limits: Limits::default(),
        output: mapper::Output::Records,
        runner: Runner::Hadoop,
    };
    let mut records = Vec::new();
    let mut mapper = mapper::Mapper::new(&mut records, io::sink(), options);
    mapper.read(lines.as_bytes(), &mapper::InputSplit { file: "-".to_owned(), split_start: None }).unwrap();
    mapper.finish().unwrap();
    records
}

/// A dataset: its words, and the tokens of its rows by hash.
struct Dataset {
    words: WordList,
    rows: HashMap<u64, Vec<u32>>,
}

/// The dataset of these records; `None` if they have no row.
fn dataset(records: &[u8], settings: &Settings, vocabulary_size: u64, folder: &Path) -> Option<Dataset> {
    let mut sorted: Vec<&[u8]> = records.split_inclusive(|&byte| byte == b'\n').collect();
    sorted.sort_by_key(|record| record.split(|&byte| byte == b'\t').next());
    let store = Store::open(folder.join("run").to_str().unwrap()).unwrap();
    for partition in 0..2 {
        let task = Task {
            partition,
            partitions: 2,
            others: Others::LeaveOut,
            host: "host".to_owned(),
            attempt: "attempt".to_owned(),
            job: None,
            runner: Runner::Hadoop,
            settings: settings.clone(),
            texts: false,
            keeps_words: false,
            memory_bytes: 64 << 20,
            scratch: folder.to_owned(),
        };
        reducer::run(io::Cursor::new(sorted.concat()), io::sink(), io::sink(), &store, &task).unwrap();
    }
    let options = merge::Options {
        dataset: DatasetOptions {
            out: folder.join("reviews.h5").into(),
            vocabulary: VocabularyFrom::Frequency(vocabulary_size),
            without: None,
            padded: None,
            ids: false,
            texts: None,
            existing: making::Existing::Keep,
        },
        counted: merge::Counted { mapper: None, limits: Limits::default() },
        threads: std::num::NonZeroUsize::MIN,
        ranges: None,
        keep: None,
        scratch: folder.to_owned(),
    };
    let sources = merge::Sources { runs: vec![store], datasets: Vec::new() };
    match merge::run(&sources, &options, &ProgressBars::to_nobody()) {
        Err(error) if error.message.contains("no row remains") => return None,
        merged => merged.unwrap(),
    };
    let reader = DatasetReader::open(&folder.join("reviews.h5")).unwrap();
    let mut rows = HashMap::new();
    reader
        .verify(|row| {
            rows.insert(row.hash, row.tokens.clone());
            Ok(())
        })
        .unwrap();
    Some(Dataset { words: reader.vocabulary().words.clone(), rows })
}

/// A hash of the ids that a score can represent exactly. Other ids seldom have the same hash.
fn number(ids: impl Iterator<Item = u64>) -> u64 {
    ids.fold(1, |number, id| (number * 31 + id) % (1 << 24))
}

/// A model whose output is the hash of its ids.
fn answer(texts: TokenRows<'_>) -> Result<Vec<Vec<f64>>, AnswersError> {
    let rows = texts.tokens.chunks(texts.longest).zip(texts.lengths);
    let read = rows.map(|(row, &length)| &row[..length as usize]);
    Ok(read.map(|ids| vec![number(ids.iter().map(|&id| id as u64)) as f64]).collect())
}

/// The expected result of a line, from the dataset's row.
fn expected(line: &str, rules: Rules, dataset: &Dataset, tokens_max: u32) -> Result<u64, &'static str> {
    let record = mapped(line, rules);
    let Some(end) = record.iter().position(|&byte| byte == b'\t') else { return Err("empty_text") };
    let Some(tokens) = dataset.rows.get(&text_hash(&record[..end])) else { return Err("only_stopwords") };
    let most = if tokens_max == 0 { usize::MAX } else { tokens_max as usize };
    let read = &tokens[..tokens.len().min(most)];
    if read.iter().all(|&id| id == UNKNOWN) {
        return Err("only_unknown");
    }
    Ok(number(read.iter().map(|&id| u64::from(id))))
}

/// The result of each line.
fn said(input: &str, format: Format, tokenizer: &mut Tokenizer) -> Vec<Result<u64, String>> {
    let lines = LineOptions {
        file: None,
        split_start: None,
        format,
        encoding: UTF_8,
        line_bytes_max: LINE_BYTES_MAX,
    };
    let options = PredictOptions {
        batch_rows: 3,
        decision: Scoring::Logit.into(),
        classes: Vec::new(),
        answers_unknown: false,
    };
    let mut output = Vec::new();
    run(input.as_bytes(), &mut output, &lines, tokenizer, &options, answer).unwrap();
    let lines = std::str::from_utf8(&output).unwrap().lines().enumerate();
    let said = |(at, line)| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["line"], at as u64 + 1);
        line["score"]
            .as_f64()
            .map(|score| score as u64)
            .ok_or_else(|| line["error"].as_str().unwrap().to_owned())
    };
    lines.map(said).collect()
}

fn review(text: &str) -> String {
    serde_json::json!({ "reviewText": text, "overall": 4 }).to_string() + "\n"
}

fn text() -> impl Strategy<Value = String> {
    let words = [
        "the",
        "not",
        "Good",
        "good",
        "BAD",
        "don’t",
        "don't",
        "'fit'",
        "<br />",
        "&amp;",
        "caf&eacute;",
        "café",
        "ΣΊΣΥΦΟΣ",
        "e\u{301}",
        "10/10",
        "well-made",
        "a\u{FEFF}b",
        "😀",
        "x",
        "very",
        "İstanbul",
        "a\u{1}b",
    ];
    let word = prop_oneof![prop::sample::select(words.to_vec()).prop_map(str::to_owned), "[a-c]{1,2}"];
    prop::collection::vec(word, 1..12).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn a_text_has_the_ids_of_its_row(
        texts in prop::collection::vec(text(), 1..25),
        stop_words in prop::sample::subsequence(vec!["don't", "good", "not", "the", "x"], 0..=5),
        max_tokens in 0u32..6,
        keep in prop::sample::select(vec![Keep::First, Keep::Last, Keep::Ends]),
        vocabulary_size in 1u64..12,
        tokens_max in 0u32..5,
        rules in prop::sample::select(&Rules::ALL[..]),
    ) {
        let stop_words = stop_words.into_iter().map(str::to_owned).collect();
        let cleaning_version = rules.version();
        let settings = Settings { stop_words, max_tokens, keep, cleaning_version, ..Settings::default() };
        let folder = tempfile::tempdir().unwrap();
        let lines: String = texts.iter().map(|text| review(text)).collect();
        let dataset = dataset(&mapped(&lines, rules), &settings, vocabulary_size, folder.path());
        // Texts of stop words only, or without a word, make no dataset.
        prop_assume!(dataset.is_some());
        let dataset = dataset.unwrap();
        let mut tokenizer = Tokenizer::new(&settings, &dataset.words, tokens_max).unwrap();

        let expected: Vec<_> = texts
            .iter()
            .map(|text| expected(&review(text), rules, &dataset, tokens_max).map_err(str::to_owned))
            .collect();
        prop_assert_eq!(said(&lines, Format::Review(corpus::format::Format::default()), &mut tokenizer), &expected[..]);
        prop_assert_eq!(said(&(texts.join("\n") + "\n"), Format::Text, &mut tokenizer), expected);
    }
}
