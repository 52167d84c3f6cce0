"""Training speed, the trainer beside PyTorch (pytorch.py): the same model, rows and order, in turn.

usage: compare.py TRAINER PYTHON DATASET [ROUNDS [FLAG ...]]
  TRAINER  the program, built
  PYTHON   a Python that has PyTorch, numpy and h5py
  DATASET  of merge
  FLAG     for both, such as --batch 512

A round trains each for EPOCHS epochs and takes the fastest epoch's reviews/s, so that loading, starting, and
preparing each new shape for the first time are left out.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

EPOCHS = 2
LIMIT_S = 1800
# Large blocks stay with the process, where they are otherwise mapped and unmapped in every step.
ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "MALLOC_TOP_PAD_": "268435456",
}


def main() -> None:
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    trainer, python, dataset = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    flags = sys.argv[5:] + ["--epochs", str(EPOCHS)]
    script = [python, str(Path(__file__).with_name("pytorch.py")), dataset] + flags
    ours = [trainer, "fit", dataset] + flags
    kinds = {
        "trainer": (ours, {}),
        "trainer, allocator set": (ours, ALLOCATOR),
        "PyTorch": (script, {}),
        "PyTorch, allocator set": (script, ALLOCATOR),
        "PyTorch, allocator set, fused Adam": (script + ["--fused"], ALLOCATOR),
    }
    speeds: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind, (command, environment) in kinds.items():
            speeds[kind].append(speed(command, environment))
            print(f"{kind}: {speeds[kind][-1]:.0f}", file=sys.stderr)

    print(f"training of {dataset} {' '.join(flags)}: reviews/s, medians of {rounds} rounds in turn (least to most)")
    first = speeds["PyTorch"]
    for kind, found in speeds.items():
        ratio = statistics.median(one / plain for one, plain in zip(found, first))
        spread = f"{statistics.median(found):.0f} ({min(found):.0f}-{max(found):.0f})"
        print(f"{kind:<36} {spread:>24} {ratio:>6.2f} times PyTorch")


def speed(command: list[str], environment: dict[str, str]) -> float:
    """Reviews/s of the fastest epoch."""
    with tempfile.TemporaryDirectory() as folder:
        is_ours = command[1] == "fit"
        # Ours writes a line when an epoch is over, and no other with so large a number.
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
