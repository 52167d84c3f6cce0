"""Ranks of one training: more ranks for the same batch (strong), for a batch that grows with them (weak), on several nodes.

Each rank is a process with one thread and a quota of half a core. Nodes are network namespaces, each with a link of this
rate; a packet between two takes at least *delay*, which costs CPU time. *Batch* is that of all ranks together. *Efficiency*
is the speed divided by that of one rank and by the number of ranks. *Exchanging*, in the chart, is waiting for other ranks
and the reduction of gradients. The original system trained an epoch in 59 to 64 minutes on one GPU, in 22 on four and in 16
on eight: efficiencies of about 0.7 and 0.5.

*Model* is the time of a step by a model that was fitted without the rows of the same number of ranks on the same links:

    ms = a · rows of a rank + b + c · MB sent ÷ (MB/s of the link) + d · (ranks − 1) + e · delay + f (if there is a delay)

The last rows are its predictions for nodes with 10 Gbit/s, ten times as fast (a tenth of a and b), with 64 rows per step.
The time d of an exchange with one more rank limits them. In rounds of 64 steps, an exchange has its time once in 64 steps;
the short rounds at the begin and at the end of an epoch are left out.
"""

import statistics

import fit
from chart import Bars
from machine import Machine, spread
from result import Result, error_of
from training import train

TITLE = "Several ranks"
# Columns whose names start so are in charts, and not in the table of the page.
OMITTED = ("computing", "exchanging")
QUOTA = 50
BATCH, OF_RANK = 256, 64
# Name, ranks, batch, rate of the link of each node and its delay in milliseconds; `None` is one node.
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
# Steps of a round, and the bytes of its numbers relative to those of each step: 4 instead of 32 bits, and a scale.
ROUND, OF_BYTES = 64, 0.135
# What is measured of a training; of the times, `step` is the whole.
TIMES = ["computing", "exchanging", "step"]
MEASURED = ["rows/s", "sent", "model bytes", *TIMES]


def page_rows(rows: list[list[str]]) -> list[list[str]]:
    """The rows of the table that the page shows, without the links with a short delay."""
    return [row for row in rows if row[4] != "1"]


def run(machine: Machine) -> Result:
    settings = SETTINGS[:2] if machine.small else SETTINGS
    dataset, _ = machine.dataset(machine.corpus("IMDB"))
    runs = [[] for _ in settings]
    for _ in range(machine.rounds()):
        for setting, of_setting in zip(settings, runs):
            ranks, batch, link, delay_ms = setting[1:]
            of_setting.append(train(machine, dataset, [QUOTA] * ranks, ["--batch", batch], link, delay_ms, NODES.get(setting[0], 1)))
    found = [{key: statistics.median(each[key] for each in of_setting) for key in MEASURED} for of_setting in runs]
    columns = ["scaling", "ranks", "batch", "link", "delay ms", "rows/s", "efficiency"]
    result = Result([*columns, *(f"{time} ms" for time in [*TIMES, "model"]), "KB sent per step"])
    alone = {}
    for at, ((name, ranks, batch, link, delay_ms), measured) in enumerate(zip(settings, found)):
        speed = measured["rows/s"]
        efficiency = speed / ranks / alone.setdefault(name == "weak", speed)
        # A test has too few runs for a fit.
        measured["model"] = measured["step"] if machine.small else left_out(settings, found, at)
        of = lambda key, digits: spread([each[key] for each in runs[at]], digits)
        row = [name, ranks, batch, link or "none", delay_ms, of("rows/s", 0), f"{efficiency:.3f}"]
        times = [f"{measured['computing']:.1f}", f"{measured['exchanging']:.1f}", of("step", 1), f"{measured['model']:.1f}"]
        result.rows.append([*row, *times, f"{1000 * measured['sent']:.0f}"])
    if not machine.small:
        result.notes += [error_of(*([measured[time] for measured in found] for time in ("model", "step"))), error_for_more_ranks(settings, found)]
        result.rows += predictions(settings, found)
    label = lambda link, delay_ms: f", {link}{f', {delay_ms} ms' if delay_ms else ''}" if link else ""
    names = [f"{name}, {ranks}{label(link, delay_ms)}" for name, ranks, _, link, delay_ms in settings]
    series = {time: [measured[time] for measured in found] for time in ["computing", "exchanging"]}
    result.charts = [Bars("Time of a step by setting and ranks", "milliseconds", names, series)]
    return result


def left_out(settings: list, found: list[dict], at: int) -> float:
    """The time of a step by a model that was fitted without it, and without those that have the same terms."""
    alike = lambda setting: (setting[1], setting[3])
    others = [index for index, setting in enumerate(settings) if alike(setting) != alike(settings[at])]
    return model(settings, found, others) @ terms(*settings[at][1:], found[at]["sent"])


def error_for_more_ranks(settings: list, found: list[dict]) -> str:
    """A sentence about the error of a model for more ranks than those to which it was fitted."""
    most = max(setting[1] for setting in settings)
    less, more = ([at for at, setting in enumerate(settings) if (setting[1] < most) == is_less] for is_less in (True, False))
    fitted = model(settings, found, less)
    errors = [abs(fitted @ terms(*settings[at][1:], found[at]["sent"]) / found[at]["step"] - 1) for at in more]
    return (
        f"Fitted to one and two ranks, it differs from the times of {most} by {100 * statistics.mean(errors):.0f} % on average, "
        f"and by at most {100 * max(errors):.0f} %; its error for more ranks is not known."
    )


def predictions(settings: list, found: list[dict]) -> list[list]:
    """Rows of the table for more ranks."""
    fitted = model(settings, found, range(len(settings)))
    of_two = next(measured for setting, measured in zip(settings, found) if setting[:3] == ("weak", 2, 2 * OF_RANK))
    rows = []
    for steps in (1, ROUND):
        of_gpu = fitted / [FASTER, FASTER, 1, steps, 1, 1]
        for ranks in MORE_RANKS:
            sent = sent_mb(ranks, of_two["sent"], of_two["model bytes"] / 1e6)
            sent *= OF_BYTES / steps if steps > 1 else 1
            batch = ranks * OF_RANK
            alone_ms, step = of_gpu @ terms(1, OF_RANK, None, 0, 0.0), of_gpu @ terms(ranks, batch, "10gbit", 0, sent)
            name = f"{ranks} nodes, predicted{f', rounds of {steps}' if steps > 1 else ''}"
            row = [name, ranks, batch, "10gbit", 0, f"{1000 * batch / step:.0f}", f"{alone_ms / step:.3f}"]
            rows.append([*row, *["–"] * len(TIMES), f"{step:.1f}", f"{1000 * sent:.0f}"])
    return rows


def sent_mb(ranks: int, of_two: float, of_all: float) -> float:
    """The most megabytes that a rank sends in an exchange, from what one of two sends and the size of the model.

    It sends its rows to their owners, and the sums of the rows that it owns to all (trainer/src/exchange.rs). All ranks have at
    most all rows; one has at most what one of two sends, because the sums have all of its rows.
    """
    return (ranks - 1) / ranks * (min(of_two, of_all) + of_all)


def terms(ranks: int, batch: int, link: str | None, delay_ms: float, sent: float):
    """The terms of the model, whose coefficients are a to f."""
    import numpy

    of_link = 1000 * sent / MB_PER_S[link] if link else 0.0
    return numpy.array([batch / ranks, 1.0, of_link, ranks - 1.0, delay_ms, float(delay_ms > 0)])


def model(settings: list, found: list[dict], rows):
    """The coefficients with the least squares of relative errors in these rows."""
    relative = [terms(*settings[row][1:], found[row]["sent"]) / found[row]["step"] for row in rows]
    return fit.coefficients(relative, [1.0] * len(relative))
