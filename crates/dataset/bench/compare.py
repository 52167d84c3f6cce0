#!/usr/bin/env python3
"""Measures reading all columns of rows of a dataset: by this project's reader with one and two threads, by the HDF5 library
that it is built with, and by h5py. They run in turn. Prints medians and the spread in GB of decoded elements per second.
The file is in the page cache and is opened each time.

usage: crates/dataset/bench/compare.py EXAMPLE DATASET   (target/release/examples/read; needs h5py)
Environment: ROUNDS (default 9).
"""

import os
import statistics
import subprocess
import sys
import time

import h5py

COLUMNS = ["tokens", "offsets", "label", "votes", "hash", "split"]


def main():
    example, dataset = sys.argv[1:]
    rounds = int(os.environ.get("ROUNDS", 9))
    seconds = {}
    for _ in range(rounds):
        lines = subprocess.run([example, dataset], check=True, capture_output=True, text=True).stdout.splitlines()
        took = dict(line.split("\t") for line in lines)
        n_bytes = int(took.pop("bytes"))
        begin = time.perf_counter()
        if (found := by_h5py(dataset)) != n_bytes:
            sys.exit(f"{dataset}: h5py read {found} bytes, {example} {n_bytes}")
        took["h5py"] = time.perf_counter() - begin
        for reader, value in took.items():
            seconds.setdefault(reader, []).append(float(value))

    print(f"{n_bytes / 1e6:.1f} MB of elements; median of {rounds} rounds on {os.cpu_count()} cores, h5py {h5py.__version__}")
    print(f"{'':14}{'GB/s':>8}{'slowest':>9}{'fastest':>9}")
    for reader, took in seconds.items():
        speeds = [n_bytes / 1e9 / took for took in (statistics.median(took), max(took), min(took))]
        print(f"{reader:14}{speeds[0]:8.3f}{speeds[1]:9.3f}{speeds[2]:9.3f}")


def by_h5py(dataset):
    with h5py.File(dataset) as file:
        return sum(file[column][:].nbytes for column in COLUMNS)


if __name__ == "__main__":
    main()
