"""Accuracy and time of `trainer ngrams`, `trainer fit`, the fastText program and Vowpal Wabbit.

Each command has two threads, and its time is that of the whole command: reading, training, and the test. `trainer ngrams`,
fastText and Vowpal Wabbit read the same prepared lines (`trainer/bench/ngrams_lines.py`); `trainer fit` reads a dataset of
these lines, which `sentimill` made before. Every tenth sentence of Yelp is a test sentence. The settings on the upper left
border of the chart, the Pareto front, are the best for their time. The earlier system of n-grams needed two minutes per epoch
on a GPU and twelve hours for half an epoch on a laptop, for an accuracy of 94.0 % on Yelp polarity, a larger set of other
texts.
"""

import json
import subprocess
import sys
from pathlib import Path

from chart import Chart
from machine import GENERATED, PROJECT, Machine
from result import Result

TITLE = "Accuracy for a time"
LINEAR = [["--model", "linear", "--ngrams", n] for n in (1, 2, 3)]
FASTTEXT = [
    ["--model", "fasttext", "--ngrams", n, "--dim", dim, "--epochs", epochs, "--rate", 0.5]
    for n, dim, epochs in [(1, 10, 5), (2, 10, 5), (2, 50, 5), (2, 10, 15)]
]
# Scripts of `bench`, with two threads and a seed.
BENCH, THREADS_AND_SEED = PROJECT / "trainer" / "bench", [2, 1]
# Generated reviews of a test.
LINES_SMALL = 1000
# Labels of the lines, and the ratings for which `trainer fit` has a model.
CLASSES = ["--format", "fasttext", "--class-ratings", "0=1,1=5"]


def run(machine: Machine) -> Result:
    result = Result(["data", "command", "accuracy", "wall s", "CPU s", "peak MiB"])
    work = machine.folder("lines")
    is_real = machine.data and not machine.small
    # By a process of its own: the peak of a program that is started later includes the memory of this one.
    script = [sys.executable, BENCH / "ngrams_lines.py", work, machine.data if is_real else str(LINES_SMALL)]
    subprocess.run(script, check=True)
    for name in ["IMDB", "Yelp"] if is_real else [GENERATED]:
        machine.use(name)
        points: dict[str, list] = {}
        for family, command, measured in trainings(machine, work / name):
            accuracy, used = measured()
            row = [name, command, f"{accuracy:.4f}", f"{used.wall_s:.2f}", f"{used.cpu_s:.2f}", f"{used.peak_mib:.0f}"]
            result.rows.append(row)
            points.setdefault(family, []).append((used.wall_s, accuracy))
        title = f"{name}: accuracy for a time"
        result.charts.append(Chart(title, "wall seconds", "accuracy", points, is_joined=False, is_log=True))
    return result


def trainings(machine: Machine, lines: Path):
    """Families and names of trainings, and functions that run them and return accuracy and use."""
    of_form = lambda form: [lines.with_name(f"{lines.name}.{part}.{form}") for part in ("train", "test")]

    def ngrams(form, flags):
        train, test = of_form(form)
        out = machine.folder("ngrams")
        places = ["--input", train, "--test", test, "--format", "fasttext", "--out", out]
        used = machine.run("trainer", "ngrams", *places, "--threads", 2, "--quiet", "--json", *flags)
        return accuracy_of(used.output), used

    def fit():
        train, test = of_form("lines")
        datasets = [machine.work / f"{lines.name}.{part}.lines.h5" for part in ("train", "test")]
        machine.run("sentimill", train, "--out", datasets[0], "--quiet", *CLASSES)
        machine.run("sentimill", test, "--out", datasets[1], "--quiet", "--vocabulary", datasets[0], *CLASSES)
        more = ["--epochs", 1, "--hidden", 16] if machine.small else []
        places = [datasets[0], "--test", datasets[1], "--out", machine.folder("lstm")]
        used = machine.run("trainer", "fit", *places, "--quiet", "--json", "--device", "cpu", *more)
        return accuracy_of(used.output), used

    def peer(script, form, *settings):
        used = machine.run(str(machine.peers), BENCH / script, *of_form(form), *THREADS_AND_SEED, *settings)
        return json.loads(used.output)["accuracy"], used

    for flags in LINEAR[1:2] if machine.small else LINEAR:
        yield "ngrams, linear", " ".join(["trainer ngrams", *map(str, flags)]), lambda flags=flags: ngrams("lines", flags)
    for flags in FASTTEXT[:1] if machine.small else FASTTEXT:
        yield "ngrams, fasttext", " ".join(["trainer ngrams", *map(str, flags)]), lambda flags=flags: ngrams("words", flags)
    yield "fit (LSTM)", "trainer fit", fit
    if machine.peers and not machine.small:
        for n, epochs in [(1, 5), (2, 5), (2, 15)]:
            name = f"fastText, wordNgrams {n}, dim 10, {epochs} epochs, rate 0.5"
            yield "fastText", name, lambda n=n, epochs=epochs: peer("in_fasttext.py", "words", n, 10, epochs, 0.5)
        for n, passes in [(2, 1), (3, 3)]:
            name = f"Vowpal Wabbit, n-grams of {n}, {passes} passes"
            yield "Vowpal Wabbit", name, lambda n=n, passes=passes: peer("in_vw.py", "vw", n, passes)


def accuracy_of(output: str) -> float:
    summary = json.loads(output)
    return (summary.get("evaluation") or summary.get("test") or summary)["accuracy"]
