"""Cleans texts, and predicts their labels by the models of `trainer` and `ngrams`."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, overload

import numpy

try:
    import sentimill._native as _native
except ImportError as error:
    remedy = "install the package, or in a clone build the module as CONTRIBUTING.md says"
    raise ImportError(f"sentimill._native cannot be imported ({error}); {remedy}") from error
from sentimill.errors import ModelError
from sentimill.lstm import Array, Lstm, kind_of
from sentimill.settings import class_names

VERSIONS = (1, 2)
"""Format versions of an LSTM model."""
FILES = ("config.json", "model.safetensors", "vocabulary.txt")
"""Files of an LSTM model, without those of its n-grams."""
WINDOW_TEXTS, WINDOW_LABELS, WINDOW_CHARACTERS = 1 << 12, 1 << 20, 4 << 20
"""Maximum texts and labels that are predicted together, and characters, without those of the last text."""


def clean(text: str, *, punctuation: bool = False) -> str:
    """Returns a text as `mapper` cleans it, by Unicode 17, or with ``punctuation`` as `mapper --punctuation`. It is
    empty if nothing is left. A lone surrogate is read as U+FFFD."""
    return _native.clean(text, punctuation)


@dataclass(frozen=True, eq=False, repr=False)
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
    """What is compared with the threshold of two labels, [N]: the log-odds of label 1 before calibration; of ``--loss
    rating`` the rating minus the threshold; of ``--loss five-ratings`` the probability before calibration."""
    probability: Array | None = None
    """The probability of label 1 of two, [N]."""
    rating: Array | None = None
    """The predicted rating, of a model that predicts one, [N]."""
    probabilities: Array | None = None
    """The probability of each label, [N, labels]; ``None`` of a model that predicts ratings."""
    has_names: bool = field(default=True, kw_only=True)
    """Whether the labels were named: then elements have ``class``."""

    @property
    def names(self) -> list[str | None]:
        """The name of the predicted label of each text; ``None`` for a text with an error."""
        return [self.classes[label] if label >= 0 else None for label in self.label.tolist()]

    def __repr__(self) -> str:
        n_errors = len(self) - self.error.count(None)
        return f"Predictions({len(self)} texts, {n_errors} with an error, classes {', '.join(self.classes)})"

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
        if len(self.classes) == 2:
            numbers = {"score": self.score, "probability": self.probability, "rating": self.rating}
            found |= {name: float(all[index]) for name, all in numbers.items() if all is not None}
            found.setdefault("probability", None)
        if self.has_names:
            found["class"] = self.classes[label]
        if len(self.classes) != 2 and self.probabilities is not None:
            found["probabilities"] = dict(zip(self.classes, self.probabilities[index].tolist(), strict=True))
        return found


class Model(ABC):
    """A model that predicts labels of texts. :func:`load` opens one."""

    has_names = True

    def __init__(self, path: Path, classes: Sequence[str]) -> None:
        self.path = path
        self.classes = tuple(classes)
        """The name of each label, from label 0 on."""

    def predict(self, texts: Iterable[str]) -> Predictions:
        """Predicts the label of each text, which need not be cleaned. Other threads run meanwhile. Memory beside the
        predictions does not depend on the number of texts."""
        if isinstance(texts, str):
            raise TypeError("texts is a str, expected several: predict([text])")
        parts = [self._predict(window) for window in _windows(texts, max(len(self.classes), 1))]
        errors = tuple(error for some, _ in parts for error in some)
        found = {name: numpy.concatenate([arrays[name] for _, arrays in parts]) for name in parts[0][1]}
        if "probability" in found:
            found.setdefault("probabilities", numpy.stack([1 - found["probability"], found["probability"]], 1))
        return Predictions(self.classes, errors, has_names=self.has_names, **found)

    @abstractmethod
    def _predict(self, texts: list[str]) -> tuple[Sequence[str | None], dict[str, Array]]:
        """Returns the errors and the arrays of predictions for texts."""

    def __repr__(self) -> str:
        return f"Model({str(self.path)!r}, classes {', '.join(self.classes)})"

    def __reduce__(self) -> tuple[Any, tuple[Path]]:
        return load, (self.path,)


def load(path: str | PathLike[str]) -> Model:
    """Opens a model of `trainer fit` or `ngrams train`: its folder, or the training folder that contains it. Also opens
    a file of the fastText program. Each file of a folder that is read is compared with its digest.

    Raises:
        DamagedModel: A file does not match its digest.
        ModelError: There is no model of a supported version at the path.
    """
    path = Path(path)
    folder = path / "model" if (path / "model" / "config.json").is_file() else path
    if not folder.exists():
        raise ModelError(f"{path}: not found, expected a model or the folder of a training; check the name")
    if folder.is_file():
        return _Ngrams(folder)
    if not (folder / "config.json").is_file():
        if (folder / "metrics.jsonl").is_file() or (folder / "settings.json").is_file():
            raise ModelError(f"{path}: this training has no model yet, expected {path / 'model'}; resume the training")
        raise ModelError(f"{path}: found no config.json, expected a model or the folder of a training; check the name")
    try:
        config = json.loads(_native.contents(folder, ["config.json"])[0])
        return _Ngrams(folder) if "family" in config else _Lstm(folder)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        found = f"{type(error).__name__}: {error}"
        expected = "files of a model of `trainer fit` or `ngrams train`; copy or train the model again"
        raise ModelError(f"{folder}: found files that cannot be decoded ({found}), expected {expected}") from error


def _windows(texts: Iterable[str], n_labels: int) -> Iterator[list[str]]:
    """Divides texts; the last window is empty if no text is left for it."""
    window: list[str] = []
    n_characters, most = 0, max(min(WINDOW_TEXTS, WINDOW_LABELS // n_labels), 1)
    for at, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {at} is {text!r}, expected a str; drop missing values")
        window.append(text)
        n_characters += len(text)
        if len(window) == most or n_characters >= WINDOW_CHARACTERS:
            yield window
            window, n_characters = [], 0
    yield window


class _Ngrams(Model):
    def __init__(self, path: Path) -> None:
        self._model = _native.Ngrams(path)
        super().__init__(path, self._model.labels)

    def _predict(self, texts: list[str]) -> tuple[Sequence[str | None], dict[str, Array]]:
        label, score, probabilities, errors = self._model.predict(texts)
        found = {
            "label": numpy.frombuffer(label, "<i8"),
            "probabilities": numpy.frombuffer(probabilities, "<f4").reshape(len(texts), len(self.classes)),
        }
        if len(self.classes) == 2:
            found |= {"score": numpy.frombuffer(score, "<f4"), "probability": found["probabilities"][:, 1]}
        return errors, found


class _Lstm(Model):
    def __init__(self, path: Path) -> None:
        config, weights, vocabulary = _native.contents(path, FILES)
        _check_versions(path, json.loads(config))
        self._model = Lstm(config, weights, vocabulary, _native.clean, self._ngrams)
        labels = self._model.preparation.get("labels")
        self.has_names = labels is not None
        super().__init__(path, class_names(labels))
        _check_parts(path, self._model, vocabulary, len(self.classes))
        self._part = _native.NgramsOfLstm(path, list(self.classes)) if self._model.head else None

    def _ngrams(self, texts: list[list[str]]) -> Array:
        assert self._part is not None
        outputs = self._part.outputs([" ".join(words) for words in texts])
        return numpy.frombuffer(outputs, "<f4").reshape(len(texts), -1)

    def _predict(self, texts: list[str]) -> tuple[Sequence[str | None], dict[str, Array]]:
        read = [self._model.read(text) for text in texts]
        errors = [error for _, error in read]
        places = [at for at, error in enumerate(errors) if error is None]
        outputs = self._model.outputs([read[place][0] for place in places])
        is_finite = numpy.isfinite(outputs).all(1)
        for at in numpy.flatnonzero(~is_finite):
            errors[places[at]] = "not_finite"
        predicted, found = numpy.array(places, "int64")[is_finite], {}
        for name, some in self._model.decide(outputs[is_finite]).items():
            found[name] = numpy.full((len(texts), *some.shape[1:]), -1 if name == "label" else numpy.nan, some.dtype)
            found[name][predicted] = some
        return errors, found


def _check_versions(folder: Path, config: dict[str, Any]) -> None:
    """Refuses a model of another version or kind."""
    path, preparation = folder / "config.json", config["preparation"]
    expected: list[tuple[str, object, Sequence[object], str]] = [
        ("format version", config["format_version"], VERSIONS, "use"),
        ("Unicode version", preparation["unicode_version"], (_native.UNICODE_VERSION,), "predict with"),
        ("cleaning version", preparation["cleaning_version"], (1, 2), "predict with"),
    ]
    for name, found, known, remedy in expected:
        if found not in known:
            wanted = " or ".join(map(str, known))
            wrote = f"sentimill {config['sentimill']}, which wrote it"
            raise ModelError(f"{path}: the {name} is {found}, expected {wanted}; {remedy} {wrote}")
    if config["scoring"] is None:
        remedy = f"train one with `trainer fit DATASET --init-from {folder}`"
        raise ModelError(f"{folder}: a next-word model, expected a classifier; {remedy}")


def _check_parts(folder: Path, model: Lstm, vocabulary: bytes, n_classes: int) -> None:
    """Refuses configuration, weights and vocabulary of different models."""
    sizes, known = model.config["model"]["lstm"], model.config["vocabulary"]
    n_outputs = {"classes": n_classes, "five-ratings": 5}.get(kind_of(model.config["scoring"])[0], 1)
    shapes = {name: weights.shape for name, weights in model.weights.items()}
    expected: list[tuple[str, str, object, object]] = [
        ("vocabulary.txt", "number of words", len(model.ids), known["words"]),
        ("vocabulary.txt", "SHA-256", hashlib.sha256(vocabulary).hexdigest(), known["sha256"]),
        ("config.json", "number of ids", sizes["ids"], len(model.ids) + 2),
        ("config.json", "number of outputs", sizes["head"]["classifier"]["outputs"], n_outputs),
    ]
    for name, shape in _shapes(sizes).items():
        expected.append(("model.safetensors", f"shape of {name}", shapes.get(name), shape))
    for file, name, found, wanted in expected:
        if found != wanted:
            remedy = "copy or train the whole model again"
            raise ModelError(f"{folder / file}: the {name} is {found}, expected {wanted}; {remedy}")


def _shapes(sizes: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the weights of an LSTM by its settings in config.json."""
    hidden, head = sizes["hidden"], sizes["head"]["classifier"]
    directions = ("", "_reverse") if sizes["bidirectional"] else ("",)
    width, states = sizes["embedding"], hidden * len(directions)
    shapes: dict[str, tuple[int, ...]] = {"embedding.weight": (sizes["ids"], width)}
    for layer in range(sizes["layers"]):
        for direction in directions:
            shapes[f"lstm.weight_ih_l{layer}{direction}"] = (4 * hidden, width if layer == 0 else states)
            shapes[f"lstm.weight_hh_l{layer}{direction}"] = (4 * hidden, hidden)
            shapes |= {f"lstm.bias_{kind}_l{layer}{direction}": (4 * hidden,) for kind in ("ih", "hh")}
    shapes["linear.weight"] = (head["linear"], states if head["pool"] == "last" else 2 * states)
    shapes["output.weight"] = (head["outputs"], head["linear"])
    return shapes | {"linear.bias": (head["linear"],), "output.bias": (head["outputs"],)}
