"""Word vectors by several processes: synchronous ranks and workers of parameter servers, beside one process.

usage: served.py VECTORS TEXT WORK WORDS [--dims LIST] [--step-pairs LIST] [--staleness LIST] [--workers LIST]
                 [--average-every N] [--links LIST] [--servers N] [--epochs N] [--wire NAME] [--log-sync NAME]
                 [--model NAME]
  VECTORS  the program
  TEXT     cleaned text, one sentence per line
  WORK     a folder for trainings and servers
  WORDS    a file of word similarity, such as EN-WS-353-ALL.txt; none: no similarity

With `--model char-lstm`, --step-pairs is the number of positions per step, and ranks do not average.

For each dimension, one process with one thread is the reference of the PIP loss. Then each number of workers trains with each
number of pairs per step: as ranks, which exchange rows after each step (`ranks`) or average them every N steps (`average`),
and with each bound of staleness on parameter servers. A link is `loopback`, or the rate of a link such as 1gbit between two
network namespaces, in which half of the processes are each; it requires the rights of root. Seconds are those of the whole
command. PIP is the loss of unit vectors beside the reference, divided by that of random vectors: 0 is equal, 1 is random.
"""

import argparse
import json
import shutil
import subprocess
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "trainer" / "bench"))
from limits import Nodes, environments  # noqa: E402

# The flag that sets the size of a step.
STEPS = {"skip-gram": "--step-pairs", "char-lstm": "--batch"}


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("vectors")
    parser.add_argument("text")
    parser.add_argument("work", type=Path)
    parser.add_argument("words")
    parser.add_argument("--dims", default="50,200")
    parser.add_argument("--step-pairs", default="512,2048")
    parser.add_argument("--staleness", default="1")
    parser.add_argument("--workers", default="4")
    parser.add_argument("--average-every", type=int, default=16)
    parser.add_argument("--links", default="loopback")
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--epochs", default="1")
    parser.add_argument("--wire", default="f32")
    parser.add_argument("--log-sync", default="interval")
    parser.add_argument("--model", default="skip-gram", choices=list(STEPS))
    arguments = parser.parse_args()
    shutil.rmtree(arguments.work, ignore_errors=True)
    arguments.work.mkdir(parents=True)
    heads = "dim", "processes", "mode", "link", "a step", "seconds", "pairs/s", "MB a step", "waiting", "PIP", "similarity"
    print("| " + " | ".join(heads) + " |")
    print("|---" * len(heads) + "|")
    for dim in arguments.dims.split(","):
        alone = arguments.work / f"alone-{dim}"
        # A second training differs by its seed only, as a measure of noise.
        for seed, name in ((1, alone), (2, alone.with_name(alone.name + "-again"))):
            began = time.perf_counter()
            told = run(embed(arguments, dim, "--threads", "1", "--seed", str(seed), "--out", name))
            seconds = time.perf_counter() - began
            row = [dim, "1", "one process" if seed == 1 else "another seed", "", "", f"{seconds:.1f}", f"{told['tokens_per_s']:,.0f} words/s"]
            show([*row, "", "", *quality(arguments, name, alone)])
        for link in arguments.links.split(","):
            for workers in map(int, arguments.workers.split(",")):
                for step_pairs in arguments.step_pairs.split(","):
                    job = Job(arguments, dim, workers, step_pairs, link, alone)
                    job.measure("ranks", lambda: job.ranks([]))
                    if arguments.model == "skip-gram":
                        job.measure("average", lambda: job.ranks(["--sync-every", str(arguments.average_every)]))
                    for staleness in arguments.staleness.split(","):
                        job.measure(f"staleness {staleness}", lambda bound=staleness: job.served(bound))


class Job:
    """Several processes that train together."""

    def __init__(self, arguments, dim: str, workers: int, step_pairs: str, link: str, alone: Path):
        self.arguments, self.dim, self.workers, self.alone = arguments, dim, workers, alone
        self.step_pairs, self.link, self.out = step_pairs, link, arguments.work / "out"

    def measure(self, mode: str, train) -> None:
        """Trains, and prints a line."""
        shutil.rmtree(self.out, ignore_errors=True)
        self.nodes = None if self.link == "loopback" else Nodes(self.link)
        row = [self.dim, str(self.workers), mode, self.link, self.step_pairs]
        try:
            seconds, pairs_per_s, step_bytes, waiting = train()
        except DivergedError:
            return show([*row, "diverged", "", "", "", "", ""])
        finally:
            if self.nodes:
                self.nodes.delete()
        row += [f"{seconds:.1f}", f"{pairs_per_s:,.0f}"]
        show([*row, f"{step_bytes / 1e6:.2f}", f"{waiting:.0%}", *quality(self.arguments, self.out, self.alone)])

    def within(self, number: int, of: int) -> list[str]:
        """The beginning of the command of a process on its node."""
        return self.nodes.of(number, of) if self.nodes else []

    def ranks(self, more: list[str]):
        """Synchronous ranks. Bytes are those that rank 0 sends and receives per exchange, the waiting is its exchanging."""
        command = embed(self.arguments, self.dim, STEPS[self.arguments.model], self.step_pairs, "--out", self.out, *more)
        address = self.nodes.addresses[0] if self.nodes else "127.0.0.1"
        commands = [[*self.within(rank, self.workers), *command] for rank in range(self.workers)]
        began = time.perf_counter()
        said = outputs(list(map(start, commands, environments(self.workers, address))))
        seconds, told = time.perf_counter() - began, json.loads(said[0])
        return seconds, told["pairs_per_s"], told["bytes_per_exchange"], told["exchanging_share"]

    def served(self, staleness: str):
        """Workers of parameter servers. Bytes and waiting are means over the workers."""
        arguments, servers, addresses = self.arguments, [], []
        for shard in range(arguments.servers):
            folder = arguments.work / f"server-{shard}"
            shutil.rmtree(folder, ignore_errors=True)
            command = [*self.within(shard, arguments.servers), arguments.vectors, "serve", "--folder", folder, "--until-done"]
            command += ["--shard", f"{shard}/{arguments.servers}", "--workers", str(self.workers), "--staleness", staleness]
            command += ["--log-sync", arguments.log_sync, "--token-file", self.key()]
            if self.nodes:
                command += ["--listen", f"{self.nodes.addresses[shard * 2 // arguments.servers]}:0"]
            servers.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
            line = next(line for line in servers[-1].stderr if "listening on " in line)
            addresses.append(line.split("listening on ")[1].split(";")[0])
        commands = []
        for worker in range(self.workers):
            command = embed(arguments, self.dim, "--async", ",".join(addresses), "--worker", f"{worker}/{self.workers}")
            command += [STEPS[arguments.model], self.step_pairs, "--wire", arguments.wire, "--token-file", self.key()]
            command += ["--out", self.out] if worker == 0 else []
            commands.append([*self.within(worker, self.workers), *command])
        began = time.perf_counter()
        try:
            told = [json.loads(line) for line in outputs([start(command, None) for command in commands])]
        except DivergedError:
            for server in servers:
                server.kill()
                server.wait()
            raise
        seconds = time.perf_counter() - began
        outputs(servers)
        mean = lambda name: sum(one[name] for one in told) / self.workers
        return seconds, sum(one["pairs_per_s"] for one in told), mean("bytes_per_step"), mean("waiting_share")

    def key(self) -> Path:
        """The file with the key of servers and workers."""
        path = self.arguments.work / "key"
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text("a key of this benchmark only\n")
        return path


class DivergedError(Exception):
    """A vector is not finite."""


def start(command: list, environment) -> subprocess.Popen:
    return subprocess.Popen(list(map(str, command)), env=environment, stdout=subprocess.PIPE, text=True)


def outputs(processes: list[subprocess.Popen]) -> list[str]:
    """What processes have printed when all have ended."""
    said = [process.communicate()[0] for process in processes]
    # The exit code of settings with which a training diverges.
    if any(process.returncode == 78 for process in processes):
        raise DivergedError
    if any(process.returncode for process in processes):
        raise SystemExit(f"exit codes {[process.returncode for process in processes]}")
    return said


def embed(arguments, dim: str, *more) -> list:
    command = [arguments.vectors, "train", "--input", arguments.text, "--dim", dim, "--epochs", arguments.epochs]
    command += ["--model", arguments.model]
    return [*command, "--json", "--quiet", *more]


def quality(arguments, model: Path, reference: Path) -> list[str]:
    pip = run([arguments.vectors, "pip", model, reference])["unit"]
    loss = f"{pip['loss'] / pip['random']:.3f}"
    if arguments.words == "none":
        return [loss, ""]
    return [loss, f"{run([arguments.vectors, 'similarity', model, arguments.words])['spearman']:.4f}"]


def run(command: list) -> dict:
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def show(cells: list[str]) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


main()
