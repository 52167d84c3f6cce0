"""Epochs and seconds until the validation loss is 0.40, by ranks, nodes, rows, links and rounds.

In rounds, an epoch takes less time, but the loss takes more epochs: they are worth it if the link is slow.

All ranks share this machine, which holds the figures back: each has one thread and a quota of 40 % of a core; nodes are
network namespaces, each with a link of this rate. So the seconds are not those of real nodes. An exchange of gradients uses a
part of each quota. Four ranks always compute: four trainings of one rank, two of two ranks, or one of four run at the same
time, so that a rank has the same share of the caches in each row.

Each rank has 64 rows of a batch, as each GPU of the earlier system had 128. Unlike there, the rate is scaled: 0.002 for 64
rows, in proportion to the batch, after a warm-up of a tenth of the steps. In rounds it is the rate of `--sync-every`. All
trainings have three epochs. The validation rows are of other films, as in [rounds](#rounds). The loss is known at the end of
an epoch only; between two ends, and before the first one from ln 2, it is taken to fall evenly. *Speed-up* is relative to one
rank with the same rows, and *efficiency* is the speed-up divided by the number of ranks; *to the loss*, both are those of the
seconds to the loss. Accuracy is that of the epoch with the lowest validation loss. Medians and ranges of three or four seeds.
The earlier system had speed-ups of an epoch of 2.7 with four GPUs and 3.7 with eight.
"""

import math
import statistics
import sys

from chart import Bars
from machine import PROJECT, Machine, spread
from result import Result
from rounds import films
from training import at_once, train

sys.path.append(str(PROJECT / "trainer" / "bench"))
from large_batch import rows_of, warm_up

TITLE = "Time to a validation loss"
LOSS, UNTRAINED, EPOCHS = 0.40, math.log(2), 3
QUOTA, OF_RANK, RANKS_AT_ONCE = 40, 64, 4
NOT = "not reached"
# Percent of the rows, ranks, nodes, rate of their links, steps of a round.
SETTINGS = [
    *((percent, ranks, 1, "none", 1) for percent in (100, 50, 25) for ranks in (1, 2, 4)),
    (100, 4, 2, "1gbit", 1),
    *((100, 4, 1, "none", steps) for steps in (16, 64)),
    *((100, 4, 4, link, steps) for link in ("1gbit", "100mbit") for steps in (1, 16, 64)),
]
SETTINGS_SMALL = [(100, 1, 1, "none", 1), (50, 2, 1, "none", 1), (100, 4, 1, "none", 16)]


def run(machine: Machine) -> Result:
    columns = ["rows %", "ranks", "nodes", "link", "steps of a round", "accuracy", "epoch s", "speed-up", "efficiency"]
    result = Result([*columns, "epochs to the loss", "s to the loss", "speed-up to the loss", "efficiency to the loss"])
    _, dataset, validation = films(machine)
    settings = SETTINGS_SMALL if machine.small else SETTINGS
    alone, names, bars = {}, [], {"an epoch": [], "to the loss": []}
    for percent, ranks, nodes, link, steps in settings:
        runs = trained(machine, dataset, validation, percent, ranks, nodes, link, steps)
        of_epoch = [statistics.mean(epoch["seconds"] for epoch in epochs) for epochs in runs]
        accuracies = [min((epoch["validation"] for epoch in epochs), key=lambda metrics: metrics["loss"])["accuracy"] for epochs in runs]
        n_epochs, to_loss = zip(*map(until, runs))
        times = [statistics.median(of_epoch), statistics.median(to_loss)]
        ups = [base / time for base, time in zip(alone.setdefault(percent, times), times)]
        row = [percent, ranks, nodes, link, steps, spread(accuracies, 4), spread(of_epoch, 2), *shown(ups[0], ranks)]
        reached = [spread(values, 2).replace("inf", NOT).replace(f" ({NOT}–{NOT})", "") for values in (n_epochs, to_loss)]
        result.rows.append([*row, *reached, *shown(ups[1], ranks)])
        if percent == 100:
            names.append(f"{ranks // nodes} × {nodes}, {link}, {steps}")
            for series, time in zip(bars.values(), times):
                series.append(time if math.isfinite(time) else 0.0)
    result.charts = [Bars("Time by ranks of a node × nodes, link and steps of a round", "seconds", names, bars)]
    return result


def trained(machine: Machine, dataset, validation: list, percent: int, ranks: int, nodes: int, link: str, steps: int) -> list[list[dict]]:
    """The epochs of a training by seed."""
    batch, share = ranks * OF_RANK, percent / 100
    flags = ["--batch", batch, "--epochs", EPOCHS, "--sample", share, *validation]
    if steps > 1:
        flags += ["--sync-every", steps]
    elif ranks > 1:
        flags += ["--base-batch", OF_RANK, "--warm-up", warm_up(EPOCHS, round(share * rows_of(dataset)), batch)]
    flags += ["--hidden", 16] if machine.small else []
    link = None if nodes == 1 else link
    of_seed = lambda seed: lambda apart: train(apart, dataset, [QUOTA] * ranks, [*flags, "--seed", seed], link, 0, nodes)["epochs"]
    count, found = RANKS_AT_ONCE // ranks, []
    while len(found) < machine.rounds():
        found += at_once(machine, [of_seed(seed) for seed in range(len(found) + 1, len(found) + 1 + count)])
    return found


def until(epochs: list[dict]) -> tuple[float, float]:
    """Epochs and seconds until the loss, or infinity. An epoch is divided in proportion to its fall of the loss."""
    before, seconds = UNTRAINED, 0.0
    for number, epoch in enumerate(epochs):
        loss = epoch["validation"]["loss"]
        if loss <= LOSS:
            part = (before - LOSS) / (before - loss)
            return number + part, seconds + part * epoch["seconds"]
        before, seconds = loss, seconds + epoch["seconds"]
    return math.inf, math.inf


def shown(up: float, ranks: int) -> list[str]:
    """The cells of a speed-up and its efficiency."""
    return [f"{up:.2f}", f"{up / ranks:.2f}"] if math.isfinite(up) and up > 0 else ["–", "–"]
