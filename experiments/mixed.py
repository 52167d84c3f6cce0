"""Ranks of unequal speed, without balancing, with both rules of `trainer fit --balance`, and in rounds.

*Ideal* is the sum of the speeds of each rank alone under its quota, with the whole batch and without communication; *of the
ideal* is the speed of all ranks together, relative to it. All ranks share this machine. Beside others, a rank can be slower
under the same quota, as two threads of a core share its units and caches; then ranks that lose no time for each other have
less than 100 % of the ideal. *Beside others* is relative to the sum of the speeds of the ranks if each trains by itself at the
same time. The rest is waiting, exchanges, which use a part of the quotas, and the smaller batch of a rank.

Each rank has one thread and a quota of CPU time; the hidden size is 128. *Computing* is the share of the time in which the
ranks compute. `per-epoch` changes shares after an epoch, so it trains four epochs of fewer rows. *Dynamic, rounds* is
`dynamic` with `--sync-every 64`; its exchanges are rare, so four ranks do not need a batch of 4,096 there. The earlier system
balanced after each epoch, on GPUs: it reached 61 % of the ideal with speeds 1.79 : 1, and 44 % with three fast ranks and a
slow one.
"""

import statistics

from chart import Bars
from machine import Machine, spread
from result import Result
from training import at_once, train

TITLE = "Ranks of unequal speed"
# The batch by quotas, whose sum leaves some time to other processes of two cores, and the batch in rounds.
# Four ranks have longer steps: each exchange between them takes several periods of their quotas.
BATCH = {(100, 55.9): (1024, 1024), (40, 40, 40, 20): (4096, 1024)}
BATCH_SMALL = {(100, 55.9): (60, 60)}
HIDDEN, HIDDEN_SMALL = 128, 16
# Epochs of a mode, the rows of an epoch relative to the reviews, and flags.
MODES = {
    "off": (1, 0.2, []),
    "per-epoch": (4, 0.06, ["--balance", "per-epoch"]),
    "dynamic": (1, 0.35, ["--balance", "dynamic"]),
    "dynamic, rounds": (1, 0.35, ["--balance", "dynamic", "--sync-every", 64]),
}
# Rows of a rank with the largest quota that trains by itself. Others have fewer, so that all end at the same time.
ALONE = 0.03
ROUNDS = 2


def run(machine: Machine) -> Result:
    dataset, _ = machine.dataset(machine.generated_corpus())
    batches, hidden = (BATCH_SMALL, HIDDEN_SMALL) if machine.small else (BATCH, HIDDEN)
    columns = ["quotas, % of a core", "batch", "balance", "epochs", "steps", "rows/s", "ideal rows/s"]
    result = Result([*columns, "of the ideal, %", "beside others, %", "computing, %"])
    series = {mode: [] for mode in MODES}
    names = [" : ".join(map(str, quotas)) for quotas in batches]
    part = lambda share: ["--sample", 1 if machine.small else share]
    for name, (quotas, (batch, batch_in_rounds)) in zip(names, batches.items()):

        def alone(quota):
            flags = ["--batch", batch, "--hidden", hidden, *part(ALONE * quota / max(quotas))]
            return lambda apart: train(apart, dataset, [quota], flags)["rows/s"]

        def ideals() -> list[float]:
            """The sum of the speeds of ranks that train by themselves, one after another and at the same time."""
            # Equal quotas have equal speeds.
            speeds = {quota: alone(quota)(machine) for quota in set(quotas)}
            return [sum(speeds[quota] for quota in quotas), sum(at_once(machine, [alone(quota) for quota in quotas]))]

        found = {mode: [] for mode in MODES}
        before = ideals()
        for _ in range(1 if machine.small else ROUNDS):
            of_round = {}
            for mode, (epochs, share, more) in MODES.items():
                rows = batch_in_rounds if "--sync-every" in more else batch
                flags = ["--batch", rows, "--hidden", hidden, *part(share), "--epochs", epochs]
                of_round[mode] = train(machine, dataset, quotas, [*flags, *more]) | {"batch": rows}
            after = ideals()
            for mode, trained in of_round.items():
                trained["ideal"], beside = (statistics.mean(pair) for pair in zip(before, after))
                trained["of the ideal"] = 100 * trained["rows/s"] / trained["ideal"]
                trained["beside others"] = 100 * trained["rows/s"] / beside
                weighted = sum(quota * part for quota, part in zip(quotas, trained["computing of ranks"]))
                trained["computing"] = 100 * weighted / sum(quotas)
                found[mode].append(trained)
            before = after
        for mode, (epochs, *_) in MODES.items():
            of = lambda key, digits: spread([trained[key] for trained in found[mode]], digits)
            row = [name, found[mode][0]["batch"], mode, epochs, found[mode][0]["steps"], of("rows/s", 0), of("ideal", 0)]
            result.rows.append([*row, of("of the ideal", 1), of("beside others", 1), of("computing", 1)])
            series[mode].append(statistics.median(trained["of the ideal"] for trained in found[mode]))
    result.charts = [Bars("Rows per second by quotas of the ranks", "% of the ideal", names, series)]
    return result
