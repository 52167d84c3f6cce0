"""Compares a dataset file with the raw reviews from which it was made, and reports the first difference.

Computes the dataset again from the raw lines with spec.py and the settings in the file's attributes, and
compares everything that crates/dataset/FORMAT.md defines. Exits with 1 and one line on the first difference.

Reviews with a character newer than this Python are `undecided` and are not compared. They may add votes and
rows, at most as many as there are undecided reviews. Word counts may then be larger, and the row digest is
not checked.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from itertools import zip_longest

import h5py
import numpy as np

import dataset_file as form
import expect
import spec
from dataset_file import Difference


def main() -> None:
    options = arguments().parse_args()
    mapped = spec.mapped(expect.lines_of(options.raw), expect.fields_of(options))
    try:
        with h5py.File(options.dataset, "r") as file:
            agreement = compare(file, mapped, expect.borrowed(options.vocabulary, options.without))
    except Difference as difference:
        sys.exit(f"{options.dataset}: {difference}")
    print(f"{options.dataset}: {agreement}")


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Whether a dataset is what these raw lines must become.")
    parser.add_argument("dataset")
    expect.add_input_arguments(parser)
    parser.add_argument("--vocabulary", metavar="DATASET", help="the dataset whose words this one took")
    parser.add_argument("--without", metavar="DATASET", help="the dataset whose rows this one leaves out")
    return parser


def compare(file: h5py.File, mapped: spec.Mapped, borrowed: dict) -> str:
    """Returns one line that states what agrees; raises the first Difference."""
    settings = settings_in(file, borrowed)
    if (version := form.number_attribute(file, "cleaning_version")) != mapped.cleaning_version:
        raise Difference(f"attribute cleaning_version: {version}, expected {mapped.cleaning_version}")
    check_forms(file)
    found = dataset_in(file)
    check_order(found.rows)
    rows, dictionary, dropped = spec.reduced(mapped.votes, settings)
    if mapped.undecided:
        if dropped["not_labelled"]:
            raise Difference("undecided reviews may add votes, so it is unknown which texts have no class")
        compare_decided(found, rows, dictionary, settings, len(mapped.undecided))
    else:
        compare_whole(found, spec.merged(rows, dictionary, settings))
    n_tokens = sum(len(row.ids) for row in found.rows)
    return (
        f"{len(found.rows)} rows, {n_tokens} tokens, {len(found.words)} words agree; "
        f"{len(mapped.undecided)} reviews undecided"
    )


# ---- the file


def settings_in(file: h5py.File, borrowed: dict) -> spec.Settings:
    numbers = {name: form.number_attribute(file, name) for name in form.NUMBER_ATTRIBUTES}
    if borrowed.get("vocabulary") is None:
        numbers["vocabulary_size"] = form.number_attribute(file, "vocabulary_size")
    labels = None
    if form.label_attribute(file) == "labels":
        labels = spec.classes_of(form.text_attribute(file, "labels"))
    else:
        numbers["positive_from"] = form.number_attribute(file, "positive_from")
    if "sample" in file.attrs:
        numbers["sample"] = form.number_attribute(file, "sample")
    keep = form.text_attribute(file, "keep")
    if keep not in ("first", "last", "ends"):
        raise Difference(f"attribute keep: {keep!r}, expected first, last or ends")
    return spec.Settings(stop_words=stop_words_in(file), keep=keep, labels=labels, **numbers, **borrowed)


def stop_words_in(file: h5py.File) -> frozenset:
    text = form.text_attribute(file, "stop_words")
    words = text.split("\n") if text else []
    if words != sorted(set(words), key=str.encode):
        raise Difference("attribute stop_words: not ascending in byte order")
    return frozenset(words)


def check_forms(file: h5py.File) -> None:
    """Checks types, shapes and filters of every dataset before reading any of them."""
    n_rows = form.dataset_named(file, "label").shape[0]
    n_words = form.dataset_named(file, "vocabulary/count").shape[0]
    n_tokens, n_bytes = form.dataset_named(file, "tokens").size, form.dataset_named(file, "vocabulary/bytes").size
    types = {"tokens": form.token_type(n_words), "offsets": "<u8", **form.ROW_TYPES, **form.VOCABULARY_TYPES}
    shapes = dict.fromkeys(types, (n_rows,)) | {
        "tokens": (n_tokens,),
        "offsets": (n_rows + 1,),
        "votes": (n_rows, 5),
        "vocabulary/bytes": (n_bytes,),
        "vocabulary/offsets": (n_words + 1,),
        "vocabulary/count": (n_words,),
    }
    for name, expected_type in types.items():
        dataset = form.dataset_named(file, name)
        form.check_form(dataset, expected_type)
        if dataset.shape != shapes[name]:
            raise Difference(f"/{name}: shape {dataset.shape}, expected {shapes[name]}")


def dataset_in(file: h5py.File) -> spec.Dataset:
    """The file as the oracle's type. Its rows have ids, but no texts and no words."""
    tokens = file["tokens"][...].tolist()
    offsets = file["offsets"][...].tolist()
    form.check_offsets("/offsets", offsets, len(tokens))
    columns = (file[name][...].tolist() for name in ("votes", "label", "hash", "split"))
    rows = [
        spec.Row("", votes, label, [], hash, split, tokens[start:end])
        for votes, label, hash, split, start, end in zip(*columns, offsets, offsets[1:])
    ]
    digests = (form.text_attribute(file, name) for name in ("row_digest", "id_digest", "vocabulary_digest"))
    return spec.Dataset(rows, form.words_in(file), file["vocabulary/count"][...].tolist(), *digests)


def check_order(rows: list) -> None:
    for index, (row, next_row) in enumerate(zip(rows, rows[1:])):
        if next_row.hash < row.hash:
            raise Difference(f"row {index + 1}: hash {next_row.hash:016x} after {row.hash:016x}, expected no descent")


# ---- the comparison


def compare_whole(found: spec.Dataset, expected: spec.Dataset) -> None:
    compare_vocabulary(found, expected)
    compare_rows(found.rows, expected.rows)
    for name in ("row_digest", "id_digest", "vocabulary_digest"):
        require_equal(f"attribute {name}", getattr(found, name), getattr(expected, name))


def compare_vocabulary(found: spec.Dataset, expected: spec.Dataset) -> None:
    pairs = zip_longest(zip(found.words, found.counts), zip(expected.words, expected.counts))
    for index, (found_pair, expected_pair) in enumerate(pairs):
        require_equal(f"vocabulary entry {index}, id {index + spec.FIRST_WORD_ID}", found_pair, expected_pair)


def compare_rows(found: list, expected: list) -> None:
    for index, (row, expected_row) in enumerate(zip(found, expected)):
        for name in ("hash", "label", "votes", "split"):
            where = f"row {index} (hash {row.hash:016x}): {name}"
            require_equal(where, getattr(row, name), getattr(expected_row, name))
        compare_ids(index, row, expected_row)
    require_equal("number of rows", len(found), len(expected))


def compare_ids(index: int, row: spec.Row, expected_row: spec.Row) -> None:
    where = f"row {index} (hash {row.hash:016x})"
    for position, (found_id, expected_id, word) in enumerate(zip(row.ids, expected_row.ids, expected_row.words)):
        require_equal(f"{where}: token {position}, {word!r}: id", found_id, expected_id)
    require_equal(f"{where}: number of tokens", len(row.ids), len(expected_row.ids))


def require_equal(where: str, found, expected) -> None:
    if found != expected:
        raise Difference(f"{where}: {found}, expected {expected}")


# ---- the comparison if some reviews are undecided


def compare_decided(
    found: spec.Dataset, rows: list, dictionary: Counter, settings: spec.Settings, undecided: int
) -> None:
    """Compares what undecided reviews cannot change, and the file's own two digests with its content."""
    if settings.vocabulary is None:
        check_vocabulary_order(found, dictionary, settings.vocabulary_size)
    else:
        require_equal("vocabulary", found.words, list(settings.vocabulary))
    for word, count in zip(found.words, found.counts):
        if count < dictionary[word]:
            raise Difference(f"vocabulary count of {word!r}: {count}, expected at least {dictionary[word]}")
    rows = [row for row in rows if row.hash not in settings.without]
    decided = allow_undecided(found.rows, rows, settings, undecided)
    spec.give_ids(rows, found.words)
    compare_rows(decided, rows)
    require_equal("attribute id_digest", found.id_digest, spec.id_digest(found.rows))
    digest = spec.vocabulary_digest(found.words, found.counts)
    require_equal("attribute vocabulary_digest", found.vocabulary_digest, digest)


def check_vocabulary_order(found: spec.Dataset, dictionary: Counter, vocabulary_size: int) -> None:
    keys = [(-count, word.encode()) for word, count in zip(found.words, found.counts)]
    if keys != sorted(set(keys)) or len(keys) > vocabulary_size:
        raise Difference(f"vocabulary: not at most {vocabulary_size} words by descending count, ties by bytes")
    left_over = set(dictionary) - set(found.words)
    most = max((dictionary[word] for word in left_over), default=0)
    least = found.counts[-1] if len(keys) == vocabulary_size and keys else 0
    if most > least:
        raise Difference(f"vocabulary: lacks a word that occurs {most} times, its least frequent occurs {least} times")


def allow_undecided(found: list, expected: list, settings: spec.Settings, undecided: int) -> list:
    """The found rows whose texts are expected. Their votes are set to the found ones if these only add votes."""
    by_hash = {row.hash: row for row in expected}
    surplus, decided = 0, []
    for row in found:
        own = by_hash.get(row.hash)
        if own is not None:
            decided.append(row)
            surplus += take_votes(own, row.votes, settings)
        else:
            surplus += sum(row.votes)
    if surplus > undecided:
        raise Difference(f"{surplus} votes beyond those of decided reviews, expected at most {undecided}")
    return decided


def take_votes(own: spec.Row, votes: list, settings: spec.Settings) -> int:
    """Number of added votes; 0 if a vote is missing, which the comparison of rows reports."""
    added = np.subtract(votes, own.votes)
    if (added < 0).any():
        return 0
    own.votes = votes
    own.label = spec.label_of(votes, settings)
    return int(added.sum())


if __name__ == "__main__":
    main()
