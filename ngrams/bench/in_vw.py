"""Trains and tests a linear model of Vowpal Wabbit; called by ngrams.py and experiments/ngrams.py.

usage: in_vw.py TRAIN TEST THREADS SEED NGRAMS PASSES

It reads and trains in one thread each, whatever THREADS is.
"""

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

import vowpalwabbit

SETTINGS = "--learning_rate 2 --loss_function logistic -b 24 --holdout_off"


def main() -> None:
    if len(sys.argv) != 7:
        sys.exit(__doc__)
    train, test, _, seed, ngrams, passes = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        model, predictions = f"{folder}/model", f"{folder}/predictions"
        settings = ["--ngram", ngrams, "--passes", passes, *SETTINGS.split()]
        cache = ["-c", "--cache_file", f"{folder}/cache", "--random_seed", seed, "--quiet"]
        began, cpu_began = time.perf_counter(), time.process_time()
        vowpalwabbit.Workspace(arg_list=["-d", train, *settings, *cache, "-f", model]).finish()
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        vowpalwabbit.Workspace(arg_list=["-d", test, "-t", "-i", model, "-p", predictions, "--quiet"]).finish()
        of_both = {"with_test_seconds": time.perf_counter() - began, "with_test_cpu_seconds": time.process_time() - cpu_began}
        scores = [float(line.split()[0]) for line in Path(predictions).read_text().splitlines()]
    with open(test, encoding="utf-8") as lines:
        labels = [line.startswith("1") for line in lines]
    accuracy = sum((score > 0) == label for score, label in zip(scores, labels, strict=True)) / len(labels)
    used = {"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_mib": peak, "accuracy": accuracy}
    print(json.dumps(used | of_both))


main()
