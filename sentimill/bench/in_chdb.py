"""The job of sentimill in ClickHouse, in this process: JSON lines or CSV -> an HDF5 file with the same rows in any order.

Omits: the order of rows by hash, `hash`, `split` and all digests; the ledger and positions of bad lines (a line without text
and rating is skipped); Python literals; duplicate fields, of which it uses the first; lines with a lone surrogate;
texts that start with a mark. GROUP BY spills to disk from SPILL_BYTES on; the texts stay in memory.

usage: in_chdb.py REVIEWS STOP_WORDS OUT   (STOP_WORDS: a file of one word per line)
"""

import html
import os
import sys
import tempfile

import numpy as np
from chdb.session import Session

from rows import FIRST_WORD, MAX_TOKENS, UNKNOWN, VOCABULARY_SIZE, Rows

SPILL_BYTES = 6 << 30
ROWS_AT_ONCE = 64 << 10
# Marks are removed except after a letter. The pattern does not match a single space, which needs no replacement.
NO_WORD = r"(?:'+[^\p{L}']| [^\p{L}]|[^\p{L}\p{M}' ])[^\p{L}]*"
# ClickHouse decodes these numbers as control characters; in HTML they are letters, or ’, of windows-1252.
WINDOWS_1252 = [131, 136, 138, 140, 142, 146, 154, 156, 158, 159]


def main():
    reviews, stop_words, out = sys.argv[1:]
    with open(stop_words, encoding="utf-8") as words:
        stop_words = words.read().split()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", ".")) as folder:
        session = Session(folder)
        session.query(f"SET max_threads = {os.cpu_count()}, max_bytes_before_external_group_by = {SPILL_BYTES}")
        session.query("SET short_circuit_function_evaluation = 'force_enable', max_query_size = 10000000")
        session.query("CREATE DATABASE job")
        fold(session, os.path.abspath(reviews))
        vocabulary = count(session, stop_words)
        encode(session, stop_words, vocabulary, out)
        session.close()


def fold(session, reviews):
    """Returns each distinct text with its votes."""
    session.query("CREATE TABLE job.texts (text String, votes Array(UInt32)) ENGINE = Memory")
    votes = ", ".join(f"countIf(rating = {stars})" for stars in range(1, 6))
    session.query(f"""
        INSERT INTO job.texts
        SELECT {cleaned("raw")} AS text, [{votes}]
        FROM (
            SELECT assumeNotNull(fields.1) AS raw, toFloat64OrNull(fields.2) AS rating
            FROM ({source(reviews)})
            WHERE isNotNull(fields.1) AND rating IN (1, 2, 3, 4, 5)
        )
        GROUP BY text
        HAVING text != ''
    """)


def source(reviews):
    """Returns the query of text and rating, as a tuple named fields."""
    if reviews.endswith(".csv"):
        columns = "reviewText Nullable(String), overall Nullable(String)"
        return f"SELECT tuple(reviewText, overall) AS fields FROM file({quoted(reviews)}, 'CSVWithNames', {quoted(columns)})"
    # ClickHouse's JSON format stops at the first invalid line.
    return f"""
        SELECT JSONExtract(line, 'Tuple(reviewText Nullable(String), overall Nullable(String))') AS fields
        FROM file({quoted(reviews)}, 'LineAsString', 'line String')
    """


def cleaned(text):
    numbered = text
    for number in WINDOWS_1252:
        for reference in (f"&#{number};", f"&#x{number:x};", f"&#x{number:X};"):
            numbered = f"replaceAll({numbered}, {quoted(reference)}, {quoted(html.unescape(reference))})"
    text = f"decodeHTMLComponent(if(position({text}, '&#') > 0, {numbered}, {text}))"
    text = f"replaceRegexpAll({text}, '<[A-Za-z/!][^<>]*>', ' ')"
    text = f"lowerUTF8(replaceAll({text}, '’', '\\''))"
    return f"trim(BOTH ' \\'' FROM replaceRegexpAll({text}, {quoted(NO_WORD)}, ' '))"


def count(session, stop_words):
    """Returns the most frequent words and their counts."""
    lines = session.query(
        f"""
        SELECT word, count() AS occurrences
        FROM (SELECT arrayJoin(splitByChar(' ', text)) AS word FROM job.texts)
        WHERE word NOT IN ({", ".join(map(quoted, stop_words))})
        GROUP BY word ORDER BY occurrences DESC, word LIMIT {VOCABULARY_SIZE}
        """,
        "TabSeparatedRaw",
    )
    pairs = (line.split(b"\t") for line in lines.bytes().splitlines())
    return [(word, int(occurrences)) for word, occurrences in pairs]


def encode(session, stop_words, vocabulary, out):
    words = stop_words + [word.decode() for word, _ in vocabulary]
    ids = [0] * len(stop_words) + list(range(FIRST_WORD, FIRST_WORD + len(vocabulary)))
    known = f"[{', '.join(map(quoted, words))}], {ids}, {UNKNOWN}"
    rows = Rows(out)
    batches = session.send_query(
        f"""
        SELECT arraySlice(arrayFilter(id -> id != 0, arrayMap(
            word -> toUInt16(transform(word, {known})), splitByChar(' ', text))), 1, {MAX_TOKENS}) AS ids, votes
        FROM job.texts WHERE notEmpty(ids)
        """,
        "Arrow",
    ).record_batch(ROWS_AT_ONCE)
    for batch in batches:
        ids, votes = batch.columns
        rows.append(ids.flatten().to_numpy(), np.diff(ids.offsets.to_numpy()), votes.flatten().to_numpy().reshape(-1, 5))
    rows.close(vocabulary)


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


main()
