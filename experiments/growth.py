"""Time and memory of `sentimill` by the size of its input.

The files of 250 MB differ, and short reviews repeat, as in real data. Reviews that fill three eighths of `--memory` (512
MiB) are moved to temporary files. *Peak MiB* is the maximum of the runs.
"""

import statistics
from pathlib import Path

from chart import Chart
from machine import GENERATED, Machine, spread, threads_named
from result import Result

TITLE = "Growth with the input"
# Reviews of a file.
REVIEWS, REVIEWS_SMALL = 550_000, 2_000
# Files of an input.
SIZES, SIZES_SMALL = [1, 4, 16], [1, 2]
THREADS = [1, 2]


def run(machine: Machine) -> Result:
    machine.use(GENERATED)
    n_reviews, sizes = (REVIEWS_SMALL, SIZES_SMALL) if machine.small else (REVIEWS, SIZES)
    result = Result(["MB", "threads", "wall s", "CPU s", "peak MiB", "MB/s"])
    time, memory = ({threads_named(threads): [] for threads in THREADS} for _ in range(2))
    files: list[Path] = []
    for n_files in sizes:
        for seed in range(len(files) + 1, n_files + 1):
            files.append(machine.work / f"growth-{seed}.json")
            machine.generate(files[-1], n_reviews, seed)
        size_mb = sum(file.stat().st_size for file in files) / 1e6
        for threads in THREADS:
            runs = [measured(machine, files, threads) for _ in range(machine.rounds())]
            walls, peak_mib = [run.wall_s for run in runs], max(run.peak_mib for run in runs)
            wall_s = statistics.median(walls)
            row = [f"{size_mb:.0f}", threads, spread(walls, 2), spread([run.cpu_s for run in runs], 2)]
            result.rows.append([*row, f"{peak_mib:.0f}", f"{size_mb / wall_s:.0f}"])
            time[threads_named(threads)].append((size_mb, wall_s))
            memory[threads_named(threads)].append((size_mb, peak_mib))
    for file in files:
        file.unlink()
    result.charts = [
        Chart("Time", "MB of reviews", "wall seconds", time, is_log=True),
        Chart("Memory", "MB of reviews", "peak MiB", memory, is_log=True),
    ]
    return result


def measured(machine: Machine, files: list[Path], threads: int):
    """One dataset of the files, which is deleted."""
    out = machine.work / "growth.h5"
    run = machine.run("sentimill", *files, "--out", out, "--quiet", "--threads", threads)
    out.unlink()
    out.with_suffix(".manifest.json").unlink()
    return run
