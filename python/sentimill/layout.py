"""The HDF5 structure of a dataset file, checked before any element is read.

The HDF5 library reads the table of digests, the attributes and the addresses of chunks. It follows no link to another
file: symbolic links, external links, virtual datasets and external storage are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from sentimill import digest_table
from sentimill.digest_table import DigestTable
from sentimill.errors import DamagedDataset, DatasetError, NotADataset
from sentimill.settings import SAMPLE_MAX, Settings, are_classes, attributes_of, settings_of

SCHEMA_VERSION = 1
_GROUP = "vocabulary"
_TABLE = "digests"
_TABLE_BYTES_MAX = 256 << 20
_ATTRIBUTE_BYTES_MAX = 16 << 20
# More links than a group of a dataset has.
_LINKS_MAX = 32
_FILTERS = [h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_FLETCHER32]
_ELEMENTS: dict[str, np.dtype[Any]] = {
    "u8": np.dtype("<u1"),
    "u16": np.dtype("<u2"),
    "u32": np.dtype("<u4"),
    "u64": np.dtype("<u8"),
}
_NAMES = {dtype: name for name, dtype in _ELEMENTS.items()}


@dataclass(frozen=True)
class _Form:
    """The element type and the shape that the format requires for a column."""

    elements: tuple[str, ...]
    chunk_rows: int
    width: int | None = None


_FORMS = {
    "tokens": _Form(("u16", "u32"), 65536),
    "offsets": _Form(("u64",), 32768),
    "label": _Form(("u8",), 65536),
    "votes": _Form(("u32",), 16384, width=5),
    "hash": _Form(("u64",), 32768),
    "split": _Form(("u16",), 65536),
    "vocabulary/bytes": _Form(("u8",), 262144),
    "vocabulary/offsets": _Form(("u64",), 32768),
    "vocabulary/count": _Form(("u64",), 32768),
}


@dataclass(frozen=True)
class StoredChunk:
    """Where a chunk is in the file, and the digest of its stored bytes."""

    address: int
    n_bytes: int
    digest: str


@dataclass(frozen=True)
class StoredColumn:
    """A column whose layout is that of the format and of the table of digests."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    chunk_rows: int
    chunks: list[StoredChunk]

    @property
    def n_rows(self) -> int:
        """The length of the first dimension."""
        return self.shape[0]

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The shape of one row: ``()``, or ``(5,)`` for votes."""
        return self.shape[1:]


@dataclass(frozen=True)
class Layout:
    """The checked structure of a dataset file."""

    settings: Settings
    columns: dict[str, StoredColumn]
    table_digest: str


def read_layout(path: str, file_bytes: int) -> Layout:
    """Reads and checks the structure of a file of this size."""
    try:
        with h5py.File(path, "r") as file:
            return _Reader(path, file_bytes, file).layout()
    except DatasetError:
        raise
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, OverflowError, UnicodeError) as error:
        # h5py reports damage of HDF5's metadata by each of these.
        raise DamagedDataset(path, "the HDF5 structure", "unreadable") from error


class _Reader:
    def __init__(self, path: str, file_bytes: int, file: h5py.File) -> None:
        self.path, self.file_bytes = path, file_bytes
        self.root = h5py.h5g.open(file.id, b"/")

    def layout(self) -> Layout:
        names = self._links(self.root, "")
        if _TABLE not in names:
            raise NotADataset(
                f"{self.path}: dataset `{_TABLE}` is missing, so this is not a Sentimill dataset; "
                "for a padded copy, open the dataset in the same folder"
            )
        table = self._table()
        attributes = self._attributes(table)
        self._check_format(attributes)
        self._check_members(names)
        expected = attributes_of(attributes)
        if set(attributes) != set(expected):
            raise self._damaged("the list of attributes", f"found {sorted(attributes)}, expected {sorted(expected)}")
        if "labels" in attributes and not are_classes(str(attributes["labels"])):
            raise self._damaged("attribute labels", "not a list of classes")
        if not 1 <= int(attributes.get("sample", 1)) <= SAMPLE_MAX:
            raise self._damaged("attribute sample", f"found {attributes['sample']}, expected 1 to {SAMPLE_MAX}")
        listed = dict(table.columns)
        columns = {name: self._column(name, form, listed) for name, form in _FORMS.items()}
        if listed:
            raise self._damaged("the table of digests", f"lists another column: {next(iter(listed))}")
        self._check_lengths(columns)
        self._check_places(columns)
        return Layout(settings_of(attributes), columns, table.digest)

    def _damaged(self, part: str, problem: str, column: str | None = None, chunk: int | None = None) -> DamagedDataset:
        return DamagedDataset(self.path, part, problem, column, chunk)

    def _links(self, group: Any, prefix: str) -> list[str]:
        """Returns the names in a group, all of which are hard links."""
        found: list[bytes] = []

        def add(name: bytes) -> bool | None:
            found.append(name)
            return True if len(found) > _LINKS_MAX else None

        group.links.iterate(add)
        if len(found) > _LINKS_MAX:
            raise self._damaged(f"group /{prefix}", f"more than {_LINKS_MAX} links")
        for name in found:
            if group.links.get_info(name).type != h5py.h5l.TYPE_HARD:
                shown = prefix + name.decode("utf-8", "backslashreplace")
                raise self._damaged(shown, "a link to another place, expected a dataset or group of this file")
        return [name.decode("utf-8") for name in found]

    def _check_members(self, names: list[str]) -> None:
        """Refuses missing and additional objects, and attributes of anything but the root group."""
        members = [name.partition("/")[0] for name in _FORMS]
        self._check_names("the root group", names, {*members, _TABLE})
        group = h5py.h5g.open(self.root, _GROUP.encode())
        self._check_names(f"group {_GROUP}", self._links(group, f"{_GROUP}/"), {"bytes", "offsets", "count"})
        if h5py.h5a.get_num_attrs(group):
            raise self._damaged(f"group {_GROUP}", "has attributes, expected none")

    def _check_names(self, where: str, found: list[str], expected: set[str]) -> None:
        if set(found) != expected:
            raise self._damaged(where, f"found {sorted(found)}, expected {sorted(expected)}")

    def _open(self, name: str, storage: int) -> Any:
        """Opens a dataset, and checks that its elements are in this file, in this kind of storage."""
        dataset = h5py.h5d.open(self.root, name.encode())
        created = dataset.get_create_plist()
        if created.get_layout() != storage or created.get_external_count():
            raise self._damaged(name, "its storage is not that of the format", column=name)
        if h5py.h5a.get_num_attrs(dataset):
            raise self._damaged(name, "has attributes, expected none", column=name)
        return dataset

    def _table(self) -> DigestTable:
        dataset = self._open(_TABLE, h5py.h5d.CONTIGUOUS)
        # A table that was never stored would be read as zeros of any size.
        fits = len(dataset.shape) == 1 and dataset.shape[0] <= min(self.file_bytes, _TABLE_BYTES_MAX)
        if not fits or self._element(dataset) != "u8":
            raise self._damaged("the table of digests", "not a table that fits in the file")
        stored = np.empty(dataset.shape, np.uint8)
        dataset.read(h5py.h5s.ALL, h5py.h5s.ALL, stored)
        table = digest_table.parse(stored.tobytes())
        if table is None:
            raise self._damaged("the table of digests", "does not match its own digest")
        return table

    @staticmethod
    def _element(dataset: Any) -> str | None:
        if dataset.get_type().get_class() != h5py.h5t.INTEGER:
            return None
        return _NAMES.get(dataset.dtype)

    def _attributes(self, table: DigestTable) -> dict[str, str | int]:
        """Returns all attributes of the root group, which match their digests."""
        values: dict[str, str | int] = {}
        for index in range(h5py.h5a.get_num_attrs(self.root)):
            attribute = h5py.h5a.open(self.root, index=index)
            name = attribute.name.decode("utf-8")
            type_name, stored, value = self._attribute(name, attribute)
            if table.attributes.get(name) != digest_table.attribute_digest(type_name, stored):
                raise self._damaged(f"attribute {name}", "does not match its digest")
            values[name] = value
        if missing := set(table.attributes) - set(values):
            raise self._damaged(f"attribute {min(missing)}", "missing")
        return values

    def _attribute(self, name: str, attribute: Any) -> tuple[str, bytes, str | int]:
        """Returns the name of the type, the stored bytes and the value."""
        kind = attribute.get_type()
        size = kind.get_size()
        if attribute.shape != () or size > _ATTRIBUTE_BYTES_MAX:
            raise self._damaged(f"attribute {name}", "not a scalar of at most 16 MiB")
        if isinstance(kind, h5py.h5t.TypeStringID):
            if kind.is_variable_str() or kind.get_cset() != h5py.h5t.CSET_UTF8:
                raise self._damaged(f"attribute {name}", "not a UTF-8 text of fixed length")
            text = np.empty((), f"S{size}")
            attribute.read(text, mtype=kind)
            stored = text.tobytes()
            return f"text {size}", stored, "" if stored == b"\0" else stored.decode("utf-8")
        if kind.get_class() != h5py.h5t.INTEGER or kind.dtype != _ELEMENTS["u64"]:
            raise self._damaged(f"attribute {name}", "neither a text nor a u64")
        number: npt.NDArray[np.uint64] = np.empty((), np.dtype("<u8"))
        attribute.read(number)
        return "u64", number.tobytes(), int(number)

    def _check_format(self, attributes: dict[str, str | int]) -> None:
        found, version = attributes.get("format"), attributes.get("schema_version")
        if found != "sentimill dataset":
            raise NotADataset(f"{self.path}: format `{found}`, expected `sentimill dataset`")
        if version != SCHEMA_VERSION:
            raise NotADataset(
                f"{self.path}: schema version {version}, expected {SCHEMA_VERSION}; rebuild the dataset or install the "
                "matching version of this package"
            )
        for name, kind in attributes_of(attributes).items():
            if name in attributes and not isinstance(attributes[name], kind):
                raise self._damaged(f"attribute {name}", f"expected type {kind.__name__}")

    def _column(self, name: str, form: _Form, listed: dict[str, list[str]]) -> StoredColumn:
        """Checks a column, and removes it from the listed columns."""
        dataset = self._open(name, h5py.h5d.CHUNKED)
        element, shape, created = self._element(dataset), dataset.shape, dataset.get_create_plist()
        width = () if form.width is None else (form.width,)
        chunk_rows = min(form.chunk_rows, max(shape[0], 1)) if shape else 0
        filters = [created.get_filter(index)[0] for index in range(created.get_nfilters())]
        if element not in form.elements or shape[1:] != width or created.get_chunk() != (chunk_rows, *width):
            found = f"type {element}, shape {shape}, chunk {created.get_chunk()}, which the format does not have"
            raise self._damaged(name, found, column=name)
        if filters != _FILTERS:
            raise self._damaged(name, f"filters {filters}, expected {_FILTERS}", column=name)
        digests = listed.pop(digest_table.column_line(name, element, shape, (chunk_rows, *width)), None)
        if digests is None:
            raise self._damaged(name, "type or shape differs from the table of digests", column=name)
        chunks = self._chunks(name, dataset, chunk_rows, digests)
        return StoredColumn(name, _ELEMENTS[element], shape, chunk_rows, chunks)

    def _chunks(self, name: str, dataset: Any, chunk_rows: int, digests: list[str]) -> list[StoredChunk]:
        n_chunks = -(-dataset.shape[0] // chunk_rows)
        if len(digests) != n_chunks:
            raise self._damaged(name, f"{len(digests)} digests of chunks, expected {n_chunks}", column=name)
        found: dict[tuple[int, ...], Any] = {}

        def add(info: Any) -> bool | None:
            found[info.chunk_offset] = info
            return True if len(found) > n_chunks else None

        # The library has no index for a column without chunks.
        if n_chunks:
            dataset.chunk_iter(add)
        rest = (0,) * (len(dataset.shape) - 1)
        elements = chunk_rows * int(np.prod(dataset.shape[1:], dtype=np.int64))
        bytes_max = 2 * elements * dataset.dtype.itemsize + 1024
        chunks = []
        for at, digest in enumerate(digests):
            info = found.pop((at * chunk_rows, *rest), None)
            if info is None or info.byte_offset is None:
                raise self._damaged(f"chunk {at} of {name}", "missing", column=name, chunk=at)
            if info.filter_mask or info.size > bytes_max or info.byte_offset + info.size > self.file_bytes:
                problem = f"{info.size} bytes from byte {info.byte_offset} with filter mask {info.filter_mask}"
                raise self._damaged(f"chunk {at} of {name}", problem, column=name, chunk=at)
            chunks.append(StoredChunk(info.byte_offset, info.size, digest))
        if found:
            raise self._damaged(name, "has a chunk outside of its shape", column=name)
        return chunks

    def _check_lengths(self, columns: dict[str, StoredColumn]) -> None:
        n_rows, n_words = columns["label"].n_rows, columns["vocabulary/count"].n_rows
        expected = dict.fromkeys(("votes", "hash", "split"), n_rows)
        expected |= {"offsets": n_rows + 1, "vocabulary/offsets": n_words + 1}
        for name, length in expected.items():
            if columns[name].n_rows != length:
                raise self._damaged(name, f"{columns[name].n_rows} rows, expected {length}", column=name)
        element = "u16" if n_words + 1 <= 65_535 else "u32"
        if columns["tokens"].dtype != _ELEMENTS[element]:
            raise self._damaged("tokens", f"expected type {element} for {n_words} words", column="tokens")

    def _check_places(self, columns: dict[str, StoredColumn]) -> None:
        """Refuses two chunks that share a byte."""
        places = [(chunk, name, at) for name, column in columns.items() for at, chunk in enumerate(column.chunks)]
        places.sort(key=lambda place: place[0].address)
        for (before, _, _), (chunk, name, at) in pairwise(places):
            if before.address + before.n_bytes > chunk.address:
                raise self._damaged(f"chunk {at} of {name}", "shares bytes with another chunk", column=name, chunk=at)
