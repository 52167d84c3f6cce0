"""Literal cases for the contract: inputs and their expected results.

The results were worked out by hand, not by any program. No case comes from real reviews.
"""

from __future__ import annotations

# A raw text and its cleaned text with words of punctuation.
PUNCTUATED = (
    ("It's GREAT!! 10/10 :-)", "it's great ! ! 10 / 10 : - )"),
    ("'quoted', 'tis \u2019n\u2019", "quoted , tis n"),
    ("3rd caf\u00e9s\u2026 \u00bd price\u2014\u20ac5", "3rd caf\u00e9s \u2026 \u00bd price \u2014 \u20ac 5"),
    ("&quot;A&lt;b&gt; &amp;&#33; <br />I <3 it", '" a & ! i < 3 it'),
    ("\u2764\ufe0f \u0031\u0301 !\u0301 \u24b6", "\u2764 1\u0301 ! \u24d0"),
    ("\u00a0\u0000 ' ''", ""),
)

# A raw text and its cleaned text.
CLEANED = (
    # apostrophes
    ("Don't", "don't"),
    ("it\u2019s", "it's"),
    ("\u2019tis the season\u2019", "tis the season"),
    ("\u2018quoted\u2019", "quoted"),
    ("rock ''n'' roll", "rock n roll"),
    ("o''clock", "o''clock"),
    ("''' ' '", ""),
    ("dogs' o'", "dogs o"),
    ("it`s it\u02bcs", "it s it\u02bcs"),  # U+02BC is a letter
    # references
    ("it&#39;s it&apos;s it&rsquo;s it&#146;s it&#x2019;s", "it's it's it's it's it's"),
    ("a&#128;b", "a b"),
    ("a&#138;b", "a\u0161b"),  # windows-1252
    ("a&#129;b", "a b"),
    ("a&#x110000;b", "a b"),
    ("a&#99999999999999999999;b", "a b"),
    ("a&#" + "1" * 5000 + ";b", "a b"),
    ("a&#0;b&#xD800;c", "a b c"),
    ("a&#1;b&#127;c&#xFDD0;d", "a b c d"),  # parse errors in HTML, but still characters
    ("&#x41;&#X42;&#00067;", "abc"),
    ("&#; &#x; &#xg;", "x xg"),
    ("&amp;lt;b&gt;", "lt b"),
    ("&lt;b&gt;bold&lt;/b&gt;", "bold"),
    ("AT&T AT&amp;T AT&ampT", "at t at t at ampt"),
    ("caf&eacute; caf&eacute", "caf\u00e9 caf eacute"),
    ("&copy2; &Amp; &AMP;", "copy amp"),
    ("&fjlig;ord &NotEqualTilde;x", "fjord x"),
    ("e&#769;a", "e\u0301a"),
    ("a&nbsp;b&shy;c", "a b c"),
    ("&&amp;amp;", "amp"),
    # tags
    ("i <3 you", "i you"),
    ("a<b>c", "a c"),
    ("a < b > c", "a b c"),
    ("a<b c", "a b c"),
    ("a<b<c>d", "a b d"),
    ("a<br/>b<BR />c</p>d<!-- e -->f", "a b c d f"),
    ("a<!-- <b> -->c", "a c"),
    ("x<a\nhref='y'>z", "x z"),
    ("x<\u00e9>y<_>z<>", "x \u00e9 y z"),
    ("a<?php b ?>c", "a php b c"),
    # case
    ("\u039f\u0394\u039f\u03a3 \u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03bf\u03c2 \u03bf\u03b4\u03bf\u03c2"),
    ("\u03a3", "\u03c3"),  # not final: no character before it
    ("\u0391\u03a3.\u0391 \u0391\u03a3-\u0391", "\u03b1\u03c3 \u03b1 \u03b1\u03c2 \u03b1"),  # `.` does not end the word
    ("\u0391\u03a3\u2019\u0391", "\u03b1\u03c3'\u03b1"),
    ("\u0391\u03a3<b>\u0391", "\u03b1\u03c2 \u03b1"),
    ("\u0391\u03a3&amp;\u0391", "\u03b1\u03c2 \u03b1"),
    ("\u0130stanbul I", "i\u0307stanbul i"),
    ("STRASSE \u1e9e \u00df", "strasse \u00df \u00df"),
    ("\u01c5 \u212a \u2126 \uff21", "\u01c6 k \u03c9 \uff41"),
    # letters and marks
    ("caf\u00e9 cafe\u0301", "caf\u00e9 cafe\u0301"),
    ("a\u0301\u0302b", "a\u0301\u0302b"),
    (" \u0301a 1\u0301b", "a b"),
    ("'\u0301a", "a"),
    ("a'\u0301b", "a b"),
    ("a\u200d\u0301b", "a b"),
    ("good\u2764\ufe0f bad\ufe0f", "good bad\ufe0f"),
    ("1\ufe0f\u20e3 \U0001f600", ""),
    ("\u0905\u091a\u094d\u091b\u093e", "\u0905\u091a\u094d\u091b\u093e"),
    ("\u0e14\u0e35\u0e21\u0e32\u0e01", "\u0e14\u0e35\u0e21\u0e32\u0e01"),
    ("\u65e5\u672c\u8a9e\u3002\u5927\u4e08\u592b", "\u65e5\u672c\u8a9e \u5927\u4e08\u592b"),
    ("3rd x\u00b2 \u00bd \u2167 \u24d0 \u00aa", "rd x \u00aa"),
    ("well-made snake_case e.g.", "well made snake case e g"),
    ("a\tb\nc\u00a0d\u2028e\x00f\ufeffg", "a b c d e f g"),
    ("lone\ud83dsurrogate\ufffdhere", "lone surrogate here"),
    ("  ", ""),
    ("", ""),
)

# The bytes of a file and its lines.
LINES = (
    (b"", []),
    (b"a", [b"a"]),
    (b"a\n", [b"a"]),
    (b"a\r", [b"a"]),
    (b"a\r\n", [b"a"]),
    (b"a\rb\nc\r\nd", [b"a", b"b", b"c", b"d"]),
    (b"a\n\nb", [b"a", b"", b"b"]),
    (b"a\n\rb", [b"a", b"", b"b"]),
    (b"a\r\r\nb", [b"a", b"", b"b"]),
    (b"\r\n\r\n", [b"", b""]),
    (b"\r", [b""]),
    (b"a\x0bb\x0cc\xc2\x85d\xe2\x80\xa8e", [b"a\x0bb\x0cc\xc2\x85d\xe2\x80\xa8e"]),
)


def nested(brackets: int) -> bytes:
    """A valid review with a value of this number of nested brackets."""
    return b'{"overall":5,"reviewText":"ok","x":' + b"[" * brackets + b"]" * brackets + b"}"


# A line with its entry in the ledger, its cleaned text and its rating.
GOOD = b'{"overall":5,"reviewText":"ok"}'
JUDGED = (
    (b"", ("blank", None, None)),
    (b" \t ", ("blank", None, None)),
    (b"\xef\xbb\xbf \t", ("blank", None, None)),
    (GOOD, ("reviews", "ok", 5)),
    (b"\xef\xbb\xbf" + GOOD, ("reviews", "ok", 5)),
    (b"\xef\xbb\xbf\xef\xbb\xbf" + GOOD, ("bad_line", None, None)),
    (b" \t" + GOOD + b" ", ("reviews", "ok", 5)),
    (b"\x0b" + GOOD, ("bad_line", None, None)),
    (GOOD + b"," + GOOD, ("bad_line", None, None)),
    (b"[" + GOOD + b"]", ("bad_line", None, None)),
    (b'"text"', ("bad_line", None, None)),
    (b"\x1f\x8b\x08", ("bad_line", None, None)),
    # JSON only; some of these are valid Python literals
    (b'{"overall":5,"reviewText":"ok","x":NaN}', ("reviews", "ok", 5)),
    (b'{"overall":NaN,"reviewText":"ok"}', ("bad_rating", None, None)),
    (b'{"overall":5,"reviewText":NaN}', ("no_text", None, None)),
    (b'{"overall":5,"reviewText":"ok","x":-NaN}', ("bad_line", None, None)),
    (b'{"overall":5,"reviewText":"ok","x":-Infinity}', ("reviews", "ok", 5)),
    (b'{"overall":05,"reviewText":"ok"}', ("bad_line", None, None)),
    (b'{"overall":5,"reviewText":"ok","x":true}', ("reviews", "ok", 5)),
    (b'{"overall":5,"reviewText":"ok","x":True}', ("reviews", "ok", 5)),
    (b'{"overall":5,"reviewText":"ok","x":true,}', ("bad_line", None, None)),
    (b'{"overall":5,"reviewText":"ok",}', ("reviews", "ok", 5)),
    (b'{"overall":5.,"reviewText":"a\tb"}', ("reviews", "a b", 5)),
    (b' {"overall":5,"reviewText":"ok",}', ("bad_line", None, None)),
    (b'{"overall":5,"reviewText":"ok","x":1e999}', ("reviews", "ok", 5)),
    (b'{"overall":5,"reviewText":"ok","x":' + b"9" * 5000 + b"}", ("reviews", "ok", 5)),
    (nested(127), ("reviews", "ok", 5)),
    (nested(128), ("bad_line", None, None)),
    (b'{"overall":5,"reviewText":"' + b"[" * 500 + b'ok"}', ("reviews", "ok", 5)),
    # names, duplicates, surrogates, bytes
    (b'{"over\\u0061ll":5,"review\\u0054ext":"ok"}', ("reviews", "ok", 5)),
    (b'{"overall":1,"reviewText":"no","overall":5,"reviewText":"ok"}', ("reviews", "ok", 5)),
    (b'{"overall":5,"reviewText":"ok","reviewText":null}', ("no_text", None, None)),
    (b'{"overall":5,"x":{"reviewText":"ok"}}', ("no_text", None, None)),
    (b'{"overall":5,"reviewText":"a\\ud83db\\ud83d\\ude00c\\u00e9"}', ("reviews", "a b c\u00e9", 5)),
    (b'{"overall":5,"reviewText":"a\xffb\xed\xa0\x80c\xc3"}', ("reviews", "a b c", 5)),
    (b'{"overall":5,"reviewText":"ok"}\xff', ("bad_line", None, None)),
    # the order of the ledger
    (b"{}", ("no_text", None, None)),
    (b'{"overall":9,"reviewText":["ok"]}', ("no_text", None, None)),
    (b'{"reviewText":"ok"}', ("bad_rating", None, None)),
    (b'{"overall":0,"reviewText":"..."}', ("bad_rating", None, None)),
    (b'{"overall":5,"reviewText":"..."}', ("empty_text", "", 5)),
    (b'{"overall":5,"reviewText":""}', ("empty_text", "", 5)),
    # Python's literals
    (b"{'overall': 5.0, 'reviewText': \"it's\"}", ("reviews", "it's", 5)),
    (b"{u'overall': 5, u'reviewText': r'a\\nb' 'c\\nd', 'x': (1, [None, {}], -1.5,)}", ("reviews", "a nbc d", 5)),
    (b"{'overall': 5, 'reviewText': 'a\\x41\\101\\u0042\\U00000043\\'s'}", ("reviews", "aaabc's", 5)),
    (b"{'overall': 5, 'reviewText': 'a\\qb\\ud83d\\ude00c'}", ("reviews", "a qb c", 5)),
    (b"{'overall': 5, 'reviewText': 'a\\ud835\\udc00b\\udc00'}", ("reviews", "a\U0001d400b", 5)),
    (b"{'overall': 5, 'reviewText': 'ok', 'x': b'1', 'x': 1}", ("bad_line", None, None)),
    (b"{'overall': 5, 'reviewText': 'a\\N{DIGIT ONE}b'}", ("bad_line", None, None)),
    (b"{'overall': 5, 'reviewText': 'a\\\\N{b}'}", ("reviews", "a n b", 5)),
    (b"{'overall': 5, 'reviewText': r'a\\N{b}'}", ("reviews", "a n b", 5)),
    (b"{'overall': 5, 'reviewText': 'a\\x4'}", ("bad_line", None, None)),
    (b"{'overall': 5, 'reviewText': b'ok'}", ("bad_line", None, None)),
    (b"{'overall': 5, 'reviewText': f'ok'}", ("bad_line", None, None)),
    (b"{'overall': 5, 'reviewText': 'ok', 'x': {1}}", ("bad_line", None, None)),
    (b"{'overall': 5, 'reviewText': 'ok', 'x': 1j}", ("bad_line", None, None)),
    (b"{'overall': 5, 'reviewText': 'ok', 'x': 1+1}", ("bad_line", None, None)),
    (b"{'overall': 5, 'reviewText': 'ok', 'x': nan, 'y': -inf}", ("reviews", "ok", 5)),
    (b"{'overall': 5L, 'reviewText': 'ok 5L', 'x': [2L, 0L]}", ("reviews", "ok l", 5)),
    (b"{'x': 'it\\'s', 'overall': '5L', 'reviewText': 'ok'}", ("bad_rating", None, None)),
    (b"{'overall': 05L, 'reviewText': 'ok'}", ("bad_line", None, None)),
    (b"{'overall': 5, 'reviewText': 'ok', 'x': NaN}", ("bad_line", None, None)),
    (b"{'overall': 5, 'reviewText': 'ok', 'x': ...}", ("bad_line", None, None)),
    (b"{'overall': 5, 'reviewText': 'ok', **{}}", ("bad_line", None, None)),
    (b"{'overall': 5, 'reviewText': 'ok', [1]: 1}", ("bad_line", None, None)),
    (b"{'overall': 5, 'reviewText': 'ok'} # why", ("bad_line", None, None)),
    (b"{'overall': 5, 'reviewText': 'ok # why'}", ("reviews", "ok why", 5)),
    (b"{'overall': 5, 'reviewText': 'ok'}; 1", ("bad_line", None, None)),
    (b"{'overall': 5, 'reviewText': 'o\0k'}", ("bad_line", None, None)),
    (b"{'overall', 5}", ("bad_line", None, None)),
    (nested(127).replace(b'"', b"'"), ("reviews", "ok", 5)),
    (nested(128).replace(b'"', b"'"), ("bad_line", None, None)),
    (b"{'overall': True, 'reviewText': 'ok'}", ("bad_rating", None, None)),
)

BAD = ("bad_line", None, None)

# The same for polarity files with the classes "1" and "2".
JUDGED_CSV = (
    (b'"2","ok"', ("reviews", "ok", 5)),
    (b"1,ok", ("reviews", "ok", 1)),
    (b'\xef\xbb\xbf"2","ok"', ("reviews", "ok", 5)),
    (b" \t", ("blank", None, None)),
    # columns
    (b"2", BAD),
    (b'"2"', BAD),
    (b'"2,ok"', BAD),
    (b"2,", ("empty_text", "", 5)),
    (b",ok", ("bad_rating", None, None)),
    (b",", ("bad_rating", None, None)),
    (b'"2","title","ok"', ("reviews", "ok", 5)),
    (b"2,a,b,c,ok", ("reviews", "ok", 5)),
    (b'"2","a,b"', ("reviews", "a b", 5)),
    (b"2;ok", BAD),
    # the class, compared literally
    (b"3,ok", ("bad_rating", None, None)),
    (b"3,...", ("bad_rating", None, None)),
    (b"2.0,ok", ("bad_rating", None, None)),
    (b" 2,ok", ("bad_rating", None, None)),
    (b'"2 ",ok', ("bad_rating", None, None)),
    (b'"\\2",ok', ("bad_rating", None, None)),
    (b"\xff2,ok", ("bad_rating", None, None)),
    # quotes and their escapes
    (b'"2","a ""b"" c"', ("reviews", "a b c", 5)),
    (b'"2","a \\"b\\" c"', ("reviews", "a b c", 5)),
    (b'"2","a\\nb"', ("reviews", "a b", 5)),
    (b'"2","a\\\\nb"', ("reviews", "a nb", 5)),
    (b'"2","a\\\\\\nb"', ("reviews", "a b", 5)),
    (b'"2","a\\tb"', ("reviews", "a tb", 5)),
    (b'"2","a\\"', BAD),
    (b'"2","a\\\\"', ("reviews", "a", 5)),
    (b'"2","a\\\\\\"', BAD),
    (b'"2","a\\\\\\""', ("reviews", "a", 5)),
    (b'"2","a\\""', ("reviews", "a", 5)),
    (b'"2","a"""', ("reviews", "a", 5)),
    (b'"2",""', ("empty_text", "", 5)),
    (b'"2","""', BAD),
    (b'"2",""""', ("empty_text", "", 5)),
    (b'"2","it\x27s"', ("reviews", "it's", 5)),
    (b"2,a\\nb", ("reviews", "a nb", 5)),
    (b'2,a "b" c', BAD),
    (b'2,a"', BAD),
    (b'2"",a', BAD),
    (b'"2","ok', BAD),
    (b'"2,ok', BAD),
    (b'"2" ,"ok"', BAD),
    (b'"2", "ok"', BAD),
    (b'"2","ok"x', BAD),
    (b'"2","ok" ', BAD),
    (b'"2","ok",', ("empty_text", "", 5)),
    (b"2,ok ", ("reviews", "ok", 5)),
    (b'"2","a\xffb\xc3"', ("reviews", "a b", 5)),
    (b'"2","a\0b\tc"', ("reviews", "a b c", 5)),
)

# With the column before the last prepended.
JUDGED_TITLED = (
    (b'"2","a title","ok"', ("reviews", "a title ok", 5)),
    (b"2,x,a title,ok", ("reviews", "a title ok", 5)),
    (b"2,a,", ("reviews", "a", 5)),
    (b"2,,ok", ("reviews", "ok", 5)),
    (b"2,ok", BAD),
    (b'"2","a,b"', BAD),
)

# The same for fastText lines.
JUDGED_FASTTEXT = (
    (b"__label__1 ok", ("reviews", "ok", 1)),
    (b"\xef\xbb\xbf__label__2 ok", ("reviews", "ok", 5)),
    (b"__label__2 __label__1 ok", ("reviews", "ok", 5)),
    (b"__label__3 __label__1 ok", ("bad_rating", None, None)),
    (b"__label__1 a __label__2 b", ("reviews", "a label b", 1)),
    (b"__label__1  __label__2 b", ("reviews", "label b", 1)),
    (b"__label__1  ok", ("reviews", "ok", 1)),
    (b"__label__1", ("empty_text", "", 1)),
    (b"__label__1 ", ("empty_text", "", 1)),
    (b"__label__1 __label__2", ("empty_text", "", 1)),
    (b"__label__1 ...", ("empty_text", "", 1)),
    (b"__label__1\tok", ("reviews", "ok", 1)),
    (b"__label__1,ok", ("bad_rating", None, None)),
    (b"__label__1__label__2 ok", ("bad_rating", None, None)),
    (b"__label__ 1 ok", ("bad_rating", None, None)),
    (b"__label__\xff ok", ("bad_rating", None, None)),
    (b"__label__1 a\xffb \"c\\n", ("reviews", "a b c n", 1)),
    (b"ok", BAD),
    (b"1 ok", BAD),
    (b" __label__1 ok", BAD),
    (b"ok __label__1", BAD),
    (b"__LABEL__1 ok", BAD),
    (b"_label__1 ok", BAD),
    (b"__label_1 ok", BAD),
    (b"  ", ("blank", None, None)),
)

# Parsed values (a JSON number is a float) and their rating.
RATED = (
    *((float(rating), rating) for rating in range(1, 6)),
    (5, 5),
    ("1", 1),
    ("5.0", 5),
    ("5.", 5),
    ("5.000", 5),
    (" \t4.0\t ", 4),
    *((value, None) for value in (0.0, 6.0, 4.5, -1.0, float("inf"), 10**400, True, None, [5], {})),
    *((value, None) for value in ("", "0", "6", "5.5", "05", "+5", "5e0", "5\n", "\u00a05", "\u0665", "5 5", ".5")),
)

# Results of Java's Arrays.hashCode(byte[]), which starts at 1 as Hadoop's WritableComparator.hashBytes does.
JAVA_HASHES = (
    ("", 1),
    ("a", 128),
    ("hello", 127791473),
    ("love it", 2098814328),
    ("caf\u00e9", 123043501),
    ("sch\u00f6ne gr\u00fc\u00dfe", 404029382),
    ("\u65e5\u672c\u8a9e", 1243476185),
    ("na\u00efve reader's best friend for a very long winter evening", 1487561955),
)

# The votes for 1 to 5 and their mode.
MODES = (
    ([0, 0, 0, 0, 1], 5),
    ([1, 0, 0, 0, 1], 1),
    ([0, 2, 2, 1, 2], 2),
    ([1, 1, 1, 1, 1], 1),
    ([0, 0, 3, 4, 0], 4),
    ([0, 0, 3, 3, 0], 3),
)

# The result of --keep and --max-tokens for the seven words a to g.
KEPT = (
    ("first", 3, "abc"),
    ("last", 3, "efg"),
    ("ends", 3, "abg"),
    ("ends", 4, "abfg"),
    ("ends", 1, "a"),
    ("last", 1, "g"),
    ("ends", 6, "abcefg"),
    ("ends", 7, "abcdefg"),
    ("first", 0, "abcdefg"),
    ("last", 99, "abcdefg"),
)
