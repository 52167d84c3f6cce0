"""Reads the datasets of cleaned reviews that Sentimill writes, cleans texts, and predicts with its models.

>>> from sentimill import clean, load, open_dataset
>>> dataset = open_dataset("reviews.h5")
>>> dataset.text(0)
>>> clean("<b>GOOD</b>, 10/10!")
>>> load("model/").predict(["Good!", "Bad."]).label
"""

from typing import TYPE_CHECKING, Any

from sentimill.dataset import Dataset, Row, open_dataset
from sentimill.errors import DamagedDataset, DamagedModel, DatasetError, ModelError, NotADataset
from sentimill.settings import Settings
from sentimill.splits import Splits

if TYPE_CHECKING:
    from sentimill.models import Model, Predictions, clean, load

__all__ = [
    "DamagedDataset",
    "DamagedModel",
    "Dataset",
    "DatasetError",
    "Model",
    "ModelError",
    "NotADataset",
    "Predictions",
    "Row",
    "Settings",
    "Splits",
    "clean",
    "load",
    "open_dataset",
]


def __getattr__(name: str) -> Any:
    """Datasets are read without the native module, which only these names require."""
    if name not in ("Model", "Predictions", "clean", "load"):
        raise AttributeError(f"module 'sentimill' has no attribute {name!r}")
    from sentimill import models

    return getattr(models, name)
