//! Splits of datasets and of lines.

use program::exit::Fails;
use std::fmt::Write;

use batches::{Division, Part};
use corpus::digest::split;
use corpus::settings::{Keep, Settings};
use fixtures::{dataset_prepared, review, word};

use super::*;

const N_ROWS: u32 = 70_000;

fn settings() -> Settings {
    Settings { max_tokens: 0, ..Settings::default() }
}

fn opened(path: &Path, threads: usize) -> DatasetTexts {
    let division = Division::by_fractions(0.1, 0.05).unwrap();
    DatasetTexts::open(path, division, NonZeroUsize::new(threads).unwrap()).unwrap()
}

#[test]
fn splits_have_the_words_and_labels_of_their_rows_in_order() {
    let (_folder, path) = dataset_prepared(N_ROWS, 60, settings(), review);
    let division = Division::by_fractions(0.1, 0.05).unwrap();
    for part in Part::ALL {
        let rows = (0..N_ROWS).map(review).filter(|row| division.part(row.split) == Some(part));
        let expected: Vec<Text> = rows
            .map(|row| {
                let words = row.tokens.iter().map(|&id| word(id - 2)).collect();
                (words, owned(&[["negative", "positive"][usize::from(row.label)]]))
            })
            .collect();
        for threads in [1, 3] {
            let dataset = opened(&path, threads);
            let split = dataset.read(part, how(Words::Cleaned)).unwrap();
            assert!(seen(&split.texts) == expected, "{part}, {threads} threads");
            assert_eq!((split.n_unknown, split.n_cut), (0, 0));
            assert_eq!(dataset.warnings("a.h5", &split), <[String; 0]>::default());
        }
    }
}

#[test]
fn named_classes_are_the_labels() {
    let labels = Labels::Classes("1-3=so so,4-5=good".parse().unwrap());
    let names = labels.clone();
    let (_folder, path) = dataset_prepared(1000, 60, Settings { labels, ..settings() }, review);
    let split = opened(&path, 2).read(Part::Training, how(Words::Cleaned)).unwrap();
    let mut labels: Vec<_> = split.texts.dictionary.labels().iter().collect();
    labels.sort_unstable();
    assert_eq!(labels, [&b"good"[..], b"so so"]);
    let classes: Vec<_> =
        split.texts.dictionary.classes().iter().map(|name| str::from_utf8(name).unwrap()).collect();
    assert_eq!(classes, names.names());
}

#[test]
fn rows_that_lack_words_are_read_with_a_warning() {
    let stop_words = vec!["no".to_owned(), "not".to_owned()];
    let rows = Settings { stop_words, max_tokens: 30, keep: Keep::Ends, ..Settings::default() };
    // Each third token is not in the vocabulary.
    let row = |at| {
        let mut row = review(at);
        row.tokens.iter_mut().step_by(3).for_each(|id| *id = dataset::vocabulary::UNKNOWN);
        row
    };
    let (_folder, path) = dataset_prepared(3000, 60, rows, row);
    let dataset = opened(&path, 2);
    let split = dataset.read(Part::Training, how(Words::Cleaned)).unwrap();
    let division = Division::by_fractions(0.1, 0.05).unwrap();
    let training: Vec<_> =
        (0..3000).map(row).filter(|row| division.part(row.split) == Some(Part::Training)).collect();
    let n_cut = training.iter().filter(|row| row.tokens.len() == 30).count();
    let all: usize = training.iter().map(|row| row.tokens.len()).sum();
    let unknown: usize = training.iter().map(|row| row.tokens.len().div_ceil(3)).sum();
    assert_eq!((split.n_cut, split.n_unknown), (n_cut as u64, unknown as u64));
    let n_rows = training.len();
    let expected = [
        "warning: a.h5: its rows lack 2 stop words, and n-grams such as `not good`; without those of nltk, the \
         accuracy on the movie reviews of IMDB is 0.898 instead of 0.911: make the dataset with --stopwords none"
            .to_owned(),
        format!(
            "warning: a.h5: {n_cut} of {n_rows} rows have the maximum length and may be only the first and last 30 words \
             of a text; make the dataset with --max-tokens 0, which keeps all"
        ),
        format!(
            "warning: a.h5: {unknown} of {all} tokens are not in the vocabulary and are skipped; make the dataset with \
             a --vocabulary-size that no text exceeds, such as 4000000000"
        ),
    ];
    assert_eq!(dataset.warnings("a.h5", &split), expected);
}

#[test]
fn a_file_that_is_no_dataset_is_an_error() {
    let folder = folder(&[("a", b"good\n")]);
    let division = Division::by_fractions(0.1, 0.05).unwrap();
    let opened = DatasetTexts::open(&folder.path().join("a"), division, NonZeroUsize::MIN);
    assert_eq!(opened.unwrap_err().exit(), program::exit::Exit::MissingInput);
}

/// Reads the test and the training split of lines: their texts, and the ledger.
fn read_both(lines: &Lines, words: Words) -> ([Vec<Text>; 2], Ledger) {
    let division = Division::by_fractions(0.25, 0.1).unwrap();
    let wanted = [Part::Test, Part::Training].map(|part| Wanted { part, reading: how(words) });
    let (texts, ledger) = read_splits(lines, division, wanted.into(), |_| ()).unwrap();
    assert_eq!(texts.len(), 2);
    ([seen(&texts[0]), seen(&texts[1])], ledger)
}

#[test]
fn lines_are_in_the_split_of_their_row_in_a_dataset() {
    let division = Division::by_fractions(0.25, 0.1).unwrap();
    let (mut fasttext, mut json) = (String::new(), String::new());
    let mut expected = [Vec::new(), Vec::new()];
    let mut n_omitted = 0;
    for at in 0..3000 {
        let words = format!("w{} it's so", "abcdefghij".chars().nth(at % 10).unwrap()).repeat(at % 7 + 1);
        let (label, stars) = if at % 2 == 0 { ("negative", 1) } else { ("positive", 5) };
        writeln!(fasttext, "__label__{label} {words}").unwrap();
        // The row of a text does not depend on case and punctuation.
        writeln!(json, "{{\"reviewText\": \"{}!\", \"overall\": {stars}}}", words.to_uppercase()).unwrap();
        let text = (words.split(' ').map(str::to_owned).collect(), owned(&[label]));
        match division.part(split(words.as_bytes())) {
            Some(Part::Test) => expected[0].push(text),
            Some(Part::Training) => expected[1].push(text),
            _ => n_omitted += 1,
        }
    }
    fasttext.push_str("no label\n");
    let folder = folder(&[("a.txt", fasttext.as_bytes()), ("a.json", json.as_bytes())]);
    let of_fasttext =
        FormatOptions { name: Some(corpus::format::FormatName::FastText), ..FormatOptions::default() };
    for threads in [1, 3] {
        let lines = lines(&[&folder.path().join("a.txt")], of_fasttext.clone(), threads);
        let (mut found, ledger) = read_both(&lines, Words::Spaces);
        // Lines of fastText end with a word of their own.
        found.iter_mut().flatten().for_each(|(words, _)| assert_eq!(words.pop().unwrap(), "</s>"));
        assert!(found == expected, "{threads} threads");
        assert_eq!(ledger, Ledger::FastText { labelled: 3000, unlabelled: 1, other_labels: 0 });
    }
    assert!(n_omitted > 0 && expected.iter().all(|of_split| !of_split.is_empty()));
    let lines = lines(&[&folder.path().join("a.json")], FormatOptions::default(), 2);
    let (found, ledger) = read_both(&lines, Words::Cleaned);
    assert!(found == expected);
    assert_eq!((ledger.n_skipped(), ledger.counters()[0]), (0, ("lines", 3000)));
}
