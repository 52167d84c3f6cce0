"""Reads the datasets of cleaned reviews that Sentimill writes, cleans texts, and predicts with its models.

>>> from sentimill import clean, load, open_dataset
>>> dataset = open_dataset("reviews.h5")
>>> dataset.text(0)
>>> clean("<b>GOOD</b>, 10/10!")
>>> load("model/").predict(["Good!", "Bad."]).label
"""

from sentimill.dataset import Dataset, Row, open_dataset
from sentimill.errors import DamagedDataset, DamagedModel, DatasetError, ModelError, NotADataset
from sentimill.models import Model, Predictions, clean, load
from sentimill.settings import Settings
from sentimill.splits import Splits

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
