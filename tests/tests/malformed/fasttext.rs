//! fastText lines, valid and malformed.

use synthetic::random::Random;

use crate::json::invalid_utf8;
use crate::mapper::{LINE_BYTES_MAX, check};
use crate::{Becomes::*, CASES, Class, class, random_lines, scratch};

const FORMAT: [&str; 2] = ["--format", "fasttext"];

#[test]
fn fasttext_lines_of_every_class_have_the_expected_outcome() {
    check(&FORMAT, CLASSES, CASES, review);
}

#[test]
fn randomly_damaged_fasttext_lines_agree_with_the_oracle() {
    let scratched = [class("scratched", Either, |random| {
        let mut line = line(random);
        const PIECES: [&[u8]; 8] = [b" ", b"  ", b"_", b"__label__", b"__label__2 ", b"\t", b"\xFF", b"1"];
        let times = 1 + random.below(3);
        scratch(&mut line, times, 40, &PIECES, random);
        line
    })];
    check(&FORMAT, &scratched, random_lines(), review);
}

fn review(text: &str) -> String {
    format!("__label__2 {text}")
}

fn text(random: &mut Random) -> Vec<u8> {
    const WORDS: [&[u8]; 10] =
        [b"good", b"not", b"it's", b"5/5", b",", b"\"so\"", b"caf\xC3\xA9", b"\\n", b"__label__1", b"<br />"];
    let words: Vec<_> = (0..random.below(8)).map(|_| random.pick(&WORDS)).collect();
    [&b"fine "[..], &words.join(&b' ')[..]].concat()
}

fn labels(random: &mut Random) -> Vec<u8> {
    let more: &[u8] = random.pick(&[b"", b"", b"__label__electronics ", b"__label__2 __label__ "]);
    [random.pick(&[&b"__label__1 "[..], b"__label__2 "]), more].concat()
}

/// A valid line.
fn line(random: &mut Random) -> Vec<u8> {
    [labels(random), text(random)].concat()
}

/// A text after one of these heads.
fn behind(random: &mut Random, heads: &[&[u8]]) -> Vec<u8> {
    [random.pick(heads), &text(random)[..]].concat()
}

#[rustfmt::skip]
const CLASSES: &[Class] = &[
    class("no label", BadLine, text),
    class("a label behind the text", BadLine, |random| [text(random), b" ".to_vec(), labels(random)].concat()),
    class("something before the label", BadLine, |random| {
        let before: &[
            u8] = random.pick(&[b" ", b"\t", b"x", b"\"", b"_", b"-", b"\0", b"\xFF", b"\xC2\xA0",
            b"\xEF\xBB\xBF\xEF\xBB\xBF", b"1,",
        ]);
        [before, &line(random)[..]].concat()
    }),
    class("a label spelled otherwise", BadLine, |random| behind(random, &[
        b"__LABEL__1 ", b"__Label__1 ", b"_label__1 ", b"__label_1 ", b"label1 ", b"__lable__1 ", b"__label __1 ",
        b"--label--1 ", b"__label-1 ", b"\xEF\xBC\xBF_label__1 ",
    ])),
    class("cut inside of the label", BadLine, |random| b"__label__"[..1 + random.below(8)].to_vec()),
    class("another format", BadLine, |random| behind(random, &[
        b"{\"overall\": 5, \"reviewText\": ", b"\"2\",", b"2,", b"2\t", b"\x1F\x8B\x08",
    ])),
    class("a class without a rating", BadRating, |random| behind(random, &[
        b"__label__0 ", b"__label__3 ", b"__label__01 ", b"__label__1.0 ", b"__label__one ", b"__label__ ",
        b"__label__ 1 ", b"__label__1: ", b"__label__\"1\" ", b"__label__\xEF\xBC\x91 ", b"__label__12 ",
        b"__label__1=1 ",
    ])),
    class("something else than a space or tab behind the label", BadRating, |random| behind(random, &[
        b"__label__1,", b"__label__1\xC2\xA0", b"__label__1\0", b"__label__1\x0B", b"__label__1",
        b"__label__1__label__2 ",
    ])),
    class("a first class without a rating", BadRating, |random| [&b"__label__3 "[..], &line(random)[..]].concat()),
    class("invalid UTF-8 in the class", BadRating, |random| [b"__label__1", invalid_utf8(random), b" good"].concat()),
    class("no rating, and nothing of a text", BadRating, |random| random.pick(&[
        &b"__label__3"[..], b"__label__", b"__label__3 ...", b"__label__3 __label__1",
    ]).to_vec()),
    class("nothing but labels", EmptyText, |random| {
        let mut line = labels(random);
        if random.one_in(2) {
            line.pop();
        }
        line
    }),
    class("nothing but what cleaning takes away", EmptyText, |random| {
        let text: &[
            u8] = random.pick(&[b"...", b" ", b"5/5", b"\t", b"\xF0\x9F\x91\x8D", b"<br />", b"&nbsp;", b"\xFF",
            b"__ __", b"''",
        ]);
        [labels(random), text.to_vec()].concat()
    }),
    class("a good line", Review, line),
    class("a mark before", Review, |random| [&b"\xEF\xBB\xBF"[..], &line(random)[..]].concat()),
    class("a tab behind the label", Review, |random| behind(random, &[
        b"__label__1\t", b"__label__2\t ", b"__label__1\t__label__3\t", b"__label__2 __label__\t",
    ])),
    class("more spaces than one", Review, |random| behind(random, &[
        b"__label__1  ", b"__label__2    ", b"__label__1  __label__3 ", b"__label__1 \t",
    ])),
    class("invalid UTF-8 in the text", Review, |random| [line(random), invalid_utf8(random).to_vec()].concat()),
    class("characters that others stumble over", Review, |random| {
        let end: &[
            u8] = random.pick(&[b"\0", b"\x0B", b"\x0C", b"\x1C", b"\x7F", b"\xC2\x85", b"\xE2\x80\xA8",
            b"\xEF\xBB\xBF", b"\"", b"\\", b"{",
        ]);
        [&line(random)[..], end, b"good"].concat()
    }),
    class("only spaces", Blank, |random| [random.pick(&[
        &b""[..], b"\xEF\xBB\xBF",
    ]), &b" \t"[..random.below(3)]].concat()),
    class("too long", TooLong, |random| [labels(random), b"x".repeat(LINE_BYTES_MAX)].concat()),
];
