"""Rows for PyTorch's ``DataLoader``. Importing this module imports torch.

Shapes: ``B`` rows of a batch, ``T`` tokens of its longest row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import IterableDataset, get_worker_info

from sentimill.dataset import PADDING, Dataset, Row

# Number of rows that are read together.
_BLOCK_ROWS = 1024
# Number of blocks whose rows are shuffled together.
_POOL_BLOCKS = 32


class Batch(NamedTuple):
    """Rows as tensors."""

    ids: torch.Tensor
    """Ids, padded with 0 behind shorter rows, [B, T], int64."""
    lengths: torch.Tensor
    """Number of tokens per row, [B], int64."""
    label: torch.Tensor
    """0 or 1, [B], int64."""
    votes: torch.Tensor
    """Number of reviews with 1, 2, 3, 4 and 5 stars, [B, 5], int64."""


def collate(rows: Sequence[Row]) -> Batch:
    """Joins rows into a padded batch; a ``collate_fn`` for ``DataLoader``."""
    lengths = [len(row.ids) for row in rows]
    ids = np.full((len(rows), max(lengths)), PADDING, np.int64)
    for padded, row in zip(ids, rows, strict=True):
        padded[: len(row.ids)] = row.ids
    return Batch(
        ids=torch.from_numpy(ids),
        lengths=torch.tensor(lengths),
        label=torch.tensor([row.label for row in rows]),
        votes=torch.from_numpy(np.stack([row.votes for row in rows]).astype(np.int64)),
    )


class RowStream(IterableDataset):  # type: ignore[misc]
    """Rows of a dataset. Each worker of each rank yields a different share of the rows."""

    def __init__(
        self,
        dataset: Dataset,
        rows: npt.NDArray[np.integer[Any]] | None = None,
        seed: int | None = None,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        if not 0 <= rank < world_size:
            raise ValueError(f"rank: {rank}, expected 0 or more and less than the world size {world_size}")
        numbers = np.arange(len(dataset)) if rows is None else np.asarray(rows, np.int64)
        if numbers.size and (numbers[0] < 0 or numbers[-1] >= len(dataset) or (np.diff(numbers) < 1).any()):
            raise ValueError(f"rows: expected ascending numbers below {len(dataset)}, each once")
        self._dataset, self._numbers, self._seed = dataset, numbers, seed
        self._rank, self._world_size = rank, world_size
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch, which with the seed determines the order of rows. Call it before each epoch.

        Persistent workers of a ``DataLoader`` keep the epoch of their start.
        """
        self._epoch = epoch

    def __iter__(self) -> Iterator[Row]:
        worker = get_worker_info()
        worker_id, n_workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        share, n_shares = self._rank * n_workers + worker_id, self._world_size * n_workers
        # Several blocks per share, so that shares of a small dataset are nearly equal.
        block_rows = max(1, min(_BLOCK_ROWS, len(self._numbers) // (8 * n_shares)))
        blocks = np.arange(-(-len(self._numbers) // block_rows))
        if self._seed is None:
            for block in blocks[share::n_shares].tolist():
                yield from self._read(block, block_rows)
            return
        # The order of blocks is equal for all shares, so that each block is in exactly one share.
        np.random.default_rng((self._seed, self._epoch)).shuffle(blocks)
        random = np.random.default_rng((self._seed, self._epoch, share))
        of_share = blocks[share::n_shares].tolist()
        for begin in range(0, len(of_share), _POOL_BLOCKS):
            pool = [row for block in of_share[begin : begin + _POOL_BLOCKS] for row in self._read(block, block_rows)]
            for at in random.permutation(len(pool)).tolist():
                yield pool[at]

    def _read(self, block: int, block_rows: int) -> list[Row]:
        numbers = self._numbers[block * block_rows : (block + 1) * block_rows]
        first = int(numbers[0])
        rows = self._dataset.rows(first, int(numbers[-1]) + 1)
        return rows if len(rows) == len(numbers) else [rows[at] for at in (numbers - first).tolist()]
