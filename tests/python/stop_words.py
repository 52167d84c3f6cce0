"""Prints the stop words in the settings of a dataset, one per line.

usage: stop_words.py DATASET
"""

import sys

import h5py

with h5py.File(sys.argv[1]) as file:
    sys.stdout.buffer.write(bytes(file.attrs["stop_words"]) + b"\n")
