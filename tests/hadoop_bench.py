#!/usr/bin/env python3
"""Measures the Hadoop job on this machine, with the programs and with those of tests/python/, in turn. Both read the same
bytes; only the programs in Rust include a combiner. One map or reduce task runs per core. Prints the wall time of the job client and of
merge; and of the programs alone, without Hadoop's Java, CPU time and the peak memory of the largest.

usage: tests/hadoop_bench.py PROGRAMS PYTHON
  PROGRAMS  folder of the programs
  PYTHON    Python with numpy, h5py and orjson; none: the programs alone
Environment: REVIEWS (default 2200000, about 1 GB), RUNS (default 3), INPUT (a file of reviews instead of synthetic
ones), FIGURES (a file to which the figures are appended as JSON lines).
"""

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLUSTER = ROOT / "bootstrap/hadoop/cluster.sh"
PEER = ROOT / "tests/python"
PROGRAMS = pathlib.Path(sys.argv[1]).resolve()
PYTHON = None if sys.argv[2] == "none" else pathlib.Path(sys.argv[2]).absolute()
BENCH = PROGRAMS / "hadoop-bench"
REVIEWS = int(os.environ.get("REVIEWS", 2_200_000))
RUNS = int(os.environ.get("RUNS", 3))
INPUT, FIGURES = os.environ.get("INPUT"), os.environ.get("FIGURES")
CORES = os.cpu_count()
GNU_TIME = "/usr/bin/time"
# Appends user seconds, system seconds and peak KiB of a program to a file named after its role and the attempt.
MEASURED = f"""#!/bin/sh
folder=$1; role=$2; shift 2
exec {GNU_TIME} -a -f "%U %S %M" -o "$folder/$role-$mapreduce_task_attempt_id" "$@"
"""
SETTINGS = {
    "mapreduce.job.reduces": CORES,
    "mapreduce.job.running.map.limit": CORES,
    "mapreduce.job.running.reduce.limit": CORES,
    "mapreduce.job.reduce.slowstart.completedmaps": 1,
    "mapreduce.map.speculative": "false",
    "mapreduce.reduce.speculative": "false",
    "mapreduce.map.memory.mb": 1024,
    "mapreduce.reduce.memory.mb": 2048,
    "mapreduce.task.io.sort.mb": 100,
    "mapreduce.map.java.opts": "-Xmx256m",
    # The shuffle keeps up to 70 % of it in memory.
    "mapreduce.reduce.java.opts": "-Xmx1024m",
}


def main():
    shutil.rmtree(BENCH, ignore_errors=True)
    BENCH.mkdir(parents=True)
    os.chdir(BENCH)
    os.environ |= {"LC_ALL": "C", "PYTHONUTF8": "1", "PATH": f"{PROGRAMS}:{PROGRAMS}/examples:{os.environ['PATH']}"}
    source = f"cat {pathlib.Path(INPUT).resolve()}" if INPUT else f"demo-corpus --seed 1 --reviews {REVIEWS}"
    shell(f"{source} >reviews")
    pathlib.Path("measured.sh").write_text(MEASURED)
    for program in ("mapper", "combiner", "reducer"):
        shell(f"strip -o {program} {PROGRAMS}/{program}")
    cluster("start")
    try:
        cluster("fs", "-mkdir", "/programs", "/reviews")
        cluster("fs", "-put", "reviews", "/reviews")
        cluster("fs", "-put", "mapper", "combiner", "reducer", "measured.sh", "/programs")
        figures = {"Rust": [], "Python": []} if PYTHON else {"Rust": []}
        for run in range(RUNS):
            figures["Rust"].append(rust(run))
            if not PYTHON:
                continue
            if run == 0:
                shell(f"{PYTHON} {PEER}/stop_words.py reviews.h5 >stop_words")
            figures["Python"].append(python(run))
    finally:
        cluster("stop")
    if PYTHON:
        shell(f"{PYTHON} {PEER}/agree.py reviews.h5 python.h5", stdout=None)
    report(figures)
    if FIGURES:
        with open(FIGURES, "a") as file:
            for who, runs in figures.items():
                print(json.dumps({"programs": who, "runs": runs}), file=file)


def rust(run):
    folder = task_folder(f"rust-{run}")
    files = ",".join(f"hdfs:///programs/{name}" for name in ("mapper", "combiner", "reducer", "measured.sh"))
    measured = lambda role: f"measured.sh {folder} {role} ./{role}"
    reducer = f"{measured('reducer')} --profile original --run file://{folder}/run"
    job_s = job(f"rust-{run}", files, measured("mapper"), reducer, "-combiner", measured("combiner"))
    pathlib.Path("reviews.h5").unlink(missing_ok=True)
    pathlib.Path("reviews.manifest.json").unlink(missing_ok=True)
    merge = f"merge --run file://{folder}/run --counts rust-{run}.log --out reviews.h5 >card"
    return {"job": job_s, "merge": timed(lambda: shell(merge)), **tasks(folder)}


def python(run):
    folder = task_folder(f"python-{run}")
    measured = lambda role: f"measured.sh {folder} {role} {PYTHON} {PEER}/{role}.py"
    reducer = f"{measured('reducer')} {BENCH}/stop_words 100 {folder}/shard"
    # Each reducer takes the name of its shard as an argument.
    pathlib.Path("python-reducer.sh").write_text(f"#!/bin/sh\nexec ./{reducer}$mapreduce_task_partition\n")
    files = f"hdfs:///programs/measured.sh,file://{BENCH}/python-reducer.sh"
    job_s = job(f"python-{run}", files, f"{measured('mapper')} /dev/stdout", "python-reducer.sh")
    shards = " ".join(f"{folder}/shard{partition}" for partition in range(CORES))
    merge = f"{PYTHON} {PEER}/merge.py stop_words 10000 python.h5 {shards}"
    return {"job": job_s, "merge": timed(lambda: shell(merge)), **tasks(folder)}


def job(name, files, mapper, reducer, *more):
    settings = [word for setting in SETTINGS.items() for word in ("-D", "%s=%s" % setting)]
    roles = ["-mapper", mapper, "-reducer", reducer, *more]
    streaming = ["streaming", *settings, "-files", files, *roles, "-input", "/reviews", "-output", f"/out/{name}"]
    return timed(lambda: cluster(*streaming, log=f"{name}.log"))


def task_folder(name):
    folder = BENCH / name
    folder.mkdir()
    return folder


def tasks(folder):
    """Returns CPU seconds of all programs of a role, and the peak memory of the largest in MiB."""
    found = {}
    for role, name in (("mapper", "map"), ("combiner", "combine"), ("reducer", "reduce")):
        # The file of a killed attempt is empty. A map task can run several combiners.
        lines = [line.split() for path in folder.glob(f"{role}-attempt_*") for line in path.read_text().splitlines()]
        found[f"{name} CPU"] = sum(float(user) + float(system) for user, system, _ in lines)
        found[f"{name} MiB"] = max((int(peak) for _, _, peak in lines), default=0) / 1024
    return found


def report(figures):
    size_mb = pathlib.Path("reviews").stat().st_size / 1e6
    print(f"{size_mb:.1f} MB of reviews, {CORES} reducers, median of {RUNS} runs in turn (fastest-slowest)")
    print(f"{'':12}{'Rust':>24}{'Python':>24}{'Python / Rust':>24}" if PYTHON else f"{'':12}{'Rust':>24}")
    for what in figures["Rust"][0]:
        of = {who: [run[what] for run in runs] for who, runs in figures.items()}
        cells = [f"{statistics.median(all):.2f} ({min(all):.2f}-{max(all):.2f})" for all in of.values()]
        if PYTHON and all(of["Rust"]):
            cells.append(f"{statistics.median(python / rust for rust, python in zip(of['Rust'], of['Python'])):.2f}")
        print(f"{what:12}{''.join(f'{cell:>24}' for cell in cells)}")


def timed(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def cluster(command, *arguments, log="cluster.log"):
    call = [CLUSTER, command, BENCH / "cluster", *arguments]
    with open(log, "wb") as output:
        code = subprocess.call(call, stdout=output, stderr=output)
    if code != 0:
        sys.exit(f"hadoop_bench: {command} failed with {code}; see {BENCH}/{log}")


def shell(command, stdout=subprocess.DEVNULL):
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], stdout=stdout, stderr=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"hadoop_bench: failed with {done.returncode}: {command}\n{done.stderr.decode()[-2000:]}")


if __name__ == "__main__":
    main()
