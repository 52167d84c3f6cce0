"""The job of sentimill in Polars' streaming engine: JSON lines or CSV -> an HDF5 file with the same rows in any order.

Omits: the order of rows by hash, `hash`, `split` and all digests; the ledger and positions of bad lines (a line without text
and rating is skipped, an invalid one stops Polars); Python literals; duplicate fields; texts that start with a
mark. Memory is not limited: the distinct texts are in memory.

usage: in_polars.py REVIEWS STOP_WORDS OUT   (STOP_WORDS: a file of one word per line)
"""

import html
import sys
from html.entities import html5

import numpy as np
import polars as pl

from rows import FIRST_WORD, UNKNOWN, VOCABULARY_SIZE, Rows

TEXTS_AT_ONCE = 64 << 10
REFERENCE = r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);"
# Marks are removed except after a letter. The pattern does not match a single space, which needs no replacement.
NO_WORD = r"(?:'+[^\p{L}']| [^\p{L}]|[^\p{L}\p{M}' ])[^\p{L}]*"
VOTES = [f"n{stars}" for stars in range(1, 6)]


def main():
    reviews, stop_words, out = sys.argv[1:]
    with open(stop_words, encoding="utf-8") as words:
        stop_words = words.read().split()
    texts = fold(reviews)
    vocabulary = count(texts, stop_words)
    encode(texts, stop_words, vocabulary, out)


def fold(reviews):
    """Returns each distinct text with its votes."""
    text, rating = pl.col("reviewText"), pl.col("overall").str.strip_chars().cast(pl.Float64, strict=False)
    decoded = text.map_batches(decode, return_dtype=pl.String, is_elementwise=True)
    without_tags = decoded.str.replace_all("<[A-Za-z/!][^<>]*>", " ").str.replace_all("’", "'", literal=True)
    cleaned = without_tags.str.to_lowercase().str.replace_all(NO_WORD, " ").str.strip_chars(" '")
    votes = [(pl.col("rating") == stars).sum().cast(pl.UInt32).alias(f"n{stars}") for stars in range(1, 6)]
    schema = {"reviewText": pl.String, "overall": pl.String}
    is_csv = reviews.endswith(".csv")
    scanned = pl.scan_csv(reviews, schema=schema) if is_csv else pl.scan_ndjson(reviews, schema=schema, ignore_errors=True)
    return (
        scanned.select(cleaned.alias("text"), rating.alias("rating"))
        .filter(pl.col("text") != "", pl.col("rating").is_in([1.0, 2.0, 3.0, 4.0, 5.0]))
        .group_by("text")
        .agg(votes)
        .collect(engine="streaming")
    )


def decode(texts):
    """Replaces the few references of a batch in one pass, so that nothing is decoded twice."""
    some = texts.filter(texts.str.contains("&", literal=True))
    references = some.str.extract_all(REFERENCE).explode().drop_nulls().unique().to_list()
    known = [reference for reference in references if reference[1] == "#" or reference[1:] in html5]
    if not known:
        return texts
    return texts.str.replace_many(known, [html.unescape(reference) for reference in known])


def words_of(texts):
    rows = pl.int_range(pl.len(), dtype=pl.UInt32).alias("row")
    return texts.lazy().select(rows, pl.col("text").str.split(" ").alias("word")).explode("word")


def count(texts, stop_words):
    """Returns the most frequent words and their counts."""
    parts = [words_of(part).group_by("word").len().collect() for part in texts.iter_slices(TEXTS_AT_ONCE)]
    if not parts:
        return []
    counts = pl.concat(parts).filter(~pl.col("word").is_in(stop_words)).group_by("word").agg(pl.col("len").cast(pl.UInt64).sum())
    most = counts.sort(["len", "word"], descending=[True, False]).head(VOCABULARY_SIZE)
    return [(word.encode(), occurrences) for word, occurrences in most.iter_rows()]


def encode(texts, stop_words, vocabulary, out):
    known = pl.Enum(stop_words + [word.decode() for word, _ in vocabulary])
    n_stop_words, rows = len(stop_words), Rows(out)
    # Larger than any position in `known`. After the stop words, position minus this offset is the id.
    unknown, first = 65_535, n_stop_words - FIRST_WORD
    place = pl.col("word").cast(known, strict=False).to_physical().cast(pl.UInt16).fill_null(unknown)
    for part in texts.iter_slices(TEXTS_AT_ONCE):
        kept = words_of(part).select("row", place.alias("place")).filter(pl.col("place") >= n_stop_words).collect()
        places = kept["place"].to_numpy()
        ids = np.where(places == unknown, np.uint16(UNKNOWN), places - np.uint16(first))
        lengths = np.bincount(kept["row"].to_numpy(), minlength=len(part))
        rows.append(ids, lengths, part.select(VOTES).to_numpy())
    rows.close(vocabulary)


main()
