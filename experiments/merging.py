"""`merge` of one run: by one program on one core and on two, and by tasks, of which as many run at a time as a core each.

One core and two are two cores of this machine (`taskset`). By tasks, the wall time is the sum of `merge plan`, `merge work`
and `merge assemble`; *rest* is the part of it that one program does on both cores: plan and assembly. All datasets have the
same bytes, which is checked. *Peak MiB* is that of the largest process.
"""

import hashlib
import shlex
import statistics
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from chart import Chart
from machine import GENERATED, Machine, Run, spread
from result import Result

TITLE = "Merge by threads and by tasks"
# Reviews of each partition, and partitions of the run.
REVIEWS, REVIEWS_SMALL = 1_200_000, 1_000
PARTITIONS, PARTITIONS_SMALL = 64, 3
TASKS, TASKS_SMALL = [2, 4], [2]


def run(machine: Machine) -> Result:
    machine.use(GENERATED)
    shards = machine.folder("merging")
    write_run(machine, shards)
    out = machine.work / "merged.h5"
    ways = {
        "1 thread, 1 core": lambda: by_threads(machine, shards, out, 1),
        "2 threads, 2 cores": lambda: by_threads(machine, shards, out, 2),
    }
    for tasks in TASKS_SMALL if machine.small else TASKS:
        ways[f"{tasks} tasks, 2 cores"] = lambda tasks=tasks: by_tasks(machine, shards, out, tasks)
    runs: dict[str, list[tuple[Run, float | None]]] = {way: [] for way in ways}
    digests = set()
    for _ in range(machine.rounds()):
        for way, merge in ways.items():
            runs[way].append(merge())
            with out.open("rb") as file:
                digests.add(hashlib.file_digest(file, "sha256").hexdigest())
            forget(shards, out)
    assert len(digests) == 1, digests
    result = Result(["way", "wall s", "rest s", "CPU s", "of one thread", "peak MiB"])
    cpu_s = {way: statistics.median(run.cpu_s for run, _ in of_way) for way, of_way in runs.items()}
    for way, of_way in runs.items():
        rests = [rest for _, rest in of_way if rest is not None]
        ratio = cpu_s[way] / next(iter(cpu_s.values()))
        walls, cpus = [run.wall_s for run, _ in of_way], [run.cpu_s for run, _ in of_way]
        peak = max(run.peak_mib for run, _ in of_way)
        result.rows.append([way, spread(walls, 2), spread(rests, 2) if rests else "–", spread(cpus, 2), f"{ratio:.2f}", f"{peak:.0f}"])
    size_gb = sum(file.stat().st_size for file in (shards / "data").iterdir()) / 1e9
    n_shards = PARTITIONS_SMALL if machine.small else PARTITIONS
    n_reviews = n_shards * (REVIEWS_SMALL if machine.small else REVIEWS)
    result.notes = [f"{n_shards} shards of {size_gb:.2f} GB in all, of {n_reviews:,} reviews."]
    by_number = [(number, seconds) for number, (way, seconds) in zip([1, 2, *TASKS], cpu_s.items()) if "tasks" in way or number == 1]
    result.charts = [Chart("CPU time", "tasks; 1 is one program", "CPU seconds", {"merge": by_number})]
    return result


def write_run(machine: Machine, run_folder: Path) -> None:
    """A run of generated reviews, several partitions at a time. The texts of a partition begin with a word that no others have, so
    no text is in two partitions."""
    partitions = PARTITIONS_SMALL if machine.small else PARTITIONS
    of_partition = REVIEWS_SMALL if machine.small else REVIEWS
    program = lambda name: shlex.quote(str(machine.programs / name))

    def write(partition: int) -> None:
        word = "partition" + f"{partition:03}".translate(str.maketrans("0123456789", "abcdefghij"))
        pipe = [
            f"{shlex.quote(str(machine.generator))} --reviews {of_partition} --seed {partition}",
            f"{program('mapper')} 2> /dev/null",
            "LC_ALL=C sort",
            f"sed 's/^/{word} /'",
            f"{program('reducer')} --run {shlex.quote(str(run_folder))} --any-partitioner --quiet"
            f" --partition {partition} --partitions {partitions} > /dev/null",
        ]
        subprocess.run(["bash", "-o", "pipefail", "-c", " | ".join(pipe)], check=True)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(write, range(partitions)))


def by_threads(machine: Machine, shards: Path, out: Path, threads: int) -> tuple[Run, None]:
    """One program, on as many cores as threads."""
    cores = ",".join(str(core) for core in range(threads))
    merge = [machine.programs / "merge", "--run", shards, "--out", out, "--quiet", "--threads", threads]
    return machine.run("taskset", "-c", cores, *merge), None


def by_tasks(machine: Machine, shards: Path, out: Path, tasks: int) -> tuple[Run, float]:
    """A plan, whose tasks run two at a time."""
    merge = machine.programs / "merge"
    of_run = ["--run", shards, "--plan", out.stem]
    plan = machine.run("merge", "plan", *of_run, "--tasks", tasks)
    work = f"echo {{}} | {shlex.quote(str(merge))} work --run {shlex.quote(str(shards))} --plan {out.stem} --threads 1"
    tasks_of_plan = shards / "merge" / out.stem / "tasks.txt"
    worked = machine.run("taskset", "-c", "0,1", "xargs", "-a", tasks_of_plan, "-P", 2, "-I", "{}", "sh", "-c", work)
    assembled = machine.run("merge", "assemble", *of_run, "--out", out, "--quiet", "--threads", 2)
    runs = [plan, worked, assembled]
    wall_s, cpu_s = sum(run.wall_s for run in runs), sum(run.cpu_s for run in runs)
    peak_mib = max(run.peak_mib for run in runs)
    return Run(wall_s, cpu_s, peak_mib, ""), plan.wall_s + assembled.wall_s


def forget(shards: Path, out: Path) -> None:
    """Deletes the dataset, and the plan of this name."""
    for path in (out, out.with_suffix(".manifest.json"), shards / "manifest.json"):
        path.unlink(missing_ok=True)
    for path in (shards / "merge" / out.stem).glob("*"):
        path.unlink()
