"""Draws trainings and predictions with matplotlib. Each function draws into ``axes``, by default new ones, and returns
them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy

try:
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes
except ImportError as error:
    raise ImportError(f"{error}; sentimill.figures requires matplotlib: pip install 'sentimill[figures]'") from error

from sentimill.errors import ModelError
from sentimill.lstm import Array, calibrated, kind_of, probability_of
from sentimill.models import Predictions

BINS = 10
"""Number of bins of probability, as in the report of a training."""
Labels = Sequence[int | str] | Array | None
"""The label of each text, as a number or a name."""


def curves(folder: str | PathLike[str], *, axes: Axes | None = None) -> Axes:
    """Draws the losses in a training folder by step: of the training, and of the validation and test splits after
    epochs. Steps that a resumed training repeated are drawn once."""
    axes = axes or plt.subplots()[1]
    path = Path(folder) / "metrics.jsonl"
    points: dict[str, list[tuple[int, float]]] = {"training": [], "epochs": [], "validation": [], "test": []}
    for line in _text(path, "the events of a training").splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue  # A killed training can leave half a line.
        kind = event["event"]
        if kind == "start":
            points = {name: [point for point in some if point[0] <= event["step"]] for name, some in points.items()}
        losses = {
            "training": event.get("loss") if kind == "steps" else None,
            "epochs": event.get("loss") if kind == "epoch" else None,
            "validation": (event.get("validation") or {}).get("loss"),
            "test": (event.get("metrics" if kind == "test" else "test") or {}).get("loss"),
        }
        for name, loss in losses.items():
            points[name] += [(event["step"], loss)] if loss is not None else []
    # A short training has no progress within its epochs.
    epochs = points.pop("epochs")
    points["training"] = points["training"] or epochs
    if not points["training"]:
        expected = "those of `trainer fit` or `ngrams train --model fasttext`"
        raise ModelError(f"{path}: found no losses, expected {expected}; a linear model has none")
    for name, some in points.items():
        if some:
            axes.plot(*zip(*some, strict=True), "-" if name == "training" else "o-", label=name, markersize=4)
    axes.set(xlabel="step", ylabel="loss")
    axes.legend()
    return axes


def confusion(found: Predictions | str | PathLike[str], label: Labels = None, *, axes: Axes | None = None) -> Axes:
    """Draws the number of texts by label and predicted label: of predictions and the labels of their texts, or of the
    evaluation in a training folder of `trainer fit` or `ngrams train`. A cell is as dark as its share of the label."""
    axes = axes or plt.subplots()[1]
    if isinstance(found, Predictions):
        classes: Sequence[str] = found.classes
        counts = numpy.zeros((len(classes), len(classes)), "int64")
        known, labels = _known(found, label)
        numpy.add.at(counts, (labels, found.label[known]), 1)
    else:
        evaluation = _evaluation(found, label)
        classes, of_record = evaluation.get("classes") or ["negative", "positive"], evaluation["metrics"]["confusion"]
        if isinstance(of_record, dict):
            negative, positive = ("true_negative", "false_positive"), ("false_negative", "true_positive")
            of_record = [[of_record[name] for name in names] for names in (negative, positive)]
        counts = numpy.array(of_record)
    axes.imshow(counts / numpy.maximum(counts.sum(1, keepdims=True), 1), cmap="Blues", vmin=0, vmax=1)
    for (row, column), count in numpy.ndenumerate(counts):
        is_dark = count > counts[row].sum() / 2
        axes.text(column, row, str(count), ha="center", va="center", color="white" if is_dark else "black")
    axes.set(xlabel="predicted", ylabel="label")
    axes.set_xticks(range(len(classes)), classes)
    axes.set_yticks(range(len(classes)), classes)
    return axes


def calibration(found: Predictions | str | PathLike[str], label: Labels = None, *, axes: Axes | None = None) -> Axes:
    """Draws the frequency of label 1 among texts of similar probability, from the same as :func:`confusion`. Of three
    or more classes, draws how often the predicted class is right among texts of similar probability of it."""
    axes = axes or plt.subplots()[1]
    if isinstance(found, Predictions):
        known, labels = _known(found, label)
        probability, probabilities = found.probability, found.probabilities
        if probability is not None:
            probability, probabilities = probability[known], None
        elif probabilities is not None:
            probabilities = probabilities[known]
    else:
        evaluation, rows = _evaluation(found, label), numpy.load(Path(found) / "scores.npy")
        (kind, _), fitted, labels = kind_of(evaluation["scoring"]), evaluation.get("calibration") or {}, rows["label"]
        probabilities = calibrated(fitted, rows["probabilities"]) if kind == "classes" else None
        probability = probability_of(kind, fitted, rows["score"]) if kind in ("logit", "five-ratings") else None
    if probabilities is not None:
        probability, is_hit = probabilities.max(1), probabilities.argmax(1) == labels
        axes.set(xlabel="probability of the predicted class", ylabel="fraction predicted correctly")
    elif probability is not None:
        is_hit = labels == 1
        axes.set(xlabel="probability of label 1", ylabel="fraction with label 1")
    else:
        raise ModelError("the model predicts ratings, expected probabilities; train with another --loss")
    axes.plot([0, 1], [0, 1], color="gray", linewidth=1)
    axes.plot(*bins(probability, is_hit)[:2], "o-", markersize=4)
    return axes


def bins(probability: Array, is_hit: Array) -> tuple[Array, Array, Array]:
    """Returns the mean probability, the fraction of hits and the number of rows of each bin of equal width that has
    rows."""
    places = numpy.minimum((probability * BINS).astype("int64"), BINS - 1)
    rows = numpy.bincount(places, minlength=BINS)
    sums = (numpy.bincount(places, some, BINS)[rows > 0] for some in (probability, is_hit))
    mean, fraction = (some / rows[rows > 0] for some in sums)
    return mean, fraction, rows[rows > 0]


def _known(found: Predictions, label: Labels) -> tuple[Array, Array]:
    """Returns which texts have a prediction, and their labels."""
    if label is None or len(label) != len(found):
        given = "no labels" if label is None else f"{len(label)} labels"
        raise ValueError(f"{given} for {len(found)} predictions, expected a label for each")
    known, labels = found.label >= 0, []
    for at, given in enumerate(label):
        if known[at]:
            number = found.classes.index(given) if given in found.classes else given
            if not isinstance(number, (int, numpy.integer)) or not 0 <= number < len(found.classes):
                expected = f"a number below {len(found.classes)} or one of {', '.join(found.classes)}"
                raise ValueError(f"label {at} is {given!r}, expected {expected}")
            labels.append(number)
    return known, numpy.array(labels, "int64")


def _evaluation(folder: str | PathLike[str], label: Labels) -> dict[str, Any]:
    path = Path(folder) / "evaluation.json"
    if label is not None:
        raise ValueError(f"{path} has the labels of its texts, expected no others; leave them out")
    if (path.parent / "ngrams.json").is_file() and not path.exists():
        expected = "one with --test or --test-fraction, and at most five labels"
        remedy = "draw predictions: load(folder).predict(texts), and the labels of the texts"
        raise ModelError(f"{path}: this training of n-grams wrote none, expected {expected}; {remedy}")
    found: dict[str, Any] = json.loads(_text(path, "the evaluation of a training"))
    return found


def _text(path: Path, expected: str) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        remedy = "name the folder that --out of a training names"
        raise ModelError(f"{path}: not found, expected {expected}; {remedy}") from None
