"""`clean` has the texts of the records of `mapper`."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import threading
import unittest
from pathlib import Path

import support

import sentimill
from sentimill import clean

# Characters by which cleaning decides, and words that it changes as a whole.
PIECES = [
    *"aZ0'\u2019<>&;#/!. \t,-…❤“²ⅷ€+",
    "&amp;", "&eacute;", "&#67;", "&#x1F600;", "&#146;", "&lt;b&gt;", "&foo;", "<br />", "<b class='x'>", "</p", "<3 ",
    "Σ", "ΟΔΟΣ", "İ", "ẞ", "K", "\u0301", "\ufe0f", "\u200d", "\u202e", "\0", "\ufffd", "हिन्दी", "日本語", "👨\u200d👩",
]  # fmt: skip
PLANES = [range(0x20, 0x250), range(0x250, 0xD800), range(0xE000, 0x110000)]
N_RANDOM = 20_000


class Cleaning(unittest.TestCase):
    def test_reviews_have_the_texts_of_the_mapper(self):
        self.compare(support.reviews()[1])

    def test_characters_of_all_planes_have_the_texts_of_the_mapper(self):
        characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF]
        n = 1 if os.environ.get("PROVE") else 7
        self.compare([f"x{character}y {character}é" for character in characters[::n]])

    def test_random_texts_have_those_of_the_mapper(self):
        choose = random.Random(1)
        texts = []
        for _ in range(N_RANDOM):
            pieces = [
                choose.choice(PIECES) if choose.random() < 0.7 else chr(choose.choice(choose.choice(PLANES)))
                for _ in range(choose.randrange(12))
            ]
            texts.append("".join(pieces))
        self.compare(texts)

    def test_texts_that_are_no_unicode_and_no_texts(self):
        self.assertEqual(clean("It's \ud83d GOOD\udc00fine"), "it's good fine")
        self.assertEqual(clean("It's \ud83d", punctuation=True), "it's \ufffd")
        self.assertEqual(clean(""), "")
        self.assertRaises(TypeError, clean, b"good")
        self.assertRaises(TypeError, clean, None)

    def test_threads_clean_at_the_same_time(self):
        found = [None] * 4

        def work(at):
            found[at] = [clean(f"{at} <b>Good</b> {'very ' * n}") for n in range(200)]

        threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [[" ".join(["good", *["very"] * n]) for n in range(200)]] * 4)

    def compare(self, texts: list[str]) -> None:
        """Compares cleaned texts with those of the mapper's records, which are in the order of lines."""
        for flags in ([], ["--punctuation"]):
            lines = "".join(json.dumps({"reviewText": text, "overall": 5}) + "\n" for text in texts)
            printed = support.run(support.program("mapper"), *flags, standard_input=lines.encode())
            expected = [line.split("\t")[0] for line in printed.decode().split("\n")[:-1]]
            found = [cleaned for text in texts if (cleaned := clean(text, punctuation=bool(flags)))]
            self.assertGreater(len(found), 0)
            for ours, theirs in zip(found, expected, strict=False):
                self.assertEqual(ours, theirs)
            self.assertEqual(len(found), len(expected))


class Module(unittest.TestCase):
    def test_a_package_without_its_module_names_the_remedy(self):
        package = support.folder() / "source/sentimill"
        shutil.copytree(Path(sentimill.__file__).parent, package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        command = [sys.executable, "-B", "-c", "import sentimill"]
        ended = subprocess.run(command, env={"PYTHONPATH": str(package.parent)}, capture_output=True, text=True)
        self.assertIn("sentimill._native cannot be imported (No module named 'sentimill._native'); ", ended.stderr)
        self.assertIn("in a clone build the module as CONTRIBUTING.md says", ended.stderr)


if __name__ == "__main__":
    unittest.main()
