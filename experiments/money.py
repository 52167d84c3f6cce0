"""Time and cost until the mean training loss of an epoch is 0.13, which an earlier system reached in ten epochs.

*USD* is the time × the price of a machine with as many cores in experiments/prices.csv (on-demand, us-east-1), as if it were
as fast. The loss of `--recipe original` has a weight of 0.2 for positive rows, so 0.13 is not equally good with both
recipes.
"""

import csv
import os
from pathlib import Path

from chart import Chart
from machine import Machine, epochs_of
from result import Result

TITLE = "Time and cost to a training loss"
LOSS, EPOCHS = 0.13, 30
SETTINGS = {
    "original": (["--profile", "original"], ["--recipe", "original"]),
    "defaults": ([], []),
    "defaults, --batch 512": ([], ["--batch", 512]),
    "defaults, --hidden 128": ([], ["--hidden", 128]),
}


def run(machine: Machine) -> Result:
    with (Path(__file__).parent / "prices.csv").open(newline="") as file:
        prices = [line for line in csv.DictReader(file) if int(line["cores"]) == os.cpu_count() and line["GPUs"] == "0"]
    columns = ["recipe", "epochs", "training loss", "test accuracy", "seconds to the loss"]
    result = Result([*columns, *(f"USD, {price['machine']}" for price in prices)])
    corpus, series = machine.corpus("IMDB"), {}
    for name, (preparation, recipe) in list(SETTINGS.items())[:1] if machine.small else SETTINGS.items():
        train, test = machine.dataset(corpus, *preparation)
        out = machine.folder("money")
        # With a patience, a training would end before it reaches the loss.
        flags = ["--stop-loss", LOSS, "--epochs", 2 if machine.small else EPOCHS, "--validation-fraction", 0, *recipe]
        flags += ["--test", test] if test else []
        machine.run("trainer", "fit", train, "--out", out, "--test-every", "--quiet", "--device", "cpu", *flags)
        epochs = epochs_of(out)
        seconds, last = sum(epoch["seconds"] for epoch in epochs), epochs[-1]
        is_reached = last["loss"] <= LOSS
        row = [name, len(epochs), f"{last['loss']:.4f}", f"{last['test']['accuracy']:.4f}", f"{seconds:.1f}" if is_reached else "not reached"]
        money = [f"{seconds / 3600 * float(price['USD per hour']):.5f}" if is_reached else "–" for price in prices]
        result.rows.append([*row, *money])
        elapsed = 0.0
        for epoch in epochs:
            elapsed += epoch["seconds"]
            series.setdefault(name, []).append((elapsed, epoch["loss"]))
    result.charts = [Chart("Training loss by time", "seconds of training", "loss", series, is_log=True)]
    return result
