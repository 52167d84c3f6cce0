from collections.abc import Sequence
from os import PathLike

UNICODE_VERSION: str
"""The version of Unicode by which texts are cleaned."""

def clean(text: str, punctuation: bool) -> str:
    """Returns the cleaned text."""

def contents(folder: str | PathLike[str], names: Sequence[str]) -> list[bytes]:
    """Returns the content of files of a folder. Each must be listed with its digest, and match it."""

class Ngrams:
    """An n-gram model: the folder of one, or a file of the fastText program."""

    def __init__(self, path: str | PathLike[str]) -> None: ...
    @property
    def labels(self) -> list[str]: ...
    def predict(self, texts: list[str]) -> tuple[bytearray, bytearray, bytearray, list[str | None]]:
        """Returns for each text the label (64-bit integers), the score if there are two labels and the probabilities
        (32-bit floats), as bytes, and the reasons why a text has none."""

class NgramsOfLstm:
    """The n-grams that are a part of an LSTM model."""

    def __init__(self, folder: str | PathLike[str], classes: list[str]) -> None: ...
    def outputs(self, texts: list[str]) -> bytearray:
        """Returns what is added to the outputs of the LSTM, 32-bit floats, for texts of words between spaces."""
