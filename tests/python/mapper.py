"""Converts lines of JSON on standard input into lines "cleaned text TAB rating", distributed among files by
text.

usage: mapper.py FILE ...
"""

import ast
import html
import json
import re
import sys
import unicodedata
import zlib
from html.entities import html5

import orjson

REFERENCE = re.compile(r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);")
TAG = re.compile(r"<[A-Za-z/!][^<>]*>")
NOT_ASCII = re.compile(r"[^\x00-\x7f]")
RATING = re.compile(r"[ \t]*([1-5])(?:\.0*)?[ \t]*").fullmatch
# For ASCII texts: letters in lower case, apostrophes unchanged, everything else a space.
FOLDED = bytes(
    byte + 32 if chr(byte) in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" else byte if chr(byte) in "abcdefghijklmnopqrstuvwxyz'" or byte > 127 else 32
    for byte in range(256)
)
LINES_AT_ONCE = 16 << 20
TEXTS_AT_ONCE = 2000


class Kept(dict):
    """The replacement of a character beyond ASCII, computed at its first occurrence."""

    def __missing__(self, character):
        kept = character if unicodedata.category(character)[0] in "LM" else " "
        self[character] = kept
        return kept


KEPT = Kept()


def decoded(reference):
    reference = reference.group()
    if reference[1] == "#":
        return html.unescape(reference) or " "
    return html5.get(reference[1:], reference)


def beyond_ascii(text):
    text = text.lower()
    others = set(NOT_ASCII.findall(text))
    if any(unicodedata.category(other)[0] == "M" for other in others):
        # A mark is kept after a kept character.
        before, characters = " ", []
        for character in text:
            kept = KEPT[character] if character > "\x7f" else character if character.isalpha() or character == "'" else " "
            if unicodedata.category(character)[0] == "M" and before in " '":
                kept = " "
            characters.append(kept)
            before = kept
        return "".join(characters)
    for other in others:
        if KEPT[other] == " ":
            text = text.replace(other, " ")
    return text


def cleaned(text):
    """Bytes of the cleaned text, which may be empty."""
    if "&" in text:
        text = REFERENCE.sub(decoded, text)
    if "<" in text:
        text = TAG.sub(" ", text)
    if not text.isascii():
        text = text.replace("\u2019", "'")
        if not text.isascii():
            text = beyond_ascii(text)
    text = b" ".join(text.encode().translate(FOLDED).split())
    if b"'" in text and (b" '" in text or b"' " in text or text[0] == 39 or text[-1] == 39):
        text = b" ".join(filter(None, [word.strip(b"'") for word in text.split(b" ")]))
    return text


def rating_of(value):
    """One digit; `None` if the value is not a rating."""
    if type(value) is str:
        match = RATING(value)
        return match and match.group(1)
    if type(value) in (int, float) and value in (1, 2, 3, 4, 5):
        return str(int(value))
    return None


def refused(constant):
    raise ValueError(constant)


def unusual(line):
    """The object of a line that orjson refuses: bytes that are not UTF-8, lone surrogates, a Python literal."""
    line = line.decode("utf-8", "replace").lstrip("\ufeff")
    try:
        return json.loads(line, parse_constant=refused)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(line) if line.startswith("{") else None
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def main():
    outputs = [open(path, "wb", buffering=0) for path in sys.argv[1:]]
    held = [[] for _ in outputs]
    usual_ratings = {1.0: "1", 2.0: "2", 3.0: "3", 4.0: "4", 5.0: "5"}
    loads, crc32, n_outputs = orjson.loads, zlib.crc32, len(outputs)
    while lines := sys.stdin.buffer.readlines(LINES_AT_ONCE):
        for line in lines:
            try:
                review = loads(line)
            except ValueError:
                review = unusual(line)
            if type(review) is not dict:
                continue
            text, value = review.get("reviewText"), review.get("overall")
            if type(text) is not str:
                continue
            rating = usual_ratings.get(value) if type(value) is float else rating_of(value)
            if rating is None:
                continue
            text = cleaned(text)
            if text:
                part = crc32(text) % n_outputs
                records = held[part]
                records.append(b"%b\t%b\n" % (text, rating.encode()))
                if len(records) == TEXTS_AT_ONCE:
                    outputs[part].write(b"".join(records))
                    records.clear()
    for output, records in zip(outputs, held):
        output.write(b"".join(records))


if __name__ == "__main__":
    main()
