"""Compares the Parquet files of a dataset with the dataset and with the raw reviews, and reports the first difference.

Every file is read by pandas, Polars, DuckDB and Hugging Face `datasets`, offline and with the cache in a temporary
folder. Columns are compared with those that h5py reads, and texts with those that spec.py computes from the raw lines.
The description is validated by mlcroissant, which also reads the records and compares the SHA-256 of the files. Exits
with 1 and one line on the first difference.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
import xxhash

import expect
import spec
from dataset_file import Difference

IDS = ("ids", "label", "votes", "hash", "split")
TEXTS = ("text", "label", "rating", "votes", "hash", "split")
SCALARS = {"label": "uint8", "rating": "uint8", "hash": "uint64", "split": "uint16"}
# Records that mlcroissant reads of each set.
RECORDS = 50


def main() -> None:
    parser = argparse.ArgumentParser(description="Whether Parquet files have the rows of their dataset.")
    parser.add_argument("dataset")
    parser.add_argument("--ids", help="the Parquet file of its ids")
    parser.add_argument("--texts", help="the Parquet file of its texts")
    parser.add_argument("--croissant", required=True, help="their description")
    expect.add_input_arguments(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # The imports of the readers read these variables; they disable network access.
        os.environ.update(HF_HOME=folder, HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")
        try:
            print(f"{options.dataset}: {compare(options, folder)}")
        except Difference as difference:
            sys.exit(f"{options.dataset}: {difference}")


def compare(options: argparse.Namespace, folder: str) -> str:
    expected = rows_of(options.dataset)
    files = {"ids": (options.ids, IDS), "texts": (options.texts, TEXTS)}
    files = {name: file for name, file in files.items() if file[0] is not None}
    if "texts" in files:
        expected["text"] = texts_of(options, expected["hash"])
    for name, (path, columns) in files.items():
        for reader, load in READERS.items():
            found = load(path, folder)
            if tuple(found) != columns:
                raise Difference(f"{path}: columns {list(found)} by {reader}, expected {list(columns)}")
            for column in columns:
                compare_column(f"{path}: {column} by {reader}", found[column], expected[column])
    check_description(options.croissant, files, expected)
    n_rows = len(expected["label"])
    return f"{n_rows} rows agree, by {', '.join(READERS)}; valid for mlcroissant"


def rows_of(path: str) -> dict:
    """The columns of the dataset, by h5py, as lists."""
    with h5py.File(path, "r") as file:
        tokens, offsets = file["tokens"][...], file["offsets"][...].tolist()
        columns = {name: file[name][...].tolist() for name in ("label", "votes", "hash", "split")}
    columns["ids"] = [tokens[start:end].tolist() for start, end in zip(offsets, offsets[1:])]
    columns["rating"] = [spec.mode(votes) for votes in columns["votes"]]
    return columns


def texts_of(options: argparse.Namespace, hashes: list) -> list:
    """The cleaned text of each row, computed from the raw lines."""
    mapped = spec.mapped(expect.lines_of(options.raw), expect.fields_of(options))
    if mapped.undecided:
        raise Difference(f"{len(mapped.undecided)} reviews have a character newer than this Python")
    by_hash = {xxhash.xxh3_64_intdigest(text.encode()): text for text in mapped.votes}
    return [by_hash.get(number) for number in hashes]


def compare_column(where: str, found: list, expected: list) -> None:
    if len(found) != len(expected):
        raise Difference(f"{where}: {len(found)} rows, expected {len(expected)}")
    for row, (value, expected_value) in enumerate(zip(found, expected)):
        if value != expected_value:
            raise Difference(f"{where}, row {row}: {value!r}, expected {expected_value!r}")


# ---- the readers: columns as lists, after a check of their types


def by_pandas(path: str, _folder: str) -> dict:
    frame = importlib.import_module("pandas").read_parquet(path)
    check_types("pandas", {name: str(frame[name].dtype) for name in frame.columns})
    return {name: [as_list(value) for value in frame[name].tolist()] for name in frame.columns}


def by_polars(path: str, _folder: str) -> dict:
    frame = importlib.import_module("polars").read_parquet(path)
    check_types("Polars", {name: str(kind).lower() for name, kind in frame.schema.items()})
    return {name: frame[name].to_list() for name in frame.columns}


def by_duckdb(path: str, _folder: str) -> dict:
    relation = importlib.import_module("duckdb").read_parquet(path)
    names = {"utinyint": "uint8", "usmallint": "uint16", "ubigint": "uint64"}
    kinds = [str(kind).lower() for kind in relation.types]
    check_types("DuckDB", {name: names.get(kind, kind) for name, kind in zip(relation.columns, kinds)})
    rows = relation.fetchall()
    return {name: [row[at] for row in rows] for at, name in enumerate(relation.columns)}


def by_datasets(path: str, folder: str) -> dict:
    datasets = importlib.import_module("datasets")
    datasets.disable_progress_bars()
    loaded = datasets.load_dataset("parquet", data_files=os.path.abspath(path), split="train", cache_dir=folder)
    check_types("datasets", {name: getattr(kind, "dtype", "list") for name, kind in loaded.features.items()})
    return {name: loaded[name][:] for name in loaded.column_names}


READERS = {"pandas": by_pandas, "Polars": by_polars, "DuckDB": by_duckdb, "datasets": by_datasets}


def as_list(value):
    return value.tolist() if isinstance(value, np.ndarray) else value


def check_types(reader: str, types: dict) -> None:
    for name, kind in SCALARS.items():
        if types.get(name, kind) != kind:
            raise Difference(f"{name} is {types[name]} by {reader}, expected {kind}")


# ---- the description


def check_description(path: str, files: dict, expected: dict) -> None:
    described = json.loads(Path(path).read_text())
    found = {file["name"]: file["sha256"] for file in described["distribution"]}
    digests = {os.path.basename(file): sha256(file) for file, _ in files.values()}
    if found != digests:
        raise Difference(f"{path}: files {found}, expected {digests}")
    mlcroissant = importlib.import_module("mlcroissant")
    dataset = mlcroissant.Dataset(jsonld=path)
    issues = dataset.metadata.ctx.issues
    # What Sentimill cannot know.
    unknown = ("license", "datePublished", "citeAs")
    warnings = [warning for warning in issues.warnings if not any(name in warning for name in unknown)]
    if issues.errors or warnings:
        raise Difference(f"{path}: {sorted(issues.errors) + warnings}")
    sets = [record_set.name for record_set in dataset.metadata.record_sets]
    if sets != [*files, "labels"]:
        raise Difference(f"{path}: record sets {sets}, expected {[*files, 'labels']}")
    for name, (_, columns) in files.items():
        for row, record in enumerate(dataset.records(record_set=name)):
            if row == RECORDS:
                break
            for column in columns:
                value = decoded(record[f"{name}/{column}"])
                if value != expected[column][row]:
                    raise Difference(f"{path}: {name}/{column} of row {row}: {value!r}, expected {expected[column][row]!r}")
    labels = [(record["labels/label"], decoded(record["labels/name"])) for record in dataset.records(record_set="labels")]
    if labels != list(enumerate(name for _, name in labels)) or len(labels) <= max(expected["label"]):
        raise Difference(f"{path}: labels {labels}")


def decoded(value):
    """mlcroissant returns texts as bytes, and numbers and lists of NumPy."""
    if isinstance(value, bytes):
        return value.decode()
    return value.tolist() if hasattr(value, "tolist") else [decoded(one) for one in value] if isinstance(value, list) else value


def sha256(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
