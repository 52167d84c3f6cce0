"""What the options of recipes in docs/training.md change, on texts that the training held out.

IMDB: 10,000 reviews of the training part, of which half are held out. *Few negative reviews* has one in twenty of the
negative ones. Amazon: both files, of which a fifth is held out; three classes are 1 or 2 stars, 3, and 4 or 5. Medians of
three seeds; the rows are the same with all seeds.
"""

import gzip
import json
import statistics
from pathlib import Path

from chart import Chart
from machine import Machine, spread
from result import Result

TITLE = "Recipes"
LINES = 10_000
# One in this number of negative reviews.
RARE = 20
SEEDS, SEEDS_SMALL = [1, 2, 3], [1]
# The case, its dataset, its metric, and the options.
CASES = [
    ("few negative reviews", "rare", "auc", ["--pos-weight", "balanced"]),
    ("few reviews of a class", "classes", "f1", ["--class-weight", "balanced"]),
    ("many epochs", "imdb", "accuracy", ["--epochs", "30", "--patience", "3"]),
    ("the best accuracy", "imdb", "accuracy", ["--with-ngrams"]),
    ("a larger model", "imdb", "accuracy", ["--hidden", "128", "--dropout-head", "0.5"]),
    ("learn from stars", "amazon", "accuracy", ["--loss", "five-ratings"]),
]
NAMES = {"auc": "AUC", "f1": "macro F1", "accuracy": "accuracy"}


def run(machine: Machine) -> Result:
    datasets = made(machine)
    found: dict[tuple[str, ...], dict] = {}
    result = Result(["case", "options", "metric", "without", "with", "gain"])
    gains = []
    for case, name, metric, options in CASES:
        without = figures(machine, found, datasets[name], name, [], metric)
        with_options = figures(machine, found, datasets[name], name, options, metric)
        gain = statistics.median(with_options) - statistics.median(without)
        gains.append(gain)
        row = [case, f"`{' '.join(options)}`", NAMES[metric], spread(without, 3), spread(with_options, 3), f"{gain:+.3f}"]
        result.rows.append(row)
    result.charts = [Chart("Gain", "case, in the order of the table", "gain", {"gain": list(enumerate(gains, 1))})]
    return result


def made(machine: Machine) -> dict[str, Path]:
    """The datasets, by name."""
    imdb, amazon = machine.corpus("IMDB"), machine.corpus("Amazon")
    lines = []
    for path in imdb.train:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            lines += file.readlines()
    lines = lines[:: max(1, len(lines) // LINES)][:LINES]
    is_negative = lambda line: b'"overall": 1' in line or b'"overall": 2' in line
    some, rare = machine.work / "recipes.json", machine.work / "recipes-rare.json"
    some.write_bytes(b"".join(lines))
    rare.write_bytes(b"".join(line for at, line in enumerate(lines) if at % RARE == 0 or not is_negative(line)))
    classes = ["--labels", "1-2=negative,3=neutral,4-5=positive"]
    inputs = {"imdb": [some], "rare": [rare], "amazon": amazon.train, "classes": [*amazon.train, *classes]}
    datasets = {}
    for name, arguments in inputs.items():
        datasets[name] = machine.work / f"recipes-{name}.h5"
        machine.run("sentimill", *arguments, "--out", datasets[name], "--quiet")
    return datasets


def figures(machine: Machine, found: dict, dataset: Path, name: str, options: list[str], metric: str) -> list[float]:
    """The metric of a training with each seed. A training is run once."""
    key = (name, *options)
    if key not in found:
        held_out = "0.5" if name in ("imdb", "rare") else "0.2"
        found[key] = []
        for seed in SEEDS_SMALL if machine.small else SEEDS:
            out = machine.folder("recipes.model")
            short = ["--epochs", "1"] if machine.small and "--epochs" not in options else []
            flags = ["--quiet", "--seed", seed, "--test-fraction", held_out, *options, *short]
            machine.run("trainer", "fit", dataset, "--out", out, *flags)
            lines = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
            found[key].append(next(line["metrics"] for line in lines if line["event"] == "test"))
    return [metrics[metric] for metrics in found[key]]
