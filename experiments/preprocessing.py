"""Generated reviews to a dataset by `sentimill`, by threads and by the share of reviews that `--sample` keeps.

All lines are read and cleaned, so a sample of 25 % takes more than a quarter of the time. The speed-up is relative to one
thread and the same sample in the same round. The original system took 14 minutes for a quarter of 92.45 GB and 55 minutes for
all of it on 32 virtual cores: 28 MB/s.
"""

import statistics

from chart import Chart
from machine import Machine, spread, threads_named
from result import Result

TITLE = "Preprocessing on one machine"
SAMPLES = [0.25, 0.5, 1.0]
THREADS = [1, 2]
# Columns of the CSV that the table of the page omits: they follow from the speed-up.
OMITTED = ("efficiency",)


def run(machine: Machine) -> Result:
    columns = ["sample", "threads", "wall s", "CPU s", "peak MiB", "MB/s of input", "speed-up", "efficiency"]
    result = Result(columns)
    reviews = machine.generated()
    size_mb = reviews.stat().st_size / 1e6
    cells = [(sample, threads) for sample in SAMPLES for threads in THREADS]
    runs = {cell: [] for cell in cells}
    for _ in range(machine.rounds()):
        for sample, threads in cells:
            out = machine.work / "sampled.h5"
            # 1 is no share.
            flags = [] if sample == 1.0 else ["--sample", sample]
            runs[sample, threads].append(machine.run("sentimill", reviews, "--out", out, "--quiet", "--threads", threads, *flags))
            out.unlink()
            out.with_suffix(".manifest.json").unlink()
    series = {threads_named(threads): [] for threads in THREADS}
    for sample, threads in cells:
        walls = [run.wall_s for run in runs[sample, threads]]
        wall_s = statistics.median(walls)
        speed_up = statistics.median(one.wall_s / wall for one, wall in zip(runs[sample, THREADS[0]], walls))
        cpu = spread([run.cpu_s for run in runs[sample, threads]], 2)
        peak = max(run.peak_mib for run in runs[sample, threads])
        row = [f"{sample:.0%}", threads, spread(walls, 2), cpu, f"{peak:.0f}", f"{size_mb / wall_s:.0f}"]
        result.rows.append([*row, f"{speed_up:.2f}", f"{speed_up / threads:.2f}"])
        series[threads_named(threads)].append((100 * sample, wall_s))
    result.charts = [Chart(f"{size_mb:,.0f} MB of reviews to a dataset", "% of rows that are kept", "wall seconds", series)]
    return result
