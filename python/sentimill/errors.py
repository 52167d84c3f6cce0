"""Errors of opening and reading a dataset or a model."""

from __future__ import annotations


class DatasetError(Exception):
    """A dataset that cannot be read."""


class NotADataset(DatasetError):
    """The file is intact, but it is not a Sentimill dataset of the supported version."""


class DamagedDataset(DatasetError):
    """The file does not match its table of digests.

    Attributes:
        path: The file.
        part: The damaged part, such as ``chunk 3 of tokens`` or ``attribute keep``.
        column: The column of a damaged chunk or layout, else ``None``.
        chunk: The number of a damaged chunk in its column, from 0, else ``None``.
    """

    def __init__(self, path: str, part: str, problem: str, column: str | None = None, chunk: int | None = None) -> None:
        super().__init__(f"{path}: {part}: {problem}; the file is damaged, copy it again or rebuild it")
        self.path, self.part, self.column, self.chunk = path, part, column, chunk
        self._arguments = (path, part, problem, column, chunk)

    def __reduce__(self) -> tuple[type[DamagedDataset], tuple[str, str, str, str | None, int | None]]:
        # Pickle otherwise passes the message alone, as from a worker process.
        return type(self), self._arguments


class ModelError(Exception):
    """A model that cannot be read: it is missing, of another version or kind, or parts of it do not fit together."""


class DamagedModel(ModelError):
    """A file of the model does not match its digest."""
