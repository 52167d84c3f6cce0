#!/usr/bin/env python3
"""Writes docs/report-desk.png and docs/report-phone.png: the report of two trainings on IMDB, with all tokens and with 100.

usage: screenshots.py --data FOLDER [--programs FOLDER] [--chromium FILE]
  --data FOLDER      real reviews: imdb/
  --programs FOLDER  sentimill, trainer and examples/report-picture; default: target/release
  --chromium FILE    headless Chromium; default: .deps/browser/chromium, which bootstrap/laptop.sh browser installs
"""

import argparse
import sys
import tempfile
from pathlib import Path

from machine import PROJECT, Machine, missing

TRAININGS = {"all-tokens": [], "first-100-tokens": ["--tokens", 100]}
# Widths and heights in pixels.
PICTURES = {"desk": (1400, 1445), "phone": (390, 1960)}


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--programs", type=Path, default=PROJECT / "target" / "release")
    parser.add_argument("--chromium", type=Path, default=PROJECT / ".deps" / "browser" / "chromium")
    arguments = parser.parse_args()
    if found := missing({arguments.chromium: "run bootstrap/laptop.sh browser"}):
        sys.exit(found[0])
    with tempfile.TemporaryDirectory(prefix="screenshots-") as work:
        machine = Machine(arguments.programs.resolve(), arguments.data, None, Path(work), False)
        train, test = machine.dataset(machine.corpus("IMDB"))
        folders = [Path(work) / name for name in TRAININGS]
        for folder, flags in zip(folders, TRAININGS.values()):
            machine.run("trainer", "fit", train, "--test", test, "--out", folder, "--quiet", "--device", "cpu", *flags)
        page = Path(work) / "report.html"
        machine.run("trainer", "report", *folders, "--out", page, "--quiet")
        for name, size in PICTURES.items():
            machine.run("examples/report-picture", arguments.chromium, page, PROJECT / "docs" / f"report-{name}.png", *size)


main()
