"""Scores texts with the model in this folder. It requires NumPy.

Standard input: one text per line, as it was written.
Standard output: one score per line, the log-odds of the second label; nan for a text for which `ngrams predict` has an
error. Scores are not calibrated; one above 0 is a prediction of the second label, unless the model card names another
threshold. For three or more labels, a line has the calibrated probability of each label, separated by spaces, in the order
of `predict.model.labels`.

`import predict` reads no input. `predict.score(text)` returns the score of one text, or the list of probabilities, and
`predict.scores(texts)` those of several. `predict.inputs(texts)` returns the inputs of the file that
`ngrams export --out MODEL.onnx` writes.
"""
import functools, html.entities, itertools, json, re, sys, unicodedata
from collections import Counter
from pathlib import Path
import numpy

stored = dict(numpy.load(Path(__file__).resolve().parent / "model.npz"))
about = json.loads(stored["config"].tobytes())
vocabulary = stored["words"].tobytes().decode("utf-8", "surrogateescape").split("\n")[:-1]
# Bytes that are not UTF-8.
invalid = "replace" if about["settings"]["words"].startswith("cleaned") else "surrogateescape"
# A tag, a word, or a character that is a word by itself.
PUNCTUATION = re.compile(rf"(?i:<br(?: ?/)?>)|[{about.get('alphanumeric', '')}']+|[^\s\0-\x1f\x7f-\x9f\ud800-\udfff]")

def sigmoid(numbers):
    with numpy.errstate(over="ignore"):
        return 1 / (1 + numpy.exp(-numbers))

def words_of(text: str):
    if (kind := about["settings"]["words"]).startswith("cleaned"):
        return clean(text, kind == "cleaned-punctuation").split()
    if kind == "punctuation":
        found = (match[0] for match in PUNCTUATION.finditer(text))
        return ["".join(map(str.lower, word)) for word in found if len(word) < 4 or word[0] != "<"]
    words = [word for word in re.split("[ \n\r\t\v\f\0]+", text) if word]
    words = words[: words.index("</s>") if "</s>" in words else None]
    return [word for word in words if not word.startswith("__label__") or word == "__label__"] + ["</s>"]

def inputs(texts):
    return model.inputs([words_of(text) for text in texts])

def result(text: str):
    rows, values = model.features(words := words_of(text))
    is_empty = not words and about["settings"]["words"].startswith("cleaned")
    if not text.strip(" \t") or is_empty or not model.is_known(words, rows):
        return float("nan")
    found = model.probabilities(numpy.array(rows, "int64")[None], numpy.array(values, "float32")[None])[0].astype("float64")
    logits = numpy.log(numpy.maximum(found, numpy.finfo("float32").tiny))
    if len(found) == 2:
        return float(logits[1] - logits[0])
    if temperature := about.get("choice", {}).get("calibration", {}).get("temperature"):
        found = numpy.exp((logits - logits.max()) / temperature)
        found /= found.sum()
    return found.tolist()

def scores(texts):
    return [result(text) for text in texts]
