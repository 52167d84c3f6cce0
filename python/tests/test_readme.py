"""The examples of README run, and print what README shows."""

from __future__ import annotations

import contextlib
import io
import os
import re
import unittest
from functools import cache
from pathlib import Path

import matplotlib
import support

from sentimill import load, open_dataset

README = support.PROJECT / "python" / "README.md"


class Examples(unittest.TestCase):
    def test_the_example_prints_what_readme_shows(self):
        support.run(
            support.program("sentimill"), "--input", reviews() / "reviews.json", "--out", reviews() / "reviews.h5"
        )
        self.prints_what_readme_shows("example")

    def test_the_example_of_predictions_prints_what_readme_shows(self):
        corpus, out = reviews() / "reviews.json", reviews() / "reviews.ngrams"
        support.run(support.program("ngrams"), "train", "--input", corpus, "--out", out)
        self.prints_what_readme_shows("example-predict")

    def test_the_example_of_figures_runs(self):
        matplotlib.use("agg")
        dataset, out = support.small(), support.folder() / "reviews.model"
        support.run(support.program("trainer"), "fit", dataset, "--out", out, "--epochs", "1", "--test-fraction", "0.3")
        found = load(out).predict(["small words", "words", "small"])
        with inside(support.folder()):
            exec(block("example-figures"), {"found": found})

    def prints_what_readme_shows(self, name: str):
        printed = io.StringIO()
        with inside(reviews()), contextlib.redirect_stdout(printed):
            exec(block(name), {})
        output = f"{name}-output"
        if os.environ.get("UPDATE_GOLDEN"):
            head = f"```text {output}\n"
            README.write_text(README.read_text().replace(head + block(output), head + printed.getvalue()))
        self.assertEqual(printed.getvalue(), block(output))

    def test_the_example_of_pytorch_runs(self):
        support.require(support.HAS_TORCH, "torch")
        exec(block("example-torch"), {"dataset": open_dataset(support.small())})


@cache
def reviews() -> Path:
    """Returns a folder with the reviews of `make demo`."""
    folder = support.folder() / "readme"
    folder.mkdir()
    corpus = support.run(support.program("demo-corpus"), "--reviews", "20000")
    (folder / "reviews.json").write_bytes(corpus)
    return folder


def block(name: str) -> str:
    found = re.search(rf"^```\w+ {name}\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    assert found, f"{README}: no block {name}"
    return found[1]


@contextlib.contextmanager
def inside(folder):
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


if __name__ == "__main__":
    unittest.main()
