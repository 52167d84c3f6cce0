#!/usr/bin/env python3
"""Measures sentimill and the same job in ClickHouse, DuckDB and Polars (in_*.py here) and in tuned Python (tests/python/), from
one file of JSON lines or CSV in the page cache to one HDF5 file. The engines run in turn, so that a slow minute of the machine
affects all. Prints medians of wall and CPU seconds, the spread of wall seconds, the CPU seconds of all other processes
meanwhile, the peak memory of all processes of a job together, and the time relative to sentimill per round. Then compares
the rows with sentimill's: words, label and votes, in any order. The head of each script lists what it omits, to its
advantage.

usage: sentimill/bench/compare.py PROGRAMS PYTHON [INPUT ...]
  PROGRAMS  folder of the programs
  PYTHON    Python with the packages of bootstrap/requirements/bench.txt
  INPUT     files of JSON lines, or of CSV if their names end in .csv, measured in sequence; default: synthetic reviews
            without invalid lines, as JSON lines and as CSV
Environment: REVIEWS (default 2200000, about 1 GB), ROUNDS (3), PEER_ROUNDS (ROUNDS), PEERS ("chdb duckdb polars python"),
WITH (a command prefix of each job, such as `taskset -c 0,1`), FIGURES (a file to which the figures are appended as JSON
lines).
"""

import json
import os
import pathlib
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent
IN_PYTHON = HERE.parents[1] / "tests/python"
PROGRAMS = pathlib.Path(sys.argv[1]).resolve()
PYTHON = pathlib.Path(sys.argv[2]).absolute()
INPUTS = [pathlib.Path(path).resolve() for path in sys.argv[3:]]
BENCH = PROGRAMS / "sentimill-bench"
REVIEWS = int(os.environ.get("REVIEWS", 2_200_000))
ROUNDS = int(os.environ.get("ROUNDS", 3))
PEER_ROUNDS = int(os.environ.get("PEER_ROUNDS", ROUNDS))
PEERS = os.environ.get("PEERS", "chdb duckdb polars python").split()
WITH = shlex.split(os.environ.get("WITH", ""))
FIGURES = os.environ.get("FIGURES")
LOOK_S = 0.02


@dataclass
class Job:
    name: str
    command: list
    out: str
    seconds: list = field(default_factory=list)
    processor_seconds: list = field(default_factory=list)
    others_seconds: list = field(default_factory=list)
    peak_bytes: int = 0


def main():
    shutil.rmtree(BENCH, ignore_errors=True)
    BENCH.mkdir(parents=True)
    os.chdir(BENCH)
    os.environ |= {"TMPDIR": str(BENCH), "PYTHONPATH": str(HERE)}
    inputs = INPUTS
    if not inputs:
        inputs = [BENCH / "reviews", BENCH / "reviews.csv"]
        made = f"{PROGRAMS}/examples/demo-corpus --seed 1 --reviews {REVIEWS} | {PYTHON} {HERE}/usual.py >reviews"
        made += f" && {PYTHON} {HERE}/to_csv.py <reviews >reviews.csv"
        subprocess.run(["bash", "-o", "pipefail", "-c", made], check=True)
    differing = [name for path in inputs for name in compare(path)]
    shutil.rmtree(BENCH)
    if differing:
        sys.exit(f"compare: not the same rows: {', '.join(differing)}")


def compare(path):
    """Measures all engines on one input; returns the names of those whose rows differ."""
    ours, *peers = jobs(path)
    megabytes = path.stat().st_size / 1e6
    print(f"{path.name}, {megabytes:.1f} MB; median of {ROUNDS} rounds, of others {PEER_ROUNDS}, on {os.cpu_count()} cores; {load()}")
    # Reads the file into the page cache.
    with open(path, "rb") as file:
        while file.read(16 << 20):
            pass
    differing = []
    for turn in range(max(ROUNDS, PEER_ROUNDS)):
        measure(ours)
        if turn == 0:
            with open("stop_words", "wb") as words:
                subprocess.run([PYTHON, IN_PYTHON / "stop_words.py", ours.out], check=True, stdout=words)
        for peer in peers if turn < PEER_ROUNDS else []:
            measure(peer)
            if turn == 0 and not agree(ours, peer):
                differing.append(f"{peer.name} of {path.name}")
    print(f"{'':10}{'s':>8}{'fastest':>9}{'slowest':>9}{'CPU s':>8}{'others':>8}{'MB/s':>8}{'peak MiB':>10}  wall, CPU / sentimill's")
    for job in [ours, *peers]:
        report(job, ours, megabytes)
        if FIGURES:
            peak_mib = job.peak_bytes / (1 << 20)
            figures = {"input": path.name, "MB": megabytes, "engine": job.name, "peak MiB": peak_mib}
            with open(FIGURES, "a") as file:
                print(json.dumps(figures | {"wall s": job.seconds, "CPU s": job.processor_seconds}), file=file)
    print(load(), flush=True)
    return differing


def jobs(path):
    python = ["bash", IN_PYTHON / "pipe.sh", PYTHON, path, "stop_words", "python.h5"]
    of_peers = {peer: [PYTHON, HERE / f"in_{peer}.py", path, "stop_words", f"{peer}.h5"] for peer in PEERS} | {"python": python}
    of_csv = ["--format", "csv"] if path.suffix == ".csv" else []
    own = [PROGRAMS / "sentimill", "--profile", "original", *of_csv, "--input", path, "--out", "reviews.h5"]
    # The mapper in Python reads lines.
    peers = [peer for peer in PEERS if not of_csv or peer != "python"]
    return [Job("sentimill", own, "reviews.h5"), *(Job(peer, of_peers[peer], f"{peer}.h5") for peer in peers)]


def measure(job):
    # An existing dataset would not be written again.
    for left in (job.out, "reviews.manifest.json" if job.name == "sentimill" else job.out):
        pathlib.Path(left).unlink(missing_ok=True)
    busy, used, begin = cpu_of_all(), cpu_of_children(), time.perf_counter()
    with open("log", "wb") as log:
        process = subprocess.Popen([*WITH, *job.command], stdout=log, stderr=log)
        watch = Watch(process.pid)
        code = process.wait()
    job.seconds.append(time.perf_counter() - begin)
    job.peak_bytes = max(job.peak_bytes, watch.end())
    job.processor_seconds.append(cpu_of_children() - used)
    # The kernel counts in hundredths; this script counts as other work.
    job.others_seconds.append(max(0.0, cpu_of_all() - busy - job.processor_seconds[-1]))
    if code != 0:
        sys.exit(f"compare: {job.name} failed with {code}\n{pathlib.Path('log').read_text()[-2000:]}")


class Watch(threading.Thread):
    """Samples the memory of a process and its descendants. Shared memory counts for each process."""

    def __init__(self, process):
        super().__init__()
        self.process, self.peak_bytes, self.is_over = process, 0, threading.Event()
        self.start()

    def run(self):
        while not self.is_over.wait(LOOK_S):
            self.peak_bytes = max(self.peak_bytes, resident_bytes(self.process))

    def end(self):
        self.is_over.set()
        self.join()
        return self.peak_bytes


def resident_bytes(process):
    try:
        pages = int(pathlib.Path(f"/proc/{process}/statm").read_text().split()[1])
        children = pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except (OSError, IndexError):
        # The process has exited.
        return 0
    return pages * resource.getpagesize() + sum(map(resident_bytes, children))


def cpu_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def cpu_of_all():
    """CPU seconds of all processes, including other virtual machines on the same cores."""
    user, nice, system, _idle, _waiting, *others = map(int, pathlib.Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + sum(others)) / os.sysconf("SC_CLK_TCK")


def agree(ours, peer):
    command = [PYTHON, IN_PYTHON / "agree.py", ours.out, peer.out]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(f"{peer.name}: {done.stdout.strip()}", flush=True)
    return done.returncode == 0


def report(job, ours, megabytes):
    def ratio(times):
        ratios = sorted(theirs / own for own, theirs in zip(times(ours), times(job)))
        return f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"

    wall = statistics.median(job.seconds)
    cpu, others = statistics.median(job.processor_seconds), statistics.median(job.others_seconds)
    line = f"{job.name:10}{wall:8.2f}{min(job.seconds):9.2f}{max(job.seconds):9.2f}{cpu:8.2f}{others:8.2f}"
    line += f"{megabytes / wall:8.0f}{job.peak_bytes / (1 << 20):10.0f}"
    ratios = f"  {ratio(lambda job: job.seconds)}, {ratio(lambda job: job.processor_seconds)}"
    print(line if job is ours else line + ratios)


def load():
    return f"load {os.getloadavg()[0]:.1f}"


if __name__ == "__main__":
    main()
