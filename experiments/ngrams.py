"""Accuracy against time: all settings of `trainer ngrams`, `trainer fit`, the fastText program and Vowpal Wabbit.

All run with two threads; times are those of the whole command. Settings on the upper left border of the chart are the best for
their time. The earlier system of n-grams needed two minutes per epoch on a GPU and twelve hours for half an epoch on a laptop,
for an accuracy of 94.0 % on Yelp polarity, a larger set of other texts.
"""

import json
import subprocess

from chart import Chart
from machine import PROJECT, Corpus, Machine, lines_of
from result import Result

TITLE = "Accuracy for a time"
LINEAR = [["--model", "linear", "--ngrams", n] for n in (1, 2, 3)]
FASTTEXT = [
    ["--model", "fasttext", "--ngrams", n, "--dim", dim, "--epochs", epochs, "--rate", 0.5]
    for n, dim, epochs in [(1, 10, 5), (2, 10, 5), (2, 50, 5), (2, 10, 15)]
]
# Scripts of `bench`, with two threads and a seed.
BENCH, THREADS_AND_SEED = PROJECT / "trainer" / "bench", [2, 1]


def run(machine: Machine) -> Result:
    result = Result(["data", "command", "accuracy", "wall s", "CPU s", "peak MiB"])
    charts = []
    for corpus in machine.corpora():
        if corpus.name == "Amazon":
            continue
        points: dict[str, list] = {}
        for family, name, measured in trainings(machine, corpus):
            accuracy, used = measured()
            row = [corpus.name, name, f"{accuracy:.4f}", f"{used.wall_s:.2f}", f"{used.cpu_s:.2f}", f"{used.peak_mib:.0f}"]
            result.rows.append(row)
            points.setdefault(family, []).append((used.wall_s, accuracy))
        charts.append(Chart(f"{corpus.name}: accuracy for a time", "wall seconds", "accuracy", points, is_joined=False, is_log=True))
    result.charts = charts
    return result


def trainings(machine: Machine, corpus: Corpus):
    """Families and names of trainings, and functions that run them and return accuracy and use."""
    inputs = ["--input", *corpus.train, *corpus.flags]
    held_back = ["--test", corpus.test] if corpus.test else ["--test-fraction", 0.1]
    threads = ["--threads", 2, "--quiet", "--json"]

    def ngrams(flags):
        out = machine.folder("ngrams")
        used = machine.run("trainer", "ngrams", *inputs, *held_back, "--out", out, *threads, *flags)
        return accuracy_of(used.output), used

    def fit():
        train, test = machine.dataset(corpus)
        more = ["--test", test] if test else []
        more += ["--epochs", 1, "--hidden", 16] if machine.small else []
        out = machine.folder("lstm")
        used = machine.run("trainer", "fit", train, "--out", out, "--quiet", "--json", "--device", "cpu", *more)
        return accuracy_of(used.output), used

    def peer(script, kind, *settings):
        train, test = texts(machine, corpus, kind)
        used = machine.run(str(machine.peers), BENCH / script, train, test, *THREADS_AND_SEED, *settings)
        return json.loads(used.output)["accuracy"], used

    for flags in LINEAR[1:2] if machine.small else LINEAR:
        yield "ngrams, linear", " ".join(["trainer ngrams", *map(str, flags)]), lambda flags=flags: ngrams(flags)
    for flags in FASTTEXT[:1] if machine.small else FASTTEXT:
        yield "ngrams, fasttext", " ".join(["trainer ngrams", *map(str, flags)]), lambda flags=flags: ngrams(flags)
    yield "fit (LSTM)", "trainer fit", fit
    if machine.peers and corpus.test:
        for n, epochs in [(1, 5), (2, 5), (2, 15)]:
            name = f"fastText, wordNgrams {n}, dim 10, {epochs} epochs, rate 0.5"
            yield "fastText", name, lambda n=n, epochs=epochs: peer("in_fasttext.py", "words", n, 10, epochs, 0.5)
        for n, passes in [(2, 1), (3, 3)]:
            name = f"Vowpal Wabbit, n-grams of {n}, {passes} passes"
            yield "Vowpal Wabbit", name, lambda n=n, passes=passes: peer("in_vw.py", "vw", n, passes)


def accuracy_of(output: str) -> float:
    summary = json.loads(output)
    return (summary.get("evaluation") or summary.get("test") or summary)["accuracy"]


def texts(machine: Machine, corpus: Corpus, kind: str) -> list:
    """The reviews in lower case with punctuation between spaces, as lines of fastText or Vowpal Wabbit (`vw`).

    They are shuffled: these programs train in the order of the lines, and IMDB's are sorted by label.
    """
    paths = [machine.work / f"{corpus.name}.{part}.{kind}" for part in ("train", "test")]
    labels = ["-1 |", "1 |"] if kind == "vw" else ["__label__negative", "__label__positive"]
    for path, places in zip(paths, (corpus.train, [corpus.test])):
        if not path.exists():
            sorted_path = path.with_suffix(f".sorted.{kind}")
            with sorted_path.open("w") as file:
                for review in (json.loads(line) for place in places for line in lines_of(place)):
                    words = "".join(spaced(character, kind) for character in review["reviewText"].lower())
                    file.write(f"{labels[review['overall'] > 3]} {' '.join(words.split())}\n")
            # By a process of its own: the peak of a program that is started later includes the memory of this one.
            subprocess.run(["shuf", "--random-source", sorted_path, "--output", path, sorted_path], check=True)
            sorted_path.unlink()
    return paths


def spaced(character: str, kind: str) -> str:
    """A character, or punctuation between spaces, which in lines of Vowpal Wabbit may not separate features."""
    if character.isalnum() or character in "' ":
        return character
    return " " if kind == "vw" and character in ":|" else f" {character} "
