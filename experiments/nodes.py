"""Generated reviews to a dataset by a Hadoop cluster of 2, 4 and 8 nodes, each with a quota of a quarter core.

Nodes are YARN node managers on this machine: one task at a time per node, as many reducers as nodes, and eight map tasks. HDFS,
the resource manager and the client have no quota, and eight nodes compete with them for two cores. *Start-up* ends when the
application master runs; *shuffle* is copying and sorting by the reducers. The speed-up compares with two nodes and the same
share; *weak*, with two nodes and 25 %. *Sentimill* is the CPU time of `mapper`, `combiner` and `reducer`, and *Hadoop* that of
the rest. Each row is one run. *Model* is the sum of the phases by a model that was fitted to all other rows:

    start-up = a;  map = b · tasks per node + c · MB per node;  shuffle = d + e · MB per node
    reduce = f + g · MB per node;  merge = h + i · MB

The last rows are its predictions for larger data and nodes of four whole cores, far outside of the measured 18 to 290 MB per
node. Almost all of the time for 10 TB is `merge`, which runs on one machine.
"""

import fit
from chart import Bars
from cluster import NEEDED, PHASES, Cluster
from machine import Machine
from result import Result, error_of

TITLE = "Preprocessing by Hadoop nodes"
REQUIRED = NEEDED
# Columns of the CSV that the table of the page omits: they follow from the speed-up.
OMITTED = ("efficiency",)
NODES, SHARES, QUOTA = [2, 4, 8], [0.25, 0.5, 1.0], 25
MAPS = 8
MERGE = "merge"
# Name, megabytes, cores.
LARGER = [("92.45 GB, 8 nodes", 92_450, 32), ("10 TB, 100 nodes", 10_000_000, 400)]
SPLIT_MB, NODES_PER_CORE = 128, 100 / QUOTA


def run(machine: Machine) -> Result:
    columns = ["nodes", "reviews", "MB", *(f"{phase} s" for phase in [*PHASES, MERGE]), "sum s", "speed-up", "efficiency", "weak"]
    result = Result([*columns, "Sentimill, CPU s", "Hadoop, CPU s", "model s"])
    nodes, shares = (NODES[:1], SHARES[-1:]) if machine.small else (NODES, SHARES)
    lines = machine.generated().read_bytes().splitlines(keepends=True)
    inputs = [parts(machine, lines, share) for share in shares]
    cells, found = [], []
    for n_nodes in nodes:
        with Cluster(machine.folder(f"cluster-{n_nodes}"), n_nodes, None if machine.small else QUOTA) as cluster:
            cluster.put(machine.programs, inputs)
            if not machine.small:
                # The first job of a cluster takes longer.
                cluster.job("warm-up", inputs[0].name)
            for share, folder in zip(shares, inputs):
                job, shards = cluster.job(f"job-{folder.name}", folder.name)
                out = machine.folder("nodes") / "reviews.h5"
                out.parent.mkdir()
                merged = machine.run("merge", "--run", f"file://{shards}", "--out", out)
                mb = sum(part.stat().st_size for part in folder.iterdir()) / 1e6
                cells.append((n_nodes, share, mb))
                found.append({"times": job.phases | {MERGE: merged.wall_s}, "ours": job.programs_s, "all": job.nodes_s})
    sums = [sum(each["times"].values()) for each in found]
    sum_of, models = {cell[:2]: seconds for cell, seconds in zip(cells, sums)}, []
    for at, ((n_nodes, share, mb), each) in enumerate(zip(cells, found)):
        speed_up = sum_of[nodes[0], share] / sums[at]
        # As many reviews per node as two nodes have of the smallest share.
        is_weak = share / n_nodes == shares[0] / nodes[0]
        weak = f"{sum_of[nodes[0], shares[0]] / sums[at]:.2f}" if is_weak else "–"
        others = [index for index in range(len(cells)) if index != at]
        # A test has too few runs for a fit.
        predicted = sums[at] if machine.small else sum(predict(model(cells, found, others), n_nodes, MAPS, mb).values())
        times = [f"{seconds:.1f}" for seconds in each["times"].values()]
        models.append(predicted)
        row = [n_nodes, f"{share:.0%}", f"{mb:.0f}", *times, f"{sums[at]:.1f}", f"{speed_up:.2f}", f"{speed_up * nodes[0] / n_nodes:.2f}", weak]
        result.rows.append([*row, f"{each['ours']:.1f}", f"{max(0.0, each['all'] - each['ours']):.1f}", f"{predicted:.1f}"])
    if not machine.small:
        fitted = model(cells, found, range(len(cells)))
        for name, mb, cores in LARGER:
            times = predict(fitted, cores * NODES_PER_CORE, mb / SPLIT_MB, mb)
            row = [f"{name}, predicted", "all", mb, *(f"{seconds:.0f}" for seconds in times.values())]
            result.rows.append([*row, *["–"] * 6, f"{sum(times.values()):.0f}"])
        result.notes.append(error_of(models, sums))
    names = [f"{n_nodes} nodes, {share:.0%}" for n_nodes, share, _ in cells]
    series = {phase: [each["times"][phase] for each in found] for phase in [*PHASES, MERGE]}
    result.charts = [Bars("Seconds of each phase by nodes and share of the reviews", "seconds", names, series)]
    return result


def parts(machine: Machine, lines: list[bytes], share: float):
    """A folder with this share of the lines in as many files as there are map tasks."""
    folder = machine.folder(f"share-{100 * share:.0f}")
    folder.mkdir()
    lines = lines[: int(len(lines) * share)]
    for part in range(MAPS):
        (folder / f"{part}.json").write_bytes(b"".join(lines[part::MAPS]))
    return folder


def terms(n_nodes: float, n_maps: float, mb: float) -> dict[str, list[float]]:
    """The terms of each phase, whose coefficients are fitted."""
    of_node = [1.0, mb / n_nodes]
    return {"start-up": [1.0], "map": [n_maps / n_nodes, mb / n_nodes], "shuffle": of_node, "reduce": of_node, MERGE: [1.0, mb]}


def model(cells: list, found: list[dict], rows) -> dict[str, list[float]]:
    """The coefficients of each phase with the least squares of errors in these rows."""
    fitted = {}
    for phase in terms(1, 1, 1):
        of_rows = [terms(cells[row][0], MAPS, cells[row][2])[phase] for row in rows]
        fitted[phase] = fit.coefficients(of_rows, [found[row]["times"][phase] for row in rows]).tolist()
    return fitted


def predict(fitted: dict[str, list[float]], n_nodes: float, n_maps: float, mb: float) -> dict[str, float]:
    """Seconds of each phase."""
    of = terms(n_nodes, n_maps, mb)
    return {phase: sum(a * b for a, b in zip(coefficients, of[phase])) for phase, coefficients in fitted.items()}
