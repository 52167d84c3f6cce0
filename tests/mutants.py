#!/usr/bin/env python3
"""Runs cargo-mutants on the functions that keep reviews and gradients complete.

usage: tests/mutants.py CARGO_MUTANTS FOLDER [--every K] [GROUP ...]
  CARGO_MUTANTS  path of cargo-mutants
  FOLDER         builds and results; builds are reused
  --every K      a sample: the first, the (K + 1)th, the (2 K + 1)th ... mutant of each group
  GROUP          names in GROUPS below; default: all

A mutant that no test detects must be listed in tests/mutants.allow, with a reason. At least 90 % of all mutants must be
detected; listed ones count as not detected. A mutant that does not compile or does not exit is not a survivor.
"""

import os
import pathlib
import subprocess
import sys
from dataclasses import dataclass

PROJECT = pathlib.Path(__file__).resolve().parent.parent
ALLOWED = PROJECT / "tests" / "mutants.allow"
NOTICED_AT_LEAST = 0.9
# A test past the limit counts as detection. Tests of rows of more than a chunk take some seconds.
TIME_LIMIT_S = 300


@dataclass
class Group:
    """Files that are changed, and the tests that must detect it: packages, and arguments of `cargo test`."""

    files: list[str]
    packages: list[str]
    tests: list[str]


GROUPS = {
    "verification": Group(
        [f"crates/dataset/src/{name}.rs" for name in "dataset_file shard row_columns words vocabulary header digest_table".split()],
        ["dataset"],
        ["--lib", "--test", "rules", "--test", "files", "--test", "columns", "--test", "hostile"],
    ),
    "ledger": Group(["crates/corpus/src/ledger.rs", "crates/corpus/src/group.rs"], ["corpus"], ["--lib"]),
    "commit": Group(
        ["reducer/src/commit.rs", "crates/dataset/src/commit.rs"],
        ["reducer", "dataset", "tests"],
        # Only tests in this process: others would start programs built without the change.
        ["--lib", "--test", "exactly_once", "--", "--skip", "kills", "--skip", "hadoop", "--skip", "in_s3"],
    ),
    "folding": Group(["sentimill/src/folding.rs"], ["sentimill"], ["--lib", "--test", "naive"]),
    "batches": Group(
        [f"crates/batches/src/{name}.rs" for name in "share division order".split()],
        ["batches"],
        ["--lib", "--test", "order", "--test", "batches"],
    ),
    "training": Group(["trainer/src/gradients/sums.rs"], ["trainer"], ["--lib", "--test", "gradients"]),
}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__.split("\n\n")[1])
    program, folder, chosen, every = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:], 1
    if chosen[:1] == ["--every"]:
        every, chosen = int(chosen[1]), chosen[2:]
    unknown = [name for name in chosen if name not in GROUPS]
    if unknown:
        sys.exit(f"mutants: {unknown[0]}: unknown group, expected some of: {' '.join(GROUPS)}")
    chosen = chosen or list(GROUPS)
    allowed = read_allowed()
    noticed, survivors = 0, []
    for name in chosen:
        found = run(program, folder, name, every)
        survived = lines_of(found / "missed.txt")
        n_noticed = len(lines_of(found / "caught.txt")) + len(lines_of(found / "timeout.txt"))
        noticed += n_noticed
        survivors += survived
        print(f"{name}: {n_noticed} of {n_noticed + len(survived)} detected", flush=True)
    for mutant in survivors:
        print(f"SURVIVED {mutant}: {allowed.get(key(mutant), 'not in tests/mutants.allow')}")
    total = noticed + len(survivors)
    print(f"mutants: {noticed} of {total} detected, {100 * noticed / max(total, 1):.1f} %")
    unexplained = [mutant for mutant in survivors if key(mutant) not in allowed]
    if unexplained:
        sys.exit(f"mutants: not detected and not in tests/mutants.allow: {'; '.join(unexplained)}")
    if noticed < NOTICED_AT_LEAST * total:
        sys.exit(f"mutants: {noticed} of {total} detected, expected {NOTICED_AT_LEAST:.0%}")


def run(program, folder, name, every):
    """Runs one of `every` mutants of a group; returns the folder of cargo-mutants' results."""
    group = GROUPS[name]
    results = folder / name
    results.mkdir(parents=True, exist_ok=True)
    files = [argument for file in group.files for argument in ("--file", file)]
    # --workspace includes the packages that need PyTorch.
    command = [program, "mutants", "--dir", str(PROJECT), "--output", str(results), "--profile", "dev", "--workspace"]
    command += ["--timeout", str(TIME_LIMIT_S), "--test-package", ",".join(group.packages), "--no-shuffle", "--colors", "never"]
    # The changed package is compiled for each mutant and runs for a moment.
    unoptimised = f"--config=profile.dev.package.{group.packages[0]}.opt-level=0"
    command += [f"--cargo-arg={unoptimised}", "--baseline", "skip"]
    if every > 1:
        command += ["--shard", f"0/{every}", "--sharding", "round-robin"]
    command += [*files, "--", *group.tests]
    environment = os.environ | {"CARGO_TARGET_DIR": str(folder / "target")}
    # Without this, the tests could run with the last mutant of an interrupted run, whose file is newer than the source.
    cleaned = [argument for package in group.packages for argument in ("--package", package)]
    subprocess.run(["cargo", "clean", "--quiet", "--profile", "dev", *cleaned], cwd=PROJECT, env=environment, check=True)
    # cargo-mutants' own baseline tests only packages that it changes; these tests may be in another one.
    packages = [f"--package={package}" for package in group.packages]
    baseline = ["cargo", "test", "--locked", "--profile", "dev", *packages, unoptimised, *group.tests]
    if subprocess.run(baseline, cwd=PROJECT, env=environment).returncode != 0:
        sys.exit(f"mutants: {name}: the tests fail without a change: {' '.join(baseline)}")
    # 0: all detected; 2: some not; 3: some timed out. Other codes are errors of cargo-mutants.
    ended = subprocess.run(command, env=environment).returncode
    if ended not in (0, 2, 3):
        sys.exit(f"mutants: {name}: cargo-mutants exited with {ended}; see the lines above")
    return results / "mutants.out"


def read_allowed():
    """Returns reasons by mutant, from lines of mutant, TAB, reason."""
    lines = [line for line in ALLOWED.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split("\t", 1) for line in lines)


def key(mutant):
    """Returns a mutant without its line and column, which change with the code above it."""
    file, _, what = mutant.split(":", 2)
    return f"{file}: {what.split(':', 1)[1].strip()}" if what[:1].isdigit() else f"{file}: {what.strip()}"


def lines_of(path):
    return path.read_text().splitlines() if path.exists() else []


if __name__ == "__main__":
    main()
