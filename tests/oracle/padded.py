"""Compares a padded file with its dataset and reports the first difference.

Checks every row with h5py. Then loads the file as its users do, with Hugging Face `datasets`, offline and
with the cache in a temporary folder, and compares again. Exits with 1 and one line on the first difference.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile

import h5py
import numpy as np

import dataset_file as form
from dataset_file import Difference

COLUMNS = ("rows", *form.ROW_TYPES)
# A dataset made with --vocabulary may have no vocabulary size. Every other setting and digest is required.
ATTRIBUTES = (*form.TEXT_ATTRIBUTES, *form.NUMBER_ATTRIBUTES)


def main() -> None:
    parser = argparse.ArgumentParser(description="Whether a padded file holds the rows of its dataset.")
    parser.add_argument("padded")
    parser.add_argument("dataset")
    options = parser.parse_args()
    try:
        expected = columns_from(options.padded, options.dataset)
        n_rows, width = expected["rows"].shape
        loaded = n_rows > 0  # datasets refuses a file without rows
        if loaded:
            types = {name: column.dtype for name, column in expected.items()}
            compare_loaded(load_columns(options.padded, types), expected)
    except Difference as difference:
        sys.exit(f"{options.padded}: {difference}")
    readers = "by h5py and by datasets" if loaded else "by h5py; datasets loads no file without rows"
    print(f"{options.padded}: {n_rows} rows of {width - 1} tokens and a label agree, {readers}")


def columns_from(padded_path: str, dataset_path: str) -> dict:
    """The expected columns of the padded file, after comparison with the actual ones."""
    with h5py.File(padded_path, "r") as padded, h5py.File(dataset_path, "r") as dataset:
        compare_attributes(padded, dataset)
        length = check_forms(padded, dataset)
        expected = {name: dataset[name][...] for name in form.ROW_TYPES}
        expected["rows"] = padded_rows(dataset, length)
        for name in COLUMNS:
            compare_column(name, padded[name][...], expected[name])
    return expected


def compare_attributes(padded: h5py.File, dataset: h5py.File) -> None:
    """Checks that settings and digests exist, and that all attributes that both files have are equal."""
    for name in (*ATTRIBUTES, form.label_attribute(dataset)):
        if name not in padded.attrs:
            raise Difference(f"attribute {name}: absent")
    for name in set(padded.attrs) & set(dataset.attrs):
        if not np.array_equal(padded.attrs[name], dataset.attrs[name]):
            raise Difference(f"attribute {name}: {padded.attrs[name]!r}, expected {dataset.attrs[name]!r}")


def check_forms(padded: h5py.File, dataset: h5py.File) -> int:
    """Number of tokens per padded row. `datasets` loads every HDF5 dataset as a column, whose first dimension is
    N."""
    if sorted(padded) != sorted(COLUMNS):
        raise Difference(f"datasets {sorted(padded)}, expected {sorted(COLUMNS)}")
    n_rows = dataset["label"].shape[0]
    types = {"rows": dataset["tokens"].dtype.str, **form.ROW_TYPES}
    for name in COLUMNS:
        column = form.dataset_named(padded, name)
        form.check_form(column, types[name])
        if column.shape[0] != n_rows:
            raise Difference(f"/{name}: {column.shape[0]} rows, expected {n_rows}")
    if padded["rows"].ndim != 2 or padded["rows"].shape[1] < 2:
        raise Difference(f"/rows: shape {padded['rows'].shape}, expected [N, L + 1]")
    return padded["rows"].shape[1] - 1


def padded_rows(dataset: h5py.File, length: int) -> np.ndarray:
    tokens, offsets, labels = (dataset[name][...] for name in ("tokens", "offsets", "label"))
    rows = np.zeros((len(labels), length + 1), dtype=tokens.dtype)
    for row, label, start, end in zip(rows, labels, offsets.tolist(), offsets[1:].tolist()):
        kept = tokens[start:end][:length]
        row[: len(kept)] = kept
        row[length] = label
    return rows


def compare_loaded(found: dict, expected: dict) -> None:
    for name in COLUMNS:
        compare_column(f"{name} by datasets", found[name], expected[name])


def compare_column(name: str, found: np.ndarray, expected: np.ndarray) -> None:
    if found.shape != expected.shape:
        raise Difference(f"{name}: shape {found.shape}, expected {expected.shape}")
    different = np.argwhere(found != expected)
    if len(different):
        where = tuple(different[0])
        raise Difference(f"{name}{[int(i) for i in where]}: {found[where]}, expected {expected[where]}")


def load_columns(path: str, types: dict) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        # The import below reads these variables; they disable network access.
        os.environ.update(HF_HOME=folder, HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")
        import datasets

        datasets.disable_progress_bars()
        loaded = datasets.load_dataset("hdf5", data_files=os.path.abspath(path), split="train", cache_dir=folder)
        # Not with_format("numpy"), which converts every integer to int64.
        return {name: np.array(loaded[name][:], types[name]) for name in COLUMNS}


if __name__ == "__main__":
    main()
