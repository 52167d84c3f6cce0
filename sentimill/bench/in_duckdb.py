"""The job of sentimill in DuckDB: JSON lines or CSV -> an HDF5 file with the same rows in any order. SQL reads, cleans, groups and
counts; Arrow looks up ids.

Omits: the order of rows by hash, `hash`, `split` and all digests; the ledger and positions of bad lines (a line without text
and rating is skipped); Python literals; duplicate fields, of which it uses the first; lines with a lone surrogate
or invalid UTF-8. DuckDB's memory limit is MEMORY; it spills to TMPDIR.

usage: in_duckdb.py REVIEWS STOP_WORDS OUT   (STOP_WORDS: a file of one word per line)
"""

import os
import pathlib
import sys
import tempfile
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import duckdb
import numpy as np
import pyarrow
import pyarrow.compute

from rows import FIRST_WORD, UNKNOWN, VOCABULARY_SIZE, Rows

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests/python"))
from mapper import cleaned  # noqa: E402

MEMORY = "8GB"
ROWS_AT_ONCE = 16 << 10
COLUMNS = "{reviewText: 'VARCHAR', overall: 'VARCHAR'}"
READ_JSON = f"read_json(?, format = 'newline_delimited', ignore_errors = true, columns = {COLUMNS})"
READ_CSV = f"""read_csv(?, header = true, delim = ',', quote = '"', escape = '"', columns = {COLUMNS})"""
# This order decodes nothing twice.
USUAL_REFERENCES = {
    "&quot;": '"', "&#34;": '"', "&lt;": "<", "&gt;": ">", "&#39;": "'", "&nbsp;": " ", "&reg;": " ", "&amp;": "&"
}  # fmt: skip
ANY_REFERENCE = "&#?[A-Za-z0-9]+;"
# Marks are removed except after a letter. The pattern does not match a single space, which needs no replacement.
NO_WORD = r"(?:'+[^\p{L}']| [^\p{L}]|[^\p{L}\p{M}' ])[^\p{L}]*"


def main():
    reviews, stop_words, out = sys.argv[1:]
    with open(stop_words, encoding="utf-8") as words:
        stop_words = words.read().split()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", ".")) as folder:
        with duckdb.connect(f"{folder}/job.duckdb") as engine:
            engine.execute(f"SET threads = {os.cpu_count()}; SET memory_limit = '{MEMORY}'")
            engine.execute(f"SET preserve_insertion_order = false; SET temp_directory = '{folder}'")
            engine.create_function("cleaned", clean_all, ["VARCHAR"], "VARCHAR", type="arrow")
            fold(engine, reviews)
            vocabulary = count(engine, stop_words)
            encode(engine, stop_words, vocabulary, out)


def fold(engine, reviews):
    """Returns each distinct text with its votes."""
    left, decoded = "raw", "raw"
    for reference, character in USUAL_REFERENCES.items():
        left = f"replace({left}, {quoted(reference)}, '')"
        decoded = f"replace({decoded}, {quoted(reference)}, {quoted(character)})"
    votes = ", ".join(f"count(*) FILTER (rating = {stars})::UINTEGER AS n{stars}" for stars in range(1, 6))
    # Every expression is written once, since DuckDB would evaluate it twice. Each text has a space before and after it, so
    # that it starts and ends with one after cleaning; they are trimmed from the distinct texts, which are fewer.
    engine.execute(
        rf"""
        CREATE TEMP TABLE texts AS
        SELECT trim(padded) AS text, n1, n2, n3, n4, n5 FROM (
            SELECT regexp_replace(lower(replace(regexp_replace(concat(' ', decoded, ' '),
                '<[A-Za-z/!][^<>]*>', ' ', 'g'), '’', '''')), {quoted(NO_WORD)}, ' ', 'g') AS padded, {votes}
            FROM (
                SELECT rating, CASE
                    -- Of these DuckDB knows no lower case as Unicode has it.
                    WHEN contains(raw, 'Σ') OR contains(raw, 'İ') THEN cleaned(raw)
                    WHEN NOT contains(raw, '&') THEN raw
                    WHEN regexp_matches({left}, {quoted(ANY_REFERENCE)}) THEN cleaned(raw)
                    ELSE {decoded}
                END AS decoded
                FROM (
                    SELECT reviewText AS raw, TRY_CAST(overall AS DOUBLE) AS rating
                    FROM {READ_CSV if reviews.endswith(".csv") else READ_JSON}
                )
                WHERE raw IS NOT NULL AND rating IN (1, 2, 3, 4, 5)
            )
            GROUP BY padded
        )
        """,
        [reviews],
    )
    # DuckDB would move a condition above to before GROUP BY and compute the text only for it.
    engine.execute("DELETE FROM texts WHERE text = ''")


def clean_all(texts):
    return pyarrow.array([text and cleaned(text).decode() for text in texts.to_pylist()], pyarrow.string())


def count(engine, stop_words):
    """Returns the most frequent words and their counts."""
    engine.register("stop_words", pyarrow.table({"word": stop_words}))
    pairs = engine.execute(f"""
        SELECT word, count(*) AS occurrences FROM (SELECT unnest(string_split(text, ' ')) AS word FROM texts)
        GROUP BY word HAVING word NOT IN (FROM stop_words)
        ORDER BY occurrences DESC, word LIMIT {VOCABULARY_SIZE}
    """).fetchall()
    return [(word.encode(), occurrences) for word, occurrences in pairs]


def encode(engine, stop_words, vocabulary, out):
    words = pyarrow.array(stop_words + [word.decode() for word, _ in vocabulary])
    # Index: the position in `words`; unknown words have the last one.
    ids = np.r_[np.zeros(len(stop_words)), FIRST_WORD : FIRST_WORD + len(vocabulary), UNKNOWN].astype(np.uint16)

    def looked_up(batch):
        split = pyarrow.compute.split_pattern(batch.column(0), " ")
        places = pyarrow.compute.index_in(split.flatten(), value_set=words).fill_null(len(words))
        found = ids[places.to_numpy(zero_copy_only=False)]
        is_kept = found > 0
        offsets = split.offsets.to_numpy()
        lengths = np.add.reduceat(is_kept, offsets[:-1] - offsets[0], dtype=np.int32)
        return found[is_kept], lengths, np.column_stack([column.to_numpy() for column in batch.columns[1:]])

    rows, pending, n_threads = Rows(out), deque(), os.cpu_count()
    with ThreadPoolExecutor(n_threads) as threads:
        for batch in engine.sql("FROM texts").to_arrow_reader(ROWS_AT_ONCE):
            pending.append(threads.submit(looked_up, batch))
            if len(pending) > 2 * n_threads:
                rows.append(*pending.popleft().result())
        for batch in pending:
            rows.append(*batch.result())
    rows.close(vocabulary)


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


main()
