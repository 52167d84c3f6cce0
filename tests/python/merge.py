"""Merges shards of reducer.py into one HDF5 file with the columns, chunks and filters of a dataset. Rows keep
the order of the shards.

usage: merge.py STOP_WORDS VOCABULARY_SIZE OUT SHARD ...
"""

import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np

UNKNOWN, FIRST_WORD = 1, 2
CHUNKS = {"tokens": 64 << 10, "offsets": 32 << 10, "label": 64 << 10, "votes": 16 << 10}
# Columns are written in whole chunks, many at a time.
SLAB_TOKENS = 64 * CHUNKS["tokens"]


def main():
    stop_words, size, path, *shards = sys.argv[1:]
    with open(stop_words, "rb") as words:
        n_stop_words = len(words.read().split())
    words = {shard: open(f"{shard}.words", "rb").read().split(b"\n") for shard in shards}
    counts = Counter()
    for shard in shards:
        counts.update(dict(zip(words[shard], np.fromfile(f"{shard}.counts", np.int64).tolist())))
    vocabulary = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[: int(size)]
    ids = {word: id for id, (word, _) in enumerate(vocabulary, FIRST_WORD)}

    lengths = {shard: np.fromfile(f"{shard}.lengths", np.uint32) for shard in shards}
    n_rows, n_tokens = sum(map(len, lengths.values())), int(sum(length.sum() for length in lengths.values()))
    with h5py.File(path, "w", libver="latest") as file, ThreadPoolExecutor(1) as writer:

        def column(name, rows, dtype, width=()):
            chunk = (min(CHUNKS[name], rows), *width)
            filters = {"compression": "gzip", "compression_opts": 1, "shuffle": True, "fletcher32": True}
            return file.create_dataset(name, (rows, *width), dtype, chunks=chunk, **filters)

        tokens = column("tokens", n_tokens, "u2" if len(ids) + FIRST_WORD <= 1 << 16 else "u4")
        votes = np.concatenate([np.fromfile(f"{shard}.votes", np.uint32) for shard in shards]).reshape(-1, 5)
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(list(lengths.values())), dtype=np.uint64)])
        pending, at, held = [], 0, np.zeros(0, tokens.dtype)

        def put(name, data, begin):
            file[name][begin : begin + len(data)] = data

        for shard in shards:
            unknown = np.full(n_stop_words, UNKNOWN, tokens.dtype)
            known = np.fromiter((ids.get(word, UNKNOWN) for word in words[shard]), tokens.dtype, len(words[shard]))
            table = np.concatenate([unknown, known])
            local = np.fromfile(f"{shard}.ids", np.uint32)
            for begin in range(0, len(local), SLAB_TOKENS):
                held = np.concatenate([held, table[local[begin : begin + SLAB_TOKENS]]])
                whole = len(held) // CHUNKS["tokens"] * CHUNKS["tokens"]
                pending.append(writer.submit(put, "tokens", held[:whole], at))
                held, at = held[whole:], at + whole
        pending.append(writer.submit(put, "tokens", held, at))
        # Ratings from 1 to 5; of equally frequent ones the smaller counts.
        label = (votes.argmax(axis=1) >= 3).astype(np.uint8)
        for name, data, width in (("offsets", offsets, ()), ("label", label, ()), ("votes", votes, (5,))):
            for write in pending:
                write.result()
            column(name, len(data), data.dtype, width)
            pending = [writer.submit(put, name, data, 0)]
        for write in pending:
            write.result()
        longest = max((len(word) for word, _ in vocabulary), default=1)
        file["vocabulary/word"] = np.array([word for word, _ in vocabulary], f"S{longest}")
        file["vocabulary/count"] = np.array([count for _, count in vocabulary], np.uint64)
    assert n_rows == len(label) == len(offsets) - 1


main()
