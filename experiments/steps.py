"""Where the time of a training step goes, by batch size and number of ranks on one machine.

The phases are those that `trainer fit` measures on each rank: loading a batch, forward, backward, waiting for other ranks,
reduction of gradients, and optimizer. Each rank has one thread, and the ranks share the cores of the machine. Values are
milliseconds per step of the slowest rank in the last epoch.
"""

from chart import Bars
from machine import Machine, epochs_of
from result import Result

TITLE = "Time of a training step"
PHASES = ["loading", "forward", "backward", "waiting", "reduction", "optimizer"]


def run(machine: Machine) -> Result:
    columns = ["ranks", "batch", "steps", *(f"{phase} ms" for phase in PHASES), "sum ms", "rows/s", "KB sent per step"]
    result = Result(columns)
    dataset, _ = machine.dataset(machine.corpus("IMDB"))
    batches = [32, 128] if machine.small else [32, 128, 512]
    names, series = [], {phase: [] for phase in PHASES}
    for ranks in [1, 2]:
        for batch in batches:
            out = machine.folder("steps")
            fit = ["fit", dataset, "--out", out, "--epochs", 2, "--batch", batch, "--quiet", "--device", "cpu"]
            fit += ["--test-fraction", 0.5, "--validation-fraction", 0]
            launch = ["launch", "--nproc", ranks, "--"] if ranks > 1 else []
            machine.run("trainer", *launch, *fit, environment={"OMP_NUM_THREADS": "1"})
            epoch = epochs_of(out)[-1]
            n_steps = epoch["step"] - epoch["from_step"]
            slowest = max(epoch["ranks"], key=lambda rank: rank["profile"]["forward_s"] + rank["profile"]["backward_s"])
            profile = slowest["profile"]
            times = [1000 * profile[f"{phase}_s"] / n_steps for phase in PHASES]
            rows = sum(rank["rows"] for rank in epoch["ranks"])
            row = [ranks, batch, n_steps, *(f"{time:.2f}" for time in times), f"{sum(times):.2f}"]
            result.rows.append([*row, f"{rows / epoch['seconds']:.0f}", f"{profile['sent_bytes'] / n_steps / 1000:.0f}"])
            names.append(f"{ranks} × {batch}")
            for phase, time in zip(PHASES, times):
                series[phase].append(time)
    result.charts = [Bars("Phases of a step, by ranks × batch size", "milliseconds", names, series)]
    return result
