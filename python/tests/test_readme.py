"""The examples of README run, and print what README shows."""

from __future__ import annotations

import contextlib
import io
import os
import re
import unittest

import support

from sentimill import open_dataset

README = support.PROJECT / "python" / "README.md"


class Examples(unittest.TestCase):
    def test_the_example_prints_what_readme_shows(self):
        dataset = support.folder() / "readme"
        dataset.mkdir()
        corpus = dataset / "reviews.json"
        corpus.write_bytes(support.run(support.program("demo-corpus"), "--reviews", "20000"))
        support.run(support.program("sentimill"), "--input", corpus, "--out", dataset / "reviews.h5")
        printed = io.StringIO()
        with inside(dataset), contextlib.redirect_stdout(printed):
            exec(block("example"), {})
        if os.environ.get("UPDATE_GOLDEN"):
            head = "```text example-output\n"
            README.write_text(README.read_text().replace(head + block("example-output"), head + printed.getvalue()))
        self.assertEqual(printed.getvalue(), block("example-output"))

    def test_the_example_of_pytorch_runs(self):
        support.require(support.HAS_TORCH, "torch")
        exec(block("example-torch"), {"dataset": open_dataset(support.small())})


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
