"""Accuracy of large batches: one learning rate, linear scaling with a warm-up, LARS and LAMB.

usage: large_batch.py TRAINER TRAIN.h5 TEST.h5 [--batches 128,512,2048,8192] [--seeds N] [--epochs N] [--rules NAME;...]
  TRAINER  the program
  TEST.h5  rows that are evaluated; to choose settings, a part of the training rows

Linear scaling multiplies the learning rate by the batch size relative to 64, up to a limit, and begins with the rate of a
batch of 64 for a tenth of the steps (Goyal et al. 2017, "Accurate, Large Minibatch SGD"). Losses are divided by the rows
of the whole batch, and momentum is a mean of gradients, not of changes, so a warm-up requires no correction of it. The
table has the mean accuracy over the seeds and its standard deviation.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BASE = 64
RULES = {
    "adam": lambda batch, warm_up: ["--rate", "0.002"],
    "adam, scaled": lambda batch, warm_up: scaled("0.002", batch, warm_up, 8),
    "sgd": lambda batch, warm_up: ["--optimizer", "sgd"],
    "sgd, scaled": lambda batch, warm_up: ["--optimizer", "sgd", *scaled("0.1", batch, warm_up, 64)],
    "lars": lambda batch, warm_up: ["--optimizer", "lars"],
    "lamb": lambda batch, warm_up: ["--optimizer", "lamb"],
}


def scaled(rate: str, batch: int, warm_up: int, most: int) -> list[str]:
    """Flags of linear scaling, by at most this factor."""
    if batch <= BASE:
        return ["--rate", rate]
    base = max(BASE, batch // most)
    return ["--rate", rate, "--base-batch", str(base), "--warm-up", str(warm_up)]


def rows_of(path: str) -> int:
    import h5py

    with h5py.File(path) as file:
        return len(file["label"])


def warm_up(epochs: int, n_rows: int, batch: int) -> int:
    """A tenth of the steps."""
    return max(1, epochs * -(-n_rows // batch) // 10)


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("trainer")
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--batches", default="128,512,2048,8192")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rules", default=";".join(RULES))
    arguments = parser.parse_args()
    batches = [int(batch) for batch in arguments.batches.split(",")]
    rules = arguments.rules.split(";")
    n_rows = rows_of(arguments.train)
    print("| optimizer | " + " | ".join(f"{batch:,}" for batch in batches) + " |")
    print("|---" * (1 + len(batches)) + "|")
    for rule in rules:
        cells = []
        for batch in batches:
            found = [accuracy(arguments, RULES[rule](batch, warm_up(arguments.epochs, n_rows, batch)), batch, seed)
                     for seed in range(1, arguments.seeds + 1)]
            cells.append(shown(found))
        print(f"| {rule} | " + " | ".join(cells) + " |", flush=True)


def shown(found: list[float]) -> str:
    """The mean and, of several values, their standard deviation."""
    deviation = f" ± {statistics.stdev(found):.4f}" if len(found) > 1 else ""
    return f"{statistics.mean(found):.4f}{deviation}"


def accuracy(arguments, flags: list[str], batch: int, seed: int) -> float:
    """Trains once. A training that diverges has the accuracy of a guess."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        command = [arguments.trainer, "fit", arguments.train, "--test", arguments.test, "--out", str(out)]
        command += ["--batch", str(batch), "--epochs", str(arguments.epochs), "--seed", str(seed), "--quiet"]
        command += ["--embedding-std", "1", "--validation-fraction", "0", "--device", "cpu", *flags]
        done = subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
        if done.returncode and "the loss is" not in done.stderr:
            sys.exit(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr}")
        evaluation = out / "evaluation.json"
        return json.loads(evaluation.read_text())["metrics"]["accuracy"] if evaluation.exists() else 0.5


if __name__ == "__main__":
    main()
