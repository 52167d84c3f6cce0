"""`merge` of one run: by one program on one core and on two, and by tasks, of which as many run at a time as a core each.

One core and two are two cores of this machine (`taskset`). By tasks, the wall time is the sum of `merge plan`, both lists and
`merge assemble`; *rest* is the part of it that one program does: plan and assembly. All datasets have the same bytes, which is
checked. *Peak MiB* is that of the largest process.
"""

import shlex
import statistics
import subprocess
from pathlib import Path

from chart import Chart
from machine import GENERATED, Machine, Run, spread
from result import Result

TITLE = "Merge by threads and by tasks"
# Reviews, and partitions of the run.
REVIEWS, REVIEWS_SMALL = 6_000_000, 3_000
PARTITIONS, PARTITIONS_SMALL = 64, 3
TASKS, TASKS_SMALL = [2, 4], [2]


def run(machine: Machine) -> Result:
    machine.use(GENERATED)
    shards, counts = machine.folder("merging"), machine.work / "merging.json"
    write_run(machine, shards, counts)
    one = machine.work / "one.h5"
    ways = {
        "1 thread, 1 core": lambda: by_threads(machine, shards, one, 1),
        "2 threads, 2 cores": lambda: by_threads(machine, shards, machine.work / "two.h5", 2),
    }
    for tasks in TASKS_SMALL if machine.small else TASKS:
        ways[f"{tasks} tasks, 2 cores"] = lambda tasks=tasks: by_tasks(machine, shards, machine.work / f"tasks-{tasks}.h5", tasks)
    runs: dict[str, list[tuple[Run, float | None]]] = {way: [] for way in ways}
    for _ in range(machine.rounds()):
        for way, merge in ways.items():
            runs[way].append(merge())
    bytes_of = {path.name: path.read_bytes() for path in machine.work.glob("*.h5") if path.name in names(machine)}
    assert len(set(bytes_of.values())) == 1, list(bytes_of)
    result = Result(["way", "wall s", "rest s", "CPU s", "of one thread", "peak MiB"])
    cpu_s = {way: statistics.median(run.cpu_s for run, _ in of_way) for way, of_way in runs.items()}
    for way, of_way in runs.items():
        rests = [rest for _, rest in of_way if rest is not None]
        ratio = cpu_s[way] / next(iter(cpu_s.values()))
        walls, cpus = [run.wall_s for run, _ in of_way], [run.cpu_s for run, _ in of_way]
        peak = max(run.peak_mib for run, _ in of_way)
        result.rows.append([way, spread(walls, 2), spread(rests, 2) if rests else "–", spread(cpus, 2), f"{ratio:.2f}", f"{peak:.0f}"])
    size_mb = sum(file.stat().st_size for file in (shards / "data").iterdir()) / 1e6
    n_shards = PARTITIONS_SMALL if machine.small else PARTITIONS
    result.notes = [f"{n_shards} shards of {size_mb:.0f} MB in all."]
    by_number = [(number, seconds) for number, (way, seconds) in zip([1, 2, *TASKS], cpu_s.items()) if "tasks" in way or number == 1]
    result.charts = [Chart("CPU time", "tasks; 1 is one program", "CPU seconds", {"merge": by_number})]
    return result


def names(machine: Machine) -> list[str]:
    """Names of the datasets."""
    return ["one.h5", "two.h5", *(f"tasks-{tasks}.h5" for tasks in (TASKS_SMALL if machine.small else TASKS))]


def write_run(machine: Machine, run_folder: Path, counts: Path) -> None:
    """A run of generated reviews. Records of distinct texts may be dealt to partitions in any way."""
    raw, records = machine.work / "merging.raw", machine.work / "merging.records"
    machine.generate(raw, REVIEWS_SMALL if machine.small else REVIEWS, seed=3)
    program = lambda name: shlex.quote(str(machine.programs / name))
    pipe = f"{program('mapper')} --counts {counts} < {raw} 2> /dev/null | LC_ALL=C sort | {program('combiner')} > {records}"
    subprocess.run(["bash", "-o", "pipefail", "-c", pipe], check=True)
    raw.unlink()
    partitions = PARTITIONS_SMALL if machine.small else PARTITIONS
    part = machine.folder("merging-parts")
    part.mkdir()
    subprocess.run(["split", "-n", f"r/{partitions}", "-a", "3", "-d", records, part / "p"], check=True)
    records.unlink()
    for partition in range(partitions):
        reducer = [machine.programs / "reducer", "--run", run_folder, "--any-partitioner", "--quiet"]
        of_partition = ["--partition", str(partition), "--partitions", str(partitions)]
        with (part / f"p{partition:03}").open("rb") as file:
            subprocess.run([*reducer, *of_partition], stdin=file, stdout=subprocess.DEVNULL, check=True)


def by_threads(machine: Machine, shards: Path, out: Path, threads: int) -> tuple[Run, None]:
    """One program, on as many cores as threads."""
    cores = ",".join(str(core) for core in range(threads))
    forget(shards, out)
    merge = [machine.programs / "merge", "--run", shards, "--out", out, "--quiet", "--threads", threads]
    return machine.run("taskset", "-c", cores, *merge), None


def by_tasks(machine: Machine, shards: Path, out: Path, tasks: int) -> tuple[Run, float]:
    """A plan, whose tasks run two at a time."""
    forget(shards, out)
    merge = machine.programs / "merge"
    of_run = ["--run", shards, "--plan", out.stem]
    plan = machine.run("merge", "plan", *of_run, "--tasks", tasks)
    work = f"echo {{}} | {shlex.quote(str(merge))} work --run {shlex.quote(str(shards))} --plan {out.stem} --threads 1"
    lists = [
        machine.run("taskset", "-c", "0,1", "xargs", "-a", shards / "merge" / out.stem / name, "-P", 2, "-I", "{}", "sh", "-c", work)
        for name in ("first.txt", "second.txt")
    ]
    assembled = machine.run("merge", "assemble", *of_run, "--out", out, "--quiet", "--threads", 1)
    runs = [plan, *lists, assembled]
    wall_s, cpu_s = sum(run.wall_s for run in runs), sum(run.cpu_s for run in runs)
    peak_mib = max(run.peak_mib for run in runs)
    return Run(wall_s, cpu_s, peak_mib, ""), plan.wall_s + assembled.wall_s


def forget(shards: Path, out: Path) -> None:
    """Deletes the dataset, and the plan of this name."""
    for path in (out, out.with_suffix(".manifest.json"), shards / "manifest.json"):
        path.unlink(missing_ok=True)
    for path in (shards / "merge" / out.stem).glob("*"):
        path.unlink()
