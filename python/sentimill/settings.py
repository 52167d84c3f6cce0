"""The settings and digests in a dataset's attributes."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """The settings that determine the content of a dataset, and the digests of that content."""

    cleaning_version: int
    """Version of the cleaning rules."""
    unicode_version: str
    """Unicode version of the cleaning rules."""
    stop_words: tuple[str, ...]
    """Words that rows omit, in byte order."""
    max_tokens: int
    """Maximum number of tokens per row; 0 for no limit."""
    keep: str
    """The tokens that a longer row keeps: ``first``, ``last`` or ``ends``."""
    positive_from: int | None
    """The smallest rating, 1 to 5, with label 1. ``None`` for a dataset with named classes."""
    labels: str | None
    """The named classes in the order of labels, such as ``1-2=negative,3=neutral,4-5=positive``, or ``None``."""
    sample: int | None
    """The rows are those of all texts whose hash mod 2^32 is below this number. ``None`` for all texts."""
    vocabulary_size: int
    """Maximum number of words in the vocabulary."""
    vocabulary_of: str | None
    """ID digest of the dataset whose vocabulary this dataset uses."""
    without: str | None
    """ID digest of the dataset whose texts this dataset excludes."""
    row_digest: str
    """Digest of the rows with their words, including words outside the vocabulary."""
    id_digest: str
    """Digest of the rows with their ids."""
    vocabulary_digest: str
    """Digest of the words and their counts."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """The name of each label, from label 0 on."""
        return class_names(self.labels)


def class_names(labels: str | None) -> tuple[str, ...]:
    """Returns the name of each label, from label 0 on, of a value of ``--labels``."""
    if labels is None:
        return ("negative", "positive")
    return tuple(pair.partition("=")[2] for pair in labels.split(","))


TEXTS = ("format", "unicode_version", "stop_words", "keep", "vocabulary_of", "without")
DIGESTS = ("row_digest", "id_digest", "vocabulary_digest")
NUMBERS = ("schema_version", "cleaning_version", "max_tokens", "positive_from", "vocabulary_size")
ATTRIBUTES: dict[str, type[str] | type[int]] = {
    **dict.fromkeys(TEXTS + DIGESTS, str),
    **dict.fromkeys(NUMBERS, int),
}
"""All attributes of a dataset with their types. One with named classes has ``labels`` in place of ``positive_from``,
and a sample has ``sample`` in addition."""
SAMPLE_MAX = 2**32 - 1
"""The largest value of the attribute ``sample``; the smallest is 1."""
_CLASS = r"[1-5](-[1-5])?=[^,=]+"
_CLASSES = re.compile(rf"{_CLASS}(,{_CLASS})+")


def attributes_of(names: Container[str]) -> dict[str, type[str] | type[int]]:
    """Returns the attributes, with their types, that a dataset must have if it has these ones."""
    expected = dict(ATTRIBUTES)
    if "labels" in names:
        del expected["positive_from"]
        expected["labels"] = str
    if "sample" in names:
        expected["sample"] = int
    return expected


def are_classes(labels: str) -> bool:
    """Returns whether the attribute ``labels`` has the form of a list of classes."""
    return _CLASSES.fullmatch(labels) is not None


def settings_of(attributes: dict[str, str | int]) -> Settings:
    """Returns the settings in the verified attributes of a dataset."""
    text = {name: str(attributes[name]) for name in TEXTS + DIGESTS}
    number = {name: int(attributes[name]) for name in NUMBERS if name in attributes}
    return Settings(
        cleaning_version=number["cleaning_version"],
        unicode_version=text["unicode_version"],
        stop_words=tuple(text["stop_words"].split("\n")) if text["stop_words"] else (),
        max_tokens=number["max_tokens"],
        keep=text["keep"],
        positive_from=number.get("positive_from"),
        labels=str(attributes["labels"]) if "labels" in attributes else None,
        sample=int(attributes["sample"]) if "sample" in attributes else None,
        vocabulary_size=number["vocabulary_size"],
        vocabulary_of=text["vocabulary_of"] or None,
        without=text["without"] or None,
        row_digest=text["row_digest"],
        id_digest=text["id_digest"],
        vocabulary_digest=text["vocabulary_digest"],
    )
