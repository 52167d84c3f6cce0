"""The job on Hadoop, with the programs and with the same programs in Python.

1 GB of generated reviews, two nodes, two reducers, one task per core, `--profile original`; the rows of both jobs are equal.
Only the job of Sentimill has a combiner. The Python programs compute no hashes, splits or digests, and count no lines. CPU time
is that of the programs alone, without Hadoop's Java.
"""

from pathlib import Path

from chart import Ranking
from cluster import NEEDED
from machine import GENERATED, Machine, spread
from result import Result

TITLE = "A Hadoop job"
REQUIRED = NEEDED | {Path("/usr/bin/time"): "install GNU time, which is Debian's package `time`"}
NAMES = {"Rust": "Sentimill", "Python": "Python"}
# Columns, with the names of tests/hadoop_bench.py.
COLUMNS = {
    "job, wall s": "job",
    "merge, wall s": "merge",
    "mappers, CPU s": "map CPU",
    "combiners, CPU s": "combine CPU",
    "reducers, CPU s": "reduce CPU",
    "mapper, peak MiB": "map MiB",
    "reducer, peak MiB": "reduce MiB",
}
CHARTED = ["job, wall s", "mappers, CPU s", "reducers, CPU s"]


def run(machine: Machine) -> Result:
    machine.use(GENERATED)
    environment = {"REVIEWS": "2000", "RUNS": "1"} if machine.small else {}
    figures = machine.bench("tests/hadoop_bench.py", machine.programs, machine.peers or "none", environment=environment)
    result = Result(["programs", *COLUMNS])
    of = lambda line, column: [run[COLUMNS[column]] for run in line["runs"]]
    for line in figures:
        cells = [spread(values, 2) if any(values := of(line, column)) else "–" for column in COLUMNS]
        result.rows.append([NAMES[line["programs"]], *cells])
    bars = [(column, NAMES[line["programs"]], of(line, column)) for column in CHARTED for line in figures]
    result.charts = [Ranking("The Hadoop job on 1 GB", "seconds, less is better", bars, {"Sentimill"})]
    return result
