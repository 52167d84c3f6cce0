"""Datasets made by the real programs, for the tests of this package."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

PROJECT = Path(__file__).resolve().parents[2]
HAS_TORCH = find_spec("torch") is not None
HAS_DATASETS = find_spec("datasets") is not None


def skip(what: str) -> NoReturn:
    """Skips a test on a developer's machine that lacks an installation; fails it in CI."""
    if os.environ.get("CI"):
        raise AssertionError(f"not tested: {what}")
    print(f"SKIPPED {what}", file=sys.stderr)
    raise unittest.SkipTest(what)


def require(installed: bool, package: str) -> None:
    if not installed:
        skip(f"{package} is not installed; bootstrap/laptop.sh test installs it")


def program(name: str) -> str:
    """Returns the path of a program in the folder $SENTIMILL_PROGRAMS, which has all, or of the newest build."""
    given = os.environ.get("SENTIMILL_PROGRAMS")
    target = Path(os.environ.get("CARGO_TARGET_DIR", PROJECT / "target"))
    folders = [Path(given)] if given else [target / "release", target / "debug"]
    paths = [path for folder in folders for path in (folder / name, folder / "examples" / name) if path.is_file()]
    if not paths:
        assert not given, f"{name} is missing in {given}, where `cargo build --bins --example demo-corpus` puts it"
        skip(f"{name} is missing in {folders}; `make build` builds it")
    return str(max(paths, key=lambda path: path.stat().st_mtime))


def run(*command: str | Path, standard_input: bytes = b"") -> bytes:
    """Runs a program and returns its standard output."""
    ended = subprocess.run([str(part) for part in command], input=standard_input, capture_output=True)
    assert ended.returncode == 0, f"{command}: exit code {ended.returncode}\n{ended.stderr.decode(errors='replace')}"
    return ended.stdout


@cache
def folder() -> Path:
    """Returns a folder for all tests of this process; it is deleted at the end."""
    _folders.append(tempfile.TemporaryDirectory(prefix="sentimill-python-"))
    return Path(_folders[0].name)


_folders: list[tempfile.TemporaryDirectory[str]] = []


@cache
def demo() -> Path:
    """Returns a dataset of 60,000 synthetic reviews, which has several chunks per column."""
    corpus, dataset = folder() / "demo.json", folder() / "demo.h5"
    corpus.write_bytes(run(program("demo-corpus"), "--reviews", "60000"))
    run(program("sentimill"), "--input", corpus, "--out", dataset)
    return dataset


@cache
def reviews() -> tuple[Path, list[str]]:
    """Returns a file of 3,000 synthetic reviews, and the texts of those that are not damaged."""
    path, texts = folder() / "reviews.json", []
    path.write_bytes(run(program("demo-corpus"), "--reviews", "3000"))
    for line in path.read_bytes().splitlines():
        try:
            text = json.loads(line).get("reviewText")
        except (ValueError, AttributeError):
            continue  # One line in a hundred is damaged.
        texts += [text] if isinstance(text, str) else []
    return path, texts


@cache
def small() -> Path:
    """Returns a dataset of 60 short reviews, whose columns have one chunk each."""
    return _dataset("small", [("small words " + _word(n), 1 + n % 5) for n in range(60)])


@cache
def three_classes() -> Path:
    """Returns a dataset of 60 short reviews with the classes ``so so``, ``good`` and ``bad``; 2 stars have none."""
    reviews = [("small words " + _word(n), 1 + n % 5) for n in range(60)]
    return _dataset("three-classes", reviews, "--labels", "3=so so,4-5=good,1=bad")


@cache
def sampled() -> Path:
    """Returns a sample of half of the texts of the dataset :func:`small`."""
    reviews = [("small words " + _word(n), 1 + n % 5) for n in range(60)]
    return _dataset("sampled", reviews, "--sample", "0.5")


@cache
def many_words() -> Path:
    """Returns a dataset of hundreds of thousands of words, whose ids need 32 bits."""
    numbers = list(range(3_000_000 if os.environ.get("PROVE") else 300_000))
    random.Random(1).shuffle(numbers)
    texts = [" ".join(map(_long_word, numbers[at : at + 100])) for at in range(0, len(numbers), 100)]
    return _dataset("many-words", [(text, 1 + at % 5) for at, text in enumerate(texts)], "--vocabulary-size", "4000000")


def _dataset(name: str, reviews: list[tuple[str, int]], *flags: str) -> Path:
    lines, dataset = folder() / f"{name}.json", folder() / f"{name}.h5"
    lines.write_text("".join(json.dumps({"reviewText": text, "overall": stars}) + "\n" for text, stars in reviews))
    run(program("sentimill"), "--input", lines, "--out", dataset, *flags)
    return dataset


def _word(number: int) -> str:
    return _long_word(number)[:4]


def _long_word(number: int) -> str:
    return "".join("bcdfghjklmnpqrstvwxz"[number // 20**place % 20] for place in range(5))
