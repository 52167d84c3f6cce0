"""Reads columns chunk by chunk: each chunk is compared with its digest, then decompressed.

Chunks are read from the file with ``pread``, without the HDF5 library and its lock. Threads can therefore read in
parallel, and a process may fork.
"""

from __future__ import annotations

import os
import threading
import weakref
import zlib
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_128_hexdigest

from sentimill.errors import DamagedDataset, DatasetError
from sentimill.layout import StoredColumn

# Maximum size of decoded chunks that are kept for reads of single rows.
_CACHE_BYTES = 128 << 20
_THREADS = min(8, os.cpu_count() or 1)
# For fewer chunks, threads take longer to start than they save.
_CHUNKS_FOR_THREADS = 12
# The checksum of HDF5's filter follows the compressed bytes. The digest covers it.
_FLETCHER_BYTES = 4


class ChunkReader:
    """Columns of an open file."""

    def __init__(self, path: str, columns: dict[str, StoredColumn], check_digests: bool) -> None:
        self._path, self._columns, self._check_digests = path, columns, check_digests
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._close = weakref.finalize(self, os.close, self._descriptor)
        self._cache: OrderedDict[tuple[str, int], npt.NDArray[Any]] = OrderedDict()
        self._cached_bytes = 0
        self._lock = threading.Lock()

    def close(self) -> None:
        """Closes the file."""
        self._close()

    def read(self, name: str, start: int, stop: int) -> npt.NDArray[Any]:
        """Returns rows ``start`` to ``stop`` of a column, [stop - start, ...].

        The array is a read-only view of a cached chunk if one chunk has all of these rows.
        """
        column = self._columns[name]
        first, last = start // column.chunk_rows, (stop - 1) // column.chunk_rows
        if start < stop and first == last:
            begin = first * column.chunk_rows
            return self._cached(column, first)[start - begin : stop - begin]
        elements = np.empty((max(stop - start, 0), *column.row_shape), column.dtype)

        def fill(at: int) -> None:
            begin = at * column.chunk_rows
            low, high = max(start, begin), min(stop, begin + column.chunk_rows)
            # The first and the last chunk may be read again, so they are kept; the chunks between them are not.
            decoded = self._cached(column, at) if at in (first, last) else self._decode(column, at)
            elements[low - start : high - start] = decoded[low - begin : high - begin]

        numbers = range(first, last + 1) if start < stop else range(0)
        if len(numbers) >= _CHUNKS_FOR_THREADS and _THREADS > 1:
            with ThreadPoolExecutor(_THREADS) as threads:
                for _ in threads.map(fill, numbers):
                    pass
        else:
            for at in numbers:
                fill(at)
        return elements

    def check_all(self) -> None:
        """Reads every chunk of every column."""
        with ThreadPoolExecutor(_THREADS) as threads:
            for column in self._columns.values():
                for _ in threads.map(lambda at, column=column: self._decode(column, at), range(len(column.chunks))):
                    pass

    def _cached(self, column: StoredColumn, at: int) -> npt.NDArray[Any]:
        key = column.name, at
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
                return self._cache[key]
        decoded = self._decode(column, at)
        decoded.flags.writeable = False
        with self._lock:
            if key not in self._cache:
                self._cache[key] = decoded
                self._cached_bytes += decoded.nbytes
            while self._cached_bytes > _CACHE_BYTES and len(self._cache) > 1:
                self._cached_bytes -= self._cache.popitem(last=False)[1].nbytes
        return decoded

    def _decode(self, column: StoredColumn, at: int) -> npt.NDArray[Any]:
        """Returns the rows of a chunk, without the padding of the last chunk."""
        chunk = column.chunks[at]
        if not self._close.alive:
            raise ValueError(f"{self._path}: the dataset is closed")
        stored = os.pread(self._descriptor, chunk.n_bytes, chunk.address)
        if len(stored) != chunk.n_bytes:
            raise self._damaged(column, at, "the file is shorter than when it was opened")
        if self._check_digests and (found := xxh3_128_hexdigest(stored)) != chunk.digest:
            raise self._damaged(column, at, f"digest {found}, expected {chunk.digest}")
        size = column.dtype.itemsize
        elements = np.empty((column.chunk_rows, *column.row_shape), column.dtype)
        shuffled = self._inflate(column, at, stored, elements.nbytes)
        planes = np.frombuffer(shuffled, np.uint8).reshape(size, elements.size)
        if size == 1:
            elements.reshape(-1)[:] = planes[0]
        else:
            of_element = elements.view(np.uint8).reshape(elements.size, size)
            for byte in range(size):
                of_element[:, byte] = planes[byte]
        n_rows = min(column.chunk_rows, column.n_rows - at * column.chunk_rows)
        if elements[n_rows:].any():
            raise self._damaged(column, at, "elements after the last row are not zero")
        return elements[:n_rows]

    def _inflate(self, column: StoredColumn, at: int, stored: bytes, n_bytes: int) -> bytes:
        try:
            # One byte more than expected is sufficient to refuse the chunk.
            inflating = zlib.decompressobj()
            inflated = inflating.decompress(stored[:-_FLETCHER_BYTES], n_bytes + 1)
        except zlib.error as error:
            raise self._damaged(column, at, "not a deflated chunk") from error
        if len(inflated) != n_bytes or not inflating.eof or inflating.unused_data:
            raise self._damaged(column, at, f"{len(inflated)} decompressed bytes, expected {n_bytes}")
        return inflated

    def _damaged(self, column: StoredColumn, at: int, problem: str) -> DatasetError:
        return DamagedDataset(self._path, f"chunk {at} of {column.name}", problem, column.name, at)
