"""Computes from raw review files the ledger, counts and digests that their dataset must have.

Prints one JSON object, or with --records the records of the pipe, combined and in byte order. Reads files one
after the other (gzip if the name ends in .gz), or standard input. `undecided` counts the reviews with a
character newer than this Python. If it is not 0, the other results may be wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import re
import sys
from collections import Counter
from typing import Iterator

import spec


def main() -> None:
    options = arguments().parse_args()
    mapped = spec.mapped(lines_of(options.raw), fields_of(options))
    add_undecided(mapped)
    if options.records:
        print_records(mapped.votes)
    else:
        print(json.dumps(expectation(mapped, settings_of(options)), indent=2))


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="What a dataset made from these raw lines must be.")
    add_input_arguments(parser)
    parser.add_argument("--records", action="store_true", help="print the folded records instead")
    parser.add_argument("--stop-words", metavar="FILE", help="one word a line; none without it")
    parser.add_argument("--max-tokens", type=int, default=400, help="0 keeps all")
    parser.add_argument("--keep", choices=("first", "last", "ends"), default="ends")
    parser.add_argument("--positive-from", type=int, default=4)
    parser.add_argument("--labels", type=spec.classes_of, help="classes in place of --positive-from")
    parser.add_argument("--sample", type=spec.sample_of, help="the share of the texts that become rows")
    parser.add_argument("--vocabulary-size", type=int, default=10_000)
    parser.add_argument("--vocabulary", metavar="DATASET", help="another dataset's words instead (needs h5py)")
    parser.add_argument("--without", metavar="DATASET", help="leave out the rows another dataset holds (needs h5py)")
    return parser


def add_input_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("raw", nargs="*", help="raw review files, gzip by name; standard input without any")
    parser.add_argument("--format", choices=spec.FORMATS, default="json")
    parser.add_argument("--preset", choices=spec.PRESETS, default="amazon2018")
    parser.add_argument("--text-field")
    parser.add_argument("--rating-field")
    parser.add_argument("--with-title", action="store_true", help="of polarity-csv: the title, then the text")
    parser.add_argument("--class-ratings", type=class_ratings_of, metavar="CLASS=RATING,...")
    parser.add_argument("--rating-scale", type=scale_of, metavar="LOW-HIGH")
    parser.add_argument("--unrated", type=parts_of, default=(), metavar="VALUE,...")
    parser.add_argument("--punctuation", action="store_true", help="numbers, punctuation and symbols are words")
    parser.add_argument("--line-bytes-max", type=int, default=spec.LINE_BYTES_MAX)


def fields_of(options: argparse.Namespace) -> spec.Fields:
    preset = spec.PRESETS[options.preset]
    text, rating = options.text_field or preset.text, options.rating_field or preset.rating
    how = (options.format, options.with_title, options.class_ratings, options.rating_scale, options.unrated, options.punctuation)
    return spec.Fields(text, rating, options.line_bytes_max, *how)


def class_ratings_of(pairs: str) -> tuple:
    split = (pair.rsplit("=", 1) for pair in parts_of(pairs))
    return tuple((name, int(rating)) for name, rating in split)


def parts_of(flag: str) -> tuple:
    """The parts between commas; `\\,` is a comma in a part."""
    return tuple(part.replace("\\,", ",") for part in re.split(r"(?<!\\),", flag))


def scale_of(flag: str) -> tuple:
    low, high = re.fullmatch(r"(-?[0-9.]+)-(-?[0-9.]+)", flag).groups()
    return float(low), float(high)


def settings_of(options: argparse.Namespace) -> spec.Settings:
    return spec.Settings(
        stop_words=stop_words_of(options.stop_words),
        max_tokens=options.max_tokens,
        keep=options.keep,
        positive_from=options.positive_from,
        labels=options.labels,
        sample=options.sample,
        vocabulary_size=options.vocabulary_size,
        **borrowed(options.vocabulary, options.without),
    )


def stop_words_of(path: str | None) -> frozenset:
    if path is None:
        return frozenset()
    with open(path, encoding="utf-8") as file:
        return frozenset(file.read().split("\n")) - {""}


def borrowed(vocabulary: str | None, without: str | None) -> dict:
    """Data of other datasets: their words in id order, or the hashes of their rows."""
    if vocabulary is None and without is None:
        return {}
    import dataset_file  # only here, because only this function needs h5py

    return {
        "vocabulary": tuple(dataset_file.words_of(vocabulary)) if vocabulary else None,
        "without": frozenset(dataset_file.hashes_of(without)) if without else frozenset(),
    }


def lines_of(paths: list) -> Iterator[bytes]:
    for path in paths or ["-"]:
        with open_raw(path) as stream:
            yield from spec.read_lines(stream)


def open_raw(path: str):
    if path == "-":
        return contextlib.nullcontext(sys.stdin.buffer)
    return gzip.open(path) if path.endswith(".gz") else open(path, "rb")


def add_undecided(mapped: spec.Mapped) -> None:
    for text, rating in mapped.undecided:
        if text:
            spec.add_vote(mapped.votes, text, rating)


def print_records(votes: dict) -> None:
    for text in sorted(votes, key=str.encode):
        sys.stdout.buffer.write(spec.record_line(text, votes[text]).encode())


def expectation(mapped: spec.Mapped, settings: spec.Settings) -> dict:
    rows, dictionary, dropped = spec.reduced(mapped.votes, settings)
    if settings.labels is None:
        del dropped["not_labelled"]
    if settings.sample is None:
        del dropped["not_sampled"]
    dataset = spec.merged(rows, dictionary, settings)
    return {
        **mapped.ledger,
        "distinct": len(mapped.votes),
        **dropped,
        **counts_of(dataset, dictionary, settings),
        "left_out": len(rows) - len(dataset.rows),
        "row_digest": dataset.row_digest,
        "id_digest": dataset.id_digest,
        "vocabulary_digest": dataset.vocabulary_digest,
        "undecided": len(mapped.undecided),
    }


def counts_of(dataset: spec.Dataset, dictionary: Counter, settings: spec.Settings) -> dict:
    labels = Counter(row.label for row in dataset.rows)
    classes = None if settings.labels is None else [labels[at] for at in range(len(settings.labels))]
    return {
        "rows": len(dataset.rows),
        **({"label_1": labels[1]} if classes is None else {"classes": classes}),
        "kept_words": sum(len(row.words) for row in dataset.rows),
        "distinct_words": len(dictionary),
    }


if __name__ == "__main__":
    main()
