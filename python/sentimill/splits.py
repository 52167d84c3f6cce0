"""Division of rows into training, validation and test splits, as ``trainer fit`` divides them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

N_SPLITS = 1000
"""The column ``split`` has values below this."""


class Splits(NamedTuple):
    """Row numbers of each split, ascending."""

    training: npt.NDArray[np.int64]
    """Rows to train on, [N_training]."""
    validation: npt.NDArray[np.int64]
    """Rows to select settings and the best epoch by, [N_validation]."""
    test: npt.NDArray[np.int64]
    """Rows for the final test, [N_test]."""


def divide(split: npt.NDArray[np.uint16], test_fraction: float, validation_fraction: float) -> Splits:
    """Divides rows by their column ``split`` [N].

    The test split has the rows below ``1000 * test_fraction``, the validation split the other rows below
    ``1000 * (test_fraction + validation_fraction)``. Rows with the same kept words are in the same split.
    """
    test = _number_below("test_fraction", test_fraction)
    held_out = test + _number_below("validation_fraction", validation_fraction)
    if held_out >= N_SPLITS:
        raise ValueError(
            f"test_fraction + validation_fraction: {test_fraction + validation_fraction}, "
            "expected less than 1, so that training has rows"
        )
    return Splits(
        training=np.flatnonzero(split >= held_out),
        validation=np.flatnonzero((split >= test) & (split < held_out)),
        test=np.flatnonzero(split < test),
    )


def _number_below(name: str, fraction: float) -> int:
    """Returns the number of values of ``split`` below ``1000 * fraction``."""
    if not 0.0 <= fraction < 1.0:
        raise ValueError(f"{name}: {fraction}, expected 0 or more and less than 1")
    exact = fraction * N_SPLITS
    # 0.07 * 1000 is slightly more than 70 in floating point, and is 70.
    return round(exact) if abs(exact - round(exact)) < 1e-9 else math.ceil(exact)
