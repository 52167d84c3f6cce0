"""Labels unlabelled reviews with a linear model of the labelled ones, as input lines of the mapper.

usage: teacher.py LABELLED UNLABELLED OUT
  LABELLED    records, the output of the mapper
  UNLABELLED  the same; the ratings are ignored
  OUT         a line with reviewText and overall, 5 or 1, for each text that only UNLABELLED contains

The model is logistic regression with naive-Bayes weights (Wang and Manning 2012): a feature is a word, or two or three
adjacent words, that occur in at least two labelled texts; it is binary. Its weight r is the log of its share of the
positive texts' features over that of the negative texts'. x is r for present features, scaled to length 1; w and b
minimise C sum ln(1 + exp(-t (w.x + b))) + |w|^2 / 2, t = 1 or -1. Words are those of `--profile modern`: all words, of a
longer text the first and the last 200, of a vocabulary of 30,000.

N texts, F features.
"""

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import scipy.sparse
from scipy.optimize import minimize

WORDS_MAX = 400
VOCABULARY_SIZE = 30000
# Bits of a word's id, from 1, in the key of an n-gram.
ID_BITS = 15
POSITIVE_FROM = 4
C = 30.0
ITERATIONS = 40


def main() -> None:
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    labelled = {text: is_positive(votes) for text, votes in records(sys.argv[1])}
    unlabelled = list(dict.fromkeys(text for text, _ in records(sys.argv[2]) if text not in labelled))
    ids = vocabulary(labelled)
    rows, keys = n_grams(list(labelled), ids)
    found, texts_with = np.unique(keys, return_counts=True)
    features = found[texts_with >= 2]
    print(f"teacher: {len(labelled)} texts, {len(features)} features", file=sys.stderr)
    teacher = Teacher(present(rows, keys, len(labelled), features), np.array(list(labelled.values())))
    positive = teacher.logits(present(*n_grams(unlabelled, ids), len(unlabelled), features)) > 0
    print(f"teacher: {positive.sum()} of {len(unlabelled)} unlabelled texts are positive", file=sys.stderr)

    # Renamed when complete: imdb.py skips existing files.
    unfinished = Path(f"{sys.argv[3]}.unfinished")
    with unfinished.open("w", encoding="utf-8") as out:
        for text, rating in zip(unlabelled, np.where(positive, 5, 1).tolist()):
            print(json.dumps({"reviewText": text, "overall": rating}), file=out)
    unfinished.rename(sys.argv[3])


def records(path: str) -> list[tuple[str, str]]:
    """Yields text and votes of each record."""
    return [tuple(line.split("\t")) for line in Path(path).read_text(encoding="utf-8").split("\n")[:-1]]


def is_positive(votes: str) -> bool:
    """Returns whether the most frequent rating, in a tie the smaller, gives label 1."""
    counts = [int(count) for count in votes.split(",")]
    return counts.index(max(counts)) + 1 >= POSITIVE_FROM


def vocabulary(texts: dict[str, bool]) -> dict[str, int]:
    """Returns the most frequent words and their ids."""
    counts = Counter(word for text in texts for word in text.split(" "))
    words = sorted(counts, key=lambda word: (-counts[word], word))[:VOCABULARY_SIZE]
    return {word: id for id, word in enumerate(words, 1)}


def n_grams(texts: list[str], ids: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Returns text and key of each distinct n-gram of known words."""
    read = [ends([ids.get(word, 0) for word in text.split(" ")]) for text in texts]
    row = np.repeat(np.arange(len(read)), [len(tokens) for tokens in read])
    token = np.fromiter((id for tokens in read for id in tokens), np.uint64)
    rows, keys = [], []
    for n in (1, 2, 3):
        count = len(token) - n + 1
        key = np.zeros(count, np.uint64)
        whole = row[n - 1 :] == row[:count]
        for place in range(n):
            key = key << np.uint64(ID_BITS) | token[place : place + count]
            whole &= token[place : place + count] > 0
        rows.append(row[:count][whole])
        keys.append(key[whole])
    rows, keys = np.concatenate(rows), np.concatenate(keys)
    order = np.lexsort((keys, rows))
    rows, keys = rows[order], keys[order]
    first = np.append(True, (np.diff(rows) != 0) | (np.diff(keys) != 0))
    return rows[first], keys[first]


def ends(tokens: list[int]) -> list[int]:
    half = WORDS_MAX // 2
    return tokens if len(tokens) <= WORDS_MAX else tokens[:half] + tokens[-half:]


def present(rows: np.ndarray, keys: np.ndarray, n_texts: int, features: np.ndarray) -> scipy.sparse.csr_array:
    """Returns 1 for the features of each text, [N, F]."""
    column = np.searchsorted(features, keys).clip(max=len(features) - 1)
    known = features[column] == keys
    ones = np.ones(known.sum(), np.float32)
    return scipy.sparse.csr_array((ones, (rows[known], column[known])), (n_texts, len(features)))


class Teacher:
    def __init__(self, texts: scipy.sparse.csr_array, positive: np.ndarray) -> None:
        in_positive, in_negative = (texts[kind].sum(0) + 1.0 for kind in (positive, ~positive))  # [F]
        ratio = np.log(in_positive / in_positive.sum() / (in_negative / in_negative.sum()))
        self.ratio = ratio.astype(np.float32)
        x = self.scaled(texts)
        x_by_feature = x.T.tocsr()
        t = np.where(positive, 1, -1).astype(np.float32)

        def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
            w, b = weights[:-1].astype(np.float32), np.float32(weights[-1])
            margin = t * (x @ w + b)
            slope = -C * t / (1 + np.exp(margin))
            value = C * np.logaddexp(0, -margin).sum(dtype=np.float64) + 0.5 * (w @ w)
            return float(value), np.append(x_by_feature @ slope + w, slope.sum()).astype(np.float64)

        start = np.zeros(texts.shape[1] + 1)
        weights = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS}).x
        self.w, self.b = weights[:-1].astype(np.float32), np.float32(weights[-1])

    def logits(self, texts: scipy.sparse.csr_array) -> np.ndarray:
        return self.scaled(texts) @ self.w + self.b

    def scaled(self, texts: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
        """Returns x of each text, [N, F]."""
        x = texts.copy()
        x.data *= self.ratio[x.indices]
        length = np.sqrt(x.power(2).sum(1)) + np.float32(1e-9)
        x.data /= np.repeat(length, np.diff(x.indptr))
        return x


main()
