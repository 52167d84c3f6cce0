"""Training speed of `trainer fit` and of PyTorch scripts with the same model and rows.

Two LSTM layers of 32 over the first 100 words, in batches of 512. *Usual* is a script as most people write it
(`trainer/bench/usual.py`); *tuned* sorts rows by length as `trainer` does, with a fused Adam and an allocator that keeps
memory (`trainer/bench/pytorch.py`). Reviews per second of whole epochs, the faster of two of a run. *Busy cores*: another
process computes on each core. There, threads of PyTorch wait for each other: `--compute pytorch` uses one for a model of this
size.
"""

import statistics

from chart import Ranking
from machine import PROJECT, Machine, spread, threads_named
from result import Result

TITLE = "Training speed"
TORCH = PROJECT / ".deps" / "torch" / "bin" / "python"
REQUIRED = {TORCH: "run bootstrap/laptop.sh --cuda"}
ROUNDS = 5


def run(machine: Machine) -> Result:
    dataset, _ = machine.dataset(machine.corpus("IMDB"), "--profile", "original")
    rounds, environment = (1, {"THREADS": "1"}) if machine.small else (ROUNDS, {})
    figures = machine.bench("trainer/bench/compare.py", machine.programs / "trainer", TORCH, rounds, dataset, environment=environment)
    result = Result(["threads or ranks", "program", "reviews/s", "trainer ÷ program"])
    bars = []
    for line in figures:
        kind, _, ranks = line["kind"].partition(", ")
        panel = "busy cores" if line["threads"] == "busy" else f"{line['threads']} ranks" if ranks else threads_named(line["threads"])
        own = next(each["reviews/s"] for each in figures if each["threads"] == line["threads"] and each["kind"] == f"trainer{', ' * bool(ranks)}{ranks}")
        ratio = statistics.median(ours / theirs for ours, theirs in zip(own, line["reviews/s"]))
        result.rows.append([panel, kind, spread(line["reviews/s"], 0), f"{ratio:.2f}"])
        if line["threads"] != "busy":
            bars.append((panel, kind, line["reviews/s"]))
    bars.sort(key=lambda bar: (bar[0].endswith("ranks"), bar[0]))
    result.charts = [Ranking(f"Training on {machine.used[0]}", "reviews per second, more is better", bars, {"trainer"})]
    return result
