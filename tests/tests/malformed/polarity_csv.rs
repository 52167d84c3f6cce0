//! Lines of polarity files, valid and malformed, with titles and without.

use synthetic::random::Random;

use crate::json::invalid_utf8;
use crate::mapper::{LINE_BYTES_MAX, check};
use crate::{Becomes::*, CASES, Class, class, random_lines, scratch};

const FORMAT: [&str; 2] = ["--format", "polarity-csv"];

#[test]
fn polarity_lines_of_every_class_have_the_expected_outcome() {
    check(&FORMAT, CLASSES, CASES, review);
    check(&[&FORMAT[..], &["--with-title"]].concat(), CLASSES, CASES, review);
}

#[test]
fn lines_need_two_columns_or_three_with_a_title() {
    let too_few: fn(&mut Random) -> Vec<u8> = class_of;
    let two: fn(&mut Random) -> Vec<u8> = |random| joined(&[class_of(random), column(random, b"")]);
    let any_title: fn(&mut Random) -> Vec<u8> =
        |random| joined(&[class_of(random), title(random), column(random, b"")]);
    let empty_text: fn(&mut Random) -> Vec<u8> =
        |random| joined(&[class_of(random), b"good".to_vec(), nothing(random)]);
    let plain = [
        class("one column", BadLine, too_few),
        class("two columns", Review, two),
        class("any title", Review, any_title),
        class("a title without a text", EmptyText, empty_text),
    ];
    check(&FORMAT, &plain, CASES, review);
    let titled = [
        class("one column", BadLine, too_few),
        class("two columns", BadLine, two),
        class("any title", Review, any_title),
        class("a title without a text", Review, empty_text),
    ];
    check(&[&FORMAT[..], &["--with-title"]].concat(), &titled, CASES, review);
}

#[test]
fn randomly_damaged_polarity_lines_agree_with_the_oracle() {
    let scratched = [class("scratched", Either, |random| {
        let mut line = line(random, b"");
        const PIECES: [&[u8]; 10] =
            [b"\"", b"\"\"", b"\\", b"\\\"", b",", b"\\n", b" ", b"\0", b"\xFF", b"2"];
        let times = 1 + random.below(4);
        scratch(&mut line, times, usize::MAX, &PIECES, random);
        line
    })];
    check(&FORMAT, &scratched, random_lines(), review);
    check(&[&FORMAT[..], &["--with-title"]].concat(), &scratched, random_lines(), review);
}

fn review(text: &str) -> String {
    format!("\"2\",,\"{text}\"")
}

/// A valid line of at least three columns, with `inside` in its quoted text.
fn line(random: &mut Random, inside: &[u8]) -> Vec<u8> {
    let text = column(random, inside);
    with_text(random, &text)
}

fn with_text(random: &mut Random, text: &[u8]) -> Vec<u8> {
    let mut columns = vec![class_of(random)];
    for _ in 0..1 + random.below(3) {
        columns.push(title(random));
    }
    columns.push(text.to_vec());
    joined(&columns)
}

fn joined(columns: &[Vec<u8>]) -> Vec<u8> {
    columns.join(&b',')
}

fn class_of(random: &mut Random) -> Vec<u8> {
    random.pick(&[&b"1"[..], b"2", b"\"1\"", b"\"2\""]).to_vec()
}

/// A complete column between class and text.
fn title(random: &mut Random) -> Vec<u8> {
    random
        .pick(&[
            &b""[..],
            b"\"\"",
            b"good",
            b"\"good\"",
            b"\"a, b\"",
            b"it's \\n",
            b"\"say \"\"so\"\"\"",
            b"\"\\\"\"",
            b"\"\\\\\"",
            b" ",
        ])
        .to_vec()
}

/// A quoted text with `inside` at a random position.
fn column(random: &mut Random, inside: &[u8]) -> Vec<u8> {
    const WORDS: [&[u8]; 14] = [
        b"good",
        b"not",
        b"it's",
        b"5/5",
        b"a,b",
        b"caf\xC3\xA9",
        b"\xF0\x9F\x91\x8D",
        b"\"\"so\"\"",
        b"\\\"so\\\"",
        b"\\n",
        b"\\\\",
        b"\\t",
        b"<br />",
        b"R&amp;B",
    ];
    let (n_words, place) = (1 + random.below(8), random.below(8));
    let mut column = b"\"Fine".to_vec();
    for word in 0..n_words {
        if word == place.min(n_words - 1) {
            column.extend_from_slice(inside);
        }
        column.push(b' ');
        column.extend_from_slice(random.pick(&WORDS));
    }
    column.push(b'"');
    column
}

/// A text that cleaning leaves empty.
fn nothing(random: &mut Random) -> Vec<u8> {
    random
        .pick(&[
            &b""[..],
            b"\"\"",
            b"...",
            b"\"5/5\"",
            b" ",
            b"\"\\n\\\\\"",
            b"\"\"\"\"\"\"",
            b"\"\\\"\"",
            b"<br />",
            b"\"\xFF\"",
        ])
        .to_vec()
}

#[rustfmt::skip]
const CLASSES: &[Class] = &[
    // Columns.
    class("no comma", BadLine, |random| random.pick(&[
        &b"2"[..], b"\"2\"", b"2 good", b"good", b"2;good", b"2\tgood", b"2\xEF\xBC\x8Cgood",
    ]).to_vec()),
    class("cut inside of the text", BadLine, |random| {
        let mut line = with_text(random, b"");
        line.extend_from_slice(&b"\"Fine"[..1 + random.below(5)]);
        line
    }),
    class("an open quote at the end", BadLine, |random| {
        let mut line = line(random, b"");
        line.pop();
        line
    }),
    class("a last quote that is escaped", BadLine, |random| {
        let mut line = line(random, b"");
        let end: &[u8] = random.pick(&[b"\\\"", b"\"\"", b"\\\\\\\"", b"\"\"\"\""]);
        line.truncate(line.len() - 1);
        line.extend_from_slice(b" x");
        line.extend_from_slice(end);
        line
    }),
    class("something behind a closing quote", BadLine, |random| {
        let mut line = line(random, b"");
        line.extend_from_slice(random.pick(&[
            &b" "[..], b"x", b"\t", b"\\", b";", b"\0", b"\xFF", b"'", b"\\n", b" \"x\"",
        ]));
        line
    }),
    class("something before an opening quote", BadLine, |random| {
        let text = column(random, b"");
        let before: &[u8] = random.pick(&[b" ", b"x", b"\\", b"\xEF\xBB\xBF", b"'", b"u", b"\0"]);
        with_text(random, &[before, &text[..]].concat())
    }),
    class("a quote inside of a plain column", BadLine, |random| {
        let text: &[
            u8] = random.pick(&[b"good \"fit\"", b"good\"", b"go\"od", b"good \"\"fit", b"5\" long", b"good \\\" fit",
            b"it's \"", b"good\"\"",
        ]);
        with_text(random, text)
    }),
    class("JSON", BadLine, |random| {
        [&b"{\"overall\": 5, \"reviewText\": "[..], &column(random, b"")[..], b"}"].concat()
    }),
    class("two marks before", BadLine, |random| {
        [&b"\xEF\xBB\xBF\xEF\xBB\xBF\"2\",\"x\","[..], &column(random, b"")[..]].concat()
    }),
    // Classes.
    class("a class without a rating", BadRating, |random| with_class(random, &[
        b"0", b"3", b"\"3\"", b"", b"\"\"", b"01", b"1.0", b"\"1 \"", b" 1", b"2 ", b"+1", b"-1", b"one", b"label",
        b"\xEF\xBC\x91", b"\"\\1\"", b"\"1\"\"\"", b"\"\\n\"", b"1\0", b"\xEF\xBB\xBF", b"\xD9\xA1", b"12", b"1=1",
    ])),
    class("invalid UTF-8 in the class", BadRating, |random| {
        let class = [b"2", invalid_utf8(random)].concat();
        with_class(random, &[&class])
    }),
    class("no rating, and nothing of a text", BadRating, |random| joined(&[
        b"3".to_vec(), b"".to_vec(), nothing(random),
    ])),
    // Texts.
    class("nothing but what cleaning takes away", EmptyText, |random| joined(&[
        class_of(random), b"".to_vec(), nothing(random),
    ])),
    class("a good line", Review, |random| line(random, b"")),
    class("a mark before", Review, |random| [&b"\xEF\xBB\xBF"[..], &line(random, b"")[..]].concat()),
    class("plain columns", Review, |random| {
        let text: &[
            u8] = random.pick(&[b"good", b" good ", b"it's \\ good", b"good\\", b"good \\n", b"\\good", b"good\tfit",
            b"'good'",
        ]);
        with_text(random, text)
    }),
    class("commas and escapes in the text", Review, |random| {
        let inside: &[
            u8] = random.pick(&[b",", b",\"\",", b"\"\"", b"\\\"", b"\\\\", b"\\n", b"\\\\n", b"\\\\\\n", b"\\\\\\\"",
            b"\\x", b"\\\xC3\xA9", b"\\,", b"\\\\\"\"", b"\"\"\"\"", b"\\\"\"\"",
        ]);
        line(random, inside)
    }),
    class("invalid UTF-8 in the text", Review, |random| {
        let bytes = invalid_utf8(random);
        line(random, bytes)
    }),
    class("characters that others stumble over", Review, |random| {
        let inside: &[
            u8] = random.pick(&[b"\0", b"\x01", b"\x0B", b"\x0C", b"\x1C", b"\x7F", b"\xC2\x85", b"\xE2\x80\xA8",
            b"\xEF\xBB\xBF", b"'", b";", b"\t",
        ]);
        line(random, inside)
    }),
    class("only spaces", Blank, |random| [random.pick(&[
        &b""[..], b"\xEF\xBB\xBF",
    ]), &b" \t"[..random.below(3)]].concat()),
    class("too long", TooLong, |random| with_text(random, &b"x".repeat(LINE_BYTES_MAX))),
];

fn with_class(random: &mut Random, classes: &[&[u8]]) -> Vec<u8> {
    joined(&[random.pick(classes).to_vec(), title(random), column(random, b"")])
}
