"""Ratings of all reviews, classes of distinct texts, and lengths of distinct texts in words.

Bins of lengths are named by their smallest length. Of the 142.8 million Amazon reviews of the original system, 21.3 million
rows were left; 78.1 % of its test rows had label 1.
"""

import json

from chart import Bars
from machine import Machine
from result import Result

TITLE = "Ratings, classes and lengths"
# Columns whose names start so are in charts, and not in the table of the page.
OMITTED = ("rating ", "length ")
BINS = [1, 10, 20, 50, 100, 200, 400, 800]


def run(machine: Machine) -> Result:
    # The page is written without them.
    import h5py
    import numpy

    ratings = [f"rating {rating}, %" for rating in range(1, 6)]
    columns = ["data", "reviews", *ratings, "label 1 of reviews, %", "rows", "label 1 of rows, %"]
    columns += ["median length", *(f"length {first}, %" for first in BINS)]
    result = Result(columns)
    shares, lengths = {}, {}
    for corpus in machine.corpora():
        dataset = machine.work / f"{corpus.name}.whole.h5"
        inputs = [*corpus.train, *([corpus.test] if corpus.test else [])]
        done = machine.run("sentimill", *inputs, "--out", dataset, "--max-tokens", 0, "--stopwords", "none", "--json", *corpus.flags)
        card = json.loads(done.output)["card"]
        with h5py.File(dataset) as file:
            found = numpy.diff(file["offsets"][:])
            labels = file["label"][:]
        counts = numpy.histogram(found, bins=[*BINS, numpy.inf])[0]
        shares[corpus.name] = [100 * count / card["reviews"] for count in card["ratings"]]
        lengths[corpus.name] = [100 * count / len(found) for count in counts]
        before = sum(card["ratings"][3:]) / card["reviews"]
        row = [corpus.name, card["reviews"], *(f"{share:.1f}" for share in shares[corpus.name]), f"{100 * before:.1f}"]
        row += [len(found), f"{100 * labels.mean():.1f}", f"{numpy.median(found):.0f}"]
        result.rows.append(row + [f"{share:.1f}" for share in lengths[corpus.name]])
    result.charts = [
        Bars("Ratings", "% of reviews", [str(rating) for rating in range(1, 6)], shares),
        Bars("Lengths in words", "% of distinct texts", [f"{first}–" for first in BINS], lengths),
    ]
    return result
