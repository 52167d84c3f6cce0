#!/usr/bin/env python3
"""Measures how sentimill's time and memory grow with its input: wall and CPU seconds, peak memory and peak space in TMPDIR, for
several sizes and numbers of threads. Writes a table, growth.csv, and a chart, growth.svg.

Each size consists of files of 50 MB, each of synthetic reviews of another seed, so that no file is read twice (short
reviews repeat, as in real data; the table has the number of distinct ones). The files are compressed (zstd -1, a fifth of
the size), because 16 GB would fit neither on a small disk nor in the page cache. The generator on standard input would
need no disk, but it would be the bottleneck: 7 s of a core for 1 GB, ten times that of zstd, in one stream. Decompression
is part of the figures, 0.8 s of a core for 1 GB, as for real dumps. Each working thread has a decompressing one, so that
`--threads 1` uses more than one core. compare.py measures plain files.

usage: sentimill/bench/growth.py PROGRAMS FOLDER
  PROGRAMS  folder of the programs
  FOLDER    output folder of table and chart
Environment: GIGABYTES (default "0.1 1 4"), THREADS ("1 2"), ROUNDS (3), WITH (a command prefix), TMPDIR (folder of the
files: a fifth of the largest size). An existing table is updated: rows of the same size and threads are replaced.
"""

import csv
import json
import math
import os
import pathlib
import shlex
import stat
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAMS = pathlib.Path(sys.argv[1]).resolve()
FOLDER = pathlib.Path(sys.argv[2]).resolve()
GIGABYTES = [float(size) for size in os.environ.get("GIGABYTES", "0.1 1 4").split()]
THREADS = [int(number) for number in os.environ.get("THREADS", "1 2").split()]
ROUNDS = int(os.environ.get("ROUNDS", 3))
WITH = shlex.split(os.environ.get("WITH", ""))
LOOK_S = 0.02
# 50 MB.
FILE_REVIEWS, FILES_IN_GB = 110_000, 20
COLUMNS = ["gigabytes", "threads", "rounds", "wall_s", "fastest_s", "slowest_s", "cpu_s", "peak_mib", "scratch_mb", "reviews", "distinct"]


def main():
    table = FOLDER / "growth.csv"
    lines = {key(line): line for line in csv.DictReader(open(table))} if table.exists() else {}
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        n_bytes = 0
        for seed in range(1, 1 + max(map(n_files, GIGABYTES))):
            n_bytes += make(seed)
            for size in GIGABYTES:
                if seed != n_files(size):
                    continue
                for line in measure([f"{seed}.zst" for seed in range(1, 1 + seed)], n_bytes):
                    lines[key(line)] = line
                    print(", ".join(f"{name} {line[name]}" for name in COLUMNS), flush=True)
    lines = sorted(lines.values(), key=key)
    with open(table, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    (FOLDER / "growth.svg").write_text(drawn(lines))


def key(line):
    return round(float(line["gigabytes"]), 2), int(line["threads"])


def n_files(gigabytes):
    return max(1, round(gigabytes * FILES_IN_GB))


def make(seed):
    """Returns the bytes of the reviews of a seed, whose file will exist."""
    corpus = f"{PROGRAMS}/examples/demo-corpus --seed {seed} --reviews {FILE_REVIEWS}"
    command = f"{corpus} | zstd -q -1 >{seed}.zst && zstd -q -d <{seed}.zst | wc -c"
    return int(subprocess.run(["bash", "-o", "pipefail", "-c", command], check=True, stdout=subprocess.PIPE).stdout)


def measure(files, n_bytes):
    for threads in THREADS:
        command = [*WITH, PROGRAMS / "sentimill", "--profile", "original", "--threads", str(threads), "--out", "reviews.h5", "--input", *files]
        rounds = [timed(command) for _ in range(ROUNDS)]
        walls, cpu_s, peaks, scratch = zip(*rounds)
        ledger = json.loads(pathlib.Path("reviews.manifest.json").read_text())["seal"]["ledger"]["reducer"]
        yield {
            "gigabytes": f"{n_bytes / 1e9:.3f}",
            "threads": threads,
            "rounds": ROUNDS,
            "wall_s": f"{statistics.median(walls):.2f}",
            "fastest_s": f"{min(walls):.2f}",
            "slowest_s": f"{max(walls):.2f}",
            "cpu_s": f"{statistics.median(cpu_s):.2f}",
            "peak_mib": max(peaks) >> 20,
            "scratch_mb": max(scratch) // 1_000_000,
            "reviews": ledger["reviews"],
            "distinct": ledger["distinct"],
        }


def timed(command):
    """Returns wall and CPU seconds, peak bytes of memory, and peak bytes in unnamed files."""
    for left in ("reviews.h5", "reviews.manifest.json"):
        pathlib.Path(left).unlink(missing_ok=True)
    begin, scratch_bytes = time.perf_counter(), 0
    with open("log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    while True:
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            break
        scratch_bytes = max(scratch_bytes, bytes_without_a_name(process.pid))
        time.sleep(LOOK_S)
    seconds = time.perf_counter() - begin
    if status != 0:
        sys.exit(f"growth: sentimill failed\n{pathlib.Path('log').read_text()[-2000:]}")
    # Linux counts in KiB. A child starts with the peak of this script, some 15 MiB; sentimill uses more.
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10, scratch_bytes


def bytes_without_a_name(process):
    try:
        children = pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()
        files = [os.stat(path) for path in pathlib.Path(f"/proc/{process}/fd").iterdir()]
    except OSError:
        # The process or file no longer exists.
        return 0
    here = sum(file.st_blocks * 512 for file in files if stat.S_ISREG(file.st_mode) and file.st_nlink == 0)
    return here + sum(map(bytes_without_a_name, children))


WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 400, 320, 56, 30, 44
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"]


def drawn(lines):
    """Draws two charts side by side, all axes logarithmic."""
    plots = [
        plot(lines, "seconds", "wall_s", 0),
        plot(lines, "peak MiB", "peak_mib", WIDTH),
    ]
    style = ".a{stroke:#ccc}.e{text-anchor:end}.m{text-anchor:middle}"
    size = f'width="{2 * WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{style}</style>'
    return "\n".join([head, f'<rect width="{2 * WIDTH}" height="{HEIGHT}" fill="#fff"/>', *plots, "</svg>\n"])


def plot(lines, title, column, left):
    sizes, values = ([float(line[name]) for line in lines] for name in ("gigabytes", column))
    (least, most), (lowest, highest) = decades(sizes), decades(values)

    def x(size):
        return left + LEFT + (math.log10(size) - least) / (most - least) * (WIDTH - LEFT - 20)

    def y(value):
        return HEIGHT - BOTTOM - (math.log10(value) - lowest) / (highest - lowest) * (HEIGHT - TOP - BOTTOM)

    parts = [f'<text x="{left + LEFT}" y="18">{title}</text>']
    for power in range(lowest, highest + 1):
        at = y(10**power)
        parts.append(f'<path class="a" d="M{x(10**least):.0f} {at:.0f}H{x(10**most):.0f}"/>')
        parts.append(f'<text class="e" x="{left + LEFT - 6}" y="{at + 4:.0f}">{10.0**power:g}</text>')
    for power in range(least, most + 1):
        at = x(10**power)
        parts.append(f'<path class="a" d="M{at:.0f} {y(10**lowest):.0f}V{y(10**highest):.0f}"/>')
        parts.append(f'<text class="m" x="{at:.0f}" y="{HEIGHT - BOTTOM + 18}">{10.0**power:g}</text>')
    middle = left + (LEFT + WIDTH - 20) / 2
    parts.append(f'<text class="m" x="{middle:.0f}" y="{HEIGHT - 8}">GB of reviews</text>')
    of_threads = sorted({int(line["threads"]) for line in lines})
    for place, (threads, colour) in enumerate(zip(of_threads, COLOURS)):
        points = [(x(size), y(value)) for line, size, value in zip(lines, sizes, values) if int(line["threads"]) == threads]
        path = "L".join(f"{across:.1f} {down:.1f}" for across, down in points)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{across:.1f}" cy="{down:.1f}" r="3" fill="{colour}"/>' for across, down in points]
        name = "1 thread" if threads == 1 else f"{threads} threads"
        parts.append(f'<text x="{left + LEFT + 10}" y="{TOP + 16 + 16 * place}" fill="{colour}">{name}</text>')
    return "\n".join(parts)


def decades(values):
    """Returns the powers of ten around all values, at least two."""
    least, most = (math.log10(value) for value in (min(values), max(values)))
    low, high = math.floor(least), math.ceil(most)
    return low, max(high, low + 1)


if __name__ == "__main__":
    main()
