"""A training by ranks, each under a quota of CPU time, on one or several nodes."""

import itertools
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable, TypeVar

from machine import PROJECT, Machine, epochs_of

sys.path.append(str(PROJECT / "trainer" / "bench"))
from limits import Group, Nodes, environments

T = TypeVar("T")
# Of the next control group: trainings may run at the same time.
NUMBER = itertools.count()
# Unless the flags say otherwise.
DEFAULTS = [["--test-fraction", 0], ["--validation-fraction", 0], ["--epochs", 1]]
COMPUTING, EXCHANGING = ["forward_s", "backward_s", "optimizer_s"], ["waiting_s", "reduction_s"]


def train(machine: Machine, dataset: Path, quotas: list[float], flags: list, link: str | None = None, delay_ms: float = 0, n_nodes: int = 1) -> dict:
    """Trains with a rank per quota, which is in percent of a core. `link` is the rate of the link of each node.

    Without it, there is one node. A packet between two nodes takes at least the delay.

    Returns rows per second over all epochs, the part of the time in which each rank computes, milliseconds and megabytes per
    step of rank 0, the size of the model, and the epochs as they are logged. A test has no quotas.
    """
    out, groups, nodes = machine.folder("ranks"), [], Nodes(link, delay_ms, n_nodes) if link else None
    command = [machine.programs / "trainer", "fit", dataset, "--out", out, "--quiet", "--device", "cpu"]
    for default in DEFAULTS:
        command += [] if any(str(flag).startswith(default[0].removesuffix("-fraction")) for flag in flags) else default
    command += flags
    places = environments(len(quotas), nodes.addresses[0]) if nodes else environments(len(quotas))
    processes = []
    try:
        for rank, (quota, environment) in enumerate(zip(quotas, places)):
            if not machine.small:
                groups.append(Group(str(next(NUMBER)), quota))
            within = nodes.of(rank, len(quotas)) if nodes else []
            started = subprocess.Popen(
                [*within, *map(str, command)],
                env=environment,
                stderr=subprocess.PIPE,
                text=True,
                preexec_fn=groups[rank].enter if groups else None,
            )
            processes.append(started)
        errors = [process.communicate()[1] for process in processes]
    finally:
        for group in groups:
            group.delete()
        if nodes:
            nodes.delete()
    if any(process.returncode for process in processes):
        sys.exit(f"{' '.join(map(str, command))}: {errors}")
    epochs = epochs_of(out)
    profiles, n_steps = [epoch["ranks"][0]["profile"] for epoch in epochs], epochs[-1]["step"]
    seconds = sum(epoch["seconds"] for epoch in epochs)
    computed = lambda rank: sum(epoch["ranks"][rank]["profile"][name] for epoch in epochs for name in COMPUTING)
    of_step = lambda names: 1000 * sum(profile[name] for profile in profiles for name in names) / n_steps
    return {
        "rows/s": sum(rank["rows"] for epoch in epochs for rank in epoch["ranks"]) / seconds,
        "epochs": epochs,
        "steps": n_steps,
        "computing of ranks": [computed(rank) / seconds for rank in range(len(quotas))],
        "computing": of_step(COMPUTING),
        "exchanging": of_step(EXCHANGING),
        "step": 1000 * seconds / n_steps,
        "model bytes": (out / "model" / "model.safetensors").stat().st_size,
        "sent": sum(profile["sent_bytes"] for profile in profiles) / n_steps / 1e6,
    }


def at_once(machine: Machine, trainings: list[Callable[[Machine], T]]) -> list[T]:
    """What trainings return that run at the same time, each in a work folder of its own."""
    with ThreadPoolExecutor(len(trainings)) as pool:
        runs = []
        for number, training in enumerate(trainings):
            apart = Machine(machine.programs, machine.data, machine.peers, machine.folder(f"apart-{number}"), machine.small)
            apart.work.mkdir()
            runs.append(pool.submit(training, apart))
        return [run.result() for run in runs]
