"""Scores texts with the model in this folder. It requires Python 3.10 or newer and NumPy.

Standard input: one text per line, as it was written; it is cleaned as by `trainer predict`.
Standard output: one score per line, that of `trainer predict`; nan for a text for which it has an error. For three or more
classes, a line has the probability of each class, separated by spaces, in the order of `labels` in config.json.

`import predict` reads no input. `predict.score(text)` returns the score of one text, or the list of probabilities.
`predict.scores(texts)` is faster for many texts; on a machine with other busy processes, so is OPENBLAS_NUM_THREADS=1.
`predict.inputs(texts)` returns the inputs of the file that `trainer export --out MODEL.onnx` writes. A text with the length 0
in them has no result.
"""
import functools, html.entities, itertools, json, re, sys, unicodedata
from collections import Counter
from pathlib import Path
import numpy

folder = Path(__file__).resolve().parent
invalid = "replace"  # bytes that are not UTF-8

@functools.cache
def model():
    files = [(folder / name).read_bytes() for name in ("config.json", "model.safetensors", "vocabulary.txt")]
    return Lstm(*files, clean, lambda texts: ngrams().outputs(*ngrams().inputs(texts).values()))

@functools.cache
def ngrams():
    return Linear(json.loads((folder / "ngrams.json").read_bytes()), tensors((folder / "ngrams.safetensors").read_bytes()), ())

def inputs(texts):
    read = [model().read(text)[0] for text in texts]
    found = {"tokens": padded([model().numbers(words) for words in read], "int64"),
             "lengths": numpy.array([len(words) for words in read], "int32")}
    return found | (ngrams().inputs(model().known(read)) if model().head else {})

def scores(texts):
    """The score of each text, or its list of probabilities; nan for a text without a result."""
    read = [model().read(text)[0] for text in texts]
    places = [at for at, words in enumerate(read) if words]
    found = model().decide(model().outputs([read[at] for at in places]))
    results = dict(zip(places, found.get("score", found.get("probabilities")).tolist()))
    return [results.get(at, float("nan")) for at in range(len(read))]

