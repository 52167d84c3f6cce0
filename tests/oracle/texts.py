"""Compares the texts of all partitions of a run with the texts of all rows, by pyarrow.

Each file of a partition must be ordered by hash, with the columns of the file of all rows. Together, ordered by hash,
they must be its rows. Prints the number of rows, or fails at the first difference.
"""

from __future__ import annotations

import sys

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def main() -> None:
    whole, *parts = map(pq.read_table, sys.argv[1:])
    for path, part in zip(sys.argv[2:], parts, strict=True):
        assert part.schema.equals(whole.schema), f"{path}: {part.schema}, expected {whole.schema}"
        hashes = part["hash"].combine_chunks()
        assert pc.all(pc.less(hashes[:-1], hashes[1:])).as_py() is not False, f"{path}: not in the order of hashes"
    together = pa.concat_tables(parts).sort_by("hash")
    assert together.equals(whole), f"{together.num_rows} rows differ from {whole.num_rows} expected rows"
    print(whole.num_rows)


if __name__ == "__main__":
    main()
