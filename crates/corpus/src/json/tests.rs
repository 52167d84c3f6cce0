//! Results of the parser for lines of every kind.

use super::*;

type Answer = Result<(String, u8), Reject>;

fn answer(parser: &mut JsonParser, line: &str) -> Answer {
    parser.parse(line).and_then(|entry| Ok((entry.text.to_owned(), entry.rating?.stars())))
}

/// The result for a line with this member in front, whose text is "x".
fn with_member(member: &str) -> Answer {
    let line = format!(r#"{{{member}, "reviewText": "x", "overall": 5}}"#);
    answer(&mut JsonParser::new(&Fields::default()), &line)
}

fn with_text(text: &str) -> Answer {
    let line = format!(r#"{{"overall": 5, "reviewText": {text}}}"#);
    answer(&mut JsonParser::new(&Fields::default()), &line)
}

fn with_rating(rating: &str) -> Answer {
    let line = format!(r#"{{"reviewText": "x", "overall": {rating}}}"#);
    answer(&mut JsonParser::new(&Fields::default()), &line)
}

fn good(text: &str) -> Answer {
    Ok((text.to_owned(), 5))
}

#[test]
fn a_review_line_is_read() {
    let line = r#"{"reviewerID": "A1", "helpful": [6, 10], "reviewText": "It's \"fine\".\n", "overall": 4.0, "summary": "ok"}"#;
    let mut parser = JsonParser::new(&Fields::default());
    assert_eq!(answer(&mut parser, line), Ok(("It's \"fine\".\n".into(), 4)));
    assert_eq!(answer(&mut parser, "\t {\"overall\":2,\"reviewText\":\"\"} "), Ok((String::new(), 2)));
}

#[test]
fn only_one_whole_object_is_a_line() {
    let mut parser = JsonParser::new(&Fields::default());
    for line in [
        "", " ", "{", "}", "[]", "null", "5", "\"x\"", "{} {}", "{}x", "{},", "{]", "[{}]", "{\"a\"}",
        "{\"a\":}",
    ] {
        assert_eq!(answer(&mut parser, line), Err(Reject::BadLine), "{line:?}");
    }
    assert_eq!(answer(&mut parser, "{}"), Err(Reject::NoText));
    assert_eq!(answer(&mut parser, " { } "), Err(Reject::NoText));
}

#[test]
fn the_last_of_duplicate_fields_counts() {
    assert_eq!(with_member(r#""reviewText": "a\n", "overall": 1"#), good("x"));
    assert_eq!(with_text(r#""a", "reviewText": "b\u0062""#), good("bb"));
    assert_eq!(with_text(r#""a\n", "reviewText": "b""#), good("b"));
    assert_eq!(with_text(r#""a", "reviewText": null"#), Err(Reject::NoText));
    assert_eq!(with_text(r#""a", "reviewText": ["b"]"#), Err(Reject::NoText));
    assert_eq!(with_rating(r#"5, "overall": {}"#), Err(Reject::BadRating));
    assert_eq!(with_rating(r#"[], "overall": 5"#), good("x"));
}

#[test]
fn names_are_compared_unescaped_and_on_the_top_level_only() {
    assert_eq!(with_text(r#""a", "review\u0054ext": "b""#), good("b"));
    assert_eq!(with_text(r#""a", "reviewText\u0000": "b""#), good("a"));
    assert_eq!(with_text(r#""a", "c": {"reviewText": "b", "overall": 1}"#), good("a"));
    let mut parser = JsonParser::new(&Fields::named("t\"", "\u{E9}"));
    assert_eq!(answer(&mut parser, r#"{"t\"": "x", "\u00e9": 5}"#), good("x"));
}

/// The result for a line with these fields.
fn with_fields(text: &str, rating: &str, line: &str) -> Answer {
    let text = text.parse::<crate::format::FieldPaths>().unwrap().0;
    answer(&mut JsonParser::new(&Fields { text, rating: rating.parse().unwrap(), ..Fields::default() }), line)
}

#[test]
fn the_texts_of_several_fields_are_joined_by_a_space() {
    let joined = |line: &str| with_fields("summary,reviewText,more", "overall", line);
    assert_eq!(joined(r#"{"reviewText": "a\tb", "overall": 5, "summary": "s"}"#), good("s a\tb"));
    for skipped in ["null", "5", "[]", r#"{"reviewText": "x"}"#, "true"] {
        assert_eq!(
            joined(&format!(r#"{{"summary": {skipped}, "reviewText": "a", "overall": 5}}"#)),
            good("a")
        );
        assert_eq!(joined(&format!(r#"{{"summary": {skipped}, "overall": 5}}"#)), Err(Reject::NoText));
    }
    assert_eq!(joined(r#"{"more": "", "summary": "", "overall": 5}"#), good(" "));
    assert_eq!(
        joined(r#"{"more": "a", "more": null, "summary": "s", "summary": "t", "overall": 5}"#),
        good("t")
    );
    assert_eq!(joined(r#"{"summary": "s", "overall": 6}"#), Err(Reject::BadRating));
    assert_eq!(joined(r#"{"summary": "s", "overall": 5}}"#), Err(Reject::BadLine));
}

#[test]
fn a_dot_leads_into_an_object() {
    let nested = |line: &str| with_fields("data.text", "data.stars", line);
    assert_eq!(nested(r#"{"data": {"a": [{}], "text": "\u0061", "stars": "5.0"}}"#), good("a"));
    assert_eq!(nested(r#"{"data": [{"text": "a", "stars": 5}]}"#), Err(Reject::NoText));
    assert_eq!(nested(r#"{"data.text": "a", "data.stars": 5, "text": "a"}"#), Err(Reject::NoText));
    assert_eq!(nested(r#"{"data": {}}"#), Err(Reject::NoText));
    assert_eq!(with_fields(r"data\.text", "stars", r#"{"data.text": "a", "stars": 5}"#), good("a"));
    for broken in
        [r#"{"text": "a",}"#, r#"{"text" "a"}"#, "{", r#"{"text": "a" "stars": 5}"#, "{'text': 5}", "{,}"]
    {
        assert_eq!(nested(&format!(r#"{{"data": {broken}}}"#)), Err(Reject::BadLine), "{broken}");
    }
}

#[test]
fn the_last_of_duplicate_fields_counts_at_every_level() {
    let nested = |line: &str| with_fields("a.b.c,d", "a.b.e", line);
    let line = r#"{"a": {"b": {"c": "x", "e": 1}, "b": {"e": 5, "c": "y", "c": "z"}}, "d": "d"}"#;
    assert_eq!(nested(line), good("z d"));
    assert_eq!(nested(r#"{"a": {"b": {"c": "x", "e": 1}, "b": 5}, "d": "d"}"#), Err(Reject::BadRating));
    assert_eq!(nested(r#"{"a": {"b": {"c": "x", "e": 5}}, "d": "d", "a": null}"#), Err(Reject::BadRating));
    assert_eq!(nested(r#"{"a": {"b": {"c": "x"}}, "a": {"b": {"e": 5}}}"#), Err(Reject::NoText));
}

#[test]
fn one_field_may_hold_both_text_and_rating() {
    assert_eq!(with_fields("a", "a", r#"{"a": "5"}"#), good("5"));
    assert_eq!(with_fields("a,a.b", "a.c", r#"{"a": {"b": "x", "c": 5}}"#), good("x"));
    assert_eq!(with_fields("a,a.b", "a", r#"{"a": "5.0"}"#), good("5.0"));
}

#[test]
fn a_followed_object_counts_towards_the_depth() {
    let path = vec!["a"; 127].join(".");
    let nested = |levels: usize| {
        format!(r#"{{"r": 5, "a": {}"x"{}"#, r#"{"a": "#.repeat(levels), "}".repeat(levels + 1))
    };
    assert_eq!(with_fields(&path, "r", &nested(126)), good("x"));
    let path = format!("{path}.a");
    assert_eq!(with_fields(&path, "r", &nested(127)), good("x"));
    assert_eq!(with_fields(&path, "r", &nested(128)), Err(Reject::BadLine));
    let inside = format!(r#"{{"r": 5, "a": {{"b": {}0{}}}}}"#, "[".repeat(127), "]".repeat(127));
    assert_eq!(with_fields("a.c", "r", &inside), Err(Reject::BadLine));
}

#[test]
fn a_text_that_is_not_a_string_is_refused() {
    for text in ["null", "true", "5", "[]", "{}", r#"["x"]"#] {
        assert_eq!(with_text(text), Err(Reject::NoText), "{text}");
    }
    assert_eq!(with_text(r#""x", "overall": 9"#), Err(Reject::BadRating));
}

#[test]
fn a_rating_is_a_number_or_a_string_of_one_to_five() {
    for rating in [
        "5",
        "5.0",
        "5e0",
        "50E-1",
        "0.05e+2",
        "5.000000000000000000000000000000001",
        r#"" 5.00\t""#,
        r#""\u0035""#,
    ] {
        assert_eq!(with_rating(rating), good("x"), "{rating}");
    }
    let long = format!("5.{}", "0".repeat(100_000));
    assert_eq!(with_rating(&long), good("x"));
    let other = [
        "0",
        "-0",
        "6",
        "-5",
        "4.5",
        "1e400",
        "-1e400",
        "5e-400",
        "1e99999999999999999999",
        "true",
        "null",
        "[5]",
        r#""""#,
        r#""5 stars""#,
    ];
    for rating in other {
        assert_eq!(with_rating(rating), Err(Reject::BadRating), "{rating}");
    }
    assert_eq!(with_rating(&"9".repeat(100_000)), Err(Reject::BadRating));
}

#[test]
fn numbers_are_checked_in_every_field() {
    for number in [
        "01",
        "1.",
        ".5",
        "-",
        "+1",
        "1e",
        "1e+",
        "0x1",
        "1_0",
        "--1",
        "1.5.2",
        "1e5.5",
        "NaN",
        "Infinity",
        "-Infinity",
        "\u{665}",
    ] {
        assert_eq!(with_member(&format!(r#""a": {number}"#)), Err(Reject::BadLine), "{number}");
        assert_eq!(with_member(&format!(r#""a": [{number}]"#)), Err(Reject::BadLine), "{number}");
        assert_eq!(with_rating(number), Err(Reject::BadLine), "{number}");
        assert_eq!(with_text(number), Err(Reject::BadLine), "{number}");
    }
    for number in
        ["-0", "0.0e-0", "1E400", "123456789012345678901234567890123456789", "1e99999999999999999999"]
    {
        assert_eq!(with_member(&format!(r#""a": {number}, "b": [{number}]"#)), good("x"), "{number}");
    }
}

#[test]
fn strings_are_checked_in_every_field() {
    for string in [
        r"\x",
        r"\u12G4",
        r"\u12",
        r"\u",
        r"\'",
        r"\U00000041",
        r"\0",
        "\0",
        "\n",
        "\t",
        "\u{1F}",
        r"\ud800\u12",
        r"\",
    ] {
        assert_eq!(with_member(&format!(r#""a": "{string}""#)), Err(Reject::BadLine), "{string:?}");
        assert_eq!(
            with_member(&format!(r#""a": {{"b": ["{string}"]}}"#)),
            Err(Reject::BadLine),
            "{string:?}"
        );
        assert_eq!(with_member(&format!(r#""{string}": 0"#)), Err(Reject::BadLine), "{string:?}");
        assert_eq!(with_member(&format!(r#""a": {{"{string}": 0}}"#)), Err(Reject::BadLine), "{string:?}");
        assert_eq!(with_text(&format!(r#""{string}""#)), Err(Reject::BadLine), "{string:?}");
    }
    assert_eq!(with_text(r#""\"\\\/\b\f\n\r\t\u00e9\u007f""#), good("\"\\/\u{8}\u{C}\n\r\t\u{E9}\u{7F}"));
    assert_eq!(with_member("\"\u{7F}\": \"\u{7F}\u{80}\u{2028}\""), good("x"));
}

#[test]
fn a_lone_surrogate_becomes_a_replacement_character() {
    assert_eq!(with_text(r#""\ud83d\ude00""#), good("\u{1F600}"));
    for (text, expected) in [
        (r#""\ud83d""#, "\u{FFFD}"),
        (r#""\ude00""#, "\u{FFFD}"),
        (r#""\ud83d\ud83d\ude00""#, "\u{FFFD}\u{1F600}"),
        (r#""\ude00\ud83d""#, "\u{FFFD}\u{FFFD}"),
        (r#""\ud83d\u0041""#, "\u{FFFD}A"),
        (r#""\ud83d\n""#, "\u{FFFD}\n"),
        (r#""\ud83dabcdefgh""#, "\u{FFFD}abcdefgh"),
    ] {
        assert_eq!(with_text(text), good(expected), "{text}");
    }
    assert_eq!(with_member(r#""a": "\ud83d", "\ude00": ["\udbff"]"#), good("x"));
}

#[test]
fn only_json_white_space_is_accepted() {
    assert_eq!(with_member(" \t\"a\"\t:\t[ 1 , 2 ]\t"), good("x"));
    for space in ["\u{C}", "\u{B}", "\u{A0}", "\u{FEFF}", "\0"] {
        assert_eq!(with_member(&format!("\"a\":{space}1")), Err(Reject::BadLine), "{space:?}");
    }
}

#[test]
fn only_json_commas_and_quotes_are_accepted() {
    for member in [
        r#""a": [1,]"#,
        r#""a": [,1]"#,
        r#""a": [1 2]"#,
        r#""a": {"b": 1,}"#,
        r#""a": {1: 2}"#,
        r#""a": {"b"}"#,
        r#""a": 1,"#,
        r#"'a': 1"#,
        "\"a\": 'b'",
        r#""a": [}"#,
        r#""a": tru"#,
        r#""a": nulll"#,
        r#""a": TRUE"#,
        r#""a": 1 /* */"#,
    ] {
        assert_eq!(with_member(member), Err(Reject::BadLine), "{member}");
    }
}

#[test]
fn the_object_is_the_first_of_128_levels() {
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        let nested = |levels: usize| format!("{}0{}", open.repeat(levels), close.repeat(levels));
        assert_eq!(with_member(&format!(r#""a": {}"#, nested(127))), good("x"));
        assert_eq!(with_member(&format!(r#""a": {}"#, nested(128))), Err(Reject::BadLine));
        assert_eq!(with_text(&nested(127)), Err(Reject::NoText));
        assert_eq!(with_text(&nested(128)), Err(Reject::BadLine));
        assert_eq!(with_rating(&nested(127)), Err(Reject::BadRating));
        assert_eq!(with_rating(&nested(128)), Err(Reject::BadLine));
    }
    let wide = format!(r#""a": [{}0]"#, "[[]],".repeat(1000));
    assert_eq!(with_member(&wide), good("x"));
}

#[test]
fn megabytes_of_brackets_or_names_are_one_bad_line() {
    for piece in ["[", r#"{"a":"#, "[[],", r#""a":"#, r#""\u0061":0,"#, "\\", "\"\\u", "\u{FFFD}"] {
        let line = format!(r#"{{"a":{}"#, piece.repeat((4 << 20) / piece.len()));
        assert_eq!(answer(&mut JsonParser::new(&Fields::default()), &line), Err(Reject::BadLine), "{piece}");
    }
}

#[test]
fn a_remembered_separator_is_used_only_between_two_values() {
    let mut parser = JsonParser::new(&Fields::default());
    for _ in 0..2 {
        assert_eq!(answer(&mut parser, r#"{"a": 1, "reviewText": "x", "overall": 5}"#), good("x"));
        for line in [
            r#"{, "reviewText": "x", "overall": 5}"#,
            r#", "reviewText": "x", "overall": 5}"#,
            r#"{"a": , "reviewText": "x"}"#,
        ] {
            assert_eq!(answer(&mut parser, line), Err(Reject::BadLine), "{line}");
        }
        assert_eq!(
            answer(&mut parser, r#"{"a": {"b": 1, "reviewText": "x", "overall": 5}}"#),
            Err(Reject::NoText)
        );
        assert_eq!(answer(&mut parser, r#"{"a": 1, "overall": 5, "reviewText":"x"}"#), good("x"));
    }
    for n in 0..100 {
        assert_eq!(
            answer(&mut parser, &format!(r#"{{"a": 1, "b{n}": 2, "overall": 5, "reviewText":"x"}}"#)),
            good("x")
        );
    }
    assert!(parser.separators.known.len() <= SEPARATORS_MAX);
}
