//! Python literals of the older dumps, valid and malformed.

use synthetic::random::Random;

use crate::grammar::dict;
use crate::json::{invalid_utf8, review};
use crate::mapper::check;
use crate::notation::{
    Notation::Python, Object, RATING, TEXT, cut, doubled, scratched, spaced, swapped, with, with_between,
    with_inside, with_value, without_token,
};
use crate::{Becomes::*, CASES, Class, class, random_lines};

#[test]
fn python_lines_of_every_class_have_the_expected_outcome() {
    check(&[], CLASSES, CASES, review);
}

#[test]
fn python_lines_within_the_grammar_agree_with_python() {
    check(&[], &[class("grammatical", Either, dict)], random_lines(), review);
}

#[test]
fn randomly_damaged_python_lines_agree_with_python() {
    check(&[], &[class("scratched", Either, |random| scratched(Python, random))], random_lines(), review);
}

#[rustfmt::skip]
const CLASSES: &[Class] = &[
    // The whole line.
    class("cut anywhere", BadLine, |random| cut(Python, random)),
    class("something behind it", BadLine, |random| {
        let behind: &[
            u8] = random.pick(&[b"x", b",", b"}", b"]", b"0", b"''", b"{}", b" {}", b";", b"; 1", b" # why", b"#",
            b".keys()", b"['overall']", b"()", b" or 1", b" | {}", b"\0", b"\\", b"\xFF", b"\xC2\xA0",
        ]);
        [&Object::review(Python, random).line(random)[..], behind].concat()
    }),
    class("something before it", BadLine, |random| {
        let before: &[
            u8] = random.pick(&[b" ", b"\t", b"x", b"x = ", b"[", b"(", b"-", b"u", b"''", b"dict(", b"{} or ", b"*",
            b"#", b"\x0C", b"\xEF\xBB\xBF\xEF\xBB\xBF", b"OrderedDict(",
        ]);
        [before, &Object::review(Python, random).line(random)[..]].concat()
    }),
    class("in a list, a tuple or parentheses", BadLine, |random| {
        let (open, close) = random.pick(&[("[", "]"), ("(", ")"), ("(", ",)"), ("", ","), ("dict(", ")"), ("{", "}")]);
        [open.as_bytes(), &Object::review(Python, random).line(random)[..], close.as_bytes()].concat()
    }),
    class("a missing token", BadLine, |random| without_token(Python, random)),
    class("swapped tokens", BadLine, |random| swapped(Python, random)),
    class("a doubled mark", BadLine, |random| doubled(Python, random)),
    class("a comment", BadLine, |random| with_between(Python, random, b"# why")),
    class("invalid UTF-8 between tokens", BadLine, |random| {
        let bytes = invalid_utf8(random);
        with_between(Python, random, bytes)
    }),
    class("white space of others", BadLine, |random| {
        let space: &[
            u8] = random.pick(&[b"\x0B", b"\0", b"\xC2\xA0", b"\xC2\x85", b"\xE2\x80\xA8", b"\xE2\x80\x83",
            b"\xEF\xBB\xBF", b"\x1F", b"\\n", b"\\",
        ]);
        with_between(Python, random, space)
    }),
    // Python syntax that no dump contains.
    class("bytes", BadLine, |random| with_value(Python, random, &[
        "b''", "b'x'", "B\"x\"", "br'x'", "Rb'x'", "rB'''x'''", "'x' b'y'", "b'x' b'y'",
    ])),
    class("f-strings", BadLine, |random| with_value(Python, random, &[
        "f'x'", "F\"{1}\"", "fr'x'", "Rf'x'", "'x' f'y'", "f''",
    ])),
    class("prefixes of nothing", BadLine, |random| with_value(Python, random, &[
        "ur'x'", "uu'x'", "bu'x'", "x'00'", "u 'x' y", "rr'x'", "n'x'", "N'x'", "q'x'", "u'x'u",
    ])),
    class("named characters", BadLine, |random| {
        let escape: &[
            u8] = random.pick(&[b"\\N{DASH}", b"\\N{EM DASH}", b"\\N", b"\\N{", b"\\N{}", b"\\\\\\N{BULLET}",
        ]);
        with_inside(Python, random, escape)
    }),
    class("names", BadLine, |random| with_value(Python, random, &[
        "true", "false", "null", "NaN", "infinity", "undefined", "x", "_", "NONE", "none", "Truest", "__import__",
        "Ellipsis", "NotImplemented", "\u{e9}", "\u{ff34}rue", "int",
    ])),
    class("calls", BadLine, |random| with_value(Python, random, &[
        "set()", "dict()", "float('5')", "str(5)", "datetime.date(2014, 1, 1)", "Decimal('5')", "frozenset({1})",
        "exit()", "__import__('os').getcwd()", "'x'.upper()", "[].append(1)",
    ])),
    class("sets", BadLine, |random| with_value(Python, random, &[
        "{1}", "{1, 2}", "{'a', 'b'}", "{1,}", "{*()}", "{None}",
    ])),
    class("complex numbers", BadLine, |random| with_value(Python, random, &[
        "5j", "1+2j", "1-2J", "-1j", "0j", "1.5e3j", "-1+1j",
    ])),
    class("operators", BadLine, |random| with_value(Python, random, &[
        "1+1", "2-1", "'a'+'b'", "'a'*3", "5/1", "5//1", "2**2", "not True", "~5", "--5", "+-5", "1 if 2 else 3",
        "1 or 2", "1 and 2", "1 < 2", "1 == 1", "'%s' % 5", "5 is 5", "1 in [1]", "-True", "-'a'", "+None", "-[1]",
        "-(1,)", "- -5", "1 @ 2", "1 << 2",
    ])),
    class("expressions", BadLine, |random| with_value(Python, random, &[
        "lambda: 1", "(x := 1)", "[x for x in y]", "{x: 1 for x in y}", "(x for x in y)", "(yield)", "await x",
        "[*[1]]", "(*[1],)", "{**{}}", "[1][0]", "'abc'[1:2]", "{1: 2}[1]", "...", "[...]", "x.y", "1 .real",
        "print 5", "`5`", "$x", "?", "!", "5!", "@x", "1; 2",
    ])),
    class("keys that Python cannot hash", BadLine, |random| with_value(Python, random, &[
        "{[]: 1}", "{{}: 1}", "{(1, []): 1}", "{([]): 1}", "{[1, 2]: 1}", "{((), ({},)): 1}", "{'a': 1, []: 2}",
    ])),
    class("numbers of Python 2 and of no size", Either, |random| with_value(Python, random, &[
        "5L", "-5L", "0L", "1_000L", "05L", "5.0L", "nanx", "-None", "nan", "-nan", "inf", "-inf", "[nan, 2L]", "{2L: inf}", "'5L'",
    ])),
    class("numbers of others", BadLine, |random| with_value(Python, random, &[
        "05", "017", "-017", "00_7", "1__0", "1_", "_1", "1_.5", "1._5", "1e_5", "1e", "1e+", "0x", "0x_", "0xg",
        "0b2", "0b", "0o8", "0o", "0b12", "05L", "5l", "5u", "5f", "0xFFL", "5..0", ".", "1.5.2", "+", "-", "5else",
        "\u{665}", "\u{ff15}", "1 000", "0_x5", "1e1.5", "0x1.8p3",
    ])),
    class("escapes cut short", BadLine, |random| {
        let escape: &[
            u8] = random.pick(&[b"\\x", b"\\x4", b"\\xg0", b"\\x 4", b"\\u", b"\\u004", b"\\u00g1", b"\\U0001f60",
            b"\\U00110000", b"\\UFFFFFFFF", b"\\u{41}", b"\\x\xC3\xA9",
        ]);
        with_inside(Python, random, &[escape, b" "].concat())
    }),
    class("strings without end", BadLine, |random| with_value(Python, random, &[
        "'a", "a'", "\"a", "'''a''", "'''a'", "\"\"\"a\"", "'a\\'", "r'a\\'", "r'\\'", "'''a\\'''", "'a\"", "''''",
        "'a''", "u'", "'a' '",
    ])),
    class("quotes of typographers", BadLine, |random| with_value(Python, random, &[
        "\u{2018}a\u{2019}", "\u{201c}a\u{201d}", "\u{ab}a\u{bb}", "`a'", "\u{ff07}a\u{ff07}",
    ])),
    class("a zero byte in a string", BadLine, |random| {
        let zero: &[u8] = random.pick(&[b"\0", b"\\\0"]);
        with_inside(Python, random, zero)
    }),
    class("wrong brackets inside", BadLine, |random| with_value(Python, random, &[
        "[,]", "[1,,]", "[1 2]", "(,)", "(1,,)", "{,}", "{1:}", "{:1}", "{1: 2,,}", "{1: 2 3: 4}", "[1)", "(1]",
        "{1: 2]", "[", "(", "{", "]", ")", "}", "{1: 2: 3}", "[1: 2]", "{1, 2: 3}", "{1: 2, 3}",
    ])),
    class("too deep", BadLine, |random| {
        let levels = 128 + random.below(2) * random.below(1000);
        nested(random, levels)
    }),
    class("brackets without end", BadLine, |random| {
        let piece = random.pick(&["[", "(", "{'a':", "-", "''", "'a' ", "0_", "\\", "'\\", "\"", "(1,", "'''"]);
        [&b"{'overall': 5, 'reviewText': 'ok', 'more': "[..], piece.repeat(18_000 / piece.len()).as_bytes()].concat()
    }),
    // Text and rating.
    class("no text", NoText, |random| {
        let mut object = Object::review(Python, random);
        object.remove(TEXT);
        object.line(random)
    }),
    class("text that is no string", NoText, |random| with(Python, random, TEXT, &[
        "None", "True", "5", "-5.0", "['good']", "('good',)", "()", "{}", "{'reviewText': 'good'}",
    ])),
    class("a last text that is no string", NoText, |random| {
        let mut object = Object::review(Python, random);
        object.push(TEXT, random.pick(&["None", "5", "['good']", "{}", "()"]).as_bytes());
        object.line(random)
    }),
    class("a name like that of the text", NoText, |random| {
        let name: &[
            u8] = random.pick(&[b"'reviewtext'", b"'reviewText '", b"'reviewTex'", b"r'review\\x54ext'",
            b"'review\\\\x54ext'", b"'reviewText' 's'", b"('reviewText',)", b"5", b"None", b"''",
        ]);
        let mut object = Object::review(Python, random);
        object.respell(TEXT, name);
        object.line(random)
    }),
    class("nothing but what cleaning takes away", EmptyText, |random| with(Python, random, TEXT, &[
        "''", "u''", "' ' '...'", "'5/5!'", "'''\"'''", r"'\u2764\ufe0f'", r"'\U0001f44d'", r"'\x00\n\''", r"'\ud83d'",
        "'<br />'", "'&nbsp;'",
    ])),
    class("no rating", BadRating, |random| {
        let mut object = Object::review(Python, random);
        object.remove(RATING);
        object.line(random)
    }),
    class("a value that is no rating", BadRating, |random| with(Python, random, RATING, &[
        "0", "00", "6", "-5", "4.5", "1e400", "-1e400", "1_000", "0xFFFFFFFFFFFFFFFFFFFFFFFF", "True", "False", "None",
        "[5]", "(5,)", "{}", "''", "'0'", "'4.5'", "'five'", "r'\\x35'", "'5\\n'", "'+5'", "' 5 0'",
    ])),
    // Valid lines that look odd.
    class("a good line", Review, |random| Object::review(Python, random).line(random)),
    class("a mark before, spaces behind, a comma at the end", Review, |random| {
        let mut tokens = Object::review(Python, random).tokens();
        if random.one_in(2) {
            tokens.insert(tokens.len() - 1, b",".to_vec());
        }
        let mark: &[u8] = random.pick(&[b"", b"\xEF\xBB\xBF"]);
        let behind: &[u8] = random.pick(&[b"", b" ", b"\t\x0C "]);
        [mark, &spaced(&tokens, random)[..], behind].concat()
    }),
    class("form feeds between tokens", Review, |random| with_between(Python, random, b"\x0C")),
    class("strings of every kind", Review, |random| with(Python, random, TEXT, &[
        r#"'a' "b" u'c' R'd'U"e""#, "('a' 'b')", r#""""a"b""c""" '''d'e'''"#, r"'\101\1012\777'", r"r'a\n\'b\\'",
        r"'\/\8\e\%\ a'", r"'\ud835\udc00'", r"'a\ud83d' '\ude00'", r"'a\\N{x}' r'\N{x}'",
        "'a\tb\u{1}\u{7f}\u{85}\u{2028}\u{feff}'", "((('a')))", "'# a'", r"'a\x5cN{DASH}'",
    ])),
    class("numbers of every kind", Review, |random| with(Python, random, RATING, &[
        "5", "5.", "+5", "0x5", "0B101", "0o5", "0x_5", "50e-1", "0.5E+1", ".5e1", "05.0", "0_5e0", "5.e0", "(5)",
        "+(5)", "' 5.0\\t'", "'\\x35'", "5.0_0", "0x0000000005",
    ])),
    class("lone surrogates and invalid UTF-8", Review, |random| {
        let surrogates: &[
            u8] = random.pick(&[b"\\ud83d", b"\\ude00", b"\\U0000d83d", b"\\ude00\\ud83d", b"\\ud83d\\ud83d\\ude00",
        ]);
        let inside = if random.one_in(2) { invalid_utf8(random) } else { surrogates };
        with_inside(Python, random, inside)
    }),
    class("names of every kind", Review, |random| {
        let mut object = Object::review(Python, random);
        object.respell(TEXT, random.pick(&[
            &br"u'reviewText'"[..], br#""review" 'Text'"#, br"'review\x54ext'", br"'review\124ext'",
            br"('reviewText')", br"r'reviewText'", b"'''reviewText'''",
        ]));
        object.line(random)
    }),
    class("as deep as may be", Review, |random| nested(random, 127)),
];

fn nested(random: &mut Random, levels: usize) -> Vec<u8> {
    let (open, close) = random.pick(&[("[", "]"), ("(", ",)"), ("{'a':", "}"), ("[0,", ",]")]);
    let mut object = Object::review(Python, random);
    object.put(random, "more", format!("{}0{}", open.repeat(levels), close.repeat(levels)).as_bytes());
    object.line(random)
}
