#!/usr/bin/env python3
"""Times each stage of the pipe, the whole pipe and merge, beside what a machine can do at best with the
same bytes (cat, wc, sort). Prints medians, the spread, and the peak memory of the largest process (bash,
which starts each of them, has about 4 MiB itself).

usage: tests/bench.py PROGRAMS   (the folder of the programs)
REVIEWS (200000) and RUNS (5) come from the environment.
"""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

PROGRAMS = pathlib.Path(sys.argv[1]).resolve()
BENCH = PROGRAMS / "bench"
REVIEWS = int(os.environ.get("REVIEWS", 200_000))
RUNS = int(os.environ.get("RUNS", 5))

REDUCE = f"reducer --run file://{BENCH}/run --partition 0 --partitions 1 >/dev/null"
# Name, the file whose bytes it reads, the command. In this order: a stage leaves the next one's file.
STAGES = [
    ("cat", "reviews", "cat reviews >/dev/null"),
    ("wc -l", "reviews", "wc -l reviews >/dev/null"),
    ("mapper", "reviews", "mapper <reviews >mapped"),
    ("sort", "mapped", "sort mapped >sorted"),
    ("combiner", "sorted", "combiner <sorted >records"),
    ("reducer", "records", f"{REDUCE} <records"),
    ("whole pipe", "reviews", f"mapper <reviews | sort | combiner | {REDUCE}"),
    ("merge", "run", f"merge --run file://{BENCH}/run --out reviews.h5 >/dev/null"),
]


# Not our own wait4: a child's peak begins at that of the process it was forked from, and Python's is 14 MiB.
GNU_TIME = "/usr/bin/time"


def main():
    if not os.access(GNU_TIME, os.X_OK):
        sys.exit(f"bench: {GNU_TIME} was not found: apt-get install time")
    shutil.rmtree(BENCH, ignore_errors=True)
    BENCH.mkdir(parents=True)
    os.chdir(BENCH)
    environment = os.environ | {"LC_ALL": "C", "PATH": f"{PROGRAMS}:{os.environ['PATH']}"}
    bash(f"demo-corpus --seed 1 --reviews {REVIEWS} >reviews", environment)

    print(f"{REVIEWS} reviews, {size('reviews') / 1e6:.1f} MB; median of {RUNS} runs on {os.cpu_count()} cores")
    print(f"{'':12}{'s':>8}{'fastest':>9}{'slowest':>9}{'MB/s':>8}{'peak MiB':>10}")
    for name, source, command in STAGES:
        times, peaks = zip(*(measure(command, environment) for _ in range(RUNS)))
        middle = statistics.median(times)
        speed = size(source) / 1e6 / middle
        print(f"{name:12}{middle:8.3f}{min(times):9.3f}{max(times):9.3f}{speed:8.0f}{max(peaks) / 1024:10.1f}", flush=True)


def measure(command, environment):
    """Seconds, and the peak resident KiB of the largest process that the command started."""
    # A partition that was committed before is not written again.
    if "reducer" in command:
        shutil.rmtree("run", ignore_errors=True)
    pathlib.Path("reviews.h5").unlink(missing_ok=True)
    begin = time.perf_counter()
    bash(command, environment)
    return time.perf_counter() - begin, int(pathlib.Path("peak").read_text())


def bash(command, environment):
    watched = [GNU_TIME, "--format=%M", "--output=peak", "bash", "-o", "pipefail", "-c", command]
    if (code := subprocess.call(watched, env=environment)) != 0:
        sys.exit(f"bench: failed with {code}: {command}")


def size(path):
    path = pathlib.Path(path)
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


if __name__ == "__main__":
    main()
