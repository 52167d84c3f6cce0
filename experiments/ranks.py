"""Ranks of one training: more ranks for the same batch (strong), for a batch that grows with them (weak), on several nodes.

Each rank is a process with one thread and a quota of half a core; four of them use two cores. Nodes are network namespaces,
each with a link of this rate; a packet between two takes at least *delay*. Links without a delay are the kernel's. Those
with a delay have packets of up to 9,000 bytes, and a process that forwards them uses processor time. Values are medians of runs
in turn. *Efficiency* is the speed divided by that of one rank and by the number of ranks. Milliseconds per step are those of
rank 0: *computing* is forward, backward and optimizer, and *exchanging* is waiting for other ranks and the reduction of
gradients.

*Model* is the time of a step that a model predicts, which was fitted to all other rows of the table:

    ms = a · rows of a rank + b + c · MB sent ÷ (MB/s of the link) + d · (ranks − 1) + e · delay

The times a, b and d are of half a core; a link within one machine has no terms c and e. The last rows apply the model that was
fitted to all rows to more ranks, each on a node of its own with 10 Gbit/s and no delay. Each of these ranks computes ten times
as fast, with a tenth of a and b, and has 64 rows per step, so the batch grows with the number of ranks (weak scaling). The time
d of an exchange with one more rank is that of half a core, not that of a GPU, and it limits these rows. They are predictions.
"""

import statistics

import fit
from chart import Bars
from machine import Machine
from result import Result, error_of
from training import train

TITLE = "Several ranks"
QUOTA = 50
BATCH, OF_RANK = 256, 64
# Name, ranks, batch, rate of the link between two nodes and its delay in milliseconds; `None` is one node.
SETTINGS = [
    ("strong", 1, BATCH, None, 0),
    ("strong", 2, BATCH, None, 0),
    ("strong", 4, BATCH, None, 0),
    ("weak", 1, OF_RANK, None, 0),
    ("weak", 2, 2 * OF_RANK, None, 0),
    ("weak", 4, 4 * OF_RANK, None, 0),
    ("2 nodes", 2, BATCH, "1gbit", 0),
    ("2 nodes", 2, BATCH, "1gbit", 1),
    ("2 nodes", 2, BATCH, "1gbit", 10),
    ("2 nodes", 2, BATCH, "100mbit", 0),
    ("2 nodes", 2, BATCH, "100mbit", 1),
    ("2 nodes", 2, BATCH, "100mbit", 10),
    ("2 nodes", 4, BATCH, "1gbit", 0),
    ("2 nodes", 4, BATCH, "100mbit", 0),
    ("4 nodes", 4, BATCH, "1gbit", 0),
    ("4 nodes", 4, BATCH, "100mbit", 0),
]
NODES = {"2 nodes": 2, "4 nodes": 4}
MB_PER_S = {"1gbit": 125.0, "100mbit": 12.5, "10gbit": 1250.0}
FASTER, MORE_RANKS = 10, [8, 64, 256]


def run(machine: Machine) -> Result:
    settings = SETTINGS[:2] if machine.small else SETTINGS
    dataset, _ = machine.dataset(machine.corpus("IMDB"))
    runs = [[] for _ in settings]
    for _ in range(machine.rounds()):
        for setting, of_setting in zip(settings, runs):
            ranks, batch, link, delay_ms = setting[1:]
            of_setting.append(train(machine, dataset, [QUOTA] * ranks, ["--batch", batch], link, delay_ms, NODES.get(setting[0], 1)))
    found = [{key: statistics.median(each[key] for each in of_setting) for key in of_setting[0]} for of_setting in runs]
    times = ["computing", "exchanging", "step", "model"]
    columns = ["scaling", "ranks", "batch", "link", "delay ms", "rows/s", "efficiency"]
    result = Result([*columns, *(f"{time} ms" for time in times), "KB sent per step"])
    alone = {}
    for at, ((name, ranks, batch, link, delay_ms), measured) in enumerate(zip(settings, found)):
        speed = measured["rows/s"]
        efficiency = speed / ranks / alone.setdefault(name == "weak", speed)
        others = [index for index in range(len(settings)) if index != at]
        # A test has too few runs for a fit.
        measured["model"] = measured["step"] if machine.small else model(settings, found, others) @ terms(*settings[at][1:], measured["sent"])
        row = [name, ranks, batch, link or "none", delay_ms, f"{speed:.0f}", f"{efficiency:.3f}"]
        result.rows.append([*row, *(f"{measured[time]:.1f}" for time in times), f"{1000 * measured['sent']:.0f}"])
    if not machine.small:
        result.notes.append(error_of(*([measured[time] for measured in found] for time in ("model", "step"))))
        fitted = model(settings, found, range(len(settings))) / [FASTER, FASTER, 1, 1, 1]
        # Of two ranks, each sends a value of each gradient once: half of them twice.
        gradients = found[1]["sent"]
        for ranks in MORE_RANKS:
            batch, sent = ranks * OF_RANK, 2 * (ranks - 1) / ranks * gradients
            alone_ms, step = fitted @ terms(1, OF_RANK, None, 0, 0.0), fitted @ terms(ranks, batch, "10gbit", 0, sent)
            row = [f"{ranks} nodes", ranks, batch, "10gbit", 0, f"{1000 * batch / step:.0f}", f"{alone_ms / step:.3f}"]
            result.rows.append([*row, f"{alone_ms:.1f}", f"{step - alone_ms:.1f}", "predicted", f"{step:.1f}", f"{1000 * sent:.0f}"])
    label = lambda link, delay_ms: f", {link}{f', {delay_ms} ms' if delay_ms else ''}" if link else ""
    names = [f"{name}, {ranks}{label(link, delay_ms)}" for name, ranks, _, link, delay_ms in settings]
    series = {time: [measured[time] for measured in found] for time in ["computing", "exchanging"]}
    result.charts = [Bars("Time of a step by setting and ranks", "milliseconds", names, series)]
    return result


def terms(ranks: int, batch: int, link: str | None, delay_ms: float, sent_mb: float):
    """The terms of the model, whose coefficients are a, b, c, d and e."""
    import numpy

    return numpy.array([batch / ranks, 1.0, 1000 * sent_mb / MB_PER_S[link] if link else 0.0, ranks - 1.0, delay_ms])


def model(settings: list, found: list[dict], rows):
    """The coefficients with the least squares of relative errors in these rows."""
    relative = [terms(*settings[row][1:], found[row]["sent"]) / found[row]["step"] for row in rows]
    return fit.coefficients(relative, [1.0] * len(relative))
