"""Ranks of unequal speed, without balancing and with both rules of `trainer fit --balance`.

Each rank has one thread and a quota of CPU time; the hidden size is 128. The ideal is the sum of the speeds of each rank
alone under its quota, without communication. *Computing* is the share of the time in which the ranks compute. `per-epoch`
changes shares after an epoch, so it trains four epochs of a quarter of the rows. The earlier system balanced after each
epoch, on GPUs: it reached 61 % of the ideal with speeds 1.79 : 1, and 44 % with three fast ranks and a slow one.
"""

import statistics

from chart import Bars
from machine import Machine, spread
from result import Result
from training import train

TITLE = "Ranks of unequal speed"
# The batch by quotas, whose sum leaves some time to other processes of two cores. Two ranks have an epoch of over 400 steps.
# Four ranks have longer steps: each exchange between them takes several periods of their quotas.
BATCH = {(100, 55.9): 1024, (40, 40, 40, 20): 4096}
BATCH_SMALL = {(100, 55.9): 60}
HIDDEN, HIDDEN_SMALL = 128, 16
# Epochs of a mode, and the rows of an epoch relative to the reviews.
MODES = {"off": (1, 0.5), "per-epoch": (4, 0.125), "dynamic": (1, 0.5)}
ALONE = 0.04
ROUNDS = 2


def run(machine: Machine) -> Result:
    generated = machine.generated_corpus()
    dataset = lambda share: machine.dataset(generated, *(["--sample", str(share)] if share < 1 and not machine.small else []))[0]
    batches, hidden = (BATCH_SMALL, HIDDEN_SMALL) if machine.small else (BATCH, HIDDEN)
    columns = ["quotas, % of a core", "batch", "balance", "epochs", "steps", "rows/s", "ideal rows/s"]
    result = Result([*columns, "of the ideal, %", "computing, %"])
    series = {mode: [] for mode in MODES}
    names = [" : ".join(map(str, quotas)) for quotas in batches]
    for name, (quotas, batch) in zip(names, batches.items()):
        flags = ["--batch", batch, "--hidden", hidden]

        def ideal():
            # Equal quotas have equal speeds.
            alone = {quota: train(machine, dataset(ALONE), [quota], flags)["rows/s"] for quota in set(quotas)}
            return sum(alone[quota] for quota in quotas)

        found = {mode: [] for mode in MODES}
        before = ideal()
        for _ in range(1 if machine.small else ROUNDS):
            for mode, (epochs, share) in MODES.items():
                trained = train(machine, dataset(share), quotas, [*flags, "--epochs", epochs, "--balance", mode])
                after = ideal()
                trained["ideal"] = (before + after) / 2
                trained["of the ideal"] = 100 * trained["rows/s"] / trained["ideal"]
                weighted = sum(quota * part for quota, part in zip(quotas, trained["computing of ranks"]))
                trained["computing"] = 100 * weighted / sum(quotas)
                found[mode].append(trained)
                before = after
        for mode, (epochs, _) in MODES.items():
            of = lambda key, digits: spread([trained[key] for trained in found[mode]], digits)
            row = [name, batch, mode, epochs, found[mode][0]["steps"], of("rows/s", 0), of("ideal", 0)]
            result.rows.append([*row, of("of the ideal", 1), of("computing", 1)])
            series[mode].append(statistics.median(trained["of the ideal"] for trained in found[mode]))
    result.charts = [Bars("Rows per second by quotas of the ranks", "% of the ideal", names, series)]
    return result
