"""Measures training speed of whole epochs: the trainer and two PyTorch scripts with the same model and rows, in turn.

usage: compare.py TRAINER PYTHON ROUNDS DATASET...
  TRAINER  path of the program trainer
  PYTHON   Python with PyTorch, numpy and h5py
  DATASET  dataset written by merge or sentimill

Each round trains for two epochs and uses the reviews/s of the faster one. This includes reader, model, optimizer and
metrics, but not the start, nor PyTorch's preparation for new shapes. The scripts: usual.py, as most people write it;
pytorch.py, which sorts rows by length like the trainer, with fused Adam and allocators set to keep memory in the process;
with two threads it also runs in two ranks. With `busy` threads, only the trainer runs, with its kernels and with PyTorch, while
another process keeps each core busy.
Environment: THREADS (default "1 2 busy"), FIGURES (a file to which the figures are appended as JSON lines).
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

EPOCHS = "2"
LIMIT_S = 1800
HERE = Path(__file__).parent
TUNED = {
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "MALLOC_TOP_PAD_": "268435456",
    "THP_MEM_ALLOC_ENABLE": "1",
}
# Settings of the scripts: two layers of 32, the last state, no dropout, no validation.
MODEL = ["--tokens", "100", "--layers", "2", "--hidden", "32", "--pool", "last", "--batch", "512", "--rate", "0.001"]
MODEL += ["--decay", "constant", "--dropout-words", "0", "--dropout-head", "0", "--validation-fraction", "0"]


def main() -> None:
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    trainer, python, rounds, datasets = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
    for dataset in datasets:
        for threads in os.environ.get("THREADS", "1 2 busy").split():
            if threads == "busy":
                beside(trainer, rounds, dataset)
            else:
                compare(trainer, python, rounds, dataset, int(threads))


def compare(trainer: str, python: str, rounds: int, dataset: str, threads: int) -> None:
    usual = [python, str(HERE / "usual.py"), dataset, EPOCHS]
    tuned = [python, str(HERE / "pytorch.py"), dataset, "--epochs", EPOCHS, "--fused"]
    fit = ["fit", dataset, "--epochs", EPOCHS] + MODEL
    kinds = {
        "PyTorch as usual": (usual, {}),
        "PyTorch tuned": (tuned, TUNED),
        "trainer": ([trainer] + fit, {}),
    }
    if threads > 1:
        torchrun = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(threads)]
        kinds[f"PyTorch tuned, {threads} ranks"] = (torchrun + tuned[1:], TUNED)
        kinds[f"trainer, {threads} ranks"] = ([trainer, "launch", "--nproc", str(threads), "--"] + fit, {})
    speeds: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind, (command, settings) in kinds.items():
            ranks = threads if "ranks" in kind else 1
            environment = settings | {"OMP_NUM_THREADS": str(threads // ranks)}
            speeds[kind].append(speed(command, environment))
            print(f"{kind}: {speeds[kind][-1]:.0f}", file=sys.stderr)
    print(f"{dataset}, {threads} thread(s): reviews/s, medians of {rounds} rounds in turn (least to most)")
    for kind, found in speeds.items():
        spread = f"{statistics.median(found):.0f} ({min(found):.0f}-{max(found):.0f})"
        peers = {"as usual": "PyTorch as usual", "tuned": "PyTorch tuned"}
        if "ranks" in kind:
            peers["tuned in as many ranks"] = f"PyTorch tuned, {threads} ranks"
        ratios = [
            f"{statistics.median(own / other for own, other in zip(found, speeds[peer])):.2f} times {name}"
            for name, peer in peers.items()
        ]
        print(f"{kind:<24} {spread:>24}   {', '.join(ratios)}", flush=True)
        note(threads, kind, found)


def beside(trainer: str, rounds: int, dataset: str) -> None:
    command = [trainer, "fit", dataset, "--epochs", EPOCHS, "--sample", "0.1"] + MODEL
    threads = str(os.cpu_count())
    kinds = {
        "trainer": (command, {}),
        "trainer --compute pytorch": (command + ["--compute", "pytorch"], {}),
        f"with OMP_NUM_THREADS={threads}": (command + ["--compute", "pytorch"], {"OMP_NUM_THREADS": threads}),
    }
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
    try:
        for kind, (fit, environment) in kinds.items():
            found = [speed(fit, environment) for _ in range(rounds)]
            print(f"{kind}, beside busy processes: {statistics.median(found):.0f} reviews/s", flush=True)
            note("busy", kind, found)
    finally:
        for process in busy:
            process.kill()


def note(threads: int | str, kind: str, found: list[float]) -> None:
    if figures := os.environ.get("FIGURES"):
        with open(figures, "a") as file:
            print(json.dumps({"threads": threads, "kind": kind, "reviews/s": found}), file=file)


def speed(command: list[str], environment: dict[str, str]) -> float:
    """Returns reviews/s of the faster epoch."""
    with tempfile.TemporaryDirectory() as folder:
        is_ours = "fit" in command
        # The trainer writes one line per epoch and no step lines.
        more = ["--out", f"{folder}/out", "--log-steps", str(1 << 40)] if is_ours else []
        done = subprocess.run(
            command + more, env=os.environ | environment, capture_output=True, text=True, timeout=LIMIT_S
        )
        if done.returncode != 0:
            sys.exit(f"{' '.join(command + more)}: exit code {done.returncode}\n{done.stderr}")
        lines = Path(folder, "out", "metrics.jsonl").read_text() if is_ours else done.stdout
    found = [json.loads(line) for line in lines.splitlines()]
    return max(line["reviews_per_s"] for line in found if "reviews_per_s" in line)


main()
