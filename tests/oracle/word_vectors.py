"""Trains word vectors with fastText's program and with gensim, and prints vectors as these and NumPy read them.

usage: word_vectors.py train CORPUS FOLDER            skipgram.bin and cbow.bin of fastText, and gensim.bin, gensim.txt
                                                      and gensim.w2v of gensim, in FOLDER
       word_vectors.py vectors READER FILE WORD...    one JSON array: the vector of each word; READER is one of
                                                      fasttext, gensim-bin, gensim-text, gensim-w2v, numpy
"""

import json
import os
import pathlib
import sys

import fasttext
import numpy
from gensim.models import FastText, KeyedVectors
from gensim.models import fasttext as facebook

from program import ZEROED


def train(corpus: str, folder: str) -> None:
    if os.environ.get(ZEROED) != "255":
        os.execve(sys.executable, [sys.executable, "-B", *sys.argv], {**os.environ, ZEROED: "255"})
    settings = {"dim": 8, "epoch": 2, "thread": 1, "minCount": 1, "verbose": 0}
    subwords = {"minn": 3, "maxn": 5, "bucket": 500}
    for name, more in {"skipgram": subwords, "cbow": {"maxn": 0}}.items():
        model = fasttext.train_unsupervised(corpus, model=name, **settings, **more)
        model.save_model(f"{folder}/{name}.bin")
    texts = [line.split() for line in pathlib.Path(corpus).read_text(encoding="utf-8").splitlines()]
    model = FastText(texts, vector_size=8, min_count=1, epochs=2, workers=1, min_n=3, max_n=5, bucket=500)
    facebook.save_facebook_model(model, f"{folder}/gensim.bin")
    model.wv.save_word2vec_format(f"{folder}/gensim.txt")
    model.wv.save_word2vec_format(f"{folder}/gensim.w2v", binary=True)


def vectors(reader: str, path: str, *words: str) -> None:
    if reader == "fasttext":
        found = fasttext.load_model(path).get_word_vector
    elif reader == "gensim-bin":
        found = facebook.load_facebook_vectors(path).get_vector
        # The whole model, with the output vectors.
        assert facebook.load_facebook_model(path).syn1neg.any()
    elif reader == "numpy":
        rows = pathlib.Path(path).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
        found = dict(zip(rows, numpy.load(path), strict=True)).__getitem__
    else:
        found = KeyedVectors.load_word2vec_format(path, binary=reader == "gensim-w2v").get_vector
    print(json.dumps([[float(value) for value in found(word)] for word in words]))


if __name__ == "__main__":
    {"train": train, "vectors": vectors}[sys.argv[1]](*sys.argv[2:])
