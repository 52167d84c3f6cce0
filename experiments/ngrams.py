"""Accuracy and time of `ngrams train`, `trainer fit`, the fastText program and Vowpal Wabbit.

Times are those of reading, training and the test, with two threads; Vowpal Wabbit has one thread that reads and one that
trains. `trainer fit` reads a dataset that `sentimill` made before. Every tenth sentence of Yelp is a test sentence. Medians
and ranges of three seeds. *Front*: no other command is as accurate in less time; the table has `ngrams train` on the front
only. The earlier system of n-grams took two minutes per epoch on a GPU; its accuracy was 94.0 % on Yelp polarity, a larger
set of other texts.
"""

import json
import statistics
import sys
from dataclasses import replace
from pathlib import Path

from chart import Chart
from machine import GENERATED, PROJECT, Machine, spread
from result import Result

TITLE = "Accuracy by time"
LINEAR = [["--model", "linear", "--ngrams", n] for n in (1, 2, 3)]
FASTTEXT = [
    ["--model", "fasttext", "--ngrams", n, "--dim", dim, "--epochs", epochs, "--rate", 0.5]
    for n, dim, epochs in [(1, 10, 5), (2, 10, 5), (2, 50, 5), (2, 10, 15)]
]
BENCH, THREADS = PROJECT / "ngrams" / "bench", 2
# Generated reviews of a test.
LINES_SMALL = 1000
# Labels of the lines, and the ratings for which `trainer fit` has a model.
CLASSES = ["--format", "fasttext", "--class-ratings", "0=1,1=5"]


def page_rows(rows: list[list[str]]) -> list[list[str]]:
    """The rows of the table that the page shows: the Pareto front, `trainer fit` and other programs."""
    return [row for row in rows if row[-1] == "yes" or not row[1].startswith("ngrams train")]


def run(machine: Machine) -> Result:
    result = Result(["data", "command", "accuracy", "wall s", "CPU s", "peak MiB", "front"])
    work = machine.folder("lines")
    is_real = machine.data and not machine.small
    machine.run(sys.executable, BENCH / "ngrams_lines.py", work, machine.data if is_real else LINES_SMALL)
    for name in ["IMDB", "Yelp"] if is_real else [GENERATED]:
        machine.use(name)
        runs: dict[tuple[str, str], list] = {}
        for seed in range(1, 1 + machine.rounds()):
            for family, command, measured in trainings(machine, work / name, seed):
                runs.setdefault((family, command), []).append(measured())
        middles = {key: tuple(map(statistics.median, zip(*((used.wall_s, accuracy) for accuracy, used in found)))) for key, found in runs.items()}
        points: dict[str, list] = {}
        for (family, command), found in runs.items():
            middle = middles[family, command]
            of = lambda name, digits: spread([getattr(used, name) for _, used in found], digits)
            cells = [spread([accuracy for accuracy, _ in found], 4), of("wall_s", 2), of("cpu_s", 2), f"{max(used.peak_mib for _, used in found):.0f}"]
            result.rows.append([name, command, *cells, "yes" if is_on_front(middle, middles.values()) else "–"])
            points.setdefault(family, []).append(middle)
        title = f"{name}: accuracy by time"
        result.charts.append(Chart(title, "wall seconds", "accuracy", points, is_joined=False, is_log=True))
    return result


def is_on_front(point: tuple[float, float], points) -> bool:
    """Whether no other point has at most this time and at least this accuracy."""
    return not any(other != point and other[0] <= point[0] and other[1] >= point[1] for other in points)


def trainings(machine: Machine, lines: Path, seed: int):
    """Families and names of trainings with this seed, and functions that run them and return accuracy and use."""
    of_form = lambda form: [lines.with_name(f"{lines.name}.{part}.{form}") for part in ("train", "test")]

    def ngrams(form, flags):
        train, test = of_form(form)
        out = machine.folder("ngrams")
        places = ["--input", train, "--test", test, "--format", "fasttext", "--out", out]
        used = machine.run("ngrams", "train", *places, "--threads", THREADS, "--seed", seed, "--quiet", "--json", *flags)
        return accuracy_of(used.output), used

    def fit():
        train, test = of_form("lines")
        datasets = [machine.work / f"{lines.name}.{part}.lines.h5" for part in ("train", "test")]
        if seed == 1:
            machine.run("sentimill", train, "--out", datasets[0], "--quiet", *CLASSES)
            machine.run("sentimill", test, "--out", datasets[1], "--quiet", "--vocabulary", datasets[0], *CLASSES)
        more = ["--epochs", 1, "--hidden", 16] if machine.small else []
        places = [datasets[0], "--test", datasets[1], "--out", machine.folder("lstm")]
        used = machine.run("trainer", "fit", *places, "--quiet", "--json", "--device", "cpu", "--seed", seed, *more)
        return accuracy_of(used.output), used

    def peer(script, form, *settings):
        used = machine.run(str(machine.peers), BENCH / script, *of_form(form), THREADS, seed, *settings)
        figures = json.loads(used.output)
        without_start = replace(used, wall_s=figures["with_test_seconds"], cpu_s=figures["with_test_cpu_seconds"])
        return figures["accuracy"], without_start

    for flags in LINEAR[1:2] if machine.small else LINEAR:
        yield "ngrams, linear", " ".join(["ngrams train", *map(str, flags)]), lambda flags=flags: ngrams("lines", flags)
    for flags in FASTTEXT[:1] if machine.small else FASTTEXT:
        yield "ngrams, fasttext", " ".join(["ngrams train", *map(str, flags)]), lambda flags=flags: ngrams("words", flags)
    yield "fit (LSTM)", "trainer fit", fit
    if machine.peers and not machine.small:
        for n, epochs in [(1, 5), (2, 5), (2, 15)]:
            name = f"fastText, wordNgrams {n}, dim 10, {epochs} epochs, rate 0.5"
            yield "fastText", name, lambda n=n, epochs=epochs: peer("in_fasttext.py", "words", n, 10, epochs, 0.5)
        for n, passes in [(2, 1), (3, 3)]:
            name = f"Vowpal Wabbit, n-grams of {n}, {passes} pass{'es' * (passes > 1)}"
            yield "Vowpal Wabbit", name, lambda n=n, passes=passes: peer("in_vw.py", "vw", n, passes)


def accuracy_of(output: str) -> float:
    summary = json.loads(output)
    return (summary.get("evaluation") or summary.get("test") or summary)["accuracy"]
