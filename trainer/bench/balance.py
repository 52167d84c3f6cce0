"""Ranks of unequal speed with and without `--balance`, beside the ideal.

usage: balance.py TRAINER DATASET.h5 QUOTAS [--runs N] [--epochs N] [--epochs-alone N] [--batch N]
                  [--modes off,dynamic,per-epoch] [--halve RANK@SECONDS] [--test TEST.h5] [-- FLAG ...]
  TRAINER  the program
  QUOTAS   percent of a core of each rank, such as 100,55.9
  FLAG     flags of `trainer fit`

Each rank has one thread and a control group with this quota of CPU time. The ideal is the sum of the rows per second of
each rank alone under its quota. All jobs run in turn. The table has medians over the runs, of all epochs from their first
step, and their ratio to the first mode in the same round, with its 95 percent interval of the mean. With --halve, the
quota of a rank is halved after some seconds, and the table has the steps until the decided shares are within 5 percent of
the speeds of the ranks alone, and until the rows per second are within 5 percent of the new ideal. With --test, there are only the mean accuracies on these rows of as many seeds as runs, and their
standard deviations. Requires the right to make control groups, version 1 or 2.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from limits import Group, environments

LOG_STEPS = "10"


def run(arguments, groups: list[Group], epochs: int, flags: list[str], halve=None) -> dict:
    """Trains with one rank per group. Returns rows per second over all epochs, and the lines of the metrics."""
    folder = Path(tempfile.mkdtemp())
    command = [arguments.trainer, "fit", arguments.dataset, "--out", str(folder / "out"), "--epochs", str(epochs)]
    command += ["--batch", str(arguments.batch), "--validation-fraction", "0", "--device", "cpu"]
    command += ["--test", arguments.test] if arguments.test else ["--test-fraction", "0"]
    command += ["--log-steps", LOG_STEPS, "--quiet", *flags, *arguments.flags]
    ranks = [
        subprocess.Popen(
            command, env=environment, preexec_fn=group.enter, stderr=subprocess.PIPE, text=True
        )
        for environment, group in zip(environments(len(groups)), groups)
    ]
    halved_at = []
    if halve:
        rank, seconds, percent = halve

        def later() -> None:
            metrics = folder / "out" / "metrics.jsonl"
            while not (metrics.exists() and '"steps"' in metrics.read_text()):
                time.sleep(0.01)
            time.sleep(seconds)
            lines = metrics.read_text().splitlines()
            groups[rank].limit(percent)
            halved_at.append(json.loads(lines[-1])["step"])

        threading.Thread(target=later, daemon=True).start()
    told = [rank.communicate()[1] for rank in ranks]
    for rank, said in zip(ranks, told):
        if rank.returncode:
            sys.exit(f"exit code {rank.returncode}: {said}")
    evaluation = folder / "out" / "evaluation.json"
    accuracy = json.loads(evaluation.read_text())["metrics"]["accuracy"] if evaluation.exists() else None
    lines = [json.loads(line) for line in (folder / "out" / "metrics.jsonl").read_text().splitlines()]
    shutil.rmtree(folder)
    epochs = [line for line in lines if line["event"] == "epoch"]
    rows = sum(rank["rows"] for epoch in epochs for rank in epoch["ranks"])
    speed = rows / sum(epoch["seconds"] for epoch in epochs)
    return {"speed": speed, "steps": epochs[-1]["step"], "lines": lines, "halved_at": halved_at, "accuracy": accuracy}


def reaction(result: dict, speeds: list[float]) -> tuple[str, str]:
    """The steps from the change of the quota until shares and rows per second are within 5 % of the ranks' speeds alone."""
    if not result["halved_at"]:
        return "ended before the change", "–"
    changed, ideal = result["halved_at"][0], sum(speeds)

    def are_ideal(parts: list[int]) -> bool:
        # A rank's time for its part, relative to that with the ideal part.
        return all(part / sum(parts) <= 1.05 * speed / ideal for part, speed in zip(parts, speeds))

    def first(event: str, is_reached) -> str:
        steps = (line["step"] for line in result["lines"] if line["event"] == event and is_reached(line))
        return next((str(step - changed) for step in steps if step > changed), "never")

    def is_fast(line: dict) -> bool:
        # A line has the mean of the steps since the line before.
        return line["step"] > changed + int(LOG_STEPS) and line["reviews_per_s"] >= 0.95 * ideal

    return first("shares", lambda line: are_ideal(line["decision"]["parts"])), first("steps", is_fast)


def ratio(speeds: list[float], first: list[float]) -> str:
    """The mean of the ratios of the rounds, and the 95 % interval of the mean by Student's t, of up to 30 rounds."""
    ratios = [one / other for one, other in zip(speeds, first)]
    mean = statistics.mean(ratios)
    if len(ratios) < 2:
        return f"{mean:.3f}"
    t_of = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 10: 2.26, 12: 2.20, 15: 2.14, 20: 2.09, 30: 2.05}
    half = t_of[max(n for n in t_of if n <= len(ratios))] * statistics.stdev(ratios) / len(ratios) ** 0.5
    return f"{mean:.3f} ({mean - half:.3f}–{mean + half:.3f})"


def accuracies(arguments, groups: list[Group]) -> None:
    for mode in arguments.modes.split(","):
        seeds = range(1, arguments.runs + 1)
        flags = [["--balance", mode, "--seed", str(seed)] for seed in seeds]
        found = [run(arguments, groups, arguments.epochs, of_seed)["accuracy"] for of_seed in flags]
        print(f"{mode}: accuracy {statistics.mean(found):.4f}, standard deviation {statistics.stdev(found):.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("trainer")
    parser.add_argument("dataset")
    parser.add_argument("quotas")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--epochs-alone", type=int, default=1)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--modes", default="off,dynamic,per-epoch")
    parser.add_argument("--halve")
    parser.add_argument("--test")
    own, flags = sys.argv[1:], []
    if "--" in own:
        own, flags = own[: own.index("--")], own[own.index("--") + 1 :]
    arguments = parser.parse_args(own)
    arguments.flags = flags
    quotas = [float(quota) for quota in arguments.quotas.split(",")]
    groups = [Group(str(rank), quota) for rank, quota in enumerate(quotas)]
    halve = None
    if arguments.halve:
        rank, seconds = arguments.halve.split("@")
        halve = (int(rank), float(seconds), quotas[int(rank)] / 2)
    modes = arguments.modes.split(",")
    alone: list[list[float]] = [[] for _ in groups]
    slower: list[float] = []
    found: dict[str, list[dict]] = {mode: [] for mode in modes}
    try:
        if arguments.test:
            return accuracies(arguments, groups)
        for _ in range(arguments.runs):
            for rank, group in enumerate(groups):
                alone[rank].append(run(arguments, [group], arguments.epochs_alone, [])["speed"])
            if halve:
                groups[halve[0]].limit(halve[2])
                slower.append(run(arguments, [groups[halve[0]]], arguments.epochs_alone, [])["speed"])
            for mode in modes:
                for group, quota in zip(groups, quotas):
                    group.limit(quota)
                found[mode].append(run(arguments, groups, arguments.epochs, ["--balance", mode], halve))
            for group, quota in zip(groups, quotas):
                group.limit(quota)
    finally:
        for group in groups:
            group.delete()
    speeds = [statistics.median(of_rank) for of_rank in alone]
    ideal = sum(speeds)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; each rank alone: "
          + ", ".join(f"{speed:.0f}" for speed in speeds) + f" rows/s; ideal {ideal:.0f} rows/s")
    new_speeds = [statistics.median(slower) if halve and rank == halve[0] else speed for rank, speed in enumerate(speeds)]
    heads = f" steps to ideal shares | steps to 95 % of {sum(new_speeds):.0f} rows/s |" if halve else ""
    print(f"| balance | steps | rows/s | of the ideal | ratio to {modes[0]} |{heads}")
    print("|---|---|---|---|---|" + ("---|---|" if halve else ""))
    for mode, results in found.items():
        all_speeds = [result["speed"] for result in results]
        speed = statistics.median(all_speeds)
        line = f"| {mode} | {results[0]['steps']} | {speed:.0f} ({min(all_speeds):.0f}–{max(all_speeds):.0f})"
        line += f" | {100 * speed / ideal:.1f} % | {ratio(all_speeds, [result['speed'] for result in found[modes[0]]])} |"
        if halve:
            columns = zip(*(reaction(result, new_speeds) for result in results))
            line += "".join(f" {', '.join(column)} |" for column in columns)
        print(line)


main()
