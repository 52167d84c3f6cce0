"""A dataset: rows, vocabulary, settings and splits of one file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from sentimill.chunks import ChunkReader
from sentimill.errors import DamagedDataset, NotADataset
from sentimill.layout import read_layout
from sentimill.settings import Settings
from sentimill.splits import Splits, divide

if TYPE_CHECKING:
    import datasets

    from sentimill.pytorch import RowStream

Verify = bool | Literal["all"]
PADDING = 0
"""The id that pads rows to one length. No row of a dataset contains it."""
UNKNOWN = 1
"""The id of every word outside the vocabulary."""
FIRST_WORD = 2
"""The id of the first word of the vocabulary."""
COLUMNS = ("tokens", "offsets", "label", "votes", "hash", "split")
"""The columns of rows."""
_BLOCK_ROWS = 4096


class Row(NamedTuple):
    """One distinct text."""

    ids: npt.NDArray[np.unsignedinteger[Any]]
    """Ids of the kept tokens, [T], uint16 or uint32."""
    label: int
    """The class of the most frequent rating: an index into ``settings.class_names``. Without named classes, it is 1 if
    the rating is at least ``settings.positive_from``, else 0."""
    votes: npt.NDArray[np.uint32]
    """Number of reviews of this text with 1, 2, 3, 4 and 5 stars, [5]."""
    hash: int
    """XXH3-64 of the cleaned text."""
    split: int
    """0 to 999; ``Dataset.splits`` divides rows by it."""


def open_dataset(path: str | os.PathLike[str], verify: Verify = True) -> Dataset:
    """Opens a dataset that ``merge`` or ``sentimill`` wrote.

    Args:
        path: The file, such as ``reviews.h5``.
        verify: ``True`` compares each chunk with its digest when the chunk is first read. ``"all"`` compares all chunks
            before this function returns. ``False`` omits the digests of chunks. The table of digests, the attributes
            and the layout of columns are always checked.

    Raises:
        DamagedDataset: The file does not match its table of digests.
        NotADataset: The file is not a dataset of the supported schema version.
        OSError: The file cannot be read.
    """
    return Dataset(os.fspath(path), verify)


class Dataset:
    """An open dataset of N rows and T tokens. Rows ascend by hash, so their order is already random.

    It can be pickled, and used after a fork and by several threads. Each property of a whole column reads the column
    from the file at each access.
    """

    def __init__(self, path: str, verify: Verify = True) -> None:
        self.path = path
        self._verify = verify
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise NotADataset(f"{path}: not a regular file")
        layout = read_layout(path, status.st_size)
        self.settings: Settings = layout.settings
        """Settings and digests in the attributes."""
        self._columns, self._table_digest = layout.columns, layout.table_digest
        self._reader = ChunkReader(path, layout.columns, verify is not False)
        if verify == "all":
            self.verify()

    def __len__(self) -> int:
        """Returns N, the number of rows."""
        return self._columns["label"].n_rows

    @property
    def n_tokens(self) -> int:
        """T, the number of tokens in all rows."""
        return self._columns["tokens"].n_rows

    @property
    def tokens(self) -> npt.NDArray[np.unsignedinteger[Any]]:
        """Ids of all rows, one row after the other, [T], uint16 or uint32."""
        return self.column("tokens")

    @property
    def offsets(self) -> npt.NDArray[np.uint64]:
        """Row ``i`` has the tokens from ``offsets[i]`` to ``offsets[i + 1]``, [N + 1]."""
        return self.column("offsets")

    @property
    def label(self) -> npt.NDArray[np.uint8]:
        """Indices into ``settings.class_names``, [N]: 0 or 1 without named classes."""
        return self.column("label")

    @property
    def votes(self) -> npt.NDArray[np.uint32]:
        """Number of reviews per text with 1, 2, 3, 4 and 5 stars, [N, 5]."""
        return self.column("votes")

    @property
    def hash(self) -> npt.NDArray[np.uint64]:
        """XXH3-64 of the cleaned texts, ascending, [N]."""
        return self.column("hash")

    @property
    def split(self) -> npt.NDArray[np.uint16]:
        """Split numbers from 0 to 999, [N]. Rows with the same kept words have the same number."""
        return self.column("split")

    @property
    def rating(self) -> npt.NDArray[np.uint8]:
        """The most frequent rating per text, 1 to 5, [N]. Of equally frequent ratings, it is the smallest."""
        rating: npt.NDArray[np.uint8] = (self.votes.argmax(axis=1) + 1).astype(np.uint8)
        return rating

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Number of tokens per row, [N]."""
        lengths: npt.NDArray[np.int64] = np.diff(self._bounds(0, len(self)))
        return lengths

    def column(self, name: str) -> npt.NDArray[Any]:
        """Returns a whole column: ``tokens``, ``offsets``, ``label``, ``votes``, ``hash`` or ``split``."""
        if name not in COLUMNS:
            raise KeyError(f"{name}: no such column; expected one of {', '.join(COLUMNS)}")
        return self._read_all(name)

    @cached_property
    def vocabulary(self) -> list[str]:
        """Words by descending count; word ``i`` has the id ``i + 2``."""
        spelled = self._read_all("vocabulary/bytes").tobytes()
        ends = self._read_all("vocabulary/offsets").tolist()
        if ends[0] != 0 or ends[-1] != len(spelled) or any(end <= begin for begin, end in pairwise(ends)):
            raise self._inconsistent("vocabulary/offsets")
        return [spelled[begin:end].decode("utf-8") for begin, end in pairwise(ends)]

    @property
    def vocabulary_count(self) -> npt.NDArray[np.uint64]:
        """Occurrences of each word in all distinct texts, [words]."""
        return self._read_all("vocabulary/count")

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        """Returns a row, or a list of the rows of a slice."""
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return list(chain.from_iterable(self._blocks(start, stop)))
            return [self[at] for at in range(start, stop, step)]
        at = self._index(index)
        begin, end = self._bounds(at, at + 1).tolist()
        # A copy, so that a row keeps its own bytes in memory and not those of a chunk.
        return Row(
            self._reader.read("tokens", begin, end).copy(),
            int(self._reader.read("label", at, at + 1)[0]),
            self._reader.read("votes", at, at + 1)[0].copy(),
            int(self._reader.read("hash", at, at + 1)[0]),
            int(self._reader.read("split", at, at + 1)[0]),
        )

    def __iter__(self) -> Iterator[Row]:
        """Iterates over all rows in the order of the file."""
        return chain.from_iterable(self._blocks(0, len(self)))

    def text(self, row: int) -> str:
        """Returns the kept tokens of a row, joined by spaces."""
        at = self._index(row)
        begin, end = self._bounds(at, at + 1).tolist()
        return self.decode(self._reader.read("tokens", begin, end))

    def texts(self) -> Iterator[str]:
        """Iterates over the texts of all rows."""
        for row in self:
            yield self.decode(row.ids)

    def decode(self, ids: npt.NDArray[np.integer[Any]] | Iterable[int]) -> str:
        """Returns the words of ids, joined by spaces; ``(padding)`` for 0 and ``(unknown)`` for 1."""
        words = self._words
        return " ".join([words[at] for at in (ids.tolist() if isinstance(ids, np.ndarray) else ids)])

    def splits(self, test_fraction: float = 0.1, validation_fraction: float = 0.05) -> Splits:
        """Returns the row numbers of the splits of ``trainer fit`` with the same values of the flags of these names.

        The defaults are those of ``trainer fit``; its ``--recipe original`` has a validation fraction of 0.
        """
        return divide(self.split, test_fraction, validation_fraction)

    def rows(self, start: int, stop: int) -> list[Row]:
        """Returns consecutive rows, whose arrays are views of one block in memory."""
        if not 0 <= start <= stop <= len(self):
            raise IndexError(f"rows {start} to {stop}, expected a range in 0 to {len(self)}")
        return list(self._read_rows(start, stop)) if start < stop else []

    def to_torch(
        self,
        rows: npt.NDArray[np.integer[Any]] | None = None,
        seed: int | None = None,
        rank: int = 0,
        world_size: int = 1,
    ) -> RowStream:
        """Returns the rows as an ``IterableDataset`` for PyTorch's ``DataLoader``.

        Each row is in exactly one worker of exactly one rank. Pass ``collate_fn=sentimill.pytorch.collate`` to the
        ``DataLoader`` for padded batches.

        Args:
            rows: Ascending row numbers, such as ``splits().training``; default: all rows.
            seed: Shuffles rows by this seed and the epoch (``set_epoch``); default: the order of the file.
            rank: Rank of this process.
            world_size: Number of processes that share the rows.
        """
        from sentimill.pytorch import RowStream

        return RowStream(self, rows, seed, rank, world_size)

    def to_datasets(self, rows: npt.NDArray[np.integer[Any]] | None = None) -> datasets.Dataset:
        """Returns the rows as a Hugging Face ``datasets.Dataset`` in memory, with the columns of ``Row``.

        Args:
            rows: Ascending row numbers, such as ``splits().training``; default: all rows.
        """
        from sentimill.hugging_face import arrow_dataset

        return arrow_dataset(self, rows)

    def verify(self) -> None:
        """Reads all columns and compares each chunk with its digest."""
        self._reader.check_all()

    def close(self) -> None:
        """Closes the file."""
        self._reader.close()

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        n_words = self._columns["vocabulary/count"].n_rows
        return f"Dataset({self.path!r}, {len(self)} rows, {self.n_tokens} tokens, {n_words} words)"

    def __getstate__(self) -> tuple[str, Verify, str]:
        return os.path.abspath(self.path), self._verify, self._table_digest

    def __setstate__(self, state: tuple[str, Verify, str]) -> None:
        path, verify, table_digest = state
        # The process that opened the dataset has already verified all chunks.
        self.__init__(path, verify is not False)  # type: ignore[misc]
        if self._table_digest != table_digest:
            raise NotADataset(f"{path}: another dataset than the pickled one")

    @cached_property
    def _words(self) -> list[str]:
        return ["(padding)", "(unknown)", *self.vocabulary]

    def _read_all(self, name: str) -> npt.NDArray[Any]:
        return self._read(name, 0, self._columns[name].n_rows)

    def _read(self, name: str, start: int, stop: int) -> npt.NDArray[Any]:
        """Returns rows of a column in an array that the caller may change."""
        elements = self._reader.read(name, start, stop)
        return elements if elements.flags.writeable else elements.copy()

    def _blocks(self, start: int, stop: int) -> Iterator[Iterator[Row]]:
        for begin in range(start, stop, _BLOCK_ROWS):
            yield self._read_rows(begin, min(begin + _BLOCK_ROWS, stop))

    def _read_rows(self, start: int, stop: int) -> Iterator[Row]:
        """Reads one or more rows, and creates the objects one by one, without a Python call per row."""
        bounds = self._bounds(start, stop)
        first = int(bounds[0])
        ids = self._read("tokens", first, int(bounds[-1]))
        label, votes, hashes, split = (self._read(name, start, stop) for name in ("label", "votes", "hash", "split"))
        ends = (bounds - first).tolist()
        slices = map(ids.__getitem__, map(slice, ends, ends[1:]))
        fields = zip(slices, label.tolist(), votes, hashes.tolist(), split.tolist(), strict=True)
        return map(partial(tuple.__new__, Row), fields)

    def _index(self, index: int) -> int:
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(f"row {index}, expected a number below {len(self)}")
        return at

    def _bounds(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """Returns the offsets of rows ``start`` to ``stop`` with the end of the last one, [stop - start + 1]."""
        # Compared without a sign: a difference of hostile offsets may overflow.
        bounds = self._reader.read("offsets", start, stop + 1)
        if bounds[-1] > self.n_tokens or (bounds[1:] <= bounds[:-1]).any():
            raise self._inconsistent("offsets")
        return bounds.astype(np.int64)

    def _inconsistent(self, column: str) -> DamagedDataset:
        return DamagedDataset(self.path, column, "not ascending offsets into their column", column)
