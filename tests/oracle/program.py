"""Trains models with fastText's program, and prints its answers.

usage: program.py train CORPUS FOLDER NAME...   these models, in FOLDER
       program.py answers TEXTS MODEL...   per model, one JSON array: per line of TEXTS, the labels and probabilities
       program.py vectors MODEL            the vectors of all words, in the format .vec
"""

import json
import os
import pathlib
import sys

import fasttext

# With less than ten threads, the program draws only a part of the first weights, and the others are what the memory had.
# With this variable, glibc returns memory whose bytes are the complement of 255.
ZEROED = "MALLOC_PERTURB_"


KINDS = {
    "words.bin": {},
    "bigrams.bin": {"wordNgrams": 2, "minCount": 3, "bucket": 5_000, "lr": 0.5},
    "characters.bin": {"wordNgrams": 3, "minn": 3, "maxn": 6, "bucket": 3_000, "loss": "ova", "minCount": 2},
    "tree.bin": {"wordNgrams": 2, "minn": 2, "maxn": 3, "bucket": 2_000, "loss": "hs", "dim": 16},
    "negatives.bin": {"loss": "ns", "neg": 2, "dim": 5},
}
QUANTIZED = {
    "all.ftz": ("bigrams.bin", {}),
    "norms.ftz": ("characters.bin", {"qnorm": True, "dsub": 3}),
    "pruned.ftz": ("bigrams.bin", {"cutoff": 400, "qnorm": True}),
    "retrained.ftz": ("characters.bin", {"cutoff": 500, "retrain": True, "epoch": 1, "thread": 1}),
}


def train(corpus: str, folder: str, *names: str) -> None:
    """One thread and fixed seeds, so that each run trains the same models."""
    if os.environ.get(ZEROED) != "255":
        os.execve(sys.executable, [sys.executable, "-B", *sys.argv], {**os.environ, ZEROED: "255"})
    for name in names:
        if name in KINDS:
            settings = {"dim": 10, "epoch": 10, "thread": 1, "seed": 1, "verbose": 0, **KINDS[name]}
            model = fasttext.train_supervised(corpus, **settings)
        else:
            dense, settings = QUANTIZED[name]
            model = fasttext.load_model(f"{folder}/{dense}")
            model.quantize(input=corpus, verbose=0, **settings)
        model.save_model(f"{folder}/{name}")


def answers(texts: str, *models: str) -> None:
    lines = pathlib.Path(texts).read_text(encoding="utf-8").split("\n")
    for model in models:
        predicted = zip(*fasttext.load_model(model).predict(lines, k=-1), strict=True)
        print(json.dumps([[*zip(labels, map(float, values), strict=True)] for labels, values in predicted]))


def vectors(path: str) -> None:
    model = fasttext.load_model(path)
    words = model.get_words()
    print(len(words), model.get_dimension())
    for word in words:
        print(word, *(f"{value:.5g}" for value in model.get_word_vector(word)), "")


if __name__ == "__main__":
    {"train": train, "answers": answers, "vectors": vectors}[sys.argv[1]](*sys.argv[2:])
