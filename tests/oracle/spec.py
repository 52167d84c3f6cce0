"""Computes the rows, words and digests of a dataset from raw review lines: the contract, implemented slowly.

The plainest implementation of the rules, for comparison with their text: one function per rule, everything in memory, nothing
fast. Independent of the programs it checks, of HDF5, and of the list of stop words.

    raw lines --mapped--> votes by cleaned text --reduced--> rows and a dictionary --merged--> ids and digests
"""

from __future__ import annotations

import ast
import html.entities
import io
import json
import re
import struct
import tokenize
import unicodedata
import warnings
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor, isfinite, isnan
from typing import BinaryIO, Iterable, Iterator, Optional

import xxhash

LINE_BYTES_MAX = 4 * 1024 * 1024
DEPTH_MAX = 128
REPLACEMENT = "\ufffd"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
FIRST_WORD_ID = 2  # 0 is padding, 1 an unknown word
UNKNOWN_ID = 1
BAD_REASONS = ("line_too_long", "bad_line", "no_text", "bad_rating")
LEDGER = ("lines", "blank", *BAD_REASONS, "empty_text", "reviews")
UNRATED = "unrated"  # in the ledger only with --unrated


@dataclass(frozen=True)
class Fields:
    """The format of a line, the fields of its text and its rating as flags name them, and its maximum length."""

    text: str = "reviewText"
    rating: str = "overall"
    line_bytes_max: int = LINE_BYTES_MAX
    format: str = "json"
    with_title: bool = False
    class_ratings: Optional[tuple] = None  # 1=1,2=5 for the formats of classes
    scale: Optional[tuple] = None  # the numbers of 1 and of 5 stars
    unrated: tuple = ()  # the values of reviews without a rating, as texts
    punctuation: bool = False  # numbers, punctuation and symbols are words


PRESETS = {
    "amazon2014": Fields(),
    "amazon2018": Fields(),
    "amazon2023": Fields("text", "rating"),
    "yelp": Fields("text", "stars"),
}


@dataclass(frozen=True)
class Settings:
    """All settings that affect a dataset's content."""

    stop_words: frozenset = frozenset()
    max_tokens: int = 400
    keep: str = "ends"
    positive_from: int = 4
    labels: Optional[tuple] = None  # (first rating, last rating, name) of each class, in place of positive_from
    sample: Optional[int] = None  # rows have a hash below it, mod 2^32
    vocabulary_size: int = 10_000
    vocabulary: Optional[tuple] = None  # the words of another dataset, in id order
    without: frozenset = frozenset()  # the hashes of another dataset


@dataclass
class Mapped:
    """The result of the mapper. `undecided` contains (cleaned text, rating) of reviews with a character newer
    than this Python, whose Unicode tables cannot determine the cleaned text."""

    ledger: Counter = field(default_factory=lambda: Counter(dict.fromkeys(LEDGER, 0)))
    votes: dict = field(default_factory=dict)
    undecided: list = field(default_factory=list)
    cleaning_version: int = 1


@dataclass
class Row:
    """One distinct text: its votes, its label, its kept tokens, and (after merging) their ids."""

    text: str
    votes: list
    label: int
    words: list
    hash: int
    split: int
    ids: list = field(default_factory=list)


@dataclass
class Dataset:
    """The rows by hash, the words by id with their counts, and the three digests."""

    rows: list
    words: list
    counts: list
    row_digest: str
    id_digest: str
    vocabulary_digest: str


# ---- lines


def read_lines(stream: BinaryIO) -> Iterator[bytes]:
    """The lines of a stream, which end at LF, CR or CRLF. Bytes after the last line end are a line if not empty."""
    for piece in stream:  # Python itself splits only at LF
        ended = piece.endswith(b"\n")
        if ended:
            piece = piece[:-2] if piece.endswith(b"\r\n") else piece[:-1]
        *whole, last = piece.split(b"\r")
        yield from whole
        if ended or last:
            yield last


def mapped(lines: Iterable[bytes], fields: Fields) -> Mapped:
    """Counts each line once and sums the votes of equal texts."""
    result = Mapped(cleaning_version=2 if fields.punctuation else 1)
    for reason, text, rating, decided in (judged for line in lines for judged in judge_all(line, fields)):
        result.ledger["lines"] += 1
        result.ledger[reason] += 1
        if text is None:
            continue
        if not decided:
            result.undecided.append((text, rating))
        elif text:
            add_vote(result.votes, text, rating)
    return result


def judge(line: bytes, fields: Fields) -> tuple:
    """The judgement of a line that is one review."""
    (judged,) = judge_all(line, fields)
    return judged


def judge_all(line: bytes, fields: Fields) -> list:
    """For a line, or for each element of its list: the entry in the ledger, the cleaned text, the rating, and whether this
    Python can determine them."""
    too_long = len(line) > fields.line_bytes_max
    if line.startswith(BYTE_ORDER_MARK):
        line = line[len(BYTE_ORDER_MARK):]
    if not line.strip(b" \t"):
        return [("blank", None, None, True)]
    if too_long:
        return [("line_too_long", None, None, True)]
    try:
        found = FORMATS[fields.format](line.decode("utf-8", "replace"), fields)
    except ValueError:
        return [("bad_line", None, None, True)]
    return [judge_review(*review, fields.punctuation) for review in (found if isinstance(found, list) else [found])]


def judge_review(text, rating, punctuation: bool) -> tuple:
    if not isinstance(text, str):
        return "no_text", None, None, True
    if rating is None:
        return "bad_rating", None, None, True
    if rating == UNRATED:
        return UNRATED, None, None, True
    cleaned = clean(text, punctuation)
    return "reviews" if cleaned else "empty_text", cleaned, rating, is_decided(text)


# ---- the `json` format


def review_in_json(line: str, fields: Fields) -> list:
    """The text and the rating of the line, or of each element of its list."""
    parsed = parse_line(line)
    (rating,) = paths_of(fields.rating)
    texts = paths_of(fields.text)
    lists = [path[: path.index(ELEMENT)] for path in (*texts, rating) if ELEMENT in path]
    elements = value_at(parsed, lists[0]) if lists else None
    if elements == []:
        return [(None, None)]
    if not isinstance(elements, list):
        return [review_of(parsed, None, texts, rating, fields)]
    return [review_of(parsed, element, texts, rating, fields) for element in elements]


def review_of(parsed: dict, element, texts: list, rating: list, fields: Fields) -> tuple:
    """The text and the rating at these paths; those of a list continue in its element."""

    def value(path: list):
        if ELEMENT not in path:
            return value_at(parsed, path)
        before, after = path[: path.index(ELEMENT)], path[path.index(ELEMENT) + 1:]
        if element is not None:
            return value_at(element, after)
        # An object in place of the list is its only element; a text is too.
        return value_at(parsed, before + after)

    found = [text for text in map(value, texts) if isinstance(text, str)]
    return " ".join(found) if found else None, rating_of(value(rating), fields)


def value_at(value, path: list):
    """The value at the end of a path of names; None if one of them is missing."""
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


ELEMENT = object()  # in a path, behind the name of a list


def paths_of(flag: str) -> list:
    """The paths in a list such as `summary,data.text`. A backslash makes the next character part of a name; `[]` at the
    end of a name leads into the elements of a list."""
    paths = [[""]]
    for token in re.findall(r"\\.|\[\](?=[.,]|\Z)|.", flag, re.DOTALL):
        if token == ",":
            paths.append([""])
        elif token == ".":
            paths[-1].append("")
        elif token == "[]":
            paths[-1].append(ELEMENT)
        elif paths[-1][-1] is not ELEMENT:
            paths[-1][-1] += token[-1]
    return [[name for name in path if name != ""] for path in paths]


def parse_line(line: str) -> dict:
    """The object of a line: JSON, or the Python literal of an older dump. Raises ValueError if it is neither."""
    try:
        return parse_json(line)
    except ValueError:
        if not line.startswith("{"):
            raise
    return parse_python_literal(line)


def parse_json(line: str) -> dict:
    """A whole line of RFC 8259. Of duplicate names json keeps the last, and it joins escaped surrogate pairs."""
    if json_depth(line) > DEPTH_MAX:
        raise ValueError("nested too deep")
    value = JSON.decode(line)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


# Python's constants NaN, Infinity and -Infinity are numbers. Ratings are doubles. Also, Python's int refuses numbers of more than 4,300 digits, which are valid JSON.
JSON = json.JSONDecoder(parse_int=float, parse_float=float, parse_constant=float, strict=True)
JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def json_depth(line: str) -> int:
    """Maximum number of open brackets: the outermost object has depth 1."""
    depth = deepest = 0
    for character in JSON_STRING.sub("", line):
        if character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


def parse_python_literal(line: str) -> dict:
    """A dict of literals as Python reads it, without comments and \\N{name}."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an unknown escape keeps its backslash; Python only warns
            tree = Numbers().visit(ast.parse(without_long(line), mode="eval"))
        refuse_what_no_dump_holds(tree)
        refuse_names_and_comments(without_long(line))
        value = ast.literal_eval(tree)
    except (SyntaxError, TypeError, RecursionError, MemoryError, tokenize.TokenError) as error:
        raise ValueError(str(error)) from error
    if not isinstance(value, dict):
        raise ValueError("not a dict")
    return value


class Numbers(ast.NodeTransformer):
    """`nan` and `inf`, which repr writes, are numbers."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(float(node.id)) if node.id in ("nan", "inf") else node


STRING_OR_LONG = re.compile(
    r"""(?s)(?P<kept>[rR](?:\"\"\"|\'\'\'|\"|\').*|(\"\"\"|\'\'\'|\"|\')(?:\\.|(?!\2).)*\2)"""
    r"""|(?<![\w.])(?P<number>(?:0(?:_?0)*|[1-9](?:_?[0-9])*))L(?![\w.])"""
)


def without_long(line: str) -> str:
    """Without the L of integers of Python 2, outside of strings."""
    return STRING_OR_LONG.sub(lambda match: match["number"] or match["kept"], line)


NAMED_CHARACTER = re.compile(r"[uU]?['\"](?:[^\\]|\\[^N])*?\\N", re.DOTALL)


def refuse_names_and_comments(line: str) -> None:
    for token in tokenize.generate_tokens(io.StringIO(line).readline):
        if token.type == tokenize.COMMENT:
            raise ValueError("a comment")
        if token.type == tokenize.STRING and NAMED_CHARACTER.match(token.string):
            raise ValueError("a named character")


LITERAL_NODES = (ast.Expression, ast.Dict, ast.List, ast.Tuple, ast.Load, ast.UnaryOp, ast.UAdd, ast.USub)


def refuse_what_no_dump_holds(tree: ast.Expression) -> None:
    """Allows only str, int, float, True, False, None, list, tuple and dict; a number may have a sign."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            allowed = node.value is None or type(node.value) in (str, int, float, bool)
        else:
            allowed = isinstance(node, LITERAL_NODES)
        if not allowed:
            raise ValueError("not a literal of a review")
    if literal_depth(tree.body) > DEPTH_MAX:
        raise ValueError("nested too deep")


def literal_depth(node: ast.AST) -> int:
    deepest = max(map(literal_depth, ast.iter_child_nodes(node)), default=0)
    return deepest + isinstance(node, (ast.Dict, ast.List, ast.Tuple))


RATING = re.compile(r"[ \t]*([1-5])(?:\.0*)?[ \t]*")


def rating_of(value, fields: Fields = Fields()):
    """1 to 5, `unrated`, or None. In this order: unrated values, classes, numbers."""
    if is_unrated(value, fields):
        return UNRATED
    classes = dict(fields.class_ratings or ())
    for spelling in spellings(value):
        if spelling in classes:
            return classes[spelling]
    if fields.scale is not None:
        return rating_on(fields.scale, value)
    return None if any(map(is_number, classes)) else stars_of(value)


def is_unrated(value, fields: Fields) -> bool:
    text = value.strip() if isinstance(value, str) else None
    if value is None or text == "":
        return "null" in fields.unrated
    if isinstance(value, bool):
        return str(value).lower() in fields.unrated
    number = value if type(value) in (int, float) else float(text) if text is not None and is_number(text) else None
    for listed in fields.unrated:
        if listed == text:
            return True
        if number is not None and is_number(listed):
            is_nan = isnan(float(listed)) and not isfinite(number)
            if is_nan or float(listed) == number:
                return True
    return False


def is_number(text: str) -> bool:
    return re.fullmatch(r"[-+]?(?:[0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]+)?|inf|nan)", text, re.IGNORECASE) is not None


BOOLEANS = (("true", "True", "TRUE"), ("false", "False", "FALSE"))


def spellings(value) -> tuple:
    """The names that a value may have among the classes, in their order."""
    if isinstance(value, bool):
        value = str(value).lower()
    if isinstance(value, str):
        return (value, *next((names for names in BOOLEANS if value in names), ()))
    if type(value) is int or (type(value) is float and isfinite(value)):
        return (str(int(value)) if value == int(value) else repr(value),)
    return ()


NUMBER = r"-?[0-9]+(?:[.,][0-9]*)?"
ON_SCALE = re.compile(rf"({NUMBER})\s*(?:(?:/|out of|of)\s*({NUMBER})\s*)?(%|stars?|\u2605)?")
STARS = re.compile("([\u2605\u2b50]*)(\u2606*)")


def rating_on(scale: tuple, value) -> Optional[int]:
    """A number of a scale as stars: linear, the nearest, halves up."""
    low, high = scale
    if isinstance(value, str):
        number, top = spelled(value.strip())
        if top is not None and top != max(scale):
            return None
    else:
        number = float(value) if type(value) in (int, float) else None
    if number is None or not min(scale) <= number <= max(scale):
        return None
    return floor(1 + 4 * (number - low) / (high - low) + 0.5)


def spelled(text: str) -> tuple:
    """The number of a text, and the top of its scale if the text names it."""
    stars = STARS.fullmatch(text.replace("\ufe0f", ""))
    if text and stars:
        full, empty = map(len, stars.groups())
        return float(full), float(full + empty) if empty else None
    found = ON_SCALE.fullmatch(text)
    if found is None:
        return None, None
    number, top, unit = found.groups()
    as_float = lambda digits: float(digits.replace(",", "."))
    if top is not None:
        return as_float(number), as_float(top)
    return as_float(number), 100.0 if unit == "%" else None


def stars_of(value) -> Optional[int]:
    """1 to 5, or None. True is not a number."""
    if isinstance(value, str):
        found = RATING.fullmatch(value)
        return int(found.group(1)) if found else None
    if type(value) in (int, float) and value in (1, 2, 3, 4, 5):
        return int(value)
    return None


# ---- the `polarity-csv` format

CLASSES = (("1", 1), ("2", 5))


def review_in_csv(line: str, fields: Fields) -> tuple:
    columns = parse_columns(line)
    if len(columns) < (3 if fields.with_title else 2):
        raise ValueError("too few columns")
    text = f"{columns[-2]} {columns[-1]}" if fields.with_title else columns[-1]
    return text, dict(fields.class_ratings or CLASSES).get(columns[0])


def parse_columns(line: str) -> list:
    columns, position = [], 0
    while True:
        column = QUOTED.match(line, position) or UNQUOTED.match(line, position)
        columns.append(column.group())
        position = column.end() + 1
        if column.end() == len(line):
            return [without_quotes(column) for column in columns]
        if line[column.end()] != ",":
            raise ValueError("a quote left open, one inside of an unquoted column, or more behind the closing one")


# A backslash before any other character is literal.
QUOTED = re.compile(r'"(?:""|\\["n\\]|\\(?!["n\\])|[^"\\])*"')
UNQUOTED = re.compile(r'[^",]*')
ESCAPED = re.compile(r'""|\\["n\\]')
ESCAPES = {'""': '"', '\\"': '"', "\\n": "\n", "\\\\": "\\"}


def without_quotes(column: str) -> str:
    if not column.startswith('"'):
        return column
    return ESCAPED.sub(lambda match: ESCAPES[match.group()], column[1:-1])


# ---- the `fasttext` format


LABEL = re.compile(r"__label__([^ \t]*)(?:[ \t]|\Z)")


def review_in_fasttext(line: str, fields: Fields) -> tuple:
    first = label = LABEL.match(line)
    if first is None:
        raise ValueError("no label at the head of the line")
    while label is not None:
        line = line[label.end():]
        label = LABEL.match(line)
    return line, dict(fields.class_ratings or CLASSES).get(first.group(1))


FORMATS = {"json": review_in_json, "polarity-csv": review_in_csv, "fasttext": review_in_fasttext}


# ---- cleaning


def clean(text: str, punctuation: bool = False) -> str:
    """The cleaned text: words of letters, marks and inner apostrophes, separated by one space. With `punctuation`, numbers
    are as letters, and punctuation and symbols are words of one character."""
    text = without_tags(decode_references(join_surrogates(text)))
    text = text.replace("\u2019", "'").lower()
    return trim_words(letters_and_symbols(text) if punctuation else letters_alone(text))


REFERENCE = re.compile("&(?:#([0-9]+)|#[xX]([0-9A-Fa-f]+)|([A-Za-z][A-Za-z0-9]*));")
TAG = re.compile("<[A-Za-z/!][^<>]*>")


def join_surrogates(text: str) -> str:
    """A surrogate pair becomes its character (json joins it, Python's literals do not); a lone surrogate becomes
    U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def decode_references(text: str) -> str:
    return REFERENCE.sub(decode_reference, text)


def decode_reference(match: re.Match) -> str:
    """Decodes one complete reference. html.unescape would drop characters that the HTML standard keeps, such as
    `&#1;`."""
    decimal, hexadecimal, name = match.groups()
    if name is not None:
        return html.entities.html5.get(name + ";", match.group())
    digits = (decimal or hexadecimal).lstrip("0") or "0"
    if len(digits) > 7:
        return REPLACEMENT
    return numbered_character(int(digits, 10 if decimal else 16))


def numbered_character(number: int) -> str:
    """The "numeric character reference end state" of the HTML standard."""
    if number == 0 or number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        return REPLACEMENT
    if 0x80 <= number <= 0x9F:
        return bytes([number]).decode("cp1252", "ignore") or chr(number)
    return chr(number)


def without_tags(text: str) -> str:
    return TAG.sub(" ", text)


def letters_alone(text: str) -> str:
    """Keeps letters and `'`, and marks after a letter or a kept mark; everything else becomes a space."""
    kept = []
    in_letter = False
    for character in text:
        kind = unicodedata.category(character)[0]
        in_letter = kind == "L" or (kind == "M" and in_letter)
        kept.append(character if in_letter or character == "'" else " ")
    return "".join(kept)


def letters_and_symbols(text: str) -> str:
    kept = []
    in_word = False
    for character in text:
        kind = unicodedata.category(character)[0]
        in_word = kind in "LN" or (kind == "M" and in_word)
        if in_word or character == "'":
            kept.append(character)
        else:
            kept.append(f" {character} " if kind in "PS" else " ")
    return "".join(kept)


def trim_words(text: str) -> str:
    words = (word.strip("'") for word in text.split(" "))
    return " ".join(word for word in words if word)


def is_decided(text: str) -> bool:
    """Whether this Python's Unicode has every character. A character that is unassigned here may be a letter in
    Unicode 17."""
    if text.isascii() and "&" not in text:
        return True
    return not any(map(may_be_newer, decode_references(text)))


def may_be_newer(character: str) -> bool:
    """Unassigned, and not one of the noncharacters, which Unicode never assigns."""
    number = ord(character)
    noncharacter = number & 0xFFFE == 0xFFFE or 0xFDD0 <= number <= 0xFDEF
    return unicodedata.category(character) == "Cn" and not noncharacter


# ---- records


def add_vote(votes: dict, text: str, rating: int) -> None:
    votes.setdefault(text, [0, 0, 0, 0, 0])[rating - 1] += 1


def record_line(text: str, votes: list) -> str:
    return f"{text}\t{','.join(map(str, votes))}\n"


def partition(key: bytes, partitions: int) -> int:
    """Hadoop's HashPartitioner for a Text key: bytes are signed, the hash wraps at 32 bits."""
    total = 1
    for byte in key:
        total = (31 * total + (byte - 256 if byte > 127 else byte)) & 0xFFFFFFFF
    return (total & 0x7FFFFFFF) % partitions


# ---- rows


def reduced(votes: dict, settings: Settings) -> tuple[list, Counter, Counter]:
    """The rows by hash, the dictionary with the counts of all words in rows, and the numbers of texts that are
    dropped: not_sampled, then not_labelled, then only_stopwords."""
    rows, dictionary, dropped = [], Counter(), Counter(not_sampled=0, not_labelled=0, only_stopwords=0)
    for text, text_votes in votes.items():
        tokens = [word for word in text.split(" ") if word not in settings.stop_words]
        if not is_sampled(text, settings):
            dropped["not_sampled"] += 1
        elif label_of(text_votes, settings) is None:
            dropped["not_labelled"] += 1
        elif not tokens:
            dropped["only_stopwords"] += 1
        else:
            dictionary.update(tokens)
            rows.append(make_row(text, text_votes, kept_words(tokens, settings), settings))
    rows.sort(key=lambda row: (row.hash, row.text.encode()))
    return rows, dictionary, dropped


def is_sampled(text: str, settings: Settings) -> bool:
    hash_of_text = xxhash.xxh3_64_intdigest(text.encode())
    return settings.sample is None or hash_of_text % 2**32 < settings.sample


def sample_of(share: str) -> Optional[int]:
    """The number of values of the lower 32 bits of a hash that are in the sample; None if all are."""
    exact = Fraction(share)
    if not 0 < exact <= 1:
        raise ValueError(f"{share} is not above 0 and up to 1")
    below = ceil(exact * 2**32)
    return None if below == 2**32 else below


def make_row(text: str, votes: list, words: list, settings: Settings) -> Row:
    label = label_of(votes, settings)
    split = xxhash.xxh3_64_intdigest(" ".join(words).encode()) % 1000
    return Row(text, votes, label, words, xxhash.xxh3_64_intdigest(text.encode()), split)


def label_of(votes: list, settings: Settings) -> Optional[int]:
    """The class of the most frequent rating; None if it has no class."""
    rating = mode(votes)
    if settings.labels is None:
        return int(rating >= settings.positive_from)
    return next((at for at, (first, last, _) in enumerate(settings.labels) if first <= rating <= last), None)


def classes_of(text: str) -> tuple:
    """The classes in a text such as 1-2=negative,3=neutral,4-5=positive."""
    pairs = (pair.split("=") for pair in text.split(","))
    return tuple((int(ratings[0]), int(ratings[-1]), name) for ratings, name in pairs)


def mode(votes: list) -> int:
    """The most frequent rating; of equally frequent ones the smaller, which index() finds first."""
    return votes.index(max(votes)) + 1


def kept_words(tokens: list, settings: Settings) -> list:
    most = settings.max_tokens
    if most == 0 or len(tokens) <= most:
        return tokens
    n_last = {"first": 0, "last": most, "ends": most // 2}[settings.keep]
    return tokens[: most - n_last] + tokens[len(tokens) - n_last:]


# ---- the dataset


def merged(rows: list, dictionary: Counter, settings: Settings) -> Dataset:
    """Assigns ids to words and drops the rows that another dataset has. The words of dropped rows stay counted."""
    words = vocabulary(dictionary, settings)
    counts = [dictionary[word] for word in words]
    rows = [row for row in rows if row.hash not in settings.without]
    give_ids(rows, words)
    return Dataset(
        rows,
        words,
        counts,
        row_digest(rows),
        id_digest(rows),
        vocabulary_digest(words, counts),
    )


def vocabulary(dictionary: Counter, settings: Settings) -> list:
    if settings.vocabulary is not None:
        return list(settings.vocabulary)
    by_count = sorted(dictionary, key=lambda word: (-dictionary[word], word.encode()))
    return by_count[: settings.vocabulary_size]


def give_ids(rows: list, words: list) -> None:
    ids = {word: FIRST_WORD_ID + index for index, word in enumerate(words)}
    for row in rows:
        row.ids = [ids.get(word, UNKNOWN_ID) for word in row.words]


def row_digest(rows: Iterable[Row]) -> str:
    return sum_of_digests(row_head(row, len(row.words)) + lines_of(row.words) for row in rows)


def id_digest(rows: Iterable[Row]) -> str:
    return sum_of_digests(row_head(row, len(row.ids)) + struct.pack(f"<{len(row.ids)}I", *row.ids) for row in rows)


def row_head(row: Row, n_kept: int) -> bytes:
    return struct.pack("<QB5II", row.hash, row.label, *row.votes, n_kept)


def lines_of(words: list) -> bytes:
    return "".join(word + "\n" for word in words).encode()


def sum_of_digests(contents: Iterable[bytes]) -> str:
    """A sum, which does not depend on the order of rows."""
    return f"{sum(map(xxhash.xxh3_128_intdigest, contents)) % 2**128:032x}"


def vocabulary_digest(words: list, counts: list) -> str:
    lines = lines_of([f"{word}\t{count}" for word, count in zip(words, counts)])
    return f"{xxhash.xxh3_128_intdigest(lines):032x}"
