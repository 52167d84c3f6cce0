"""Word vectors on parameter servers beside one process: time, pairs per second, bytes, and what staleness costs.

usage: served.py TRAINER TEXT WORK WORDS [--dims LIST] [--step-pairs LIST] [--staleness LIST] [--workers LIST]
                 [--servers N] [--epochs N] [--wire NAME] [--log-sync NAME]
  TRAINER  the program
  TEXT     cleaned text, one sentence per line
  WORK     a folder for trainings and servers
  WORDS    a file of word similarity, such as EN-WS-353-ALL.txt; none: no similarity

For each dimension, one process with one thread is the reference of the PIP loss. Then each number of workers trains with each
number of pairs per step and each bound of staleness. All processes are on this machine, connected by the loopback interface.
Seconds are those of the whole command. PIP is the loss of unit vectors beside the reference, divided by that of random
vectors: 0 is equal, 1 is random.
"""

import argparse
import json
import shutil
import subprocess
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("trainer")
    parser.add_argument("text")
    parser.add_argument("work", type=Path)
    parser.add_argument("words")
    parser.add_argument("--dims", default="50,200")
    parser.add_argument("--step-pairs", default="1024,8192")
    parser.add_argument("--staleness", default="1")
    parser.add_argument("--workers", default="4")
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--epochs", default="1")
    parser.add_argument("--wire", default="f32")
    parser.add_argument("--log-sync", default="interval")
    arguments = parser.parse_args()
    shutil.rmtree(arguments.work, ignore_errors=True)
    arguments.work.mkdir(parents=True)
    heads = "dim", "workers", "staleness", "pairs a step", "seconds", "pairs/s", "MB a step", "waiting", "PIP", "similarity"
    print("| " + " | ".join(heads) + " |")
    print("|---" * len(heads) + "|")
    for dim in arguments.dims.split(","):
        alone = arguments.work / f"alone-{dim}"
        # A second training differs by its seed only, as a measure of noise.
        for seed, name in ((1, alone), (2, alone.with_name(alone.name + "-again"))):
            began = time.perf_counter()
            told = run(embed(arguments, dim, "--threads", "1", "--seed", str(seed), "--out", name))
            seconds = time.perf_counter() - began
            row = [dim, "one process" if seed == 1 else "another seed", "", "", f"{seconds:.1f}", f"{told['tokens_per_s']:,.0f} words/s"]
            show([*row, "", "", *quality(arguments, name, alone)])
        for workers in arguments.workers.split(","):
            for step_pairs in arguments.step_pairs.split(","):
                for staleness in arguments.staleness.split(","):
                    served(arguments, dim, int(workers), step_pairs, staleness, alone)


def served(arguments, dim: str, workers: int, step_pairs: str, staleness: str, alone: Path) -> None:
    name = f"{dim}-{workers}-{step_pairs}-{staleness}"
    servers, addresses = [], []
    for shard in range(arguments.servers):
        command = [arguments.trainer, "serve", "--folder", arguments.work / f"server-{name}-{shard}"]
        command += ["--shard", f"{shard}/{arguments.servers}", "--workers", str(workers), "--staleness", staleness]
        command += ["--log-sync", arguments.log_sync, "--until-done"]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        servers.append(server)
        line = next(line for line in server.stderr if "listening on " in line)
        addresses.append(line.split("listening on ")[1].split(";")[0])
    out = arguments.work / name
    began = time.perf_counter()
    commands = []
    for worker in range(workers):
        command = embed(arguments, dim, "--async", ",".join(addresses), "--worker", f"{worker}/{workers}")
        command += ["--step-pairs", step_pairs, "--wire", arguments.wire, *(["--out", out] if worker == 0 else [])]
        commands.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    said = [command.communicate()[0] for command in commands]
    seconds = time.perf_counter() - began
    ends = [process.wait() for process in commands + servers]
    if any(ends):
        raise SystemExit(f"{name}: exit codes {ends}")
    told = [json.loads(line) for line in said]
    pairs_per_s = sum(one["pairs_per_s"] for one in told)
    megabytes = sum(one["bytes_per_step"] for one in told) / workers / 1e6
    waiting = sum(one["waiting_share"] for one in told) / workers
    row = [dim, str(workers), staleness, step_pairs, f"{seconds:.1f}", f"{pairs_per_s:,.0f}", f"{megabytes:.2f}", f"{waiting:.0%}"]
    show([*row, *quality(arguments, out, alone)])
    for shard in range(arguments.servers):
        shutil.rmtree(arguments.work / f"server-{name}-{shard}")


def embed(arguments, dim: str, *more) -> list:
    command = [arguments.trainer, "embed", "--input", arguments.text, "--dim", dim, "--epochs", arguments.epochs]
    return [*command, "--json", "--quiet", *more]


def quality(arguments, model: Path, reference: Path) -> list[str]:
    pip = run([arguments.trainer, "vectors", "pip", model, reference])["unit"]
    loss = f"{pip['loss'] / pip['random']:.3f}"
    if arguments.words == "none":
        return [loss, ""]
    return [loss, f"{run([arguments.trainer, 'vectors', 'similarity', model, arguments.words])['spearman']:.4f}"]


def run(command: list) -> dict:
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def show(cells: list[str]) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


main()
