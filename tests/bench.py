#!/usr/bin/env python3
"""Measures each stage of the pipe, the whole pipe and merge. For comparison, also measures cat, wc and sort on the same
bytes, and the same job in tuned Python (tests/python/). The commands run alternately, so that a slow period of the
machine affects all of them. Prints medians, spread, CPU time and the peak memory of the largest process. The memory of
bash, which starts each command, is about 4 MiB.

usage: tests/bench.py PROGRAMS [PYTHON]
  PROGRAMS  folder of the programs
  PYTHON    Python with numpy, h5py and orjson; without it the job in Python is skipped
Environment: REVIEWS (default 2200000, about 1 GB), RUNS (default 5), INPUT (a file of reviews instead of synthetic
ones).
"""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field

PROGRAMS = pathlib.Path(sys.argv[1]).resolve()
PYTHON = pathlib.Path(sys.argv[2]).absolute() if len(sys.argv) > 2 else None
BENCH = PROGRAMS / "bench"
PEER = pathlib.Path(__file__).resolve().parent / "python"
REVIEWS = int(os.environ.get("REVIEWS", 2_200_000))
RUNS = int(os.environ.get("RUNS", 5))
INPUT = os.environ.get("INPUT")

SORT_MIB = 2048
SORT = f"sort -S {SORT_MIB}M --parallel=2 -T ."
REDUCE = f"reducer --profile original --memory 1GiB --run file://{BENCH}/run --partition 0 --partitions 1 >/dev/null"
# Not wait4: the peak memory of a child starts at that of the process that forked it, and Python's is 14 MiB.
GNU_TIME = "/usr/bin/time"


@dataclass
class Stage:
    """A command and the file whose bytes it reads."""

    name: str
    source: str
    command: str
    seconds: list = field(default_factory=list)
    processor_seconds: list = field(default_factory=list)
    peak_kib: int = 0

    @property
    def median(self):
        return statistics.median(self.seconds)


# In this order: a stage writes the input of the next one.
STAGES = [
    Stage("cat", "reviews", "cat reviews >/dev/null"),
    Stage("wc -l", "reviews", "wc -l reviews >/dev/null"),
    Stage("mapper", "reviews", "mapper <reviews >/dev/null"),
    Stage("sort", "mapped", f"{SORT} mapped >sorted"),
    Stage("combiner", "sorted", "combiner <sorted >/dev/null"),
    Stage("reducer", "sorted", f"{REDUCE} <sorted"),
    Stage("pipe", "reviews", f"mapper <reviews | {SORT} | {REDUCE}"),
    Stage("merge", "run", f"merge --run file://{BENCH}/run --out reviews.h5 >/dev/null"),
]
IN_PYTHON = Stage("in Python", "reviews", f"{PEER}/pipe.sh {PYTHON} reviews stop_words python.h5")


def main():
    if not os.access(GNU_TIME, os.X_OK):
        sys.exit(f"bench: {GNU_TIME} was not found: apt-get install time")
    shutil.rmtree(BENCH, ignore_errors=True)
    BENCH.mkdir(parents=True)
    os.environ |= {"LC_ALL": "C", "PATH": f"{PROGRAMS}:{PROGRAMS}/examples:{os.environ['PATH']}", "SORT_MIB": str(SORT_MIB)}
    source = f"cat {pathlib.Path(INPUT).resolve()}" if INPUT else f"demo-corpus --seed 1 --reviews {REVIEWS}"
    os.chdir(BENCH)
    bash(f"{source} >reviews")
    bash("mapper <reviews >mapped 2>mapper.log")

    print(f"{size('reviews') / 1e6:.1f} MB of reviews; median of {RUNS} runs in turn on {os.cpu_count()} cores")
    for run in range(RUNS):
        for stage in STAGES:
            measure(stage)
        if PYTHON and run == 0:
            bash(f"{PYTHON} {PEER}/stop_words.py reviews.h5 >stop_words")
        if PYTHON:
            measure(IN_PYTHON)
    print(f"{'':12}{'s':>8}{'fastest':>9}{'slowest':>9}{'CPU s':>8}{'MB/s':>8}{'peak MiB':>10}")
    for stage in STAGES + [IN_PYTHON] * bool(PYTHON):
        speed = size(stage.source) / 1e6 / stage.median
        fastest, slowest = min(stage.seconds), max(stage.seconds)
        cpu, peak_mib = statistics.median(stage.processor_seconds), stage.peak_kib / 1024
        print(f"{stage.name:12}{stage.median:8.3f}{fastest:9.3f}{slowest:9.3f}{cpu:8.2f}{speed:8.0f}{peak_mib:10.1f}")
    if PYTHON:
        compare()


def compare():
    """Checks that both made the same rows, and prints the ratio of times per run."""
    bash(f"{PYTHON} {PEER}/agree.py reviews.h5 python.h5")
    by_name = {stage.name: stage for stage in STAGES}

    def ratio(times):
        ours = [pipe + merge for pipe, merge in zip(times(by_name["pipe"]), times(by_name["merge"]))]
        ratios = sorted(python / our for python, our in zip(times(IN_PYTHON), ours))
        return f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"

    wall, cpu = ratio(lambda stage: stage.seconds), ratio(lambda stage: stage.processor_seconds)
    print(f"Python / (pipe + merge): {wall} wall, {cpu} CPU")


def measure(stage):
    # A committed partition or an existing dataset would not be written again.
    if "reducer" in stage.command:
        shutil.rmtree("run", ignore_errors=True)
    if stage.name == "merge":
        pathlib.Path("reviews.h5").unlink(missing_ok=True)
        pathlib.Path("reviews.manifest.json").unlink(missing_ok=True)
    begin = time.perf_counter()
    bash(stage.command)
    stage.seconds.append(time.perf_counter() - begin)
    user, system, peak_kib = pathlib.Path("measured").read_text().split()
    stage.processor_seconds.append(float(user) + float(system))
    stage.peak_kib = max(stage.peak_kib, int(peak_kib))


def bash(command):
    watched = [GNU_TIME, "--format=%U %S %M", "--output=measured", "bash", "-o", "pipefail", "-c", command]
    with open("log", "wb") as log:
        code = subprocess.call(watched, stderr=log)
    if code != 0:
        sys.exit(f"bench: failed with {code}: {command}\n{pathlib.Path('log').read_text()[-2000:]}")


def size(path):
    path = pathlib.Path(path)
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


if __name__ == "__main__":
    main()
