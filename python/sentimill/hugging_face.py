"""Converts a dataset into a Hugging Face ``datasets.Dataset``. Importing this module imports datasets and pyarrow."""

from __future__ import annotations

from typing import Any

import datasets
import numpy as np
import numpy.typing as npt
import pyarrow

from sentimill.dataset import Dataset

# Rows per record batch. The offsets of an Arrow list are 32-bit, so a batch has less than 2^31 tokens.
_BATCH_ROWS = 8192


def arrow_dataset(dataset: Dataset, rows: npt.NDArray[np.integer[Any]] | None = None) -> datasets.Dataset:
    """Returns these rows in memory; if ``rows`` is ``None``, all rows."""
    tokens, lengths = dataset.tokens, dataset.lengths
    columns = {name: dataset.column(name) for name in ("label", "votes", "hash", "split")}
    if rows is not None:
        chosen = np.zeros(len(dataset), bool)
        chosen[rows] = True
        tokens, lengths = tokens[np.repeat(chosen, lengths)], lengths[chosen]
        columns = {name: column[chosen] for name, column in columns.items()}
    ends = np.concatenate(([0], np.cumsum(lengths)))
    features = datasets.Features(
        ids=datasets.Sequence(datasets.Value(tokens.dtype.name)),
        label=datasets.ClassLabel(names=list(dataset.settings.class_names)),
        votes=datasets.Sequence(datasets.Value("uint32"), length=5),
        hash=datasets.Value("uint64"),
        split=datasets.Value("uint16"),
    )
    schema = features.arrow_schema

    def batch(begin: int) -> pyarrow.RecordBatch:
        end = min(begin + _BATCH_ROWS, len(lengths))
        offsets = ends[begin : end + 1]
        ids = pyarrow.ListArray.from_arrays(
            pyarrow.array((offsets - offsets[0]).astype(np.int32)), pyarrow.array(tokens[offsets[0] : offsets[-1]])
        )
        votes = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(columns["votes"][begin:end].reshape(-1)), 5)
        label = pyarrow.array(columns["label"][begin:end].astype(np.int64))
        others = [pyarrow.array(columns[name][begin:end]) for name in ("hash", "split")]
        return pyarrow.RecordBatch.from_arrays([ids, label, votes, *others], schema=schema)

    batches = [batch(begin) for begin in range(0, len(lengths), _BATCH_ROWS)]
    table = pyarrow.Table.from_batches(batches, schema=schema)
    return datasets.Dataset(datasets.table.InMemoryTable(table), info=datasets.DatasetInfo(features=features))
