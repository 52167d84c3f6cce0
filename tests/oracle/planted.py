"""Writes a dataset of the oracle to a file, unchanged or with one planted difference.

A minimal writer of the layout in crates/dataset/FORMAT.md, for synthetic reviews.
"""

from __future__ import annotations

import json

import h5py
import numpy as np

import dataset_file as form
import spec

WORDS = [first + middle + last for first in "bdfgklmnprst" for middle in "aeiou" for last in ("", "n", "l's", "\u00e9")]


def some_lines() -> list:
    """Synthetic reviews: 90 texts, some of them twice with another rating, with increasing lengths."""
    lines = []
    for number in range(110):
        text = number % 90
        words = [WORDS[(text * 7 + position * position) % (20 + text)] for position in range(1 + text % 17)]
        review = {"overall": 1 + number % 5, "reviewText": f"The {WORDS[text]} " + " ".join(words)}
        lines.append(json.dumps(review).encode())
    return lines


def made(lines: list, settings: spec.Settings) -> spec.Dataset:
    rows, dictionary, _ = spec.reduced(spec.mapped(lines, spec.Fields()).votes, settings)
    return spec.merged(rows, dictionary, settings)


SETTINGS = spec.Settings(stop_words=frozenset(("the", "be", "d\u00e9")), max_tokens=9, keep="ends", vocabulary_size=50)


class Plan:
    """A file before it is written: the content and the filters of each dataset and attribute."""

    def __init__(self, dataset: spec.Dataset, settings: spec.Settings):
        self.arrays = arrays_of(dataset)
        self.filters = {name: {"fletcher32": True, "shuffle": True, "compression": "gzip"} for name in self.arrays}
        self.attributes = {
            "stop_words": "\n".join(sorted(settings.stop_words, key=str.encode)),
            "cleaning_version": 1,
            "max_tokens": settings.max_tokens,
            "keep": settings.keep,
            **labels_of(settings),
            **({} if settings.sample is None else {"sample": settings.sample}),
            "vocabulary_size": settings.vocabulary_size,
            "row_digest": dataset.row_digest,
            "id_digest": dataset.id_digest,
            "vocabulary_digest": dataset.vocabulary_digest,
            "schema_version": 1,
        }

    def write(self, path: str) -> str:
        with h5py.File(path, "w") as file:
            for name, array in self.arrays.items():
                chunks = (min(16, max(1, len(array))), *array.shape[1:])
                maxshape = (None, *array.shape[1:])  # allows chunks for an empty dataset too
                file.create_dataset(name, data=array, chunks=chunks, maxshape=maxshape, **self.filters[name])
            for name, value in self.attributes.items():
                write_attribute(file, name, value)
        return path


def labels_of(settings: spec.Settings) -> dict:
    if settings.labels is None:
        return {"positive_from": settings.positive_from}
    return {"labels": ",".join(f"{first}-{last}={name}" for first, last, name in settings.labels)}


def write_attribute(file, name: str, value) -> None:
    if isinstance(value, str):
        content = value.encode()
        value = np.array(content, dtype=h5py.string_dtype("utf-8", len(content) + 1))
    file.attrs[name] = value


def arrays_of(dataset: spec.Dataset) -> dict:
    rows, words = dataset.rows, [word.encode() for word in dataset.words]
    return {
        "tokens": np.array([number for row in rows for number in row.ids], form.token_type(len(words))),
        "offsets": offsets_of([row.ids for row in rows]),
        "label": np.array([row.label for row in rows], "<u1"),
        "votes": np.array([row.votes for row in rows], "<u4").reshape(-1, 5),
        "hash": np.array([row.hash for row in rows], "<u8"),
        "split": np.array([row.split for row in rows], "<u2"),
        "vocabulary/bytes": np.frombuffer(b"".join(words), "<u1"),
        "vocabulary/offsets": offsets_of(words),
        "vocabulary/count": np.array(dataset.counts, "<u8"),
    }


def offsets_of(parts: list) -> np.ndarray:
    return np.cumsum([0] + [len(part) for part in parts]).astype("<u8")


# ---- differences: functions that modify a plan


def drop(part: str, name: str):
    return lambda plan: getattr(plan, part).pop(name)


def change(name: str, place, value):
    """Sets one element, or changes it with a function of its old value."""

    def apply(plan: Plan) -> None:
        array = plan.arrays[name] = plan.arrays[name].copy()
        array[place] = value(array[place]) if callable(value) else value
    return apply


def set_filter(name: str, **filters):
    return lambda plan: plan.filters[name].update(filters)


def set_attribute(name: str, value):
    return lambda plan: plan.attributes.update({name: value})


def set_type(name: str, kind: str):
    return lambda plan: plan.arrays.update({name: plan.arrays[name].astype(kind)})


def repeat_last_row(plan: Plan) -> None:
    for name in ("label", "votes", "hash", "split"):
        plan.arrays[name] = np.concatenate((plan.arrays[name], plan.arrays[name][-1:]))
    offsets, tokens = plan.arrays["offsets"], plan.arrays["tokens"]
    plan.arrays["tokens"] = np.concatenate((tokens, tokens[int(offsets[-2]):]))
    plan.arrays["offsets"] = np.concatenate((offsets, [2 * offsets[-1] - offsets[-2]])).astype("<u8")


def drop_last_row(plan: Plan) -> None:
    for name in ("label", "votes", "hash", "split", "offsets"):
        plan.arrays[name] = plan.arrays[name][:-1]
    plan.arrays["tokens"] = plan.arrays["tokens"][: int(plan.arrays["offsets"][-1])]


def move_boundary(plan: Plan) -> None:
    """Moves the first token of row 5 to row 4."""
    change("offsets", 5, lambda offset: offset + 1)(plan)


def swap_rows(plan: Plan) -> None:
    for name in ("label", "votes", "hash", "split"):
        plan.arrays[name] = plan.arrays[name][[1, 0, *range(2, len(plan.arrays[name]))]]


def swap_words(plan: Plan) -> None:
    """Swaps two adjacent vocabulary words of equal length, with their counts if these are stored."""
    offsets, content = plan.arrays["vocabulary/offsets"].astype(int), plan.arrays["vocabulary/bytes"].copy()
    lengths = np.diff(offsets)
    index = int(np.flatnonzero(lengths[1:] == lengths[:-1])[0])
    start, middle, end = offsets[index : index + 3]
    content[start:end] = np.concatenate((content[middle:end], content[start:middle]))
    plan.arrays["vocabulary/bytes"] = content


def add_rating(plan: Plan) -> None:
    plan.arrays["votes"] = np.pad(plan.arrays["votes"], ((0, 0), (0, 1)))


def shout_digest(plan: Plan) -> None:
    plan.attributes["id_digest"] = plan.attributes["id_digest"].upper()


def cut_split(plan: Plan) -> None:
    plan.arrays["split"] = plan.arrays["split"][:-1]


def add_column(plan: Plan) -> None:
    plan.arrays["rank"], plan.filters["rank"] = plan.arrays["split"], plan.filters["split"]


FLIPPED = "f" * 32
# The difference, its change, and the expected message of compare.py.
PLANTED = (
    ("an id", change("tokens", 17, lambda number: number + 1), ": id: "),
    ("an unknown word", change("tokens", -1, lambda number: 1 if number > 1 else 2), ": id: "),
    ("a label", change("label", 3, lambda label: 1 - label), "label"),
    ("a vote", change("votes", (3, 2), lambda votes: votes + 1), "votes"),
    ("a hash", change("hash", -1, lambda hash: hash + np.uint64(1)), "hash"),
    ("a split", change("split", 0, lambda split: (split + 1) % 1000), "split"),
    ("a row's end", move_boundary, "row 4"),
    ("the last offset", change("offsets", -1, lambda offset: offset - 1), "/offsets"),
    ("a falling offset", change("offsets", 3, 10**9), "/offsets[4]"),
    ("two words", swap_words, "vocabulary entry"),
    ("a letter", change("vocabulary/bytes", 0, ord("x")), "vocabulary entry 0"),
    ("a count", change("vocabulary/count", 7, lambda count: count + 1), "vocabulary entry 7"),
    ("one row more", repeat_last_row, "number of rows"),
    ("one row less", drop_last_row, "number of rows"),
    ("rows out of order", swap_rows, "row 1: hash"),
    ("wide tokens", set_type("tokens", "<u4"), "/tokens: type <u4, expected <u2"),
    ("narrow offsets", set_type("offsets", "<u4"), "/offsets: type"),
    ("signed labels", set_type("label", "i1"), "/label: type"),
    ("big-endian hashes", set_type("hash", ">u8"), "/hash: type >u8"),
    ("no checksum", set_filter("split", fletcher32=False), "/split: fletcher32"),
    ("no shuffle", set_filter("tokens", shuffle=False), "/tokens: shuffle"),
    ("no compression", set_filter("vocabulary/count", compression=None), "/vocabulary/count: compression"),
    ("another compression", set_filter("votes", compression="lzf"), "/votes: compression"),
    ("no split at all", drop("arrays", "split"), "/split: no such"),
    ("six ratings", add_rating, "/votes: shape"),
    ("the row digest", set_attribute("row_digest", FLIPPED), "row_digest"),
    ("the id digest", set_attribute("id_digest", FLIPPED), "id_digest"),
    ("the vocabulary digest", set_attribute("vocabulary_digest", FLIPPED), "vocabulary_digest"),
    ("a digest in capitals", shout_digest, "id_digest"),
    ("stop words unsorted", set_attribute("stop_words", "the\nbe\nd\u00e9"), "stop_words"),
    ("a stop word less", set_attribute("stop_words", "be\nd\u00e9"), "vocabulary entry"),
    ("another max_tokens", set_attribute("max_tokens", 8), "row "),
    ("other rules of cleaning", set_attribute("cleaning_version", 2), "attribute cleaning_version: 2, expected 1"),
    ("another keep", set_attribute("keep", "first"), "row "),
    ("an unknown keep", set_attribute("keep", "middle"), "attribute keep"),
    ("another threshold", set_attribute("positive_from", 5), "label"),
    ("two kinds of labels", set_attribute("labels", "1-3=negative,4-5=positive"), "attributes ['positive_from', "),
    ("no kind of labels", drop("attributes", "positive_from"), "attributes []"),
    ("a sample of all rows", set_attribute("sample", 2**31), "vocabulary entry 0"),
    ("another vocabulary size", set_attribute("vocabulary_size", 49), "vocabulary entry 49"),
    ("a setting less", drop("attributes", "max_tokens"), "attribute max_tokens: absent"),
    ("a string of any length", set_attribute("keep", np.array("ends", dtype=object)), "attribute keep"),
)


# The same for padded.py.
PADDED_PLANTED = (
    ("a token", change("rows", (3, 0), lambda number: number + 1), "rows[3, 0]"),
    ("the padding", change("rows", (0, -2), 7), "rows[0, "),
    ("the label's column", change("rows", (3, -1), 5), "rows[3, "),
    ("a label", change("label", 3, 5), "label[3]"),
    ("a vote", change("votes", (3, 1), 5), "votes[3, 1]"),
    ("a hash", change("hash", 3, 5), "hash[3]"),
    ("a split", change("split", 3, 1001), "split[3]"),
    ("wide rows", set_type("rows", "<u4"), "/rows: type"),
    ("no checksum", set_filter("rows", fletcher32=False), "/rows: fletcher32"),
    ("a row less", cut_split, "/split: "),
    ("another dataset", add_column, "datasets"),
    ("another digest", set_attribute("id_digest", FLIPPED), "attribute id_digest"),
    ("a setting less", drop("attributes", "keep"), "attribute keep: absent"),
)
