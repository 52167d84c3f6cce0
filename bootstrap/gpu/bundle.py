#!/usr/bin/env python3
"""Copies built programs, tests and data into one folder that checks a machine with a GPU.

usage: bundle.py FOLDER MESSAGES
  FOLDER    output folder; an existing one is deleted first
  MESSAGES  output of `cargo test --no-run --message-format=json` for the tests of c10d and trainer; the program sentimill
            must be in the folder of the trainer that it names

It requires h5py.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import h5py

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parents[1]
# Paths in the bundle, by package, kind and name of the built target.
EXECUTABLES = {
    ("trainer", "bin", "trainer"): "bin/trainer",
    ("trainer", "test", "gpu"): "tests/trainer-gpu",
    ("c10d", "test", "cuda"): "tests/c10d-cuda",
    ("c10d", "test", "collectives"): "tests/c10d-collectives",
}
COPIED = [HERE / "run", HERE / "pytorch.py", HERE / "README.md", PROJECT / "tests/oracle/order.py"]
COPIED += sorted(PROJECT.glob("LICENSE-*"))
N_REVIEWS = 50_000
# Of programs with optimisation, and of those of `make test`.
BYTES_MAX, BYTES_MAX_DEV = 50 << 20, 60 << 20


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, messages = Path(sys.argv[1]), Path(sys.argv[2])
    built = executables(messages.read_text())
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("bin", "tests", "data"):
        (folder / name).mkdir(parents=True)
    tests = {}
    for name, program in built.items():
        subprocess.run(["strip", "-o", folder / name, program], check=True)
        if name.startswith("tests/"):
            tests[name] = listed(program)
    if b"ProcessGroupNCCL" not in built["tests/c10d-cuda"].read_bytes():
        fail("c10d was built without NCCL; run bootstrap/laptop.sh --cuda and build again")
    for path in COPIED:
        shutil.copy(path, folder)
    make_data(built["bin/trainer"].with_name("sentimill"), folder / "data")
    about = {"commit": commit(), "pytorch": pytorch(), "tests": tests} | asked_of_machine(folder / "bin/trainer")
    (folder / "bundle.json").write_text(json.dumps(about, indent=2) + "\n")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n" for path in files]
    (folder / "SHA256SUMS").write_text("".join(sums))
    n_bytes = sum(path.stat().st_size for path in files)
    most = BYTES_MAX if "release" in built["bin/trainer"].parts else BYTES_MAX_DEV
    if n_bytes >= most:
        fail(f"{folder} has {n_bytes / 2**20:.1f} MiB, expected less than {most >> 20}")
    print(f"{folder}: {n_bytes / 2**20:.1f} MiB; copy it to a machine with a GPU and run ./run there")


def executables(messages: str) -> dict[str, Path]:
    """Returns the built file of each of EXECUTABLES."""
    found = {}
    for line in messages.splitlines():
        if not line.startswith("{"):
            continue
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message.get("executable"):
            target = message["target"]
            package = Path(message["manifest_path"]).parent.name
            name = EXECUTABLES.get((package, target["kind"][0], target["name"]))
            # The unit tests of a program have the program's name.
            if name and (name.startswith("tests/") or not message["profile"]["test"]):
                found[name] = Path(message["executable"])
    missing = set(EXECUTABLES.values()) - set(found)
    if missing:
        fail(f"cargo reported no executable for {', '.join(sorted(missing))}")
    return found


def listed(program: Path) -> list[str]:
    """Returns the names of the tests in a test program."""
    said = subprocess.run([program, "--list", "--format", "terse"], check=True, capture_output=True, text=True).stdout
    return [line.removesuffix(": test") for line in said.splitlines() if line.endswith(": test")]


def make_data(sentimill: Path, folder: Path) -> None:
    """Makes one dataset, and a copy in files that PyTorch reads without HDF5."""
    reviews = folder / "reviews.jsonl"
    with reviews.open("wb") as lines:
        subprocess.run([sys.executable, PROJECT / "trainer/bench/generated.py", str(N_REVIEWS)], stdout=lines, check=True)
    dataset = folder / "reviews.h5"
    command = [sentimill, "--profile", "original", "--input", reviews, "--out", dataset]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    reviews.unlink()
    with h5py.File(dataset) as file:
        offsets = file["offsets"][:].astype("int64")
        (folder / "tokens").write_bytes(file["tokens"][:].astype("<i2").tobytes())
        (folder / "lengths").write_bytes((offsets[1:] - offsets[:-1]).astype("<i4").tobytes())
        (folder / "labels").write_bytes(file["label"][:].astype("u1").tobytes())
        (folder / "split").write_bytes(file["split"][:].astype("<i2").tobytes())


def asked_of_machine(program: Path) -> dict[str, str]:
    """Returns the newest glibc and libstdc++ symbol versions that a program requires."""
    said = subprocess.run(["readelf", "--version-info", program], check=True, capture_output=True, text=True).stdout
    newest = {}
    for name in ("GLIBC", "GLIBCXX"):
        versions = re.findall(rf"\b{name}_([0-9.]+)", said)
        newest[name.lower()] = max(versions, key=lambda version: [int(part) for part in version.split(".")])
    return newest


def pytorch() -> str:
    """Returns the PyTorch version that the programs are compiled for."""
    pinned = (PROJECT / "bootstrap/requirements/libtorch.txt").read_text()
    return re.search(r"^torch==(\S+)", pinned, re.MULTILINE)[1]


def commit() -> str:
    done = subprocess.run(["git", "-C", PROJECT, "rev-parse", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def fail(why: str) -> None:
    sys.exit(f"bundle: error: {why}")


main()
