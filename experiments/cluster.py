"""A Hadoop cluster on this machine, whose nodes have a quota of CPU time each."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from machine import PROJECT

sys.path.append(str(PROJECT / "trainer" / "bench"))
from limits import Group

SCRIPT = PROJECT / "bootstrap" / "hadoop" / "cluster.sh"
# What `SCRIPT` requires, and how to install it.
NEEDED = {PROJECT / ".deps" / "hadoop" / "jars": "run bootstrap/laptop.sh hadoop"}
# A node runs one task; one node also runs the application master, of 384 MB.
TASK_MB, NODE_MB = 512, 896
# Runs a program and appends its processor times to a file named after the program and the task. A map task can run several
# combiners.
MEASURED = """#!/bin/bash
folder=$1; shift
"$@"
code=$?
times >>"$folder/$(basename "$1")-$mapreduce_task_attempt_id"
exit $code
"""
PROGRAMS = ["mapper", "combiner", "reducer"]
PHASES = ["start-up", "map", "shuffle", "reduce"]


@dataclass
class Job:
    """Seconds of the phases of a job, and of processor time: of its programs, and of the nodes, which includes Java."""

    phases: dict[str, float]
    programs_s: float
    nodes_s: float


@dataclass
class Cluster:
    """Context manager of a running cluster. `percent` of a core is the quota of a node; None is no quota."""

    folder: Path
    n_nodes: int
    percent: float | None
    groups: list[Group] = field(default_factory=list)

    def __enter__(self) -> "Cluster":
        settings = {
            "yarn:yarn.nodemanager.resource.memory-mb": NODE_MB,
            "mapred:mapreduce.map.memory.mb": TASK_MB,
            "mapred:mapreduce.reduce.memory.mb": TASK_MB,
            "mapred:mapreduce.job.reduce.slowstart.completedmaps": 1,
            "mapred:mapreduce.map.speculative": "false",
            "mapred:mapreduce.reduce.speculative": "false",
        }
        self.folder.mkdir()
        self.call("start", *(f"{name}={value}" for name, value in settings.items()))
        try:
            for node in range(1, self.n_nodes + 1) if self.percent else []:
                self.groups.append(Group(f"node{node}", self.percent))
                self.groups[-1].add(self.process_of(node))
        except BaseException:
            # Without this, the cluster would continue, since a context that was not entered is not left.
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        self.call("stop")
        for group in self.groups:
            group.delete()

    def call(self, command: str, *arguments) -> None:
        """Runs a command of cluster.sh to its end."""
        with (self.folder / f"{command}.log").open("w+") as log:
            done = subprocess.run([SCRIPT, command, self.folder / "cluster", *map(str, arguments)], stdout=log, stderr=log, env=self.environment())
            log.seek(0)
            if done.returncode:
                sys.exit(f"cluster.sh {command}: exit code {done.returncode}: {log.read()[-1000:]}")

    def environment(self) -> dict[str, str]:
        """That of cluster.sh."""
        return os.environ | {"HADOOP_NODES": str(self.n_nodes)}

    def process_of(self, node: int) -> int:
        """The node manager; its tasks are its children."""
        variable = f"SENTIMILL_NODE={self.folder}/cluster/node{node}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if variable in (process / "environ").read_bytes().split(b"\0"):
                    return int(process.name)
            except OSError:
                continue
        sys.exit(f"node {node} of {self.folder} has no process")

    def put(self, programs: Path, inputs: list[Path]) -> None:
        """Copies programs and input files into HDFS; /reviews has one folder per folder of `inputs`."""
        measured = self.folder / "measured.sh"
        measured.write_text(MEASURED)
        self.call("fs", "-mkdir", "/programs")
        self.call("fs", "-put", *(programs / name for name in PROGRAMS), measured, "/programs")
        self.call("fs", "-mkdir", "/reviews")
        self.call("fs", "-put", *inputs, "/reviews")

    def job(self, name: str, folder: str) -> tuple[Job, Path]:
        """Makes shards of the files in a folder of /reviews. Returns what it took, and the folder of the run."""
        times = self.folder / name
        times.mkdir()
        files = ",".join(f"hdfs:///programs/{program}" for program in [*PROGRAMS, "measured.sh"])
        run = times / "run"
        command = [SCRIPT, "streaming", self.folder / "cluster", "-D", f"mapreduce.job.reduces={self.n_nodes}", "-files", files]
        command += ["-mapper", f"measured.sh {times} ./mapper", "-combiner", f"measured.sh {times} ./combiner"]
        command += ["-reducer", f"measured.sh {times} ./reducer --run file://{run}"]
        command += ["-input", f"/reviews/{folder}", "-output", f"/out/{name}"]
        before = [group.cpu_s() for group in self.groups]
        phases = self.phases(command)
        nodes_s = sum(group.cpu_s() - at for group, at in zip(self.groups, before))
        return Job(phases, sum(map(processor_s, times.glob("*-attempt_*"))), nodes_s), run

    def phases(self, command: list) -> dict[str, float]:
        """Runs a job, and finds its phases in the progress that its client prints."""
        # What ends each phase: text in a line, or the progress of all reducers of which two thirds are copying and sorting.
        ends = [time.monotonic()]
        with (self.folder / "job.log").open("w") as log:
            client = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment())
            for line in client.stdout:
                log.write(line)
                reached = ["running in uber mode" in line, "map 100%" in line, reduced(line) >= 66, "completed successfully" in line]
                while len(ends) <= len(PHASES) and reached[len(ends) - 1]:
                    ends.append(time.monotonic())
            code = client.wait()
        if code or len(ends) <= len(PHASES):
            sys.exit(f"the Hadoop job failed with exit code {code}: {(self.folder / 'job.log').read_text()[-1000:]}")
        return {phase: end - begin for phase, begin, end in zip(PHASES, ends, ends[1:])}


def reduced(line: str) -> float:
    """The progress of the reducers in percent, in a line such as `map 100% reduce 67%`."""
    _, is_there, rest = line.partition(" reduce ")
    return float(rest.split("%")[0]) if is_there and "%" in rest else -1.0


def processor_s(path: Path) -> float:
    """Seconds of the children in what bash's `times` wrote, once or several times: a line of the shell and one of its children,
    each with user and system time, such as 0m1.250s."""
    of = lambda text: 60 * float(text.split("m")[0]) + float(text.split("m")[1].rstrip("s"))
    return sum(of(time) for children in path.read_text().splitlines()[1::2] for time in children.split())
