#!/usr/bin/env python3
"""Runs `trainer fit` in a container as SageMaker's training contract requires. The container's command is `train`.

Below /opt/ml, or the folder that SAGEMAKER_BASE_DIR names:

| path | use |
|---|---|
| input/config/hyperparameters.json | options of `trainer fit`, such as {"epochs": "4", "bidirectional": "true"} |
| input/config/inputdataconfig.json | the names of the channels |
| input/config/resourceconfig.json | the hosts; each runs one rank per GPU, or one without GPUs |
| input/data/training, or train | one dataset, FILE.h5 |
| input/data/test | optional: one dataset for --test |
| checkpoints | if it exists, the training folder is in it, and an interrupted training continues from there |
| model | the model folder, after a complete training |
| output/data/training | the training folder without model and checkpoints: metrics, evaluation, scores |
| output/failure | the reason of a failure, in its first line |

SIGTERM is forwarded: `trainer` saves a checkpoint and exits with code 75, which is not a failure here. All other codes are
those of `trainer`. Requires Python's standard library only.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

TRAINER = os.environ.get("SENTIMILL_TRAINER", "trainer")
# The names that SageMaker's own frameworks use for the channel of the training data.
TRAINING_CHANNELS = ("training", "train")
TEST_CHANNEL = "test"
# Hyperparameters of SageMaker, not of the training.
FOREIGN = re.compile(r"sagemaker_|_tuning_objective_metric$|default_user_module_name$")
OPTION = re.compile(r"[a-z][a-z0-9-]*")
# Options that this program sets.
SET_HERE = {"out", "resume", "force", "test", "help"}
# As in SageMaker's PyTorch containers.
MASTER_PORT = 7777
# SageMaker shows this number of characters of the failure file.
FAILURE_CHARACTERS = 1024
USAGE, MISSING_INPUT, TRY_AGAIN, SETTINGS = 64, 66, 75, 78


class Refused(Exception):
    """The folder below /opt/ml does not describe a training."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code


def main() -> None:
    base = Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"))
    try:
        code, why = train(base)
    except Refused as refused:
        code, why = refused.code, f"train: {refused}"
    if why:
        # Messages of trainer are already printed.
        if why.startswith("train: "):
            print(why, file=sys.stderr)
        fail(base, why)
    sys.exit(code)


def train(base: Path) -> tuple[int, str]:
    """Runs the training. Returns its exit code and the reason of a failure."""
    config = base / "input/config"
    cluster = Cluster(read_json(config / "resourceconfig.json"))
    channels = Channels(base / "input/data", read_json(config / "inputdataconfig.json"), cluster)
    checkpoints, outputs = base / "checkpoints", base / "output/data/training"
    # SageMaker copies this folder to S3 while the training runs, and back after an interruption.
    folder = checkpoints / "training" if checkpoints.is_dir() else outputs
    folder.parent.mkdir(parents=True, exist_ok=True)
    fit = ["fit", str(channels.dataset), f"--out={folder}", "--resume", *options(read_json(config / "hyperparameters.json"))]
    if channels.test:
        fit.append(f"--test={channels.test}")
    ranks = Ranks(cluster.commands(fit))
    code, why = ranks.wait()
    if code == 0 and cluster.is_first:
        shutil.copytree(folder / "model", base / "model", dirs_exist_ok=True)
        if folder != outputs:
            shutil.copytree(folder, outputs, dirs_exist_ok=True, ignore=lambda at, _: {"model", "checkpoints"} if at == str(folder) else set())
    return code, "" if code == 0 or (code == TRY_AGAIN and ranks.is_ending) else why


def read_json(path: Path) -> dict:
    """Returns the object in a file. SageMaker's local mode may omit a file that has no content."""
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise Refused(SETTINGS, f"{path}: not JSON ({error}), expected an object") from None
    if not isinstance(found, dict):
        raise Refused(SETTINGS, f"{path}: found {type(found).__name__}, expected an object")
    return found


def options(hyperparameters: dict) -> list[str]:
    """Converts hyperparameters to options. Their values are strings, which some SDKs encode as JSON: `"adam"` with its quotes."""
    found = []
    for given, text in sorted(hyperparameters.items()):
        if FOREIGN.match(given):
            continue
        name = given.replace("_", "-")
        if not OPTION.fullmatch(name) or name in SET_HERE:
            raise Refused(USAGE, f"hyperparameter {given}: not supported, expected an option of `trainer fit` except {', '.join(sorted(SET_HERE))}")
        value = decoded(given, text)
        if value.lower() == "true":
            found.append(f"--{name}")
        elif value.lower() != "false":
            found.append(f"--{name}={value}")
    return found


def decoded(name: str, text: object) -> str:
    if not isinstance(text, str):
        raise Refused(USAGE, f"hyperparameter {name}: found {type(text).__name__}, expected a string")
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if value is None or isinstance(value, (list, dict)):
        raise Refused(USAGE, f"hyperparameter {name}: found {text}, expected one value")
    # Numbers are passed as they are written.
    return value if isinstance(value, str) else text


class Channels:
    """The datasets."""

    def __init__(self, folder: Path, config: dict, cluster: "Cluster") -> None:
        names = set(config) or {path.name for path in folder.glob("*") if path.is_dir()}
        training = [name for name in TRAINING_CHANNELS if name in names]
        if len(training) != 1:
            raise Refused(MISSING_INPUT, f"{folder}: found the channels {', '.join(sorted(names)) or 'none'}, expected one of training and train")
        if unknown := names - {*training, TEST_CHANNEL}:
            raise Refused(USAGE, f"channel {', '.join(sorted(unknown))}: not used, expected {training[0]} and {TEST_CHANNEL}")
        for name, channel in sorted(config.items()):
            if channel.get("TrainingInputMode", "File") == "Pipe":
                raise Refused(USAGE, f"channel {name}: input mode Pipe, expected File or FastFile")
            if cluster.n_hosts > 1 and channel.get("S3DistributionType", "FullyReplicated") != "FullyReplicated":
                raise Refused(USAGE, f"channel {name}: distributed by {channel['S3DistributionType']}, expected FullyReplicated: each rank reads the whole dataset")
        self.dataset = self.only(folder / training[0])
        self.test = self.only(folder / TEST_CHANNEL) if TEST_CHANNEL in names else None

    def only(self, channel: Path) -> Path:
        # sentimill --padded writes a second file, which `trainer` does not read.
        found = [path for path in sorted(channel.rglob("*.h5")) if not path.name.endswith(".padded.h5")]
        if len(found) != 1:
            raise Refused(MISSING_INPUT, f"{channel}: found {len(found)} files FILE.h5, expected one dataset written by sentimill or merge")
        return found[0]


class Cluster:
    """The hosts of the job, and the ranks that this host runs."""

    def __init__(self, resources: dict) -> None:
        self.hosts = resources.get("hosts") or ["localhost"]
        host = resources.get("current_host", self.hosts[0])
        if host not in self.hosts:
            raise Refused(SETTINGS, f"resourceconfig.json: current_host {host} is not among hosts {', '.join(self.hosts)}")
        types = {group.get("instance_type") for group in resources.get("instance_groups", [])}
        if len(types) > 1:
            found = ", ".join(sorted(map(str, types)))
            raise Refused(SETTINGS, f"resourceconfig.json: found the instance types {found}, expected one: all hosts run the same number of ranks")
        self.at = self.hosts.index(host)
        self.is_first = self.at == 0
        self.n_hosts = len(self.hosts)
        self.n_ranks_here = max(1, n_gpus())
        self.interface = resources.get("network_interface_name", "eth0")

    def commands(self, fit: list[str]) -> list[tuple[list[str], dict]]:
        """Returns a command and its environment for each process that this host starts."""
        if self.n_hosts == 1:
            launch = ["launch", f"--nproc={self.n_ranks_here}", "--"] if self.n_ranks_here > 1 else []
            return [([TRAINER, *launch, *fit], {})]
        world = {
            "MASTER_ADDR": self.hosts[0],
            "MASTER_PORT": str(MASTER_PORT),
            "WORLD_SIZE": str(self.n_hosts * self.n_ranks_here),
            "LOCAL_WORLD_SIZE": str(self.n_ranks_here),
            "NCCL_SOCKET_IFNAME": self.interface,
            "GLOO_SOCKET_IFNAME": self.interface,
        }
        if self.n_ranks_here > 1 and "OMP_NUM_THREADS" not in os.environ:
            world["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // self.n_ranks_here))
        first = self.at * self.n_ranks_here
        return [([TRAINER, *fit], world | {"RANK": str(first + rank), "LOCAL_RANK": str(rank)}) for rank in range(self.n_ranks_here)]


def n_gpus() -> int:
    try:
        listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True)
    except FileNotFoundError:
        return 0
    return sum(line.startswith("GPU ") for line in listed.stdout.splitlines())


class Ranks:
    """The processes of this host. Their standard error is copied, and its last line is kept."""

    def __init__(self, commands: list[tuple[list[str], dict]]) -> None:
        self.is_ending = False
        self.processes: list[subprocess.Popen] = []
        self.last_lines = [""] * len(commands)
        # Before the first process starts: a signal that arrives earlier would be lost.
        for asked in (signal.SIGTERM, signal.SIGINT):
            signal.signal(asked, self.forward)
        for command, environment in commands:
            try:
                process = subprocess.Popen(command, env=os.environ | environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
            except OSError as error:
                self.forward()
                raise Refused(USAGE, f"{command[0]}: cannot be started ({error.strerror}); set SENTIMILL_TRAINER to its path") from None
            self.processes.append(process)
            if self.is_ending:
                process.terminate()
        self.readers = [threading.Thread(target=self.read, args=(at,)) for at in range(len(commands))]
        for reader in self.readers:
            reader.start()

    def forward(self, *_) -> None:
        """Sends SIGTERM to the processes, so that they save a checkpoint."""
        self.is_ending = True
        for process in self.processes:
            process.terminate()

    def read(self, at: int) -> None:
        # Progress is separated by carriage returns on terminals only, so lines are short.
        for line in self.processes[at].stderr:
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()
            if line.strip():
                self.last_lines[at] = line.decode(errors="replace").strip()

    def wait(self) -> tuple[int, str]:
        """Waits for all processes. Returns the exit code and the last line of the one that is the cause."""
        ended = [(self.exit_code(process), at) for at, process in enumerate(self.processes)]
        for reader in self.readers:
            reader.join()
        # A rank that lost another one exits with 75.
        failed = [end for end in ended if end[0] not in (0, TRY_AGAIN)] or [end for end in ended if end[0] != 0]
        if not failed:
            return 0, ""
        code, at = failed[0]
        return code, self.last_lines[at] or f"train: trainer exited with code {code}"

    def exit_code(self, process: subprocess.Popen) -> int:
        code = process.wait()
        if code >= 0:
            return code
        if code == -signal.SIGTERM and self.is_ending:
            # It had not begun to handle signals, and had nothing to save.
            return TRY_AGAIN
        name = signal.Signals(-code).name
        why = ": the memory of the instance may be too small" if name == "SIGKILL" else ""
        self.last_lines[self.processes.index(process)] = f"train: trainer was killed by {name}{why}"
        return 128 - code


def fail(base: Path, why: str) -> None:
    """Writes the failure file. An earlier one is not replaced."""
    file = base / "output/failure"
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(file, "x", encoding="utf-8") as failure:
            failure.write(f"{why[:FAILURE_CHARACTERS]}\n")
    except FileExistsError:
        pass


if __name__ == "__main__":
    main()
