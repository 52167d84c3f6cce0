"""Accuracy and time of `trainer fit` by the training objective, and by layers and hidden size.

One rank with two threads, three epochs. The validation rows are of other films, as in [rounds](#rounds); accuracy and F1 are
those of the label, in the epoch with the lowest validation loss. IMDB has the ratings 1, 2, 4 and 5. Sizes are trained on half
of the rows, 10,000, which is too few to show what larger models gain; embeddings have 100 dimensions. Seconds are those of
training only. Medians and ranges of three seeds.
"""

import statistics

from chart import Bars, Chart
from machine import Machine, epochs_of, spread
from result import Result
from rounds import films

TITLE = "Losses and sizes of the model"
LOSSES = ["label", "rating", "five-ratings"]
# Layers and hidden size.
SIZES = [(1, 32), (1, 64), (1, 128), (1, 256), (2, 32), (2, 64), (2, 128)]
SIZES_SMALL = [(1, 16), (2, 16)]


def run(machine: Machine) -> Result:
    sizes = SIZES_SMALL if machine.small else SIZES
    result = Result(["flags", "training rows", "accuracy", "F1", "seconds", "rows/s"])
    settings = [["--loss", loss] for loss in LOSSES]
    settings += [["--layers", layers, "--hidden", hidden, "--sample", 0.5] for layers, hidden in sizes]
    runs = [[] for _ in settings]
    for seed in range(1, 1 + machine.rounds()):
        for flags, of_setting in zip(settings, runs):
            of_setting.append(trained(machine, flags, seed))
    for flags, of_setting in zip(settings, runs):
        of = lambda key, digits: spread([one[key] for one in of_setting], digits)
        row = [" ".join(map(str, flags)), of_setting[0]["rows"], of("accuracy", 4), of("f1", 4)]
        result.rows.append([*row, of("seconds", 1), of("rows/s", 0)])
    median = lambda of_setting, key: statistics.median(one[key] for one in of_setting)
    speed, accuracy = {}, {}
    for (layers, hidden), of_size in zip(sizes, runs[len(LOSSES) :]):
        name = f"{layers} layer{'s' * (layers > 1)}"
        speed.setdefault(name, []).append((hidden, median(of_size, "rows/s")))
        accuracy.setdefault(name, []).append((hidden, median(of_size, "accuracy")))
    result.charts = [
        Bars("Accuracy by training objective", "accuracy", LOSSES, {"accuracy": [median(of_loss, "accuracy") for _, of_loss in zip(LOSSES, runs)]}),
        Chart("Speed by hidden size", "hidden size", "rows per second", speed, is_log=True),
        Chart("Accuracy by hidden size", "hidden size", "accuracy", accuracy, is_log=True),
    ]
    return result


def trained(machine: Machine, flags: list, seed: int) -> dict:
    """The metrics of the epoch with the lowest validation loss, and the time of all."""
    _, dataset, validation = films(machine)
    out = machine.folder("sizes")
    few = ["--epochs", 1, "--embedding", 8] if machine.small else ["--epochs", 3]
    fit = ["fit", dataset, "--out", out, "--quiet", "--device", "cpu", "--seed", seed, "--test-fraction", 0]
    machine.run("trainer", *fit, *validation, *few, *flags)
    epochs = epochs_of(out)
    seconds, rows = sum(epoch["seconds"] for epoch in epochs), epochs[0]["ranks"][0]["rows"]
    best = min((epoch["validation"] for epoch in epochs), key=lambda metrics: metrics["loss"])
    return best | {"rows": rows, "seconds": seconds, "rows/s": len(epochs) * rows / seconds}
