"""Test accuracy with large batches: one learning rate, linear scaling with a warm-up, LARS and LAMB.

*Scaled* multiplies the learning rate by batch size ÷ 64, at most by 8 for Adam and by 64 for SGD, after a warm-up of a tenth of
the steps (Goyal et al. 2017, "Accurate, Large Minibatch SGD"). LARS (You et al. 2017) and LAMB (You et al. 2020) have one rate
and no warm-up. A training that diverges counts as 0.5. All trainings have the same number of epochs, so a batch of 8,192 has 16
updates. Means and standard deviations of three seeds. The original system multiplied its rate by the batch size relative to 128;
its accuracy was 85.0 % on one GPU and 87.2 % on eight, with other reviews.
"""

import os
import statistics
import sys
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor

from chart import Chart
from machine import PROJECT, Machine
from result import Result

sys.path.append(str(PROJECT / "trainer" / "bench"))
from large_batch import RULES, accuracy, rows_of, shown, warm_up

TITLE = "Large batches"
EPOCHS, WORDS = 4, "100"


def run(machine: Machine) -> Result:
    corpus = machine.corpus("IMDB")
    train, test = machine.dataset(corpus)
    settings = Namespace(trainer=str(machine.programs / "trainer"), train=str(train), test=str(test or train), epochs=EPOCHS)
    batches = [128, 512] if machine.small else [128, 512, 2048, 8192]
    seeds = range(1, 1 + machine.rounds())
    result = Result(["optimizer", *(f"batch {batch:,}" for batch in batches)])
    series = {}
    n_rows = rows_of(settings.train)

    def accuracy_of(rule, batch, seed):
        flags = RULES[rule](batch, warm_up(EPOCHS, n_rows, batch))
        return accuracy(settings, [*flags, "--tokens", WORDS], batch, seed)

    rules = list(RULES)[:2] if machine.small else RULES
    # Each training has one thread.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        trained = {(rule, batch): [pool.submit(accuracy_of, rule, batch, seed) for seed in seeds] for rule in rules for batch in batches}
        try:
            found = {setting: [training.result() for training in trainings] for setting, trainings in trained.items()}
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    for rule in rules:
        result.rows.append([rule, *(shown(found[rule, batch]) for batch in batches)])
        series[rule] = [(batch, statistics.mean(found[rule, batch])) for batch in batches]
    result.charts = [Chart("Test accuracy by batch size", "batch size", "accuracy", series, is_log=True)]
    return result
