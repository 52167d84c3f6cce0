"""Where the time of a training step goes, by batch size and number of ranks on one machine.

Milliseconds per step of rank 0 in the second epoch, as `trainer fit` measures them. Each rank has one thread. *Batch* is that of
all ranks together.
"""

import statistics

from chart import Bars
from machine import Machine, epochs_of, spread
from result import Result

TITLE = "Time of a training step"
PHASES = ["loading", "forward", "backward", "waiting", "reduction", "optimizer"]


def page_rows(rows: list[list[str]]) -> list[list[str]]:
    """The rows of the table that the page shows: those of rank 0."""
    return [row for row in rows if row[1] == "0"]


def run(machine: Machine) -> Result:
    columns = ["ranks", "rank", "batch", "steps", *(f"{phase} ms" for phase in PHASES), "sum ms", "rows/s", "KB sent per step"]
    result = Result(columns)
    dataset, _ = machine.dataset(machine.corpus("IMDB"))
    settings = [(ranks, batch) for ranks in [1, 2] for batch in ([32, 128] if machine.small else [32, 128, 512])]
    runs = {setting: [] for setting in settings}
    for _ in range(machine.rounds()):
        for setting in settings:
            runs[setting].append(second_epoch(machine, dataset, *setting))
    names, series = [], {phase: [] for phase in PHASES}
    for (ranks, batch), epochs in runs.items():
        n_steps = epochs[0]["step"] - epochs[0]["from_step"]
        for rank in range(ranks):
            profiles = [epoch["ranks"][rank]["profile"] for epoch in epochs]
            times = {phase: [1000 * profile[f"{phase}_s"] / n_steps for profile in profiles] for phase in PHASES}
            middles = {phase: statistics.median(of_phase) for phase, of_phase in times.items()}
            row = [ranks, rank, batch, n_steps, *(f"{middle:.2f}" for middle in middles.values()), spread(list(map(sum, zip(*times.values()))), 2)]
            rows_per_s = [sum(of_rank["rows"] for of_rank in epoch["ranks"]) / epoch["seconds"] for epoch in epochs]
            result.rows.append([*row, spread(rows_per_s, 0), f"{profiles[0]['sent_bytes'] / n_steps / 1000:.0f}"])
            names.append(f"{ranks} × {batch}, rank {rank}")
            for phase, middle in middles.items():
                series[phase].append(middle)
    result.charts = [Bars("Phases of a step, by ranks × batch size and rank", "milliseconds", names, series)]
    return result


def second_epoch(machine: Machine, dataset, ranks: int, batch: int) -> dict:
    """The second epoch of a training, as it is logged."""
    out = machine.folder("steps")
    fit = ["fit", dataset, "--out", out, "--epochs", 2, "--batch", batch, "--quiet", "--device", "cpu"]
    fit += ["--test-fraction", 0.5, "--validation-fraction", 0]
    launch = ["launch", "--nproc", ranks, "--"] if ranks > 1 else []
    machine.run("trainer", *launch, *fit, environment={"OMP_NUM_THREADS": "1"})
    return epochs_of(out)[-1]
