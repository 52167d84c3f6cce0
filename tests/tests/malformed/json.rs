//! JSON lines, valid and malformed.

use synthetic::random::Random;

use crate::mapper::{LINE_BYTES_MAX, check};
use crate::notation::{
    Notation::Json, Object, RATING, TEXT, cut, doubled, scratched, swapped, text, with, with_between,
    with_inside, with_value, without_quote, without_token,
};
use crate::{Becomes::*, CASES, Class, class, random_lines};

#[test]
fn json_lines_of_every_class_have_the_expected_outcome() {
    check(&[], CLASSES, CASES, review);
}

#[test]
fn randomly_damaged_json_lines_agree_with_the_oracle() {
    check(&[], &[class("scratched", Either, |random| scratched(Json, random))], random_lines(), review);
}

pub fn review(text: &str) -> String {
    format!(r#"{{"reviewText": "{text}", "overall": 5}}"#)
}

#[rustfmt::skip]
const CLASSES: &[Class] = &[
    // The whole line.
    class("cut anywhere", BadLine, |random| cut(Json, random)),
    class("something behind it", BadLine, |random| {
        around(random, b"", b" x|x|,|}|]|0|\"|{}|null|;|# no|// no|\0|\x0C|\xC2\xA0|\xFF")
    }),
    class("something before it", BadLine, |random| {
        let before = b"x|,|[|0|\"\"|{}|\0|\x0C|\xEF\xBB\xBF\xEF\xBB\xBF|\xE2\x80\xA8|var x =|)]}',";
        around(random, before, b"")
    }),
    class("two objects", BadLine, |random| {
        let lines = [Object::review(Json, random).line(random), Object::review(Json, random).line(random)];
        let between: &[u8] = random.pick(&[b"", b" ", b","]);
        lines.join(between)
    }),
    class("in an array", BadLine, |random| [b"[", &Object::review(Json, random).line(random)[..], b"]"].concat()),
    class("an object with a comma, as of an array", BadLine, |random| around(random, b"", b",")),
    class("no object", BadLine, |random| random.pick(&[
        &b"null"[..], b"true", b"5", b"-1.5e3", b"\"text\"", b"[]", b"[", b"]", b"}", b"[null]", b"undefined",
    ]).to_vec()),
    class("another format", BadLine, |random| {
        let words = text(Json, random, b"");
        [random.pick(&[&b"\"2\","[..], b"__label__2 ", b"2\t", b"<review>", b"-- "]), &words[..]].concat()
    }),
    class("compressed bytes", BadLine, |random| {
        let bytes = (0..20 + random.below(200)).map(|_| random.below(256) as u8).filter(|byte| !b"\r\n".contains(byte));
        [0x1F, 0x8B, 0x08].into_iter().chain(bytes).collect()
    }),
    class("a CR inside", BadLine, |random| {
        let mut line = Object::review(Json, random).line(random);
        line.insert(1 + random.below(line.len() - 1), b'\r');
        line
    }),
    class("too long", TooLong, |random| {
        let long = "x".repeat(LINE_BYTES_MAX + random.below(2000));
        text_line(random, format!("\"{long}\"").as_bytes())
    }),
    class("as long as may be", Review, |random| {
        let mut line = Object::review(Json, random).line(random);
        line.resize(LINE_BYTES_MAX - random.below(2), b' ');
        line
    }),
    class("only spaces", Blank, |random| {
        let mark: &[u8] = random.pick(&[b"", b"\xEF\xBB\xBF"]);
        [mark, " ".repeat(random.below(4)).as_bytes(), b"\t".repeat(random.below(3)).as_slice()].concat()
    }),
    // Brackets, colons, commas, quotes.
    class("a missing token", BadLine, |random| without_token(Json, random)),
    class("swapped tokens", BadLine, |random| swapped(Json, random)),
    class("a doubled mark", BadLine, |random| doubled(Json, random)),
    class("a missing quote", BadLine, |random| without_quote(Json, random)),
    class("a doubled value", BadLine, |random| {
        let mut object = Object::review(Json, random);
        object.set(TEXT, &[text(Json, random, b""), b" ".to_vec(), text(Json, random, b"")].concat());
        object.line(random)
    }),
    class("a comma too many", BadLine, |random| {
        let mut tokens = Object::review(Json, random).tokens();
        let place = random.pick(&[1, tokens.len() - 1]);
        tokens.insert(place, b",".to_vec());
        tokens.concat()
    }),
    class("a wrong bracket inside", BadLine, |random| with_value(Json, random, &[
        "[1,]", "[,1]", "[1 2]", "[}", "{]", "[1}", "{\"a\"}", "{\"a\":}", "{1: 2}", "{,}", "[", "{", "]", "}",
        "{\"a\": 1,}", "(1)", "[1:2]",
    ])),
    class("names without quotes", BadLine, |random| respelled(random, &[
        b"overall", b"'overall'", b"`overall`", b"5", b"null", b"\xE2\x80\x9Coverall\xE2\x80\x9D",
    ])),
    class("single quotes", BadLine, |random| with_value(Json, random, &["'x'", "''", "'it\\'s'", "`x`"])),
    class("a comment", BadLine, |random| {
        let comment: &[u8] = random.pick(&[b"/* why */", b"// why", b"# why", b"<!-- -->", b"--"]);
        with_between(Json, random, comment)
    }),
    class("white space of others", BadLine, |random| {
        let space: &[
            u8] = random.pick(&[b"\x0B", b"\x0C", b"\0", b"\xC2\xA0", b"\xC2\x85", b"\xE2\x80\xA8", b"\xE2\x80\x83",
            b"\xEF\xBB\xBF", b"\x1F", b"\\n",
        ]);
        with_between(Json, random, space)
    }),
    class("invalid UTF-8 between tokens", BadLine, |random| {
        let bytes = invalid_utf8(random);
        with_between(Json, random, bytes)
    }),
    // Values.
    class("constants of others", BadLine, |random| with_value(Json, random, &[
        "undefined", "True", "None", "TRUE", "tru", "nulll", "nul", "truefalse",
        "x", "good",
    ])),
    class("numbers of Python", Either, |random| with_value(Json, random, &[
        "NaN", "nan", "Infinity", "-Infinity", "-NaN", "-inf", "5L", "[NaN]", "NaN5", "5NaN", "{\"a\": NaN}",
    ])),
    class("numbers of others", BadLine, |random| with_value(Json, random, &[
        "05", "00", "-01", "+1", "0x5", "0o5", "1.", ".5", "-", "--1", "1e", "1e+", "1e5.5", "1.5.2", "1_0", "5j",
        "5l", "5f", "\u{665}", "1,5.0.0", "1e 5", "- 1", "\u{2212}1",
    ])),
    class("escapes of others", BadLine, |random| {
        let escape: &[
            u8] = random.pick(&[b"\\x41", b"\\'", b"\\a", b"\\0", b"\\101", b"\\U0001f600", b"\\N{DASH}", b"\\ ",
            b"\\q", b"\\\xC3\xA9", b"\\v",
        ]);
        with_inside(Json, random, escape)
    }),
    class("\\u without four digits", BadLine, |random| {
        let escape: &[
            u8] = random.pick(&[b"\\u", b"\\u1", b"\\u12", b"\\u123", b"\\u12G4", b"\\u{41}", b"\\u+041", b"\\u 041",
            b"\\ud83d\\u", b"\\ud83d\\ude0", b"\\u\xEF\xBC\x90041",
        ]);
        with_inside(Json, random, &[escape, b" "].concat())
    }),
    class("control characters in strings", BadLine, |random| {
        let control = random.pick(&[0, 1, 2, 7, 8, 9, 11, 12, 14, 27, 30, 31]);
        with_inside(Json, random, &[control])
    }),
    class("a quote inside", BadLine, |random| with_inside(Json, random, b"\"")),
    class("an open escape at the end", BadLine, |random| text_line(random, b"\"good\\\"")),
    class("too deep", BadLine, |random| {
        let levels = 128 + random.below(2) * random.below(1000);
        nested(random, levels)
    }),
    class("brackets without end", BadLine, |random| {
        let piece = random.pick(&["[", "{\"a\":", "[[],", "{\"a\":[", "\"a\":", "\\", "\"", "-", "[1,"]);
        [&br#"{"overall": 5, "reviewText": "ok", "more": "#[..], piece.repeat(18_000 / piece.len()).as_bytes()].concat()
    }),
    // The text.
    class("no text", NoText, |random| {
        let mut object = Object::review(Json, random);
        object.remove(TEXT);
        object.line(random)
    }),
    class("text that is no string", NoText, |random| with(Json, random, TEXT, &[
        "null", "true", "false", "0", "5.0", "-1e400", "[]", "{}", "[\"good\"]", "{\"reviewText\": \"good\"}",
    ])),
    class("a last text that is no string", NoText, |random| {
        let mut object = Object::review(Json, random);
        object.push(TEXT, random.pick(&["null", "5", "[\"good\"]", "{}"]).as_bytes());
        object.line(random)
    }),
    class("a name like that of the text", NoText, |random| {
        let name: &[
            u8] = random.pick(&[b"\"reviewtext\"", b"\"ReviewText\"", b"\"reviewText \"", b"\"reviewTex\"",
            b"\"reviewTexts\"", b"\"reviewText\\u0000\"", b"\"review\\u0054ex\"", b"\"reviewText\xFF\"",
            b"\"\xD0\xB3eviewText\"", b"\"\"",
        ]);
        let mut object = Object::review(Json, random);
        object.respell(TEXT, name);
        object.line(random)
    }),
    class("no text, and no rating either", NoText, |random| {
        let mut object = Object::review(Json, random);
        object.remove(TEXT);
        object.set(RATING, b"[]");
        object.line(random)
    }),
    class("nothing but what cleaning takes away", EmptyText, |random| with(Json, random, TEXT, &[
        r#""""#, r#"" ""#, r#""...""#, r#""5/5!""#, r#""\u2764\ufe0f""#, "\"\u{1f44d}\"", r#""<br />""#,
        r#""&nbsp;&#128077;""#, r#""''""#, r#""\n\t\\""#, r#""\ud83d""#, r#""\u0000""#, "\"\u{301}\"",
        r#""<b class='good'>""#,
    ])),
    // The rating.
    class("no rating", BadRating, |random| {
        let mut object = Object::review(Json, random);
        object.remove(RATING);
        object.line(random)
    }),
    class("a number that is no rating", BadRating, |random| with(Json, random, RATING, &[
        "0", "-0", "6", "4.5", "-1", "0.9999", "5.0001", "50", "1e1", "1e400", "-1e400", "5e-400",
        "123456789012345678901234567890", "1e99999999999999999999",
    ])),
    class("a rating that is no number", BadRating, |random| with(Json, random, RATING, &[
        "true", "false", "null", "[]", "[5]", "{}", r#"{"overall": 5}"#,
    ])),
    class("a string that is no rating", BadRating, |random| with(Json, random, RATING, &[
        r#""""#, r#"" ""#, r#""0""#, r#""6""#, r#""4.5""#, r#""five""#, r#""5 stars""#, r#""05""#, r#""+5""#,
        r#""-5""#, r#""5e0""#, r#""5\n""#, r#"".5""#, r#""5..0""#, r#""5 .0""#, r#""55""#, "\"\u{665}\"",
        "\"\u{a0}5\"", r#""5\u0000""#, r#""***""#,
    ])),
    class("a last rating that is none", BadRating, |random| {
        let mut object = Object::review(Json, random);
        object.push(RATING, random.pick(&["null", "6", "\"x\"", "[5]"]).as_bytes());
        object.line(random)
    }),
    class("no rating, and nothing left of the text", BadRating, |random| {
        let mut object = Object::review(Json, random);
        object.set(TEXT, b"\"...\"");
        object.remove(RATING);
        object.line(random)
    }),
    // Valid lines that look odd.
    class("a good line", Review, |random| Object::review(Json, random).line(random)),
    class("a mark or spaces around", Review, |random| around(random, b"\xEF\xBB\xBF| |\t |\xEF\xBB\xBF\t", b" |\t|  ")),
    class("lone surrogates", Review, |random| {
        let escape: &[
            u8] = random.pick(&[b"\\ud83d", b"\\ude00", b"\\ude00\\ud83d", b"\\ud83d\\ud83d\\ude00", b"\\uDBFF\\n",
            b"\\ud800x", b"\\ud835\\udc00",
        ]);
        with_inside(Json, random, escape)
    }),
    class("invalid UTF-8 in strings", Review, |random| {
        let bytes = invalid_utf8(random);
        with_inside(Json, random, bytes)
    }),
    class("characters that others stumble over", Review, |random| {
        let inside: &[
            u8] = random.pick(&[b"\x7F", b"\xC2\x80", b"\xC2\x85", b"\xE2\x80\xA8", b"\xE2\x80\xA9", b"\xEF\xBB\xBF",
            b"\xEF\xBF\xBF", b"\\u0000", b"\\uffff", b"\\u000d\\u000a", b"'",
        ]);
        with_inside(Json, random, inside)
    }),
    class("as deep as may be", Review, |random| nested(random, 127)),
    class("many brackets side by side", Review, |random| {
        let value = format!("[{}0]", random.pick(&["[],", "[[[]],{}],", "{},"]).repeat(1000));
        with_value_in_another(random, value.as_bytes())
    }),
    class("huge numbers elsewhere", Review, |random| {
        let value = random.pick(&["1e400", "-1e999999999999", "1E-400", "-0", "-0.0e-0"]).to_owned();
        let value = if random.one_in(2) { "9".repeat(1 + random.below(5000)) } else { value };
        with_value_in_another(random, value.as_bytes())
    }),
    class("several texts and ratings", Review, |random| {
        let mut object = Object::review(Json, random);
        object.set(TEXT, random.pick(&["null", "5", "\"no\"", "[\"x\\u0041\"]"]).as_bytes());
        object.set(RATING, random.pick(&["null", "6", "\"x\"", "[5]"]).as_bytes());
        let text = text(Json, random, b"");
        object.push(TEXT, &text);
        object.push(RATING, b"4");
        object.line(random)
    }),
    class("names with escapes", Review, |random| {
        let mut object = Object::review(Json, random);
        object.respell(TEXT, random.pick(&[
            &br#""review\u0054ext""#[..], br#""\u0072eviewText""#, br#""reviewTex\u0074""#,
        ]));
        object.respell(RATING, random.pick(&[&br#""\u006fverall""#[..], br#""over\u0061ll""#, br#""overall""#]));
        object.line(random)
    }),
    class("ratings in other words", Review, |random| with(Json, random, RATING, &[
        "5.0", "5e0", "50E-1", "0.05e+2", "5.0000000000000000000000000000001", r#"" 5.00\t""#, r#""\u0035""#,
        r#""5.""#, "4.9999999999999999999",
    ])),
    // Invalid JSON, some of which is a valid Python literal.
    class("JSON of a kind that Python may read", Either, |random| {
        let value = random.pick(&[
            "'x'", "+1", "0x5", "1.", ".5", "00", "05", "1_0", "True", "true", "None", "(1,)", "[1,]", "{'a': 1,}",
            "\"a\" 'b'", "\"\\x41\\q\"", "\"a\tb\"", "NaN", "b''", "{1}", "1j", "...", "1if 1else 2", "--1", "0xfor",
            "1_000j", "'''x'''", "ur''", "Rb''", "-True", "5 .real",
        ]);
        let name = random.pick(&["\"overall\"", "'overall'", "\"over\" 'all'", "u'overall'", "(\"overall\")"]);
        let end = random.pick(&["", ",", " ,", ",,"]);
        format!(r#"{{{name}: {}, "reviewText": "ok", "more": {value}{end}}}"#, random.pick(&["5", value])).into_bytes()
    }),
];

/// A valid line with one of these alternatives, separated by `|`, before it and one after it.
fn around(random: &mut Random, before: &[u8], behind: &[u8]) -> Vec<u8> {
    let mut pick = |alternatives: &[u8]| {
        let alternatives: Vec<Vec<u8>> =
            alternatives.split(|&byte| byte == b'|').map(<[u8]>::to_vec).collect();
        alternatives[random.below(alternatives.len())].clone()
    };
    let (before, behind) = (pick(before), pick(behind));
    [before, Object::review(Json, random).line(random), behind].concat()
}

fn text_line(random: &mut Random, text: &[u8]) -> Vec<u8> {
    let mut object = Object::review(Json, random);
    object.set(TEXT, text);
    object.line(random)
}

fn with_value_in_another(random: &mut Random, value: &[u8]) -> Vec<u8> {
    let mut object = Object::review(Json, random);
    object.put(random, "more", value);
    object.line(random)
}

/// A line whose names are written differently.
fn respelled(random: &mut Random, names: &[&[u8]]) -> Vec<u8> {
    let name = random.pick(names);
    let mut object = Object::review(Json, random);
    object.respell(RATING, name);
    object.line(random)
}

/// A value with this number of brackets around it, in a member that is not read.
fn nested(random: &mut Random, levels: usize) -> Vec<u8> {
    let (open, close) = random.pick(&[("[", "]"), ("{\"a\":", "}"), ("[0,", "]")]);
    let value = format!("{}0{}", open.repeat(levels), close.repeat(levels));
    with_value_in_another(random, value.as_bytes())
}

pub fn invalid_utf8(random: &mut Random) -> &'static [u8] {
    random.pick(&[
        b"\xFF",
        b"\x80",
        b"\xC3",
        b"\xC0\x80",
        b"\xE2\x82",
        b"\xED\xA0\xBD",
        b"\xF0\x9F\x91",
        b"\xF4\x90\x80\x80",
        b"\xF8\x88\x80\x80\x80",
        b"\xE9t\xE9",
        b"\xFE\xFE",
    ])
}
