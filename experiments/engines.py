"""Reviews to a dataset by `sentimill` and by other engines, on one machine.

Each engine converts one file in the page cache to one HDF5 file with the rows of `--profile original`, by a program as an
expert in this engine would write it: `sentimill/bench/in_*.py`, whose heads list what they omit, and tuned Python with a
process per core (`tests/python/`). *Ratio* is the wall time relative to that of `sentimill` in the same round. Memory is
that of all processes.
"""

import statistics
import sys

from chart import Ranking
from machine import GENERATED, Machine, spread
from result import Result

TITLE = "Preprocessing by other engines"
NAMES = {"sentimill": "sentimill", "chdb": "ClickHouse (chdb)", "duckdb": "DuckDB", "polars": "Polars", "python": "Python"}
INPUTS = {"reviews": "JSON lines", "reviews.csv": "CSV"}


def run(machine: Machine) -> Result:
    machine.use(GENERATED)
    small = {"REVIEWS": "2000", "ROUNDS": "1"} if machine.small else {}
    environment = small | ({} if machine.peers else {"PEERS": ""})
    figures = machine.bench("sentimill/bench/compare.py", machine.programs, machine.peers or sys.executable, environment=environment)
    result = Result(["input", "MB", "engine", "wall s", "CPU s", "peak MiB", "MB/s", "ratio"])
    bars = []
    for line in figures:
        if line["engine"] == "sentimill":
            own = line["wall s"]
        name, wall_s = NAMES[line["engine"]], line["wall s"]
        ratio = statistics.median(theirs / ours for ours, theirs in zip(own, wall_s))
        row = [INPUTS[line["input"]], f"{line['MB']:.0f}", name, spread(wall_s, 2), spread(line["CPU s"], 2), f"{line['peak MiB']:.0f}"]
        result.rows.append([*row, f"{line['MB'] / statistics.median(wall_s):.0f}", f"{ratio:.2f}"])
        if line["input"] == "reviews":
            bars.append(("", name, wall_s))
            size_mb = line["MB"]
    title = f"From {size_mb:,.0f} MB of JSON lines to one dataset"
    result.charts = [Ranking(title, "wall seconds, less is better", bars, {"sentimill"})]
    return result
