//! Property: for every line, valid or damaged, the parser returns what serde_json would.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

use corpus::entry::Reject;
use corpus::format::{FieldPaths, Fields};
use corpus::json::JsonParser;
use oracle::json::oracle;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn the_parser_agrees_with_serde_json(
        line in json_line(),
        variants in prop::collection::vec(changes(), 1..5),
    ) {
        let fields = Fields::default();
        let mut parser = JsonParser::new(&fields);
        for changes in variants {
            let line = changed(&line, &changes);
            prop_assert_eq!(answer(&mut parser, &line), oracle(&line, &fields), "{}", line);
        }
    }

    #[test]
    fn the_parser_agrees_with_serde_json_about_fields_of_nested_objects(
        lines in prop::collection::vec(json_line(), 1..4),
        changes in changes(),
        fields in fields(),
    ) {
        let mut parser = JsonParser::new(&fields);
        for line in lines {
            let line = changed(&line, &changes);
            prop_assert_eq!(answer(&mut parser, &line), oracle(&line, &fields), "{} {:?}", line, fields);
        }
    }
}

/// Fields at several levels, some of which contain others or hold both text and rating.
fn fields() -> impl Strategy<Value = Fields> {
    (prop::sample::select(TEXT_FIELDS), prop::sample::select(RATING_FIELDS)).prop_map(|(texts, rating)| {
        Fields {
            text: texts.parse::<FieldPaths>().unwrap().0,
            rating: rating.parse().unwrap(),
            ..Fields::default()
        }
    })
}

const TEXT_FIELDS: &[&str] = &[
    "reviewText",
    "summary,reviewText",
    "summary.reviewText",
    "reviewText,summary.reviewText,reviewText.summary,é.a\"b",
    "summary,summary.reviewText,summary.summary",
    "reviewText.summary.reviewText,overall",
];
const RATING_FIELDS: &[&str] =
    &["overall", "summary.overall", "reviewText", "reviewText.overall", "summary.reviewText.overall"];

fn answer(parser: &mut JsonParser, line: &str) -> Result<(String, u8), Reject> {
    parser.parse(line).and_then(|entry| Ok((entry.text.to_owned(), entry.rating?.stars())))
}

const TEXT_NAMES: &[&str] = &["reviewText", r"review\u0054ext"];
const RATING_NAMES: &[&str] = &["overall", r"\u006fverall"];
const OTHER_NAMES: &[&str] = &["reviewTexts", "summary", "", r"\ud83d", "\u{E9}", r#"a\"b"#];
const STRINGS: &[&str] = &[
    r#""""#,
    r#""x""#,
    r#""a\"b\\""#,
    r#""\u0041\n\/""#,
    r#""\ud83d\ude00""#,
    r#""\ud83d""#,
    r#""\ud83d\ud83d\ude00\ude00""#,
    "\"\u{E9}\u{1F600}\"",
    r#""a text that is longer than one or two of the blocks the parser reads at once, with \"escapes\" in it""#,
    r#""sixteen or thirty-two bytes is..\\""#,
];
const RATINGS: &[&str] =
    &["5", "5.0", "0.5E1", "1", r#""5""#, r#"" 4.0 ""#, r#""4.""#, r#""4.5""#, "\" 4.0\\t\"", "6"];
const CONSTANTS: &[&str] =
    &["-0", "1e400", "123456789012345678901234567890123456789.5e-3", "true", "false", "null"];
const BAD: &[&str] = &["01", "1.", "-", "1e", "nul", r#""\u12G4""#, r#""\x""#, "\"\u{1}\"", "[1,]", "{,}"];

fn json_line() -> impl Strategy<Value = String> {
    json_object(member(json_value()))
}

fn member(value: impl Strategy<Value = String>) -> impl Strategy<Value = (String, String)> {
    let name = prop_oneof![one_of(OTHER_NAMES), one_of(TEXT_NAMES), one_of(RATING_NAMES)];
    prop_oneof![
        2 => (one_of(TEXT_NAMES), one_of(STRINGS)),
        2 => (one_of(RATING_NAMES), one_of(RATINGS)),
        3 => (name, value),
    ]
}

fn json_value() -> impl Strategy<Value = String> {
    let scalar =
        prop_oneof![40 => one_of(STRINGS), 20 => one_of(RATINGS), 20 => one_of(CONSTANTS), 1 => one_of(BAD)];
    scalar.prop_recursive(3, 12, 4, |inner| {
        let array = (prop::collection::vec(inner.clone(), 0..4), space())
            .prop_map(|(items, space)| format!("[{space}{}]", items.join(&format!("{space},"))));
        prop_oneof![array, json_object(member(inner))]
    })
}

fn json_object(member: impl Strategy<Value = (String, String)>) -> impl Strategy<Value = String> {
    (prop::collection::vec((member, space()), 0..8), space()).prop_map(|(members, space)| {
        let member =
            |((name, value), space): &((String, String), &str)| format!("\"{name}\"{space}: {value}{space}");
        format!("{{{space}{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
    })
}

fn one_of(pieces: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::sample::select(pieces).prop_map(str::to_owned)
}

fn space() -> impl Strategy<Value = &'static str> {
    prop_oneof![200 => prop::sample::select(vec!["", "", " ", "\t  "]), 1 => Just("\u{B}")]
}

/// Positions in thousandths, and the piece inserted there. An empty piece deletes.
fn changes() -> impl Strategy<Value = Vec<(usize, &'static str)>> {
    let pieces = vec![
        "", "", "\"", "\\", "{", "}", "[", "]", ",", ":", "u", "0", "1", ".", "e", "-", "'", " ", "\n",
        "\u{1}", "\u{FFFD}", "\\u00",
    ];
    prop::collection::vec((0..1000usize, prop::sample::select(pieces)), 0..2)
}

fn changed(line: &str, changes: &[(usize, &str)]) -> String {
    let mut characters: Vec<char> = line.chars().collect();
    for &(place, piece) in changes {
        let at = characters.len() * place / 1000;
        let until = if piece.is_empty() && at < characters.len() { at + 1 } else { at };
        characters.splice(at..until, piece.chars());
    }
    characters.into_iter().collect()
}
