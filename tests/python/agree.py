"""Checks that a dataset of this project and one of another program (merge.py here, sentimill/bench/rows.py) have
the same words, counts and rows, with the rows in any order.

usage: agree.py OURS THEIRS
"""

import sys
from collections import Counter

import h5py
import numpy as np


def rows(file):
    offsets, tokens = file["offsets"][:].astype(int), file["tokens"][:]
    parts = zip(offsets[:-1], offsets[1:], file["label"][:], file["votes"][:])
    return sorted((tokens[begin:end].tobytes(), label, votes.tobytes()) for begin, end, label, votes in parts)


def words(file):
    if "word" in file["vocabulary"]:
        return list(file["vocabulary/word"][:])
    offsets, letters = file["vocabulary/offsets"][:].astype(int), file["vocabulary/bytes"][:].tobytes()
    return [letters[begin:end] for begin, end in zip(offsets[:-1], offsets[1:])]


def main():
    with h5py.File(sys.argv[1]) as ours, h5py.File(sys.argv[2]) as theirs:
        found = {
            "words": words(ours) == words(theirs),
            "counts": ours["vocabulary/count"][:].tolist() == theirs["vocabulary/count"][:].tolist(),
        }
        of_ours, of_theirs = rows(ours), rows(theirs)
        found["rows"] = of_ours == of_theirs
        differing = [name for name, same in found.items() if not same]
        if differing:
            told = f"{sys.argv[1]} and {sys.argv[2]} differ in {', '.join(differing)}"
            for file, more, fewer in ((ours, of_ours, of_theirs), (theirs, of_theirs, of_ours)):
                told += f"\n{file.filename} alone: {alone(file, more, fewer)}"
            sys.exit(told)
        print(f"{len(ours['label'])} rows, {len(ours['tokens'])} tokens, {len(words(ours))} words agree")


def alone(file, more, fewer):
    """Number of rows that only the first file has, and the first of them."""
    left = Counter(more) - Counter(fewer)
    if not left:
        return "no row"
    ids, label, votes = min(left)
    by_id = [b"(padding)", b"(unknown)", *words(file)]
    text = b" ".join(by_id[id] for id in np.frombuffer(ids, file["tokens"].dtype)).decode()
    return f"{left.total()} rows, first label {label}, votes {np.frombuffer(votes, np.uint32).tolist()}: {text}"


main()
