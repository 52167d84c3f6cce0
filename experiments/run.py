#!/usr/bin/env python3
"""Runs the experiments of docs/experiments.md.

usage: run.py [--programs FOLDER] [--data FOLDER] [--peers PYTHON] [--out FOLDER] [--small] [--again] [NAME ...]
       run.py --page [--check]
  --programs FOLDER  sentimill, trainer, and examples/demo-corpus; default: target/release
  --data FOLDER      real reviews: amazon/, imdb/, yelp/; without it, generated reviews
  --peers PYTHON     Python with the packages of bootstrap/requirements/bench.txt: engines, hadoop and ngrams compare their programs
  --out FOLDER       receives NAME.csv, NAME.svg, NAME-dark.svg and NAME.json; default: docs/experiments
  --small            generated reviews and few runs: a test of the experiments, whose figures mean nothing
  --again            keep the tables, and note how much the values of a further run differ from them
  NAME               some of the names in EXPERIMENTS; default: all
  --page             write docs/experiments.md from docs/experiments/; --check: only compare

Each experiment is a module of this folder: its text is the text of the page, `TITLE` its title, and `run` measures.
`REQUIRED`, where there is one, maps files that it requires to what installs them.
Requires Python 3.10 with h5py.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path

import batches
import engines
import epochs
import gpus
import growth
import hadoop
import merging
import mixed
import money
import ngrams
import nodes
import page
import preprocessing
import ranks
import recipes
import reviews
import rounds
import serving
import sizes
import speed
import steps
import target
import which
from machine import PROJECT, Machine, missing
from result import check_comparable

MODULES = (which, reviews, preprocessing, growth, merging, engines, nodes, hadoop, epochs, sizes, money, speed, steps, ranks, rounds, target, mixed, gpus, batches, ngrams, recipes, serving)
EXPERIMENTS = {module.__name__: module for module in MODULES}


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--programs", type=Path, default=PROJECT / "target" / "release")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--out", type=Path, default=PROJECT / "docs" / "experiments")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in EXPERIMENTS]:
        sys.exit(f"run.py: {unknown[0]}: unknown experiment, expected some of: {' '.join(EXPERIMENTS)}")
    if arguments.page:
        return page.write(EXPERIMENTS.values(), PROJECT / "docs", arguments.check)
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="experiments-") as work:
        machine = Machine(arguments.programs.resolve(), arguments.data, arguments.peers, Path(work), arguments.small)
        names = arguments.names or EXPERIMENTS
        if arguments.again:
            about = {"machine": machine.description(), "small": machine.small}
            for name in names:
                check_comparable(arguments.out, name, about, arguments.data is not None)
        check_required(names, machine)
        for name in names:
            measure(EXPERIMENTS[name], machine, arguments.out, arguments.again)


def check_required(names, machine: Machine) -> None:
    """Ends the program before the first experiment if a file that one of them requires is missing."""
    required = {machine.generator: "run make build, or pass --programs"}
    for name in names:
        required |= getattr(EXPERIMENTS[name], "REQUIRED", {})
    if found := missing(required):
        sys.exit(f"run.py: {found[0]}")


def measure(experiment, machine: Machine, out: Path, is_again: bool) -> None:
    name = experiment.__name__
    about = {"machine": machine.description(), "small": machine.small}
    machine.used.clear()
    begin = time.monotonic()
    result = experiment.run(machine)
    about |= {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "load": round(os.getloadavg()[0], 1),
        "seconds": round(time.monotonic() - begin),
        "data": machine.data_name(),
        "programs": machine.version(),
    }
    if is_again:
        result.compare(out, name, about)
    else:
        result.write(out, name, about)
    print(json.dumps({"experiment": name, "seconds": about["seconds"], "rows": len(result.rows)}), flush=True)


main()
