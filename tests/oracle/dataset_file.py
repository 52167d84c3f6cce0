"""Reads a dataset file into arrays, words and settings, using only h5py.

Uses the names and types that the contract defines for datasets and attributes. Does not check their content.
"""

from __future__ import annotations

import h5py
import numpy as np

ROW_TYPES = {"label": "<u1", "votes": "<u4", "hash": "<u8", "split": "<u2"}
VOCABULARY_TYPES = {"vocabulary/bytes": "<u1", "vocabulary/offsets": "<u8", "vocabulary/count": "<u8"}
TEXT_ATTRIBUTES = ("stop_words", "keep", "row_digest", "id_digest", "vocabulary_digest")
NUMBER_ATTRIBUTES = ("max_tokens",)
LABEL_ATTRIBUTES = ("positive_from", "labels")  # a file has one of them
TOKEN_U16_MAX = 65_535


class Difference(Exception):
    """The first difference found."""


def token_type(n_words: int) -> str:
    """The type of ids, which reach n_words + 1, because 0 and 1 are not words."""
    return "<u2" if n_words + 1 <= TOKEN_U16_MAX else "<u4"


def check_form(dataset: h5py.Dataset, expected_type: str) -> None:
    """Checks the type of the elements, and the three filters of every chunk."""
    name = dataset.name
    if dataset.dtype != np.dtype(expected_type):
        raise Difference(f"{name}: type {dataset.dtype.str}, expected {expected_type}")
    for filter_name, found, expected in (
        ("fletcher32", dataset.fletcher32, True),
        ("shuffle", dataset.shuffle, True),
        ("compression", dataset.compression, "gzip"),
    ):
        if found != expected:
            raise Difference(f"{name}: {filter_name} is {found}, expected {expected}")


def dataset_named(file: h5py.File, name: str) -> h5py.Dataset:
    found = file.get(name)
    if not isinstance(found, h5py.Dataset):
        raise Difference(f"/{name}: no such dataset")
    return found


def text_attribute(file: h5py.File, name: str) -> str:
    """A fixed-length UTF-8 string without its NUL padding."""
    if name not in file.attrs:
        raise Difference(f"attribute {name}: absent")
    kind = h5py.check_string_dtype(file.attrs.get_id(name).dtype)
    if kind is None or kind.length is None or kind.encoding != "utf-8":
        raise Difference(f"attribute {name}: {kind}, expected a fixed-length UTF-8 string")
    return bytes(file.attrs[name]).rstrip(b"\0").decode("utf-8")


def number_attribute(file: h5py.File, name: str) -> int:
    if name not in file.attrs:
        raise Difference(f"attribute {name}: absent")
    value = file.attrs[name]
    if np.shape(value) != () or not np.issubdtype(np.asarray(value).dtype, np.integer):
        raise Difference(f"attribute {name}: {value!r}, expected one integer")
    return int(value)


def label_attribute(file: h5py.File) -> str:
    """The name of the one attribute that defines the labels."""
    found = [name for name in LABEL_ATTRIBUTES if name in file.attrs]
    if len(found) != 1:
        raise Difference(f"attributes {found}, expected one of {list(LABEL_ATTRIBUTES)}")
    return found[0]


def words_in(file: h5py.File) -> list:
    """The vocabulary in id order; entry i has id i + 2."""
    content = bytes(dataset_named(file, "vocabulary/bytes")[...])
    offsets = dataset_named(file, "vocabulary/offsets")[...].tolist()
    check_offsets("/vocabulary/offsets", offsets, len(content))
    return [content[start:end].decode("utf-8") for start, end in zip(offsets, offsets[1:])]


def check_offsets(name: str, offsets: list, total: int) -> None:
    if not offsets or offsets[0] != 0 or offsets[-1] != total:
        raise Difference(f"{name}: runs {offsets[:1]} to {offsets[-1:]}, expected 0 to {total}")
    for index, (start, end) in enumerate(zip(offsets, offsets[1:])):
        if end < start:
            raise Difference(f"{name}[{index + 1}]: {end} after {start}, expected no descent")


def words_of(path: str) -> list:
    with h5py.File(path, "r") as file:
        return words_in(file)


def hashes_of(path: str) -> list:
    with h5py.File(path, "r") as file:
        return dataset_named(file, "hash")[...].tolist()
