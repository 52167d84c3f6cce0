//! Other encodings than UTF-8.

use ::tests::compressed::bgzf;
use corpus::clean::Rules;
use corpus::cleaned::{CleanedReviews, Review};
use corpus::csv::{AskedDialect, Delimiter};
use corpus::encoding::{UTF_16LE, parse_encoding};
use corpus::format::{ClassRatings, Fields};
use corpus::judgement::Refusal;
use corpus::ledger::Limits;

use super::*;

fn in_encoding(label: &str, format: Format, threads: usize) -> ReadingOptions {
    ReadingOptions { format, encoding: parse_encoding(label).unwrap(), ..options(threads) }
}

fn encoded(text: &str, label: &str) -> Vec<u8> {
    let encoding = parse_encoding(label).unwrap();
    if encoding == UTF_16LE {
        return text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    }
    let (bytes, _, is_unmappable) = encoding.encode(text);
    assert!(!is_unmappable, "{text} in {label}");
    bytes.into_owned()
}

fn csv() -> Format {
    table_of(Fields::named("text", "stars"))
}

fn table_of(fields: Fields) -> Format {
    Format::Delimited { dialect: AskedDialect::of(Delimiter::Comma), fields }
}

fn fasttext() -> Format {
    Format::FastText { ratings: "gut=5,schlecht=1".parse::<ClassRatings>().unwrap() }
}

fn polarity() -> Format {
    Format::PolarityCsv { ratings: ClassRatings::default(), with_title: false }
}

/// The cleaned text and the stars of each review, in the order of the input, and the judgement.
fn reviews(content: &[u8], options: &ReadingOptions) -> (Vec<(u64, String, u8)>, Judgement) {
    let folder = folder(&[("a", content)]);
    let reading = Reading::start(all_of(&folder), options).unwrap();
    let mut reviews = Reviews::of(&reading, CleanedReviews::of(options.format.clone(), Rules::Letters));
    let mut found = Vec::new();
    let visit = |entry: InputEntry<'_>| {
        reviews.read(&entry, |entry, read| {
            if let Ok(Review { text, rating, .. }) = read {
                found.push((entry.place, String::from_utf8(text.to_vec()).unwrap(), rating.stars()));
            }
            Ok::<_, Error>(())
        })
    };
    reading.each(visit).unwrap();
    let found = found.into_iter().map(|(place, text, stars)| (reading.offset(place), text, stars)).collect();
    (found, reviews.finish().judged(&reading, Limits::default(), ""))
}

#[test]
fn every_format_is_read_in_other_encodings_with_the_offsets_of_the_file() {
    let line = |text: &str, stars: u8| format!("{{\"reviewText\": \"{text}\", \"overall\": {stars}}}");
    let literal = |text: &str, stars: u8| format!("{{'reviewText': u'{text}', 'overall': {stars}.0}}");
    let record = |text: &str, stars: u8| format!("\"{text}, \"\"ja\"\"\",{stars}");
    let class = |text: &str, stars: u8| format!("\"{}\",\"{text}\"", 1 + stars / 5);
    let labelled =
        |text: &str, stars: u8| format!("__label__{} {text}", if stars == 5 { "gut" } else { "schlecht" });
    type Line<'a> = &'a dyn Fn(&str, u8) -> String;
    let formats: [(Format, &str, Line<'_>, &str); 5] = [
        (Format::default(), "", &line, ""),
        (Format::default(), "", &literal, ""),
        (csv(), "text,stars\n", &record, " ja"),
        (polarity(), "", &class, ""),
        (fasttext(), "", &labelled, ""),
    ];
    // Characters with the bytes of ASCII syntax among them.
    for (label, good, bad) in [
        ("latin1", "café número", "naïve"),
        ("windows-1251", "очень хороший", "плохо"),
        ("gbk", "很好的产品", "質量俓乗很差"),
        ("big5", "功許蓋很好", "餐碁很差"),
        ("shift_jis", "表示能力は良い", "ソニー十"),
        ("euc-kr", "아주 좋은 제품", "나쁜"),
        ("gb18030", "很好ſ的", "很差"),
        ("iso-2022-jp", "表示能力は良い", "悪い"),
    ] {
        for (format, head, line, suffix) in &formats {
            let lines = [line(good, 5), String::new(), line(bad, 1)];
            let content = encoded(&format!("{head}{}\r\n", lines.join("\r\n")), label);
            let second = encoded(&format!("{head}{}\r\n\r\n", lines[0]), label).len() as u64;
            let expected = vec![
                (head.len() as u64, format!("{good}{suffix}"), 5),
                (second, format!("{bad}{suffix}"), 1),
            ];
            let options = in_encoding(label, format.clone(), 1);
            // Quotes and commas are hidden in ISO-2022-JP, so that its offsets are of the decoded records.
            let found = reviews(&content, &options).0;
            if label == "iso-2022-jp" && *format == csv() {
                assert_eq!(found[1].1, expected[1].1, "{label}");
            } else {
                assert_eq!(found, expected, "{label}, {}", format.name());
            }
            assert_eq!(reviews(&compressed(1, &content), &options).0, found, "{label}, gzip");
        }
    }
}

#[test]
fn an_array_is_read_in_encodings_that_hide_brackets_and_backslashes() {
    let array = "[{\"reviewText\": \"表示\\\"ソ\", \"overall\": 5}, {\"reviewText\": \"能力}\", \"overall\": 1},\n 7]";
    for label in ["shift_jis", "iso-2022-jp", "gbk", "utf-16le"] {
        let (found, judgement) = reviews(&encoded(array, label), &in_encoding(label, Format::default(), 2));
        let texts: Vec<_> = found.into_iter().map(|(_, text, stars)| (text, stars)).collect();
        assert_eq!(texts, [("表示 ソ".to_owned(), 5), ("能力".to_owned(), 1)], "{label}");
        // The line of an element is found by its offset in the same decoded content.
        assert!(judgement.notices[0].contains("/a:2: bad_line (byte "), "{:?}", judgement.notices);
    }
    // An array in an encoding that hides nothing keeps the offsets of the file.
    let array = "[{\"reviewText\": \"café\", \"overall\": 5},{\"reviewText\": \"né\", \"overall\": 1}]";
    let (found, _) = reviews(&encoded(array, "latin1"), &in_encoding("latin1", Format::default(), 1));
    assert_eq!(found, [(1, "café".to_owned(), 5), (38, "né".to_owned(), 1)]);
}

#[test]
fn lines_of_another_encoding_are_read_by_many_threads() {
    let text: String = (0..3000).map(|number| format!("{number} größer\r\nschön {number}\n\r\n")).collect();
    let content = encoded(&text, "latin1");
    let mut expected = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        expected.push((0, at, OwnedContent::Line(line.trim_end().as_bytes().to_vec())));
        at += line.chars().count() as u64;
    }
    let options = in_encoding("latin1", Format::default(), 3);
    for bytes in [content.clone(), content.chunks(500).flat_map(bgzf).collect(), zstd(&content)] {
        let folder = folder(&[("a", &bytes)]);
        for piece_bytes in [64, 5000, 1 << 20] {
            let reading = Reading::start_with(all_of(&folder), &options, piece_bytes).unwrap();
            assert!(read(&reading, 3).unwrap() == expected, "{piece_bytes}");
        }
    }
}

#[test]
fn names_of_columns_are_decoded() {
    let table = "キー,点数\n\"表, 示\",5\n表,1\nキー,点数\n";
    let format = table_of(Fields::named("キー", "点数"));
    let (found, judgement) = reviews(&encoded(table, "shift_jis"), &in_encoding("shift_jis", format, 1));
    assert_eq!(found, [(10, "表 示".to_owned(), 5), (21, "表".to_owned(), 1)]);
    let counts = judgement.counts.unwrap();
    assert_eq!((counts.lines, counts.blank, counts.invalid_utf8), (3, 1, 0));
}

#[test]
fn lines_that_are_not_in_their_encoding_are_refused_with_the_likely_one() {
    let refused = |content: &[u8], options: &ReadingOptions| {
        let found = reviews(content, options).1.counts.unwrap_err();
        assert!(matches!(found, Refusal::InvalidUtf8 { .. }), "{found}");
        found.to_string()
    };
    let table = format!("text,stars\n{}", "\"café número naïve\",5\n".repeat(30));
    let latin1 = encoded(&table, "latin1");
    assert_eq!(
        refused(&latin1, &ReadingOptions { format: csv(), ..options(1) }),
        "30 of 30 lines are not UTF-8, expected at most 0.05 of them; they look like windows-1252: pass --encoding \
         windows-1252, or the name of the right encoding"
    );
    let found = refused(&latin1, &in_encoding("euc-jp", csv(), 1));
    assert!(found.starts_with(
        "30 of 30 lines are not EUC-JP, expected at most 0.05 of them; they look like windows-1252:"
    ));
    // A stream that is decoded as a whole counts its replaced characters.
    let array = format!("[{}]", vec!["{\"reviewText\": \"caf\u{e9}\", \"overall\": 5}"; 30].join(","));
    let found = refused(&encoded(&array, "latin1"), &in_encoding("shift_jis", Format::default(), 1));
    assert!(
        found.starts_with("30 of 30 lines are not Shift_JIS, expected at most 0.05 of them; "),
        "{found}"
    );
    // No encoding is right for all lines.
    let lines = |text: &str, n| text.repeat(n).into_bytes();
    let mixed = [
        lines("text,stars\n", 1),
        lines("très bien,5\n", 60),
        encoded(&"caf\u{e9},5\n".repeat(30), "latin1"),
    ]
    .concat();
    let found = refused(&mixed, &ReadingOptions { format: csv(), ..options(1) });
    let expected = "30 of 90 lines are not UTF-8, expected at most 0.05 of them; the encodings are mixed, and no --encoding is right";
    assert!(found.starts_with(expected), "{found}");
    // 19 lines are too few, and 20 of 400 are no more than the limit.
    for (n_bad, n_good) in [(19, 1), (20, 380)] {
        let lines = ["\"caf\u{e9}\",5\n".repeat(n_bad), "fine,5\n".repeat(n_good)].concat();
        let content = encoded(&format!("text,stars\n{lines}"), "latin1");
        let (_, judgement) = reviews(&content, &ReadingOptions { format: csv(), ..options(1) });
        assert_eq!(judgement.counts.unwrap().invalid_utf8, n_bad as u64);
    }
}

#[test]
fn binary_lines_are_called_binary_and_not_text() {
    let mut number = 1_u64;
    let next = |_| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (number >> 56) as u8
    };
    let noise: Vec<u8> = (0..20_000).map(next).collect();
    for n in [200, 20_000] {
        let found = reviews(&noise[..n], &options(1)).1.counts.unwrap_err().to_string();
        assert!(
            found.ends_with("; they look like binary data; pass the text that they were made from"),
            "{found}"
        );
    }
}

#[test]
fn a_line_is_too_long_if_it_is_so_in_utf8() {
    let content = encoded(&format!("{}\n{}\n", "é".repeat(6), "é".repeat(5)), "latin1");
    let folder = folder(&[("a", &content)]);
    let options = ReadingOptions { line_bytes_max: 10, ..in_encoding("latin1", Format::default(), 1) };
    let reading = Reading::start(all_of(&folder), &options).unwrap();
    let long = (0, 0, OwnedContent::TooLong(12, false));
    let line = (0, 7, OwnedContent::Line("é".repeat(5).into_bytes()));
    assert_eq!(read(&reading, 1).unwrap(), [long, line]);
}
