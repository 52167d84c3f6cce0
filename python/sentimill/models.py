"""Cleans texts, and answers them by the models of `trainer` and `ngrams`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, overload

import numpy

from sentimill import _native
from sentimill.errors import ModelError
from sentimill.lstm import Array, Lstm

VERSIONS = (1, 2)
"""Format versions of an LSTM model."""


def clean(text: str, punctuation: bool = False) -> str:
    """Returns a text as `mapper` cleans it, by Unicode 17, or with ``punctuation`` as `mapper --punctuation`. It is
    empty if nothing is left. A lone surrogate is read as U+FFFD."""
    return _native.clean(text, punctuation)


@dataclass(frozen=True, eq=False)
class Predictions(Sequence[dict[str, Any]]):
    """The predictions for texts, in their order, N texts. An element is a dictionary with the fields of a line of
    `trainer predict` or `ngrams predict`. Arrays of scores have NaN for a text with an error.
    """

    classes: tuple[str, ...]
    """The name of each label, from label 0 on."""
    error: tuple[str | None, ...]
    """The reason why a text has no prediction, such as ``only_unknown``, or ``None``."""
    label: Array
    """The predicted label of each text, [N]; -1 for a text with an error."""
    score: Array | None = None
    """The log-odds of label 1 of two before calibration, [N]; of ratings, what is compared with the threshold."""
    probability: Array | None = None
    """The probability of label 1 of two, [N]."""
    rating: Array | None = None
    """The predicted rating, of a model that predicts one, [N]."""
    probabilities: Array | None = None
    """The probability of each label, [N, labels], of three or more."""
    has_names: bool = True
    """Whether the labels were named: then elements have ``class``."""

    def __len__(self) -> int:
        return len(self.error)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        if error := self.error[index]:
            return {"error": error}
        label = int(self.label[index])
        found: dict[str, Any] = {"label": label}
        if self.probabilities is None:
            numbers = {"score": self.score, "probability": self.probability, "rating": self.rating}
            found |= {name: float(all[index]) for name, all in numbers.items() if all is not None}
            found.setdefault("probability", None)
        if self.has_names:
            found["class"] = self.classes[label]
        if self.probabilities is not None:
            found["probabilities"] = dict(zip(self.classes, self.probabilities[index].tolist(), strict=True))
        return found


class Model:
    """A model that predicts labels of texts. :func:`load` opens one."""

    def __init__(self, path: Path, classes: Sequence[str], predict: Callable[[list[str]], Predictions]) -> None:
        self.path = path
        self.classes = tuple(classes)
        """The name of each label, from label 0 on."""
        self._predict = predict

    def predict(self, texts: Iterable[str]) -> Predictions:
        """Predicts the label of each text, which need not be cleaned. Uses one thread; other threads run meanwhile."""
        if isinstance(texts, str):
            raise TypeError("texts is a str, expected several: predict([text])")
        return self._predict(list(texts))

    def __repr__(self) -> str:
        return f"Model({str(self.path)!r}, classes {', '.join(self.classes)})"


def load(path: str | PathLike[str]) -> Model:
    """Opens a model of `trainer fit` or `ngrams train`: its folder, or the training folder that contains it. Also opens
    a file of the fastText program. All files of a folder are compared with their digests.

    Raises:
        DamagedModel: A file does not match its digest.
        ModelError: There is no model of a supported version at the path.
    """
    path = Path(path)
    folder = path / "model" if (path / "model" / "config.json").is_file() else path
    if folder.is_file() or not (folder / "config.json").is_file():
        return _ngrams(folder)
    _native.verify(folder)
    config = json.loads((folder / "config.json").read_bytes())
    return _ngrams(folder) if "family" in config else _lstm(folder, config)


def _ngrams(path: Path) -> Model:
    model = _native.Ngrams(path)
    classes = tuple(model.labels)

    def predict(texts: list[str]) -> Predictions:
        numbers, errors = model.predict(texts)
        probabilities = numpy.frombuffer(numbers, "<f4").reshape(len(texts), len(classes))
        found: dict[str, Array] = {"label": probabilities.argmax(1), "probabilities": probabilities}
        if len(classes) == 2:
            first, second = numpy.log(numpy.maximum(probabilities, numpy.finfo("float32").tiny).astype("float64").T)
            found = {
                "label": found["label"],
                "score": (second - first).astype("float32"),
                "probability": probabilities[:, 1],
            }
        return _predictions(classes, errors, found)

    return Model(path, classes, predict)


def _lstm(folder: Path, config: dict[str, Any]) -> Model:
    _check(folder, config)
    labels = config["preparation"].get("labels")
    classes = tuple(pair.partition("=")[2] for pair in labels.split(",")) if labels else ("negative", "positive")
    part = _native.NgramsOfLstm(folder, list(classes)) if config["model"].get("head") else None

    def ngrams(texts: list[list[str]]) -> Array:
        assert part is not None
        return numpy.frombuffer(part.outputs([" ".join(words) for words in texts]), "<f4").reshape(len(texts), -1)

    model = Lstm(folder, clean, ngrams)

    def predict(texts: list[str]) -> Predictions:
        read = [model.read(text) for text in texts]
        places = [at for at, (_, error) in enumerate(read) if error is None]
        outputs = model.outputs([read[place][0] for place in places])
        errors = [error for _, error in read]
        for at in numpy.flatnonzero(~numpy.isfinite(outputs).all(1)):
            errors[places[at]] = "not_finite"
        with numpy.errstate(invalid="ignore"):
            decided = model.decide(outputs)
        found = {name: numpy.zeros((len(texts), *some.shape[1:]), some.dtype) for name, some in decided.items()}
        for name, some in decided.items():
            found[name][places] = some
        return _predictions(classes, errors, found, has_names=labels is not None)

    return Model(folder, classes, predict)


def _check(folder: Path, config: dict[str, Any]) -> None:
    """Refuses a model of another version or kind."""
    path, preparation = folder / "config.json", config["preparation"]
    expected: list[tuple[str, object, Sequence[object], str]] = [
        ("format version", config["format_version"], VERSIONS, "use"),
        ("Unicode version", preparation["unicode_version"], (_native.UNICODE_VERSION,), "predict with"),
        ("cleaning version", preparation["cleaning_version"], (1, 2), "predict with"),
    ]
    for field, found, known, remedy in expected:
        if found not in known:
            wanted = " or ".join(map(str, known))
            wrote = f"sentimill {config['sentimill']}, which wrote it"
            raise ModelError(f"{path}: the {field} is {found}, expected {wanted}; {remedy} {wrote}")
    if config["scoring"] is None:
        remedy = f"train one with `trainer fit DATASET --init-from {folder}`"
        raise ModelError(f"{folder}: a next-word model, expected a classifier; {remedy}")


def _predictions(
    classes: tuple[str, ...], errors: Sequence[str | None], found: dict[str, Array], has_names: bool = True
) -> Predictions:
    has_error = numpy.array([error is not None for error in errors], bool)
    for name, numbers in found.items():
        numbers[has_error] = -1 if name == "label" else numpy.nan
    return Predictions(classes, tuple(errors), has_names=has_names, **found)
