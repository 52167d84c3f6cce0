"""Compares all-reduces of Rust and Python by size: two ranks on this machine, in turn. Prints the ratio of the medians.

usage: compare.py PROGRAM PYTHON [ROUNDS]
  PROGRAM  path of examples/all_reduce
  PYTHON   Python with PyTorch
"""

import json
import os
import socket
import statistics
import subprocess
import sys
from pathlib import Path

RANKS = 2
LIMIT_S = 300


def main() -> None:
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    program, python = sys.argv[1], sys.argv[2]
    rounds = int(sys.argv[3]) if len(sys.argv) == 4 else 5
    script = Path(__file__).with_name("all_reduce.py")
    commands = {"rust": [program], "python": [python, str(script)]}
    times: dict[str, dict[int, list[float]]] = {name: {} for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            for line in run(command):
                times[name].setdefault(line["bytes"], []).append(line["median_s"])

    print(f"all_reduce over Gloo, {RANKS} ranks, medians of {rounds} rounds in turn (least to most)")
    print(f"{'bytes':>10} {'rust':>26} {'python':>26} {'rust':>11} {'python / rust':>14}")
    for size, rust in times["rust"].items():
        python_times = times["python"][size]
        ratios = [peer / ours for peer, ours in zip(python_times, rust)]
        bandwidth = size / statistics.median(rust) / 1e9
        print(
            f"{size:>10} {spread(rust):>26} {spread(python_times):>26} {bandwidth:>6.2f} GB/s"
            f" {statistics.median(ratios):>14.2f}"
        )


def run(command: list[str]) -> list[dict]:
    """Runs one group of RANKS processes; returns the output of rank 0."""
    port = free_port()
    processes = [
        subprocess.Popen(
            command,
            env=os.environ
            | {"RANK": str(rank), "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            # As set by torchrun: one thread per rank.
            | {"OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(RANKS)
    ]
    outputs = [process.communicate(timeout=LIMIT_S)[0] for process in processes]
    if any(process.returncode != 0 for process in processes):
        sys.exit(f"{command[0]}: exit codes {[process.returncode for process in processes]}")
    return [json.loads(line) for line in outputs[0].splitlines() if line.startswith("{")]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def spread(times: list[float]) -> str:
    median, least, most = statistics.median(times), min(times), max(times)
    return f"{median * 1e6:.1f} us ({least * 1e6:.1f}-{most * 1e6:.1f})"


main()
