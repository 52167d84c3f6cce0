"""Test accuracy with large batches: one learning rate, linear scaling with a warm-up, LARS and LAMB.

*Scaled* multiplies the learning rate by the batch size relative to 64, up to a limit, after a warm-up of a tenth of the steps
(Goyal et al. 2017, "Accurate, Large Minibatch SGD"). LARS (You et al. 2017) and LAMB (You et al. 2020) scale the update of
each tensor by its norm. Trainings have the same number of epochs, so one with a batch of 8,192 has a sixty-fourth of the
updates of one with 128. Values are means and standard deviations of seeds.
"""

import statistics
import sys
from argparse import Namespace

from chart import Chart
from machine import PROJECT, Machine
from result import Result

sys.path.append(str(PROJECT / "trainer" / "bench"))
from large_batch import RULES, accuracy, rows_of, shown, warm_up

TITLE = "Large batches"
EPOCHS = 4


def run(machine: Machine) -> Result:
    corpus = machine.corpus("IMDB")
    train, test = machine.dataset(corpus)
    settings = Namespace(trainer=str(machine.programs / "trainer"), train=str(train), test=str(test or train), epochs=EPOCHS)
    batches = [128, 512] if machine.small else [128, 512, 2048, 8192]
    seeds = range(1, 1 + machine.rounds())
    result = Result(["optimizer", *(f"batch {batch:,}" for batch in batches)])
    series = {}
    for rule in list(RULES)[:2] if machine.small else RULES:
        cells = []
        for batch in batches:
            flags = RULES[rule](batch, warm_up(EPOCHS, rows_of(settings.train), batch))
            found = [accuracy(settings, flags, batch, seed) for seed in seeds]
            cells.append(shown(found))
            series.setdefault(rule, []).append((batch, statistics.mean(found)))
        result.rows.append([rule, *cells])
    result.charts = [Chart("Test accuracy by batch size", "batch size", "accuracy", series, is_log=True)]
    return result
