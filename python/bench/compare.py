#!/usr/bin/env python3
"""Compares the speed of this package with that of h5py on the same dataset.

Measures opening the file and reading all tokens, all columns, each row in order, and random rows. In each round, both
readers run one after the other. The file is in the page cache. h5py verifies the fletcher32 checksum of a chunk; this
package verifies its XXH3-128 digest. Prints median, fastest and slowest time, the median CPU time of all processors,
which other programs on the machine affect less, and the ratio of the median times.

usage: PYTHONPATH=python python/bench/compare.py DATASET    (requires h5py, numpy, xxhash)
The environment variable ROUNDS sets the number of rounds (default 9).
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from itertools import pairwise

import h5py
import numpy as np

import sentimill
from sentimill.dataset import COLUMNS

N_RANDOM_ROWS = 2000
OF_ROWS = ("label", "votes", "hash", "split")


def main() -> None:
    (path,) = sys.argv[1:]
    rounds = int(os.environ.get("ROUNDS", 9))
    with sentimill.open_dataset(path) as dataset:
        n_rows, n_tokens = len(dataset), dataset.n_tokens
    numbers = np.random.default_rng(1).integers(0, n_rows, N_RANDOM_ROWS).tolist()
    tasks = {
        "open": (lambda: h5py_open(path), lambda: sentimill_open(path)),
        "all tokens": (lambda: h5py_columns(path, ["tokens"]), lambda: sentimill_columns(path, ["tokens"])),
        "all columns": (lambda: h5py_columns(path, COLUMNS), lambda: sentimill_columns(path, COLUMNS)),
        "iterate rows": (lambda: h5py_iterate(path), lambda: sentimill_iterate(path)),
        f"{N_RANDOM_ROWS} random rows": (lambda: h5py_rows(path, numbers), lambda: sentimill_rows(path, numbers)),
    }
    print(f"{path}: {n_rows} rows, {n_tokens} tokens, {os.path.getsize(path) / 1e6:.1f} MB")
    print(f"{rounds} rounds on {os.cpu_count()} cores, h5py {h5py.__version__}, NumPy {np.__version__}, milliseconds")
    of_each = f"{'fastest':>9}{'slowest':>9}{'CPU':>9}"
    print(f"{'':18}{'h5py':>10}{of_each}{'sentimill':>11}{of_each}{'ratio':>8}")
    for name, readers in tasks.items():
        wall: tuple[list[float], list[float]] = ([], [])
        processors: tuple[list[float], list[float]] = ([], [])
        for _ in range(rounds):
            results = []
            for reader, times, used in zip(readers, wall, processors, strict=True):
                begin, used_before = time.perf_counter(), time.process_time()
                results.append(reader())
                times.append(1e3 * (time.perf_counter() - begin))
                used.append(1e3 * (time.process_time() - used_before))
            if results[0] != results[1]:
                sys.exit(f"{path}: {name}: h5py read {results[0]}, sentimill {results[1]}")
        theirs, ours = (statistics.median(times) for times in wall)
        of_h5py, of_ours = (
            f"{min(times):9.1f}{max(times):9.1f}{statistics.median(used):9.1f}"
            for times, used in zip(wall, processors, strict=True)
        )
        print(f"{name:18}{theirs:10.1f}{of_h5py}{ours:11.1f}{of_ours}{theirs / ours:8.2f}")


def h5py_open(path: str) -> int:
    with h5py.File(path) as file:
        return int(file["label"].shape[0])


def sentimill_open(path: str) -> int:
    with sentimill.open_dataset(path) as dataset:
        return len(dataset)


def h5py_columns(path: str, names: list[str] | tuple[str, ...]) -> int:
    with h5py.File(path) as file:
        return sum(file[name][:].nbytes for name in names)


def sentimill_columns(path: str, names: list[str] | tuple[str, ...]) -> int:
    with sentimill.open_dataset(path) as dataset:
        return sum(dataset.column(name).nbytes for name in names)


def h5py_iterate(path: str) -> tuple[int, int]:
    """Reads whole columns, because reading row by row with h5py takes longer than all other measurements."""
    n_tokens = n_positive = 0
    with h5py.File(path) as file:
        tokens, bounds = file["tokens"][:], file["offsets"][:].tolist()
        label, votes, hashes, split = (file[name][:] for name in OF_ROWS)
        columns = zip(pairwise(bounds), label.tolist(), votes, hashes.tolist(), split.tolist(), strict=True)
        for (begin, end), value, _votes, _hash, _split in columns:
            n_tokens += len(tokens[begin:end])
            n_positive += value
    return n_tokens, n_positive


def sentimill_iterate(path: str) -> tuple[int, int]:
    n_tokens = n_positive = 0
    with sentimill.open_dataset(path) as dataset:
        for row in dataset:
            n_tokens += len(row.ids)
            n_positive += row.label
    return n_tokens, n_positive


def h5py_rows(path: str, numbers: list[int]) -> tuple[int, int]:
    n_tokens = hashes = 0
    with h5py.File(path) as file:
        tokens, offsets = file["tokens"], file["offsets"]
        label, votes, hash_, split = (file[name] for name in OF_ROWS)
        for at in numbers:
            begin, end = offsets[at : at + 2].tolist()
            _row = tokens[begin:end], label[at], votes[at], split[at]
            n_tokens += len(_row[0])
            hashes ^= int(hash_[at])
    return n_tokens, hashes


def sentimill_rows(path: str, numbers: list[int]) -> tuple[int, int]:
    n_tokens = hashes = 0
    with sentimill.open_dataset(path) as dataset:
        for at in numbers:
            row = dataset[at]
            n_tokens += len(row.ids)
            hashes ^= row.hash
    return n_tokens, hashes


if __name__ == "__main__":
    main()
