"""Time and cost of an epoch by the clusters of GPUs of the earlier system, which are simulated.

No GPU is used: a g3 is a rank with one thread and a quota of 40 % of a core, a p2 one with 22.35 %, because the earlier system
had speeds of 1.79 : 1. Nodes are network namespaces with links of 1 Gbit/s. Eight g3 have half the quotas and half the link,
and their speed is relative to a rank with half the quota. All ranks share this machine, and exchanges use a part of their
quotas: this limits `off` and `dynamic`, and eight ranks most, not GPUs or their networks.

The model is that of `--recipe original`, on all reviews of IMDB with `--profile original`; a GPU has 128 rows of a batch.
*Rounds* is `--balance dynamic --sync-every 16`. *Of the sum* is the speed divided by the sum of the speeds of the same ranks
that train by themselves, at the same time. *Epoch* is the time for 19.17 million rows, if one g3 takes 3,570 s as in the
earlier system; *USD* is that time × the on-demand prices of us-east-1 in experiments/prices.csv (instances.vantage.sh,
2026-01-21), for g3.4xlarge, g3.16xlarge with four GPUs and p2.xlarge, which are assumed. The *earlier* epochs are those of its
logs, at the same prices. Its `dynamic` changed shares after an epoch; the times of 3 g3 + p2 are a tenth of those of a
training, which is taken to have had ten epochs.
"""

import csv
import statistics
from pathlib import Path

from chart import Bars
from machine import Corpus, Machine, spread
from result import Result
from training import at_once, train

TITLE = "Clusters of GPUs"
OF_RANK, G3_EPOCH_S = 128, 3570
G3, P2 = 40, 22.35
MODES = {"off": [], "dynamic": ["--balance", "dynamic"], "rounds": ["--balance", "dynamic", "--sync-every", 16]}
# Instances, quotas and number of nodes.
SINGLE = {"1 g3": (["g3.4xlarge"], [G3]), "1 p2": (["p2.xlarge"], [P2])}
CLUSTERS = {
    "4 g3, one node": (["g3.16xlarge"], [G3] * 4, 1),
    "8 g3, two nodes": (["g3.16xlarge"] * 2, [G3 / 2] * 8, 2),
    "g3 + p2": (["g3.4xlarge", "p2.xlarge"], [G3, P2], 2),
    "3 g3 + p2": (["g3.4xlarge"] * 3 + ["p2.xlarge"], [G3] * 3 + [P2], 4),
}
CLUSTERS_SMALL = {"g3 + p2": (["g3.4xlarge", "p2.xlarge"], [G3, P2], 1)}
LINKS = {G3: "1gbit", G3 / 2: "500mbit"}
EARLIER_S = {"1 g3, off": 3570, "1 p2, off": 6397, "4 g3, one node, off": 1302, "8 g3, two nodes, off": 954, "3 g3 + p2, off": 2426, "3 g3 + p2, dynamic": 2301}


def run(machine: Machine) -> Result:
    with (Path(__file__).parent / "prices.csv").open(newline="") as file:
        prices = {line["machine"]: float(line["USD per hour"]) for line in csv.DictReader(file)}
    result = Result(["cluster", "balance", "rows/s", "of the sum, %", "epoch s", "epoch USD", "earlier epoch s", "earlier USD"])
    corpus = machine.corpus("IMDB")
    whole = Corpus(f"{corpus.name}, all", [*corpus.train, *([corpus.test] if corpus.test else [])], None, [])
    dataset, _ = machine.dataset(whole, "--profile", "original")
    clusters = CLUSTERS_SMALL if machine.small else CLUSTERS
    found: dict[str, dict[str, list]] = {}

    def note(name: str, mode: str, speed: float, sum_of: float, g3: float):
        of = found.setdefault(f"{name}, {mode}", {"rows/s": [], "percent": [], "epoch": []})
        for key, value in zip(of, (speed, 100 * speed / sum_of, G3_EPOCH_S * g3 / speed)):
            of[key].append(value)

    for _ in range(machine.rounds()):
        alone = apart(machine, dataset, [G3, G3, G3, P2]) | (apart(machine, dataset, [G3 / 2] * 8) if len(clusters) > 1 else {})
        for name, (_, [quota]) in SINGLE.items():
            note(name, "off", alone[quota], alone[quota], alone[G3])
        for name, (_, quotas, nodes) in clusters.items():
            flags = ["--recipe", "original", "--batch", OF_RANK * len(quotas), "--epochs", 2]
            for mode, more in MODES.items():
                speed = train(machine, dataset, quotas, [*flags, *more], LINKS[quotas[0]] if nodes > 1 else None, 0, nodes)["rows/s"]
                note(name, mode, speed, sum(alone[quota] for quota in quotas), alone[quotas[0]])
    for name, (instances, *_) in (SINGLE | clusters).items():
        price = sum(prices[instance] for instance in instances)
        for mode in MODES:
            if of := found.get(f"{name}, {mode}"):
                earlier = EARLIER_S.get(f"{name}, {mode}")
                row = [name, mode, spread(of["rows/s"], 0), spread(of["percent"], 1), spread(of["epoch"], 0)]
                row += [usd(statistics.median(of["epoch"]), price), f"{earlier}" if earlier else "–", usd(earlier, price) if earlier else "–"]
                result.rows.append(row)
    seconds = {mode: [statistics.median(found[f"{name}, {mode}"]["epoch"]) for name in clusters] for mode in MODES}
    result.charts = [Bars("Seconds of an epoch by cluster", "seconds", list(clusters), seconds)]
    return result


def apart(machine: Machine, dataset, quotas: list[float]) -> dict[float, float]:
    """Rows per second by quota of single ranks that train at the same time, and for about as long."""
    flags = lambda quota: ["--recipe", "original", "--batch", OF_RANK, "--sample", quota / max(quotas) / 2]
    of_quota = lambda quota: lambda alone: train(alone, dataset, [quota], flags(quota))["rows/s"]
    speeds = at_once(machine, [of_quota(quota) for quota in quotas])
    return {quota: statistics.median(speed for each, speed in zip(quotas, speeds) if each == quota) for quota in quotas}


def usd(seconds: float, price: float) -> str:
    return f"{seconds / 3600 * price:.2f}"
