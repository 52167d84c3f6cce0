"""Converts sorted lines "cleaned text TAB rating" on standard input into a shard: arrays in files, and a
dictionary of words.

usage: reducer.py STOP_WORDS MAX_TOKENS SHARD   (STOP_WORDS: a file with one word per line; writes SHARD.ids
and others)
"""

import sys
from itertools import compress, islice
from operator import eq

import numpy as np

BLOCK_BYTES = 4 << 20


class Numbers(dict):
    """Assigns numbers to words at their first lookup."""

    def __missing__(self, word):
        number = self[word] = len(self)
        return number


def blocks(stream):
    """Yields lists of complete lines without their line ends."""
    rest = b""
    while block := stream.read(BLOCK_BYTES):
        lines = (rest + block).split(b"\n")
        rest = lines.pop()
        yield lines


def main():
    stop_words, max_tokens, shard = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    numbers = Numbers()
    with open(stop_words, "rb") as words:
        for word in words.read().split():
            numbers[word]
    n_stop_words = len(numbers)
    counts = np.zeros(1 << 18, np.int64)
    names = ("ids", "lengths", "votes")
    out = {name: open(f"{shard}.{name}", "wb", buffering=1 << 20) for name in names}

    def write(texts, votes):
        nonlocal counts
        lengths = np.fromiter((text.count(b" ") for text in texts), np.int32, len(texts)) + 1
        ids = np.fromiter(map(numbers.__getitem__, b" ".join(texts).split(b" ")), np.int32, lengths.sum())
        is_kept = ids >= n_stop_words
        lengths = np.add.reduceat(is_kept, np.cumsum(lengths) - lengths, dtype=np.int32)
        ids = ids[is_kept]
        if len(numbers) > len(counts):
            counts = np.concatenate([counts, np.zeros(len(numbers), np.int64)])
        found = np.bincount(ids)
        counts[: len(found)] += found
        if max_tokens and lengths.max(initial=0) > max_tokens:
            places = np.arange(len(ids), dtype=np.int32) - np.repeat(np.cumsum(lengths, dtype=np.int32) - lengths, lengths)
            ids, lengths = ids[places < max_tokens], np.minimum(lengths, max_tokens)
        is_row = lengths > 0
        out["ids"].write(ids.astype(np.uint32))
        out["lengths"].write(lengths[is_row].astype(np.uint32))
        out["votes"].write(votes[is_row])

    # The last text of a block may continue in the next.
    last_text, last_votes = None, None
    for lines in blocks(sys.stdin.buffer):
        if not lines:
            continue
        texts = [line[:-2] for line in lines]
        ratings = np.frombuffer(b"".join([line[-1:] for line in lines]), np.uint8) - ord("1")
        votes = np.zeros((len(lines), 5), np.uint32)
        votes[np.arange(len(lines)), ratings] = 1
        if last_text is not None:
            texts.insert(0, last_text)
            votes = np.concatenate([last_votes, votes])
        is_same = np.fromiter(map(eq, texts, islice(texts, 1, None)), bool, len(texts) - 1)
        is_first = np.concatenate([[True], ~is_same])
        texts = list(compress(texts, is_first.tolist()))
        votes = np.add.reduceat(votes, np.flatnonzero(is_first), axis=0, dtype=np.uint32)
        last_text, last_votes = texts.pop(), votes[-1:]
        if texts:
            write(texts, votes[:-1])
    if last_text is not None:
        write([last_text], last_votes)
    for file in out.values():
        file.close()
    with open(f"{shard}.words", "wb") as words:
        words.write(b"\n".join(islice(numbers, n_stop_words, None)))
    counts[n_stop_words : len(numbers)].tofile(f"{shard}.counts")


main()
