"""Writes docs/experiments.md from the results in docs/experiments/."""

import inspect
import sys
from pathlib import Path

import result

HEAD = """# Experiments

Each section is made by one command; `make experiments` runs all of them. The results are in
[experiments/](experiments/) as CSV. An *earlier system* is one whose published figures are compared here. The *original
system* is one of them: its settings are those of `--profile original` and `--recipe original`.

The folder of `DATA` has `amazon/*.json.gz`, `imdb/train.jsonl.gz`, `imdb/test.jsonl.gz` and
`yelp/sentences_polarity.csv.gz`. Without `DATA`, reviews are generated.

<!-- experiments/run.py --page writes this file. -->
"""


def write(experiments, docs: Path, check: bool) -> None:
    """Writes the page, or with `check` compares it."""
    folder, path = docs / "experiments", docs / "experiments.md"
    measured = [experiment for experiment in experiments if (folder / f"{experiment.__name__}.csv").exists()]
    page = "\n".join([HEAD, *(section(experiment, folder) for experiment in measured)])
    if not check:
        path.write_text(page, encoding="utf-8")
    elif not path.exists() or path.read_text(encoding="utf-8") != page:
        sys.exit(f"{path}: not what the results in {folder} give; run experiments/run.py --page")


def section(experiment, folder: Path) -> str:
    """One experiment: text, table, chart, and how it was measured."""
    name = experiment.__name__
    columns, rows, about = result.read(folder, name)
    table = [columns, ["---"] * len(columns), *rows]
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in table]
    picture = (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="experiments/{name}-dark.svg">'
        f'<img src="experiments/{name}.svg" width="80%" alt="{experiment.TITLE}: the columns of the table as a chart"></picture>'
    )
    origin = f"{about['machine']}; load {about['load']} at the end; {about['date']}; {about['seconds']} s. Data: {about['data']}."
    if again := about.get("again"):
        parts = [f"{column} {percent:g} %" for column, percent in again["differences"].items()]
        found = f"differs by at most: {', '.join(parts)}" if parts else "has the same numbers"
        found += "".join(f"; {text}" for text in again.get("texts", []))
        origin += f"\n\nA second run ({again['date']}) {found}."
    command = f"    make experiments DATA=FOLDER EXPERIMENTS={name}"
    parts = [f"## {experiment.TITLE}", inspect.getdoc(experiment), "\n".join(lines), picture, origin, command]
    return "\n\n".join(parts) + "\n"
