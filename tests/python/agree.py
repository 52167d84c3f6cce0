"""Whether a dataset of ours and one of merge.py have the same words, counts and rows, the rows in any order.

usage: agree.py OURS PYTHONS
"""

import sys

import h5py


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
    with h5py.File(sys.argv[1]) as ours, h5py.File(sys.argv[2]) as pythons:
        found = {
            "words": words(ours) == words(pythons),
            "counts": ours["vocabulary/count"][:].tolist() == pythons["vocabulary/count"][:].tolist(),
            "rows": rows(ours) == rows(pythons),
        }
        differing = [name for name, same in found.items() if not same]
        if differing:
            sys.exit(f"{sys.argv[1]} and {sys.argv[2]} differ in {', '.join(differing)}")
        print(f"{len(ours['label'])} rows, {len(ours['tokens'])} tokens, {len(words(ours))} words agree")


main()
