"""Rows of an engine -> one HDF5 file with the columns, chunks and filters of a dataset, without `hash`, `split`, digests and
settings. A separate thread writes columns in whole chunks while the engine computes the next rows.
"""

from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np

VOCABULARY_SIZE, MAX_TOKENS = 10_000, 100
UNKNOWN, FIRST_WORD = 1, 2
CHUNKS = {"tokens": 64 << 10, "offsets": 32 << 10, "label": 64 << 10, "votes": 16 << 10}
CHUNKS_AT_ONCE = 16
FILTERS = {"compression": "gzip", "compression_opts": 1, "shuffle": True, "fletcher32": True}
# More batches would only use memory.
BATCHES_MAX = 4


class Rows:
    """Writes rows in batches; `close` completes the file."""

    def __init__(self, path):
        self.file = h5py.File(path, "w", libver="latest")
        columns = {"tokens": ("u2", ()), "offsets": ("u8", ()), "label": ("u1", ()), "votes": ("u4", (5,))}
        for name, (kind, width) in columns.items():
            chunk = (CHUNKS[name], *width)
            self.file.create_dataset(name, (0, *width), kind, maxshape=(None, *width), chunks=chunk, **FILTERS)
        self.held = {name: [] for name in columns}
        self.writer, self.pending = ThreadPoolExecutor(1), []
        self.n_tokens = 0
        self.hold("offsets", np.zeros(1, np.uint64))

    def append(self, ids, lengths, votes):
        """Appends the ids of all tokens of a batch, row by row; the number of tokens per row; and the votes,
        [rows, 5]."""
        if len(self.pending) == BATCHES_MAX:
            self.pending.pop(0).result()
        self.pending.append(self.writer.submit(self.write, ids, lengths, votes))

    def write(self, ids, lengths, votes):
        ids, lengths = cut(ids, lengths)
        if not lengths.all():
            votes, lengths = votes[lengths > 0], lengths[lengths > 0]
        offsets = np.cumsum(lengths, dtype=np.uint64) + np.uint64(self.n_tokens)
        self.n_tokens += len(ids)
        self.hold("tokens", ids)
        self.hold("offsets", offsets)
        # Ratings from 1 to 5; in a tie the smaller one is used.
        self.hold("label", (votes.argmax(axis=1) >= 3).astype(np.uint8))
        self.hold("votes", votes)

    def hold(self, name, elements):
        held = self.held[name]
        held.append(elements)
        if sum(map(len, held)) >= CHUNKS_AT_ONCE * CHUNKS[name]:
            self.put(name, CHUNKS[name])

    def put(self, name, whole):
        """All rows held except those that do not fill a chunk; at the end, all."""
        elements, column = np.concatenate(self.held[name]), self.file[name]
        count = len(elements) // whole * whole
        begin = len(column)
        column.resize(begin + count, axis=0)
        column[begin:] = elements[:count]
        self.held[name] = [elements[count:]]

    def close(self, vocabulary):
        """`vocabulary`: words in UTF-8 with their counts; the word with the first id first."""
        for batch in self.pending:
            batch.result()
        self.writer.shutdown()
        for name in self.held:
            self.put(name, 1)
        longest = max((len(word) for word, _ in vocabulary), default=1)
        self.file["vocabulary/word"] = np.array([word for word, _ in vocabulary], f"S{longest}")
        self.file["vocabulary/count"] = np.array([count for _, count in vocabulary], np.uint64)
        self.file.close()


def cut(ids, lengths):
    """Cuts rows to MAX_TOKENS."""
    if lengths.max(initial=0) <= MAX_TOKENS:
        return ids, lengths
    begins = np.cumsum(lengths, dtype=np.int32) - lengths.astype(np.int32)
    places = np.arange(len(ids), dtype=np.int32) - np.repeat(begins, lengths)
    return ids[places < MAX_TOKENS], np.minimum(lengths, MAX_TOKENS)
