"""Ranks of unequal speed, without balancing and with both rules of `trainer fit --balance`.

Each rank is a process with one thread and a quota of CPU time, in percent of a core. The hidden size is 128. The ideal is the
sum of the speeds of each rank alone under its quota, measured before and after the others: it has no communication, and is the
batch divided by 1 ÷ Σ(1 ÷ t) for times t of the ranks. *Computing* is the part of the time in which a rank computes, the mean
by quotas: unlike the ideal, it is measured at the same time. Values are of whole epochs from the first step. The earlier system
balanced after each epoch, on GPUs: it reached 61 % of the ideal with speeds 1.79 : 1, and 44 % with three fast ranks and a slow
one.
"""

from chart import Bars
from machine import Machine
from result import Result
from training import train

TITLE = "Ranks of unequal speed"
# Batch and epochs by quotas, whose sum leaves some time to other processes of two cores. Four ranks have longer steps: each
# exchange between them takes several periods of their quotas. A training has over 400 steps.
QUOTAS = {(100, 55.9): (480, 32), (40, 40, 40, 20): (960, 60)}
QUOTAS_SMALL = {(100, 55.9): (60, 2)}
MODES = ["off", "per-epoch", "dynamic"]
HIDDEN = ["--hidden", 128]
# Of the dataset, whose ideal is measured in an epoch.
SAMPLE = "0.25"


def run(machine: Machine) -> Result:
    dataset, _ = machine.dataset(machine.corpus("IMDB"), *([] if machine.small else ["--sample", SAMPLE]))
    sizes_of_all, hidden = (QUOTAS_SMALL, []) if machine.small else (QUOTAS, HIDDEN)
    result = Result(["quotas, % of a core", "batch", "balance", "steps", "rows/s", "ideal rows/s", "of the ideal, %", "computing, %"])
    series = {mode: [] for mode in MODES}
    names = [" : ".join(map(str, quotas)) for quotas in sizes_of_all]
    for name, (quotas, (batch, epochs)) in zip(names, sizes_of_all.items()):
        flags = ["--batch", batch, *hidden]
        # Equal quotas have equal speeds.
        alone = lambda: {quota: train(machine, dataset, [quota], flags)["rows/s"] for quota in set(quotas)}
        before = alone()
        of_modes = {mode: train(machine, dataset, quotas, [*flags, "--epochs", epochs, "--balance", mode]) for mode in MODES}
        after = alone()
        ideal = sum(before[quota] + after[quota] for quota in quotas) / 2
        for mode, found in of_modes.items():
            share = 100 * found["rows/s"] / ideal
            computing = 100 * sum(quota * part for quota, part in zip(quotas, found["computing of ranks"])) / sum(quotas)
            row = [name, batch, mode, found["steps"], f"{found['rows/s']:.0f}", f"{ideal:.0f}"]
            result.rows.append([*row, f"{share:.1f}", f"{computing:.1f}"])
            series[mode].append(share)
    result.charts = [Bars("Rows per second by quotas of the ranks", "% of the ideal", names, series)]
    return result
