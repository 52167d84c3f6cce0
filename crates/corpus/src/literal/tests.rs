//! Each expected value is the result of `ast.literal_eval` of Python 3, where it has one.

use super::*;

fn answer(line: &str) -> Result<(String, u8), Reject> {
    let mut parser = LiteralParser::new(&Fields::default());
    parser.parse(line).and_then(|entry| Ok((entry.text.to_owned(), entry.rating?.stars())))
}

fn with_text(text: &str) -> Result<String, Reject> {
    answer(&format!("{{'overall': 5, 'reviewText': {text}}}")).map(|review| review.0)
}

fn with_rating(rating: &str) -> Result<u8, Reject> {
    answer(&format!("{{'reviewText': 'x', 'overall': {rating}}}")).map(|review| review.1)
}

fn with_value(value: &str) -> Result<String, Reject> {
    with_text(&format!("'x', 'other': {value}"))
}

#[test]
fn a_line_of_the_older_dumps_is_read() {
    let line = r#"{'reviewerID': 'A1', 'helpful': [6, 10], 'reviewText': "it's \"fine\"\n", 'overall': 4.0, 'summary': u'ok'}"#;
    assert_eq!(answer(line), Ok(("it's \"fine\"\n".into(), 4)));
    assert_eq!(answer(" \t{ 'overall' : 2 , 'reviewText' : '' , }\x0C "), Ok((String::new(), 2)));
}

#[test]
fn only_one_whole_dict_is_a_line() {
    for line in [
        "",
        "{",
        "}",
        "{'a'}",
        "{'a',}",
        "{'a': 1",
        "{} {}",
        "{},",
        "{}x",
        "{,}",
        "{'a': 1,,}",
        "{'a': 1 'b': 2}",
        "{**{}}",
        "{} # end",
    ] {
        assert_eq!(answer(line), Err(Reject::BadLine), "{line}");
    }
    assert_eq!(answer("{}"), Err(Reject::NoText));
}

#[test]
fn the_last_of_duplicate_top_level_fields_counts() {
    assert_eq!(with_text("'a', 'reviewText': 'b'"), Ok("b".into()));
    assert_eq!(with_text("'a', u'review' \"Text\": r'b'"), Ok("b".into()));
    assert_eq!(with_text("'a', 'reviewText': None"), Err(Reject::NoText));
    assert_eq!(with_text("'a', 'reviewText': ('b',)"), Err(Reject::NoText));
    assert_eq!(with_text("'a', 'c': {'reviewText': 'b', 'overall': 1}"), Ok("a".into()));
    assert_eq!(with_text("None, 'overall': None"), Err(Reject::NoText));
}

fn with_fields(text: &str, rating: &str, line: &str) -> Result<(String, u8), Reject> {
    let text = text.parse::<crate::format::FieldPaths>().unwrap().0;
    let mut parser =
        LiteralParser::new(&Fields { text, rating: rating.parse().unwrap(), ..Fields::default() });
    parser.parse(line).and_then(|entry| Ok((entry.text.to_owned(), entry.rating?.stars())))
}

#[test]
fn several_texts_are_joined_and_dots_lead_into_dicts() {
    let joined = |line: &str| with_fields("summary,data.text", "data.stars", line);
    assert_eq!(joined("{'data': {'text': u'a', 'stars': 5.0}, 'summary': 's'}"), Ok(("s a".into(), 5)));
    assert_eq!(joined("{'data': ( ( {'stars': '5', ('text'): 'a'})),}"), Ok(("a".into(), 5)));
    assert_eq!(joined("{'data': ({'text': 'a', 'stars': 5},), 'summary': 's'}"), Err(Reject::BadRating));
    assert_eq!(joined("{'data': [{'text': 'a', 'stars': 5}]}"), Err(Reject::NoText));
    assert_eq!(joined("{'summary': None, 'data': {'text': 5, 'stars': 5}}"), Err(Reject::NoText));
    assert_eq!(joined("{'summary': 's', 'data': {'stars': 5, 'a': [}}"), Err(Reject::BadLine));
    assert_eq!(joined("{'summary': '', 'data': {'stars': 5, 'text': ''}}"), Ok((" ".into(), 5)));
}

#[test]
fn the_last_of_duplicate_fields_counts_at_every_level() {
    let nested = |line: &str| with_fields("a.b,c", "a.d", line);
    assert_eq!(nested("{'a': {'b': 'x', 'd': 1, 'b': 'y', 'd': 5}, 'c': 'z'}"), Ok(("y z".into(), 5)));
    assert_eq!(nested("{'a': {'b': 'x', 'd': 5}, 'c': 'z', 'a': {'d': 4}}"), Ok(("z".into(), 4)));
    assert_eq!(nested("{'a': {'b': 'x', 'd': 5}, 'c': 'z', 'a': 'b'}"), Err(Reject::BadRating));
}

#[test]
fn strings_equal_those_of_python() {
    for (text, expected) in [
        (r#"'a' "b" u'c' R'd'U"e""#, "abcde"),
        (r#"('a' 'b')"#, "ab"),
        (r#""""a"b""c""" '''d'e'''"#, "a\"b\"\"cd'e"),
        (r"''", ""),
        (r"'''' '''", "' "),
        (r"'\\\'\x22\a\b\f\n\r\t\v\0\7\101\1012\777'", "\\'\"\u{7}\u{8}\u{C}\n\r\t\u{B}\0\u{7}AA2\u{1FF}"),
        (r"'\xe9\u00e9\U0001F600'", "\u{E9}\u{E9}\u{1F600}"),
        (r"'\/\8\é\ \z\%'", r"\/\8\é\ \z\%"),
        (r"r'\n\'\\\u12\x\N'", r"\n\'\\\u12\x\N"),
        (r"'\ud83d\ude00\U0000d83d' '\udE00'", "\u{1F600}\u{1F600}"),
        (r"'\ud83d \ude00\ud83d\ud83d\ude00\ud83d'", "\u{FFFD} \u{FFFD}\u{FFFD}\u{1F600}\u{FFFD}"),
        ("'\u{1}\u{7F}\u{2028}\u{FEFF}\t'", "\u{1}\u{7F}\u{2028}\u{FEFF}\t"),
    ] {
        assert_eq!(with_text(text), Ok(expected.to_owned()), "{text}");
    }
}

#[test]
fn an_invalid_string_is_a_bad_line() {
    for text in [
        r"'\x4'",
        r"'\x'",
        r"'\xG0'",
        r"'\u004'",
        r"'\U0011FFFF'",
        r"'\U0001F60'",
        r"'\N{DASH}'",
        r"'\N'",
        r"'a\'",
        r"r'a\'",
        "'a",
        "'''a''",
        "'\0'",
        "'\\\0'",
        "b'a'",
        "f'a'",
        "ur'a'",
        "rb'a'",
        "u 'a'",
        "'a' b'c'",
        "'a' + 'b'",
        "\u{2018}a\u{2019}",
    ] {
        assert_eq!(with_text(text), Err(Reject::BadLine), "{text}");
        assert_eq!(with_value(text), Err(Reject::BadLine), "{text}");
    }
}

#[test]
fn values_equal_those_of_python() {
    for value in [
        "[]",
        "[1,]",
        "[ 1 , [2] ]",
        "()",
        "(1)",
        "(1,)",
        "(1, 2)",
        "{}",
        "{1: 2,}",
        "{(1, 'a'): None}",
        "{None: 1, True: 2, -1.5: 3}",
        "True",
        "((('a')))",
        "-(5)",
        "- 5",
        "+1e5",
        "\x0C[\x0C]",
        "'a'",
        "{'a' 'b': 1}",
    ] {
        assert_eq!(with_value(value), Ok("x".into()), "{value}");
    }
    for value in [
        "[,]",
        "(,)",
        "[1,,]",
        "[1 2]",
        "{1}",
        "{1, 2}",
        "{[]: 1}",
        "{{}: 1}",
        "{(1, []): 1}",
        "{([]): 1}",
        "true",
        "null",
        "Truest",
        "None'a'",
        "...",
        "--5",
        "-True",
        "-'a'",
        "-()",
        "-(-5)",
        "1+2",
        "1+2j",
        "5j",
        "not 1",
        "set()",
        "x",
        "[*[1]]",
        "(1 for x in y)",
        "1 if 2 else 3",
        "[1)",
        "\u{A0}1",
        "# 1",
        "'a'1",
    ] {
        assert_eq!(with_value(value), Err(Reject::BadLine), "{value}");
    }
}

#[test]
fn numbers_equal_those_of_python() {
    for number in [
        "5",
        "5.0",
        "5.",
        "+5",
        "- -5",
        "0x5",
        "0B101",
        "0o5",
        "0x_5",
        "50e-1",
        "0.5E+1",
        ".5e1",
        "05.0",
        "0_5e0",
        "5.e0",
        "(5)",
        "+(5)",
        "' 5.0\t'",
        "5.0_0",
        "5L",
        "+5L",
        "0x0000000005",
    ] {
        let expected = if number == "- -5" { Err(Reject::BadLine) } else { Ok(5) };
        assert_eq!(with_rating(number), expected, "{number}");
    }
    for number in [
        "0",
        "00",
        "0_0",
        "-5",
        "4.5",
        "True",
        "None",
        "'five'",
        "[5]",
        "(5,)",
        "1e400",
        "nan",
        "-inf",
        "0L",
        "-1e400",
        "1_000",
        "0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF",
        "''",
    ] {
        assert_eq!(with_rating(number), Err(Reject::BadRating), "{number}");
    }
    for number in [
        "05", "0_5", "1__0", "1_", "_1", "1_.5", "1._5", "1e", "1e+", "1e_5", "0x", "0x_", "0xg", "0b2",
        "0o8", "0b12", "05L", "5l", "5.0L", "0x5L", "infinity", "nan5", "5j", "5..0", ".", "1.5.2", "+",
        "5else", "\u{665}",
    ] {
        assert_eq!(with_rating(number), Err(Reject::BadLine), "{number}");
    }
}

#[test]
fn the_dict_is_the_first_of_128_levels() {
    for (open, close) in [("[", "]"), ("(", ")"), ("(", ",)"), ("{'a':", "}")] {
        let nested = |levels: usize| format!("{}0{}", open.repeat(levels), close.repeat(levels));
        assert_eq!(with_value(&nested(127)), Ok("x".into()));
        assert_eq!(with_value(&nested(128)), Err(Reject::BadLine));
    }
}

#[test]
fn megabytes_of_brackets_are_one_bad_line() {
    for piece in ["[", "(", "{'a':", "-", "''", "'a' ", "0_", "\\", "'\\", "\""] {
        let line = format!("{{'a':{}", piece.repeat((4 << 20) / piece.len()));
        assert_eq!(answer(&line), Err(Reject::BadLine), "{piece}");
    }
}
