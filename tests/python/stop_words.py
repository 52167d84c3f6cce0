"""Prints the stop words that a dataset of ours was made with, one a line.

usage: stop_words.py DATASET
"""

import sys

import h5py

with h5py.File(sys.argv[1]) as file:
    sys.stdout.buffer.write(bytes(file.attrs["stop_words"]) + b"\n")
