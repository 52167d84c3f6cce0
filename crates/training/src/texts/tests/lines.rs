//! Lines as fastText reads them, and the counts of lines.

use std::fmt::Write;
use std::process::Command;
use std::{fs, thread};

use ::tests::compressed::{gzip, zstd};
use batches::{Division, Part};
use corpus::digest::text_hash;
use corpus::format::FormatName;
use program::exit::{Exit, Fails};

use super::*;

fn fasttext() -> FormatOptions {
    FormatOptions { name: Some(FormatName::FastText), ..FormatOptions::default() }
}

/// Lines with one label, with several, and without one.
fn labelled_lines(n_lines: usize) -> String {
    let mut lines = String::new();
    for n in 0..n_lines {
        match n % 7 {
            0 => writeln!(lines, "no label, {n}"),
            1 => writeln!(lines, "__label__{} word{n} again __label__b{}\r more", n % 5, n % 3),
            2 => writeln!(lines),
            _ => writeln!(lines, "__label__{}\tText {n}, <br /> not GOOD!", n % 5),
        }
        .unwrap();
    }
    lines + "__label__9 without a line end"
}

/// Words between white space, labels anywhere, the end of the line. Also counts lines without a label.
fn naive(lines: &str) -> (Vec<Text>, u64) {
    let (mut texts, mut unlabelled) = (Vec::new(), 0);
    for line in lines.split('\n') {
        let (labels, mut words): (Vec<_>, Vec<_>) =
            line.split_ascii_whitespace().map(str::to_owned).partition(|word| word.starts_with("__label__"));
        words.push("</s>".to_owned());
        let labels: Vec<_> = labels.iter().map(|label| label["__label__".len()..].to_owned()).collect();
        if labels.is_empty() { unlabelled += 1 } else { texts.push((words, labels)) }
    }
    (texts, unlabelled)
}

#[test]
fn lines_of_fasttext_are_equal_from_a_file_and_from_streams() {
    let text = labelled_lines(40_000);
    let (expected, n_unlabelled) = naive(&text);
    assert!(expected.iter().any(|(_, labels)| labels.len() == 2) && n_unlabelled > 10_000);
    // The second part starts with a line, so that two files have the lines of one.
    let half = text[..text.len() / 2].rfind('\n').unwrap() + 1;
    let folder = folder(&[
        ("plain", text.as_bytes()),
        ("gzip", &gzip(text.as_bytes())),
        ("zstd", &zstd(text.as_bytes())),
        ("part-0", &text.as_bytes()[..half]),
        ("part-1.gz", &gzip(&text.as_bytes()[half..])),
    ]);
    for names in [&["plain"][..], &["gzip"], &["zstd"], &["part-0", "part-1.gz"]] {
        for threads in [1, 3] {
            let paths: Vec<_> = names.iter().map(|name| folder.path().join(name)).collect();
            let paths: Vec<_> = paths.iter().map(|path| path.as_path()).collect();
            let (read, told) = read_told(&lines(&paths, fasttext(), threads), Words::Spaces);
            let read = read.unwrap();
            assert!(seen(&read.texts) == expected, "{names:?}, {threads} threads");
            let Ledger::FastText { labelled, unlabelled, .. } = read.ledger else { panic!("reviews") };
            assert_eq!(
                (labelled, unlabelled, told.len()),
                (expected.len() as u64, n_unlabelled, 0),
                "{names:?}"
            );
        }
    }
    let ledger = Ledger::FastText { labelled: 5, unlabelled: 2, other_labels: 1 };
    assert_eq!(ledger.to_string(), "7 lines = 2 without a label + 5 texts");
}

#[test]
fn lines_come_from_a_pipe() {
    let text = labelled_lines(10);
    let folder = folder(&[]);
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    thread::scope(|scope| {
        scope.spawn(|| fs::write(&pipe, &text).unwrap());
        let (read, _) = read_told(&lines(&[&pipe], fasttext(), 2), Words::Spaces);
        assert_eq!(seen(&read.unwrap().texts), naive(&text).0);
    });
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_line() {
    let text = "\u{feff}__label__a good\n__label__b bad\n\u{feff}__label__a fine\n";
    let expected = naive(&text.replace('\u{feff}', "")).0;
    let folder = folder(&[("plain", text.as_bytes()), ("gzip", &gzip(text.as_bytes()))]);
    for name in ["plain", "gzip"] {
        for has_keys in [false, true] {
            let lines = lines(&[&folder.path().join(name)], fasttext(), 2);
            let texts = read(&lines, Reading { has_keys, ..how(Words::Spaces) }, |_| ()).unwrap().texts;
            assert_eq!(seen(&texts), expected, "{name}");
        }
    }
}

#[test]
fn lines_with_other_labels_than_those_of_sentimill_are_counted() {
    let text = "__label__1 __label__2 bad lamp\n__label__2 good lamp\n__label__1 awful __label__x lamp\n";
    let folder = folder(&[("plain", text.as_bytes()), ("gzip", &gzip(text.as_bytes()))]);
    for name in ["plain", "gzip"] {
        let (read, _) = read_told(&lines(&[&folder.path().join(name)], fasttext(), 2), Words::Spaces);
        let ledger = Ledger::FastText { labelled: 3, unlabelled: 0, other_labels: 2 };
        assert_eq!(read.unwrap().ledger, ledger, "{name}");
    }
}

#[test]
fn copies_of_a_text_have_the_key_of_its_row_in_a_dataset() {
    let labelled = "__label__1 Don't go!\n__label__2 don't  GO __label__3\n__label__1 7!\n__label__1 8!\n";
    let json = "{\"reviewText\": \"Don't go!\", \"overall\": 1}\n{\"reviewText\": \"<i>don't go</i>\", \"overall\": 5}\n";
    let folder = folder(&[("labelled", labelled.as_bytes()), ("json", json.as_bytes())]);
    let expected = text_hash(b"don't go");
    for (name, asked, n_others) in [("labelled", fasttext(), 2), ("json", FormatOptions::default(), 0)] {
        let lines = lines(&[&folder.path().join(name)], asked, 2);
        let reading = Reading { has_keys: true, ..how(Words::Punctuation) };
        let wanted = vec![Wanted { part: Part::Test, reading: reading.clone() }];
        let (of_split, _) = read_splits(&lines, Division::all_test(), wanted, |_| ()).unwrap();
        for texts in [&of_split[0], &read(&lines, reading, |_| ()).unwrap().texts] {
            let block = texts.in_memory(0).unwrap();
            let keys: Vec<u64> = block.texts().map(|text| text.key.unwrap()).collect();
            assert_eq!(keys[..2], [expected; 2], "{name}");
            let distinct: std::collections::HashSet<_> = keys.iter().collect();
            assert_eq!((keys.len(), distinct.len()), (2 + n_others, 1 + n_others), "{name}");
        }
    }
}

#[test]
fn lines_longer_than_a_chunk_are_whole() {
    let text = labelled_lines(300);
    let long = format!("{text}\n__label__long {}\n{text}", "word ".repeat(50_000));
    let folder = folder(&[("a", long.as_bytes())]);
    let inputs = [folder.path().to_str().unwrap().to_owned()];
    let sources = reading::find(&inputs, &S3Options::default()).unwrap();
    for (threads, chunk_bytes) in [(1, 10), (2, 100), (3, 1000), (2, 40_000)] {
        let builders = division::SplitBuilders::of_all(how(Words::Spaces));
        let (texts, _) = fasttext::read_streams(
            &sources,
            &lines(&[folder.path()], fasttext(), threads),
            &builders,
            chunk_bytes,
        )
        .unwrap();
        let texts = &texts[0];
        assert!(seen(texts) == naive(&long).0, "{chunk_bytes}");
    }
}

#[test]
fn lines_without_any_label_are_an_error() {
    let folder = folder(&[("a", b"good\nbad\n"), ("empty", b"")]);
    for (name, n_lines) in [("a", "2 lines"), ("empty", "0 lines")] {
        let (read, _) = read_told(&lines(&[&folder.path().join(name)], fasttext(), 2), Words::Spaces);
        let error = read.unwrap_err();
        let expected = format!(
            "found no label in {n_lines} of fasttext, expected a label such as __label__1 per line; check --format"
        );
        assert_eq!((error.to_string(), error.exit()), (expected, Exit::BadInput));
    }
}

#[test]
fn a_truncated_or_a_missing_input_is_an_error() {
    let whole = gzip(labelled_lines(100_000).as_bytes());
    let json = gzip(&b"{\"reviewText\": \"good\", \"overall\": 5}\n".repeat(100_000));
    let folder = folder(&[("lines.gz", &whole[..whole.len() / 2]), ("json.gz", &json[..json.len() - 9])]);
    for (name, asked) in [("lines.gz", fasttext()), ("json.gz", FormatOptions::default())] {
        for threads in [1, 3] {
            let lines = lines(&[&folder.path().join(name)], asked.clone(), threads);
            let error = read_told(&lines, Words::Spaces).0.unwrap_err();
            let message = program::exit::chain(&error);
            let expected = format!("{name}: cannot read it: the gzip member at byte 0 is cut off");
            assert!(message.contains(&expected), "{message}");
            assert_eq!(error.exit(), Exit::BadInput);
        }
    }
    for asked in [fasttext(), FormatOptions::default()] {
        let lines = lines(&[&folder.path().join("absent")], asked, 2);
        assert_eq!(read_told(&lines, Words::Spaces).0.unwrap_err().exit(), Exit::MissingInput);
    }
}

#[test]
fn a_table_is_not_read_as_lines_of_fasttext() {
    let folder = folder(&[("a", b"PAR1....PAR1")]);
    let error = read_told(&lines(&[&folder.path().join("a")], fasttext(), 2), Words::Spaces).0.unwrap_err();
    let message = error.to_string();
    assert!(message.contains("found a Parquet file, expected lines of the format fasttext"), "{message}");
    assert_eq!(error.exit(), Exit::Usage);
}

#[test]
fn bad_lines_are_counted_reported_and_limited_as_by_sentimill() {
    let good = "{\"reviewText\": \"good\", \"overall\": 5}\n";
    let text = good.repeat(99) + "{\"overall\": 5}\n\n{\"reviewText\": \"!!\", \"overall\": 5}\n";
    let bad = good.repeat(99) + &"?\n".repeat(20);
    let folder = folder(&[("a", text.as_bytes()), ("b", bad.as_bytes()), ("c", b"\n")]);
    let of = |name: &str, words| {
        read_told(&lines(&[&folder.path().join(name)], FormatOptions::default(), 2), words)
    };
    let (read, told) = of("a", Words::Cleaned);
    let ledger = read.unwrap().ledger.to_string();
    assert_eq!(ledger, "102 lines = 1 blank + 1 no_text + 1 empty_text + 99 reviews");
    let name = folder.path().join("a").display().to_string();
    assert_eq!(told, [format!("{name}:100: no_text (byte {})", 99 * good.len())]);
    // As it is written, the last text has words.
    let read = of("a", Words::Punctuation).0.unwrap();
    assert_eq!(read.ledger.to_string(), "102 lines = 1 blank + 1 no_text + 100 reviews");
    assert_eq!(read.texts.n_texts(), 100);

    let (refused, told) = of("b", Words::Cleaned);
    let error = refused.unwrap_err();
    let expected = "20 of 119 lines are bad (bad_line 20), expected at most 0.05 of them; write them to a file with \
                    --rejects of sentimill";
    assert_eq!((error.to_string(), error.exit()), (expected.to_owned(), Exit::BadInput));
    assert_eq!(told.len(), 3, "{told:?}");
    let error = of("c", Words::Cleaned).0.unwrap_err();
    let expected = "found no review (1 lines = 1 blank + 0 reviews), expected at least one; check that it is the right \
                    input";
    assert_eq!((error.to_string(), error.exit()), (expected.to_owned(), Exit::BadInput));
}

#[test]
fn reviews_without_a_class_are_dropped_and_counted() {
    let line = |stars: usize| format!("{{\"reviewText\": \"text {stars}\", \"overall\": {stars}}}\n");
    let all: String = (1..6).map(line).collect();
    let folder = folder(&[("a", all.as_bytes()), ("b", line(3).as_bytes())]);
    let of = |name: &str| {
        let labels = Labels::Classes("1-2=bad,5=very good".parse().unwrap());
        let lines = Lines { labels, ..lines(&[&folder.path().join(name)], FormatOptions::default(), 2) };
        read_told(&lines, Words::Punctuation).0
    };
    let read = of("a").unwrap();
    let text = |stars: &str, label: &str| (owned(&["text", stars]), owned(&[label]));
    assert_eq!(seen(&read.texts), [text("1", "bad"), text("2", "bad"), text("5", "very good")]);
    assert_eq!(read.ledger.to_string(), "5 lines = 5 reviews, 2 of them not_labelled");
    let error = of("b").unwrap_err();
    let expected = "no rating of 1 reviews has a class; name a class for each rating with --labels";
    assert_eq!((error.to_string(), error.exit()), (expected.to_owned(), Exit::BadInput));
}
