"""Trains and tests a classifier of the fastText program; called by ngrams.py and experiments/ngrams.py.

usage: in_fasttext.py TRAIN TEST THREADS SEED NGRAMS DIM EPOCHS RATE
"""

import json
import resource
import sys
import time

import fasttext


def main() -> None:
    if len(sys.argv) != 9:
        sys.exit(__doc__)
    train, test, threads, seed, ngrams, dim, epochs, rate = sys.argv[1:]
    settings = {"wordNgrams": int(ngrams), "dim": int(dim), "epoch": int(epochs), "lr": float(rate), "seed": int(seed)}
    began, cpu_began = time.perf_counter(), time.process_time()
    model = fasttext.train_supervised(input=train, thread=int(threads), verbose=0, **settings)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    _, accuracy, _ = model.test(test)
    used = {"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_mib": peak, "accuracy": accuracy}
    of_both = {"with_test_seconds": time.perf_counter() - began, "with_test_cpu_seconds": time.process_time() - cpu_began}
    print(json.dumps(used | of_both))


main()
