"""Reads the datasets of cleaned reviews that Sentimill writes.

>>> from sentimill import open_dataset
>>> dataset = open_dataset("reviews.h5")
>>> dataset.text(0)
"""

from sentimill.dataset import Dataset, Row, open_dataset
from sentimill.errors import DamagedDataset, DatasetError, NotADataset
from sentimill.settings import Settings
from sentimill.splits import Splits

__all__ = ["DamagedDataset", "Dataset", "DatasetError", "NotADataset", "Row", "Settings", "Splits", "open_dataset"]
