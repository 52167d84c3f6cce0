"""Two ranks of `trainer ngrams` in two network namespaces, beside one process: times, CPU time and bytes.

usage: ranks.py TRAINER TRAIN.txt TEST.txt [--generated DOCUMENTS] [--runs N] [--rates none,1gbit,100mbit]
                [--models linear,fasttext] [--round-texts N]

Lines have fastText's format. Each rank has one thread and a namespace of its own; a pair of virtual interfaces connects
the namespaces, and tc limits its rate. It needs the rights to create namespaces. With --generated, TRAIN.txt and
TEST.txt are written first: documents of 130 words. The table has medians of all runs; the load of the machine is printed
before and after.
"""

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from limits import Nodes

PORT = 29_417
MODELS = {"linear": ["--model", "linear"], "fasttext": ["--model", "fasttext"]}
WORDS = 100_000


def write_generated(path: str, documents: int, seed: int) -> None:
    """Writes documents of 130 words with Zipf frequencies. Each word has a mood, which decides the label."""
    source = random.Random(1)
    moods = [source.gauss(0, 1) for _ in range(WORDS)]
    source = random.Random(seed)
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(documents):
            found = [min(int(WORDS ** source.random()), WORDS - 1) for _ in range(130)]
            mood = sum(moods[number] for number in found) + source.gauss(0, 4)
            words = " ".join(f"w{number}" for number in found)
            file.write(f"__label__{'pos' if mood > 0 else 'neg'} {words}\n")


def run(commands: list[list[str]], environments: list[dict[str, str]]) -> dict:
    """Runs the ranks. Returns the summary of rank 0, with seconds and CPU seconds of all."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    ranks = [
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
        )
        for command, environment in zip(commands, environments)
    ]
    outputs = [rank.communicate() for rank in ranks]
    took, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    for rank, (_, told) in zip(ranks, outputs):
        if rank.returncode != 0:
            sys.exit(f"a rank exited with code {rank.returncode}: {told}")
    summary = json.loads(outputs[0][0])
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**summary, "took_s": took, "cpu_s": cpu}


def measure(trainer: str, train: str, test: str, flags: list[str], rate: str | None) -> dict:
    """One process, or two ranks with a link of this rate."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        command = [trainer, "ngrams", "--input", train, "--test", test, "--format", "fasttext", "--out", out]
        command += [*flags, "--threads", "1", "--json", "--quiet"]
        if rate is None:
            return run([command], [{}])
        nodes = Nodes(rate)
        commands = [[*nodes.within(name), *command] for name in nodes.names]
        shared = {"WORLD_SIZE": "2", "MASTER_ADDR": nodes.addresses[0], "MASTER_PORT": str(PORT), "OMP_NUM_THREADS": "1"}
        try:
            return run(commands, [{**shared, "RANK": str(rank)} for rank in range(2)])
        finally:
            nodes.delete()


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("trainer")
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--generated", type=int, default=0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rates", default="none,1gbit,100mbit")
    parser.add_argument("--models", default="linear,fasttext")
    parser.add_argument("--round-texts", default="2500")
    arguments = parser.parse_args()
    if arguments.generated:
        write_generated(arguments.train, arguments.generated, 2)
        write_generated(arguments.test, 5000, 3)
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("| model | processes | link | accuracy | command s | training s | CPU s | speed-up of training |"
          " bytes a round | of whole tables | bytes in all |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    kinds = [None, *arguments.rates.split(",")]
    for model in arguments.models.split(","):
        # In turn, so that a change of the machine's load concerns all.
        runs = {kind: [] for kind in kinds}
        for _ in range(arguments.runs):
            for kind in kinds:
                flags = [*MODELS[model], "--round-texts", arguments.round_texts]
                found = measure(arguments.trainer, arguments.train, arguments.test, flags, kind)
                runs[kind].append(found)
        alone = statistics.median(one["seconds"]["training"] for one in runs[None])
        for kind, found in runs.items():
            def median(of):
                return statistics.median(of(one) for one in found)
            training = median(lambda one: one["seconds"]["training"])
            metrics = median(lambda one: one["evaluation"]["precision_at_1"])
            row = [model, "1" if kind is None else "2", kind or "", f"{metrics:.4f}"]
            row += [f"{median(lambda one: one['took_s']):.2f}", f"{training:.2f}"]
            row += [f"{median(lambda one: one['cpu_s']):.2f}", f"{alone / training:.2f}"]
            exchange = found[0].get("exchange")
            if exchange:
                row += [f"{exchange['bytes_per_round']:,}", f"{exchange['table_bytes']:,}", f"{exchange['bytes']:,}"]
            else:
                row += ["", "", ""]
            print(f"| {' | '.join(row)} |", flush=True)
    print(f"load after: {os.getloadavg()[0]:.1f}")


main()
