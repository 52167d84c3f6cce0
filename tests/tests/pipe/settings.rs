//! Every setting that changes content has the effect that the oracle computes, and is recorded in the
//! dataset.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use corpus::clean::Rules;
use corpus::labels::Labels;
use corpus::settings::{Keep, Settings};
use dataset::Row;
use tests::demo::{DEMO, json_line, raw};
use tests::files::assert_same_bytes;
use tests::lines::sorted_as_c;
use tests::oracle;
use tests::pipe::{Pipe, Splitter, mapped, mapped_with, merge, reducer, text_of};
use tests::programs::{program, run};

use crate::made::{manifest, open};

/// A dataset of the demo corpus with these arguments, after comparison with the oracle.
fn agreed(folder: &Path, reducer: &[&str], merge: &[&str]) -> PathBuf {
    let raw = folder.join("raw.json");
    fs::write(&raw, &DEMO.raw).unwrap();
    let owned = |arguments: &[&str]| arguments.iter().map(|&argument| argument.to_owned()).collect();
    let pipe = Pipe { partitions: 2, reducer: owned(reducer), merge: owned(merge), ..Pipe::default() };
    let dataset = pipe.dataset_of_records(&DEMO.records, folder);
    oracle::agrees(&dataset, &[&raw], &[]);
    dataset
}

fn row_settings(dataset: &Path) -> Settings {
    open(dataset).settings().rows.clone()
}

/// The rows of a dataset.
fn rows(dataset: &Path) -> Vec<Row> {
    let mut rows = Vec::new();
    open(dataset)
        .verify(|row| {
            rows.push(row.clone());
            Ok(())
        })
        .unwrap();
    rows
}

#[test]
fn the_default_profile_is_modern() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = agreed(folder.path(), &[], &[]);
    let settings = row_settings(&dataset);
    assert_eq!((settings.max_tokens, settings.keep), (400, Keep::Ends));
    assert_eq!(settings.labels, Labels::PositiveFrom(4));
    assert!(settings.stop_words.is_empty());
    assert_eq!(open(&dataset).settings().vocabulary_size, 10_000);
    assert_same_bytes(&dataset, &DEMO.dataset, "no settings");
}

#[test]
fn nltk_negations_keep_negations_in_rows() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = agreed(folder.path(), &["--stopwords", "nltk-negations"], &[]);
    let settings = row_settings(&dataset);
    let left_out = |word: &str| settings.stop_words.iter().any(|listed| listed == word);
    assert!(left_out("the") && left_out("product"));
    assert!(!["no", "not", "nor", "never", "don't", "wouldn't"].into_iter().any(left_out));
}

#[test]
fn without_stop_words_every_word_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = agreed(folder.path(), &["--profile", "original", "--stopwords", "none"], &[]);
    assert!(row_settings(&dataset).stop_words.is_empty());
    assert!(open(&dataset).vocabulary().words.iter().any(|word| word == b"the"));
}

#[test]
fn a_custom_list_is_cleaned_as_reviews_are() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list");
    fs::write(&list, "Great\n\nI\u{2019}m\nthe\r\nthe\n").unwrap();
    let dataset = agreed(folder.path(), &["--stopwords", text_of(&list)], &[]);
    assert_eq!(row_settings(&dataset).stop_words, ["great", "i'm", "the"]);
}

/// Texts with numbers, punctuation and symbols, and texts of these alone.
const PUNCTUATED: [(&str, u64); 6] = [
    ("It's GREAT!! 10/10", 5),
    ("it's great ! ! 10 / 10", 4),
    ("Not &quot;3D&quot;, <b>broken</b>\u{2026} \u{2764}\u{fe0f}", 1),
    (":-)", 5),
    ("???", 1),
    ("great", 5),
];

#[test]
fn punctuation_is_words_by_every_way() {
    let folder = tempfile::tempdir().unwrap();
    let raw: String = PUNCTUATED.iter().map(|(text, stars)| json_line(text, *stars)).collect();
    let raw = [&DEMO.raw[..], raw.as_bytes()].concat();
    let input = folder.path().join("raw.json");
    fs::write(&input, &raw).unwrap();
    let flag = || vec!["--punctuation".to_owned()];
    let pipe = Pipe { partitions: 3, mapper: flag(), reducer: flag(), ..Pipe::default() };
    let dataset = pipe.dataset(&raw, &folder.path().join("pipe"));
    oracle::agrees(&dataset, &[&input], &["--punctuation"].map(OsStr::new));
    let settings = row_settings(&dataset);
    assert_eq!((settings.cleaning_version, settings.rules()), (2, Some(Rules::Punctuation)));
    let words = open(&dataset).vocabulary().words.clone();
    for word in ["!", "10", "3d", "\"", "\u{2764}", "\u{2026}", ":", ")"] {
        assert!(words.iter().any(|listed| listed == word.as_bytes()), "{word}");
    }
    let alone = folder.path().join("alone.h5");
    let sentimill =
        |more: &[&OsStr]| run(program("sentimill").arg(&input).arg("--out").arg(&alone).args(more), b"");
    sentimill(&["--punctuation"].map(OsStr::new)).succeeded();
    assert_same_bytes(&alone, &fs::read(&dataset).unwrap(), "sentimill");
    let described = run(program("merge").arg("--describe").arg(&dataset), b"").succeeded().said();
    assert!(
        described.contains("settings          numbers and punctuation are words, 0 stop words, "),
        "{described}"
    );
    // A test set has the words of its training set.
    fs::remove_file(&alone).unwrap();
    sentimill(&["--force".as_ref(), "--vocabulary".as_ref(), dataset.as_os_str()]).succeeded();
    assert_eq!(row_settings(&alone).rules(), Some(Rules::Punctuation));
    let letters = folder.path().join("letters.h5");
    fs::write(&letters, &DEMO.dataset).unwrap();
    let other = sentimill(&[
        "--force".as_ref(),
        "--punctuation".as_ref(),
        "--vocabulary".as_ref(),
        letters.as_os_str(),
    ]);
    let expected = "its cleaning version is 1, the flags set 2 (--punctuation)";
    assert!(other.with_code(78).stderr.contains(expected));
}

#[test]
fn punctuation_that_only_one_program_keeps_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let raw: String = PUNCTUATED.iter().map(|(text, stars)| json_line(text, *stars)).collect();
    let records = mapped_with(&["--punctuation".to_owned()], raw.as_bytes(), &folder.path().join("counts"));
    let finished = run(&mut reducer(&folder.path().join("run"), 0, 1), &sorted_as_c(&records)).with_code(65);
    assert!(finished.stderr.contains("pass --punctuation if mapper had it"), "{}", finished.stderr);
    let long = run(program("mapper").args(["--punctuation", "--line-bytes-max", "9MiB"]), b"").with_code(64);
    let expected =
        "--line-bytes-max 9437184: expected at most 8388608 bytes with --punctuation; pass a smaller size";
    assert!(long.stderr.contains(expected), "{}", long.stderr);
    // Each byte of such a line is a word.
    let line = "!".repeat(4_000_000);
    let raw = json_line(&line, 5) + &json_line("good", 1);
    let pipe = Pipe {
        mapper: vec!["--punctuation".to_owned()],
        reducer: vec!["--punctuation".to_owned()],
        ..Pipe::default()
    };
    let dataset = pipe.dataset(raw.as_bytes(), &folder.path().join("long"));
    assert_eq!(open(&dataset).vocabulary().counts, [4_000_000, 1]);
}

#[test]
fn a_missing_list_is_a_missing_input() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("absent");
    let finished = run(reducer(folder.path(), 0, 1).arg("--stopwords").arg(&list), b"").with_code(66);
    assert!(finished.stderr.contains(text_of(&list)), "{}", finished.stderr);
}

#[test]
fn a_long_row_keeps_the_chosen_tokens() {
    for (name, keep) in [("first", Keep::First), ("last", Keep::Last), ("ends", Keep::Ends)] {
        let folder = tempfile::tempdir().unwrap();
        let dataset = agreed(folder.path(), &["--max-tokens", "5", "--keep", name], &[]);
        let settings = row_settings(&dataset);
        assert_eq!((settings.max_tokens, settings.keep), (5, keep));
        assert_eq!(rows(&dataset).iter().map(|row| row.tokens.len()).max(), Some(5));
    }
}

#[test]
fn zero_max_tokens_means_no_limit() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = agreed(folder.path(), &["--profile", "original", "--max-tokens", "0"], &[]);
    assert!(rows(&dataset).iter().any(|row| row.tokens.len() > 100));
}

#[test]
fn a_lower_positive_from_makes_more_rows_positive() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = agreed(folder.path(), &["--positive-from", "3"], &[]);
    assert_eq!(row_settings(&dataset).labels, Labels::PositiveFrom(3));
    let ratings = |row: &Row| (row.votes.mode() >= 3, row.label == 1);
    assert!(rows(&dataset).iter().map(ratings).all(|(expected, found)| expected == found));
    assert!(rows(&dataset).iter().any(|row| row.votes.mode() == 3));
}

#[test]
fn named_classes_have_the_labels_of_the_oracle() {
    for (classes, n_classes) in
        [("1-2=negative,3=neutral,4-5=positive", 3), ("5=very good,1=bad", 2), ("1=a,2=b,3=c,4=d,5=e", 5)]
    {
        let folder = tempfile::tempdir().unwrap();
        let dataset = agreed(folder.path(), &["--labels", classes], &["--padded", "9"]);
        oracle::padded_agrees(&dataset.with_file_name("reviews.padded.h5"), &dataset);
        let labels = Labels::Classes(classes.parse().unwrap());
        assert_eq!((&row_settings(&dataset).labels, labels.n_classes()), (&labels, n_classes));
        let rows = rows(&dataset);
        assert!(rows.iter().all(|row| labels.label(row.votes.mode()) == Some(row.label)));
        let found: BTreeSet<u8> = rows.iter().map(|row| row.label).collect();
        assert_eq!(found.len(), n_classes, "{classes}");
        let manifest = manifest(&dataset);
        let counts = manifest.seal.ledger.reducer;
        let n_of_all = DEMO_ROWS.len() as u64;
        assert_eq!(counts.not_labelled, Some(n_of_all - manifest.rows));
        assert_eq!(counts.not_labelled > Some(0), classes.starts_with('5'), "{classes}");
        assert_eq!((counts.distinct, counts.only_stopwords), (n_of_all, 0));
        run(program("merge").arg("--check").arg(&dataset), b"").succeeded();
    }
}

/// The rows of the demo corpus.
static DEMO_ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("demo.h5"), &DEMO.dataset).unwrap();
    rows(&folder.path().join("demo.h5"))
});

#[test]
fn partitions_and_combiner_passes_change_no_byte_of_named_classes() {
    let three = || ["--labels", "1=negative,3=neutral,4-5=positive"].map(str::to_owned).to_vec();
    let of = |pipe: Pipe| {
        let folder = tempfile::tempdir().unwrap();
        let dataset = Pipe { reducer: three(), ..pipe }.dataset(&DEMO.raw, folder.path());
        (fs::read(&dataset).unwrap(), manifest(&dataset).seal.ledger)
    };
    let (expected, ledger) = of(Pipe::default());
    assert!(ledger.reducer.not_labelled > Some(0) && ledger.reducer.check() == Ok(()), "{ledger:?}");
    for pipe in [
        Pipe { partitions: 7, ..Pipe::default() },
        Pipe { partitions: 3, splitter: Splitter::Select, ..Pipe::default() },
        Pipe { partitions: 2, passes_before_sort: vec![1, 0, 2], passes_after_sort: 1, ..Pipe::default() },
    ] {
        let how = format!("{pipe:?}");
        let (dataset, other_ledger) = of(pipe);
        assert!(dataset == expected, "{how}");
        assert_eq!(other_ledger, ledger, "{how}");
    }
}

#[test]
fn a_row_without_a_class_is_reported_by_the_reducer_and_by_merge() {
    let folder = tempfile::tempdir().unwrap();
    let run_folder = folder.path().join("run");
    let records =
        b"good fit\t0,0,0,0,2\nso so\t0,0,1,0,1\nthe\t0,0,3,0,0\nthe the\t1,0,0,0,0\nworn fit\t1,0,0,0,0\n";
    let flags = ["--labels", "1-2=negative,4-5=positive", "--stopwords", "nltk", "--attempt", "one"];
    let committed = run(reducer(&run_folder, 0, 1).args(flags), records).succeeded();
    let texts = "9 reviews, 5 distinct = 2 not_labelled + 1 only_stopwords + 2 rows\n";
    assert_eq!(committed.said(), format!("part-00000 committed by attempt one: {texts}"));
    let dataset = folder.path().join("reviews.h5");
    let merged = run(&mut merge(&run_folder, &dataset), b"").succeeded().said();
    assert!(merged.contains(texts), "{merged}");
    assert!(merged.contains("\nlabel 0           1 (50.0 %) (negative, ratings 1-2)\n"), "{merged}");
    // The words of texts without a class are not in the vocabulary.
    let words = open(&dataset).vocabulary().words.iter().map(<[u8]>::to_vec).collect::<Vec<_>>();
    assert_eq!(words, [b"fit".to_vec(), b"good".to_vec(), b"worn".to_vec()]);
    let described = run(program("merge").arg("--describe").arg(&dataset), b"").succeeded().said();
    assert!(described.contains("label 1           1 (50.0 %) (positive, ratings 4-5)\n"), "{described}");
}

#[test]
fn a_sample_has_the_rows_of_the_oracle_and_a_smaller_one_is_part_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str, flags: &[&str]| {
        let folder = folder.path().join(name);
        fs::create_dir(&folder).unwrap();
        let dataset = agreed(&folder, flags, &[]);
        run(program("merge").arg("--check").arg(&dataset), b"").succeeded();
        let hashes: BTreeSet<u64> = rows(&dataset).iter().map(|row| row.hash).collect();
        (hashes, manifest(&dataset), fs::read(&dataset).unwrap(), dataset)
    };
    let (quarter, of_quarter, _, dataset) = of("quarter", &["--sample", "0.25"]);
    let (half, of_half, ..) = of("half", &["--sample", "0.5"]);
    let (all, of_all, bytes, _) = of("all", &["--sample", "1"]);
    assert!(quarter.is_subset(&half) && half.is_subset(&all));
    assert_eq!(all.len(), DEMO_ROWS.len());
    for (manifest, sampled, expected) in [(of_quarter, &quarter, 0.25), (of_half, &half, 0.5)] {
        let counts = manifest.seal.ledger.reducer;
        assert_eq!((counts.check(), counts.rows), (Ok(()), sampled.len() as u64));
        assert_eq!(counts.not_sampled, Some((all.len() - sampled.len()) as u64));
        let share = sampled.len() as f64 / all.len() as f64;
        assert!((share - expected).abs() < 0.05, "{share}");
        assert_eq!(manifest.settings.rows.sample.share(), expected);
    }
    // A share of 1 is the same as no flag.
    assert!(bytes == DEMO.dataset);
    assert_eq!(of_all.seal.ledger.reducer.not_sampled, None);
    let described = run(program("merge").arg("--describe").arg(&dataset), b"").succeeded().said();
    assert!(
        described.contains("sample            0.25 of the texts, by the hash of the text\n"),
        "{described}"
    );
}

#[test]
fn partitions_change_no_byte_of_a_sample() {
    let quarter =
        ["--sample", "0.25", "--labels", "1=bad,4-5=good", "--profile", "original"].map(str::to_owned);
    let of = |pipe: Pipe| {
        let folder = tempfile::tempdir().unwrap();
        let dataset = Pipe { reducer: quarter.to_vec(), ..pipe }.dataset(&DEMO.raw, folder.path());
        (fs::read(&dataset).unwrap(), manifest(&dataset).seal.ledger)
    };
    let (expected, ledger) = of(Pipe::default());
    assert!(ledger.reducer.not_sampled > Some(0) && ledger.reducer.not_labelled > Some(0), "{ledger:?}");
    assert_eq!(ledger.reducer.check(), Ok(()));
    for pipe in [
        Pipe { partitions: 3, ..Pipe::default() },
        Pipe { partitions: 3, splitter: Splitter::Select, ..Pipe::default() },
    ] {
        let how = format!("{pipe:?}");
        let (dataset, other_ledger) = of(pipe);
        assert!(dataset == expected, "{how}");
        assert_eq!(other_ledger, ledger, "{how}");
    }
}

#[test]
fn a_sample_does_not_have_to_be_that_of_the_vocabulary() {
    let folder = tempfile::tempdir().unwrap();
    let train_folder = folder.path().join("train");
    fs::create_dir(&train_folder).unwrap();
    let train = agreed(&train_folder, &["--sample", "0.25"], &[]);
    let test = |sample: &[&str], name: &str| {
        let run_folder = folder.path().join(name);
        run(reducer(&run_folder, 0, 1).args(sample), &sorted_as_c(&DEMO.records)).succeeded();
        let dataset = folder.path().join(format!("{name}.h5"));
        let mut merge = merge(&run_folder, &dataset);
        run(merge.arg("--vocabulary").arg(&train).arg("--without").arg(&train), b"").succeeded();
        manifest(&dataset)
    };
    let n_training = open(&train).n_rows();
    let whole = test(&[], "whole");
    assert_eq!((whole.rows, whole.left_out), (DEMO_ROWS.len() as u64 - n_training, n_training));
    let half = test(&["--sample", "0.5"], "half");
    assert_eq!((half.rows + n_training, half.left_out), (half.seal.ledger.reducer.rows, n_training));
}

#[test]
fn each_profile_equals_its_separate_flags() {
    let long_forms = [
        ("modern", ["--stopwords", "none", "--max-tokens", "400", "--keep", "ends"], Settings::default()),
        ("original", ["--stopwords", "nltk", "--max-tokens", "100", "--keep", "first"], Settings::original()),
    ];
    for (profile, spelled, settings) in long_forms {
        let [short, long] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let by_name = agreed(short.path(), &["--profile", profile], &[]);
        let by_hand = agreed(long.path(), &spelled, &[]);
        assert_eq!(row_settings(&by_name), settings);
        assert_same_bytes(&by_name, &fs::read(by_hand).unwrap(), profile);
    }
    let original = Settings::original();
    assert_eq!((original.max_tokens, original.keep, original.stop_words.len()), (100, Keep::First, 201));
}

#[test]
fn a_flag_overrides_its_profile() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = agreed(folder.path(), &["--profile", "original", "--max-tokens", "7"], &[]);
    assert_eq!(row_settings(&dataset), Settings { max_tokens: 7, ..Settings::original() });
}

#[test]
fn a_small_vocabulary_holds_the_most_frequent_words() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = agreed(folder.path(), &[], &["--vocabulary-size", "50"]);
    let reader = open(&dataset);
    assert_eq!((reader.vocabulary().words.len(), reader.settings().vocabulary_size), (50, 50));
    assert!(rows(&dataset).iter().flat_map(|row| &row.tokens).all(|&id| (1..=51).contains(&id)));
}

#[test]
fn ids_beyond_16_bits_are_stored_in_32() {
    // One word more than 16-bit ids allow, each in its own review.
    let folder = tempfile::tempdir().unwrap();
    let digits =
        |n: u32| n.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect::<String>();
    let review = |n| format!("{{\"reviewText\": \"x{}\", \"overall\": 5}}\n", digits(n));
    let raw: String = (0..65_535).map(review).collect();
    let file = folder.path().join("raw.json");
    fs::write(&file, &raw).unwrap();
    let records = mapped(raw.as_bytes(), &folder.path().join("mapper.json"));
    let run_folder = folder.path().join("run");
    Pipe::default().reduce(&sorted_as_c(&records), &run_folder);
    for (size, unknown) in [("65534", 1), ("65535", 0)] {
        let dataset = folder.path().join(format!("{size}.h5"));

        run(merge(&run_folder, &dataset).args(["--vocabulary-size", size]), b"").succeeded();

        oracle::agrees(&dataset, &[&file], &[]);
        assert_eq!(rows(&dataset).iter().filter(|row| row.tokens == [1]).count(), unknown);
    }
}

/// Shards of a test set, some of whose texts are in the demo corpus, and its raw file.
fn test_set(folder: &Path) -> (PathBuf, PathBuf) {
    let (mut lines, _) = raw(1_500, 2);
    lines.extend_from_slice(&raw(300, 1).0);
    let (file, run_folder) = (folder.join("test.json"), folder.join("run"));
    fs::write(&file, &lines).unwrap();
    let records = sorted_as_c(&mapped(&lines, &folder.join("mapper.json")));
    Pipe { partitions: 3, ..Pipe::default() }.reduce(&records, &run_folder);
    (run_folder, file)
}

fn training_set(folder: &Path) -> PathBuf {
    let path = folder.join("train.h5");
    fs::write(&path, &DEMO.dataset).unwrap();
    path
}

#[test]
fn a_test_set_reuses_the_vocabulary_of_the_training_set() {
    let folder = tempfile::tempdir().unwrap();
    let (run_folder, raw) = test_set(folder.path());
    let (train, dataset) = (training_set(folder.path()), folder.path().join("test.h5"));

    run(merge(&run_folder, &dataset).arg("--vocabulary").arg(&train), b"").succeeded();

    oracle::agrees(&dataset, &[&raw], &[OsStr::new("--vocabulary"), train.as_os_str()]);
    let (train, test) = (open(&train), open(&dataset));
    assert_eq!(train.vocabulary().words, test.vocabulary().words);
    assert!(test.vocabulary().counts.contains(&0), "a word that the test set lacks");
    assert_eq!(test.settings().vocabulary_of, Some(train.digests().id_digest));
    assert!(rows(&dataset).iter().any(|row| row.tokens.contains(&1)), "a word that the training set lacks");
}

#[test]
fn a_reused_vocabulary_and_a_vocabulary_size_exclude_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let (run_folder, _) = test_set(folder.path());
    let (train, dataset) = (training_set(folder.path()), folder.path().join("test.h5"));
    let both = ["--vocabulary", text_of(&train), "--vocabulary-size", "50"];
    run(merge(&run_folder, &dataset).args(both), b"").with_code(64);
    assert!(!dataset.exists());
}

#[test]
fn texts_of_the_training_set_are_excluded_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (run_folder, raw) = test_set(folder.path());
    let (train, dataset) = (training_set(folder.path()), folder.path().join("test.h5"));

    run(merge(&run_folder, &dataset).arg("--without").arg(&train), b"").succeeded();

    oracle::agrees(&dataset, &[&raw], &[OsStr::new("--without"), train.as_os_str()]);
    let manifest = manifest(&dataset);
    assert!(manifest.left_out >= 200, "{} rows left out", manifest.left_out);
    assert_eq!(manifest.seal.ledger.reducer.rows, manifest.rows + manifest.left_out);
    assert_eq!(open(&dataset).settings().without, Some(open(&train).digests().id_digest));
    let train_hashes: Vec<u64> = rows(&train).iter().map(|row| row.hash).collect();
    assert!(rows(&dataset).iter().all(|row| train_hashes.binary_search(&row.hash).is_err()));
}

#[test]
fn vocabulary_and_without_can_be_combined() {
    let folder = tempfile::tempdir().unwrap();
    let (run_folder, raw) = test_set(folder.path());
    let (train, dataset) = (training_set(folder.path()), folder.path().join("test.h5"));
    let after = ["--vocabulary", text_of(&train), "--without", text_of(&train)];

    run(merge(&run_folder, &dataset).args(after), b"").succeeded();

    oracle::agrees(&dataset, &[&raw], &after.map(OsStr::new));
}

#[test]
fn excluding_all_texts_makes_no_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let train = training_set(folder.path());
    let pipe = Pipe::default();
    let (run_folder, out) = (folder.path().join("run"), folder.path().join("test.h5"));
    pipe.reduce(&pipe.sorted(&DEMO.records), &run_folder);

    let refused = run(merge(&run_folder, &out).arg("--without").arg(&train), b"").with_code(65);

    let left_out = format!("{} omitted; ", open(&train).n_rows());
    assert!(refused.stderr.contains(&left_out), "{}", refused.stderr);
    assert!(!out.exists() && !out.with_extension("manifest.json").exists());
}

#[test]
fn other_settings_than_those_of_the_vocabulary_are_refused_with_the_flags_to_use() {
    let folder = tempfile::tempdir().unwrap();
    let (train, out) = (training_set(folder.path()), folder.path().join("test.h5"));
    let cases: [(&[&str], &str); 6] = [
        (
            &["--labels", "1-3=negative,4-5=positive"],
            "labels is --positive-from 4, expected --labels 1-3=negative,4-5=positive as in this run;",
        ),
        (&["--profile", "original"], "stop words is 0 words ("),
        (&["--max-tokens", "100"], "max-tokens is 400, expected 100 as in this run;"),
        (&["--keep", "last"], "keep is ends, expected last as in this run;"),
        (&["--positive-from", "3"], "positive-from is 4, expected 3 as in this run;"),
        (&["--stopwords", "nltk-negations"], "stop words is 0 words ("),
    ];
    for (number, (arguments, difference)) in cases.iter().enumerate() {
        let run_folder = folder.path().join(number.to_string());
        run(reducer(&run_folder, 0, 1).args(*arguments), &sorted_as_c(&DEMO.records)).succeeded();
        let refused = run(merge(&run_folder, &out).arg("--vocabulary").arg(&train), b"").with_code(78);
        let stderr = &refused.stderr;
        assert!(stderr.contains(difference), "{arguments:?}: {stderr}");
        let flags = "run the reducers with --stopwords none --max-tokens 400 --keep ends --positive-from 4, into a new --run";
        assert!(stderr.ends_with(&format!("{flags}\n")), "{stderr}");
        assert!(!out.exists());
        // Texts do not depend on how their rows are truncated.
        run(
            merge(&run_folder, &folder.path().join(format!("{number}.h5"))).arg("--vocabulary-size").arg("9"),
            b"",
        )
        .succeeded();
    }
}

#[test]
fn a_missing_or_damaged_other_dataset_is_a_missing_input() {
    let folder = tempfile::tempdir().unwrap();
    let (run_folder, _) = test_set(folder.path());
    let (absent, damaged) = (folder.path().join("absent.h5"), folder.path().join("damaged.h5"));
    fs::write(&damaged, &DEMO.dataset[..DEMO.dataset.len() / 2]).unwrap();
    for option in ["--vocabulary", "--without"] {
        for other in [&absent, &damaged] {
            let dataset = folder.path().join("test.h5");
            let refused = run(merge(&run_folder, &dataset).arg(option).arg(other), b"").with_code(66);
            assert!(refused.stderr.contains(text_of(other)), "{}", refused.stderr);
            assert!(!dataset.exists());
        }
    }
}

#[test]
fn a_padded_copy_holds_the_same_rows() {
    for length in ["60", "1"] {
        let folder = tempfile::tempdir().unwrap();
        let dataset = agreed(folder.path(), &[], &["--padded", length]);
        assert_same_bytes(&dataset, &DEMO.dataset, "the dataset beside a padded copy");
        oracle::padded_agrees(&dataset.with_file_name("reviews.padded.h5"), &dataset);
    }
}

#[test]
fn shards_of_different_settings_are_not_mixed() {
    let folder = tempfile::tempdir().unwrap();
    let run_folder = folder.path().join("run");
    let settings: [(&[&str], _); 7] = [
        (&["--max-tokens", "5"], "max-tokens"),
        (&["--sample", "0.5"], "sample"),
        (&["--labels", "1-3=negative,4-5=positive"], "labels"),
        (&["--keep", "last"], "keep"),
        (&["--positive-from", "5"], "positive-from"),
        (&["--stopwords", "nltk-negations"], "stop words"),
        (&["--stopwords", "nltk"], "stop words"),
    ];
    for (number, (arguments, _)) in (1..).zip(&settings) {
        run(reducer(&run_folder, number, 8).args(*arguments), b"").succeeded();
    }
    run(&mut reducer(&run_folder, 0, 8), b"").succeeded();

    let refused = run(&mut merge(&run_folder, &folder.path().join("reviews.h5")), b"").with_code(78);

    assert!(
        refused.stderr.contains("partitions 1 and 0 differ in max-tokens: 5 and 400"),
        "{}",
        refused.stderr
    );
    assert!(!run_folder.join("manifest.json").exists());
}
