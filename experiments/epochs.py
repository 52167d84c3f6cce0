"""Test accuracy and F1 after the last epoch, and in the charts after every epoch.

*original* is `--recipe original` on `--profile original`. The original system reached 84.96 % on 21 million Amazon reviews,
of which 78.1 % are positive, in ten epochs of 59 to 64 minutes on one GPU; the sets here are other and smaller ones.
*Majority* is the accuracy of the larger class. The profiles make different rows, so compare each recipe with its majority.
Amazon has about 300 test rows. Seconds are those of training only.
"""

from chart import Chart
from machine import Machine, epochs_of
from result import Result

TITLE = "Accuracy after every epoch"
RECIPES = {"original": ["--recipe", "original"], "defaults": []}
PROFILES = {"original": ["--profile", "original"], "defaults": []}


def page_rows(rows: list[list[str]]) -> list[list[str]]:
    """The rows of the table that the page shows, of all in epochs.csv: the last epoch of each training."""
    return [row for row, following in zip(rows, [*rows[1:], [""] * 3]) if row[:2] != following[:2]]


def run(machine: Machine) -> Result:
    result = Result(["data", "recipe", "epoch", "seconds", "training loss", "test accuracy", "test F1", "majority"])
    by_epoch, by_time = {}, {}
    for corpus in machine.corpora():
        for recipe, flags in RECIPES.items():
            train, test = machine.dataset(corpus, *PROFILES[recipe])
            out = machine.folder("epochs")
            more = ["--test", test] if test else []
            if machine.small:
                more += ["--epochs", 2, "--hidden", 16]
            machine.run("trainer", "fit", train, "--out", out, "--test-every", "--quiet", "--device", "cpu", *more, *flags)
            seconds, name = 0.0, f"{corpus.name}, {recipe}"
            for line in epochs_of(out):
                seconds += line["seconds"]
                test_metrics = line["test"]
                counts = test_metrics["confusion"]
                positive = counts["true_positive"] + counts["false_negative"]
                majority = max(positive, test_metrics["rows"] - positive) / test_metrics["rows"]
                row = [corpus.name, recipe, line["epoch"], f"{seconds:.1f}", f"{line['loss']:.4f}"]
                result.rows.append([*row, *(f"{value:.4f}" for value in (test_metrics["accuracy"], test_metrics["f1"], majority))])
                by_epoch.setdefault(name, []).append((line["epoch"], test_metrics["accuracy"]))
                by_time.setdefault(name, []).append((seconds, test_metrics["accuracy"]))
    result.charts = [
        Chart("Test accuracy by epoch", "epoch", "accuracy", by_epoch),
        Chart("Test accuracy by time", "seconds of training", "accuracy", by_time, is_log=True),
    ]
    return result
