"""The table of digests: the layout of each column, and a digest of each chunk and attribute."""

from __future__ import annotations

from dataclasses import dataclass

from xxhash import xxh3_128_hexdigest

_HEAD = "sentimill digests 1"
_DIGITS = frozenset("0123456789abcdef")


@dataclass(frozen=True)
class DigestTable:
    """A table whose own digest matches."""

    columns: dict[str, list[str]]
    """The digests of a column's chunks, by the line that describes the column."""
    attributes: dict[str, str]
    """The digest of an attribute, by its name."""
    digest: str
    """The digest of the table."""


def parse(stored: bytes) -> DigestTable | None:
    """Returns the table, or ``None`` if it is damaged."""
    end = stored.rstrip(b"\n").rfind(b"\n") + 1
    digest = xxh3_128_hexdigest(stored[:end])
    if stored[end:] != f"end {digest}\n".encode():
        return None
    try:
        head, *lines = stored[:end].decode("utf-8").split("\n")[:-1]
    except (UnicodeDecodeError, ValueError):
        return None
    if head != _HEAD:
        return None
    columns: dict[str, list[str]] = {}
    attributes: dict[str, str] = {}
    chunks: list[str] | None = None
    for line in lines:
        kind, _, rest = line.partition(" ")
        if kind == "column" and rest not in columns:
            chunks = columns[rest] = []
        elif kind == "attribute":
            name, _, value = rest.rpartition(" ")
            if name in attributes or not _is_digest(value):
                return None
            attributes[name] = value
        elif chunks is not None and _is_digest(line):
            chunks.append(line)
        else:
            return None
    return DigestTable(columns, attributes, digest)


def column_line(name: str, element: str, shape: tuple[int, ...], chunk: tuple[int, ...]) -> str:
    """Returns the description of a column in the table."""
    return f"{name} {element} shape {list(shape)} chunk {list(chunk)} shuffle deflate fletcher32"


def attribute_digest(type_name: str, value: bytes) -> str:
    """Returns the digest of an attribute of this type and with these stored bytes."""
    return xxh3_128_hexdigest(type_name.encode() + b"\0" + value)


def _is_digest(text: str) -> bool:
    return len(text) == 32 and _DIGITS.issuperset(text)
