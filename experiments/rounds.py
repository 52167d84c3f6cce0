"""Rounds of `trainer fit --sync-every`: accuracy by the steps of a round, and speed by link.

*Accuracy* is that of the validation rows, the mean of three seeds and the range. For IMDB they are the last 2,500 reviews of
each class in the training file, which are of other films; of Yelp they are every fifth row. Ranks have 64 rows of a batch.
With 1, gradients of each step are exchanged.

*Efficiency* is the speed of four ranks of half a core, each on a node with this link, divided by four times the speed of
one rank of half a core with as many rows per step. Four ranks use all of the two cores, one does not: a step of one rank
beside three others, which train by themselves, takes longer too. *Beside others* is relative to that speed.
"""

import gzip
import json
import statistics

from chart import Bars
from machine import Machine, epochs_of, spread
from result import Result
from training import at_once, train

TITLE = "Rounds"
STEPS = [1, 4, 16, 64]
QUOTA, RANKS, OF_RANK = 50, 4, 64
# Link, rows of a rank, steps of a round.
LINKS = [("none", 64, 1), ("1gbit", 64, 1), ("1gbit", 64, 16), ("100mbit", 64, 1), ("100mbit", 64, 16), ("100mbit", 64, 64), ("100mbit", 16, 16)]
# Reviews of each class that are validation rows.
OTHER_FILMS = 2_500
SEEDS = 3


def run(machine: Machine) -> Result:
    result = Result(["data", "ranks", "rows of a rank", "link", "steps of a round", "accuracy", "loss", "rows/s", "efficiency", "beside others", "KB sent per step"])
    accuracies = {}
    for name, dataset, flags in [films(machine), sentences(machine)]:
        for ranks in [RANKS] if machine.small else [RANKS, 2 * RANKS]:
            for steps in STEPS:
                found = [validated(machine, dataset, flags, ranks, steps, seed) for seed in range(1, 1 + (1 if machine.small else SEEDS))]
                accuracy, loss = zip(*((metrics["accuracy"], metrics["loss"]) for metrics in found))
                shown = f"{statistics.mean(accuracy):.4f} ({min(accuracy):.4f}–{max(accuracy):.4f})"
                result.rows.append([name, ranks, OF_RANK, "–", steps, shown, f"{statistics.mean(loss):.4f}", *["–"] * 4])
                accuracies.setdefault(f"{name}, {ranks} ranks", []).append(statistics.mean(accuracy))
    dataset = films(machine)[1]
    efficiencies = []
    for link, rows, steps in [] if machine.small else LINKS:
        alone, beside = together(machine, dataset, rows, 1), together(machine, dataset, rows, RANKS)
        flags = ["--batch", RANKS * rows, "--sync-every", steps, *(["--epochs", 4] if steps > 1 else [])]
        runs = [train(machine, dataset, [QUOTA] * RANKS, flags, None if link == "none" else link, 0, RANKS) for _ in range(machine.rounds())]
        speed = [one["rows/s"] for one in runs]
        of = [statistics.median(speed) / RANKS / base for base in (alone, beside)]
        sent = 1000 * statistics.median(one["sent"] for one in runs)
        result.rows.append(["IMDB", RANKS, rows, link, steps, "–", "–", spread(speed, 0), *(f"{part:.3f}" for part in of), f"{sent:.0f}"])
        efficiencies.append(of[0])
    result.charts = [Bars("Accuracy by steps of a round", "accuracy", list(map(str, STEPS)), accuracies)]
    if efficiencies:
        names = [f"{link}, {rows} rows, {steps}" for link, rows, steps in LINKS]
        result.charts.append(Bars("Efficiency by link, rows of a rank and steps of a round", "efficiency", names, {"efficiency": efficiencies}))
    return result


def films(machine: Machine) -> tuple:
    """Datasets of IMDB's training file, whose validation rows are of other films."""
    corpus = machine.corpus("IMDB")
    if machine.small:
        return corpus.name, machine.dataset(corpus)[0], ["--validation-fraction", 0.2]
    parts = {name: machine.work / f"films-{name}.h5" for name in ("training", "validation")}
    if not parts["training"].exists():
        lines = [json.loads(line) for path in corpus.train for line in gzip.open(path)]
        of_class = lambda is_positive: [line for line in lines if (float(line["overall"]) > 3) == is_positive]
        classes = [of_class(is_positive) for is_positive in (False, True)]
        for name, of in {"training": slice(None, -OTHER_FILMS), "validation": slice(-OTHER_FILMS, None)}.items():
            path = machine.work / f"films-{name}.json"
            path.write_text("".join(json.dumps(line) + "\n" for lines_of in classes for line in lines_of[of]))
            shared = ["--vocabulary", parts["training"]] if name == "validation" else []
            machine.run("sentimill", path, "--out", parts[name], "--quiet", *shared)
    return "IMDB, other films", parts["training"], ["--validation", parts["validation"]]


def sentences(machine: Machine) -> tuple:
    corpus = machine.corpus("Yelp")
    return corpus.name, machine.dataset(corpus)[0], ["--validation-fraction", 0.2]


def validated(machine: Machine, dataset, flags: list, ranks: int, steps: int, seed: int) -> dict:
    """The metrics of the epoch with the lowest validation loss."""
    out = machine.folder("rounds")
    fit = ["fit", dataset, "--out", out, "--quiet", "--device", "cpu", "--seed", seed, "--test-fraction", 0, *flags]
    sizes = ["--epochs", 1, "--hidden", 8, "--embedding", 8] if machine.small else ["--batch", ranks * OF_RANK]
    machine.run("trainer", "launch", "--nproc", ranks, "--oversubscribe", "--", *fit, *sizes, "--sync-every", steps)
    return min((epoch["validation"] for epoch in epochs_of(out)), key=lambda metrics: metrics["loss"])


def together(machine: Machine, dataset, rows: int, count: int) -> float:
    """Rows per second of one rank of half a core, beside others that train by themselves: the median of all."""
    alone = lambda apart: train(apart, dataset, [QUOTA], ["--batch", rows])["rows/s"]
    return statistics.median(at_once(machine, [alone] * count))
