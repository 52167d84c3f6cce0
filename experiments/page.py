"""Writes docs/experiments.md from the results in docs/experiments/."""

import inspect
import re
import sys
from collections import Counter
from pathlib import Path

import result
from machine import GENERATED

# Results of `make bench` and of single commands. Their title, text and command are in NAME.json.
RECORDED = (
    "stages", "options", "estimate", "reading", "chunks", "parsing", "s3", "pytorch", "balance", "all-reduce", "large",
    "vectors", "streams", "characters", "server", "several",
)

HEAD = """# Measurements

`make experiments` measures the part of this page with charts, `make bench` most of the rest. The results are in
[experiments/](experiments/) as CSV, some with more rows and columns than here.

An *earlier system* is a published project, with its own figures. The *original system* is one of them: it converted 92.45 GB
of Amazon reviews with Hadoop Streaming in Python on 32 virtual cores, and trained an LSTM in PyTorch on GPUs.
`--profile original` and `--recipe original` are its settings. *1 GB of reviews* are 1,000,001,467 bytes of generated
reviews: 1,280,141 lines, 1,087,749 distinct texts, read with `--profile original`.

The folder `DATA` contains `amazon/*.json.gz`, `imdb/train.jsonl.gz`, `imdb/test.jsonl.gz` and
`yelp/sentences_polarity.csv.gz`. Without `DATA`, reviews are generated. Some experiments require root, for control groups
and network namespaces, and `ip`, `tc`, GNU time, Java and Maven. They took TOTAL minutes, without the build; `--small` runs
all of them on few reviews in two minutes. A section names its machine and programs if they are not those of most sections:
MACHINE; PROGRAMS.

Several nodes, unequal ranks and GPUs are simulated on this machine, by quotas of CPU time and links of network namespaces:
[several ranks](#several-ranks), [rounds](#rounds), [time to a validation loss](#time-to-a-validation-loss),
[ranks of unequal speed](#ranks-of-unequal-speed) and [clusters of GPUs](#clusters-of-gpus). Their ratios hold for such ranks;
seconds of real nodes and GPUs are others.

A figure is a median, and brackets contain the lowest and the highest run. `experiments/run.py --again` repeats a table; the
page then states the largest difference, in percent of the larger value; NAME.json has that of each column.

Most second runs were made on another virtual machine of the same kind, about a fifth slower. Ratios between programs in the
same round differed by at most 12 %, the percentages of the ideal speed by 2 %, and accuracies by 0.1 %. Speed-ups compare
runs of different minutes, and differ more.

<!-- experiments/run.py --page writes this file. -->
"""

def write(experiments, docs: Path, check: bool) -> None:
    """Writes the page, or with `check` compares it."""
    folder, path = docs / "experiments", docs / "experiments.md"
    measured = [experiment for experiment in experiments if (folder / f"{experiment.__name__}.csv").exists()]
    abouts = [result.read(folder, experiment.__name__)[2] for experiment in measured]
    usual = {key: Counter(about.get(key) for about in abouts).most_common(1)[0][0] for key in ("machine", "programs")}
    head = HEAD.replace("TOTAL", f"{sum(about['seconds'] for about in abouts) / 60:.0f}")
    head = head.replace("MACHINE", usual["machine"]).replace("PROGRAMS", usual["programs"] or "unknown programs")
    sections = [*(section(experiment, folder, usual) for experiment in measured), *(recorded(name, folder) for name in RECORDED)]
    page = "\n".join([head, *sections])
    if not check:
        path.write_text(page, encoding="utf-8")
    elif not path.exists() or path.read_text(encoding="utf-8") != page:
        sys.exit(f"{path}: not what the results in {folder} give; run experiments/run.py --page")


def section(experiment, folder: Path, usual: dict) -> str:
    """One experiment: text, table, chart, and how it was measured, without the machine and the programs of most experiments."""
    name = experiment.__name__
    columns, rows, about = result.read(folder, name)
    shown = getattr(experiment, "page_rows", lambda rows: rows)(rows)
    kept = [not column.startswith(getattr(experiment, "OMITTED", ())) for column in columns]
    columns, *shown = ([cell for cell, is_kept in zip(row, kept, strict=True) if is_kept] for row in [columns, *shown])
    drawn = re.search("<title>(.*)</title>", (folder / f"{name}.svg").read_text(encoding="utf-8"))[1]
    picture = (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="experiments/{name}-dark.svg">'
        f'<img src="experiments/{name}.svg" width="80%" alt="{drawn}"></picture>'
    )
    differing = {key: about[key] for key in usual if about.get(key, usual[key]) != usual[key]}
    origin = [f"load {about['load']}", about["date"], f"{about['seconds']} s", f"data: {about['data']}"]
    origin = "; ".join([*differing.values(), *origin]) + "."
    origin = origin[0].upper() + origin[1:]
    if further := about.get("further"):
        origin += f" {result.spread_of(further)}"
    needs_data = about["data"] != GENERATED
    command = f"    make experiments {'DATA=FOLDER ' * needs_data}EXPERIMENTS={name}"
    notes = [" ".join(about["notes"])] if "notes" in about else []
    parts = [f"## {experiment.TITLE}", inspect.getdoc(experiment), table(columns, shown), *notes, picture, origin, command]
    return "\n\n".join(parts) + "\n"


def recorded(name: str, folder: Path) -> str:
    """A result that no experiment measures: text, table, and how it was measured."""
    columns, rows, about = result.read(folder, name)
    origin = [about[key] for key in ("machine", "load", "date") if about.get(key)]
    notes = [" ".join(about["notes"])] if "notes" in about else []
    command = [f"    {about['command']}"] if "command" in about else []
    parts = [f"## {about['title']}", *about["text"], table(columns, rows), *notes, *(["; ".join(origin) + "."] if origin else []), *command]
    return "\n\n".join(parts) + "\n"


def table(columns: list[str], rows: list[list[str]]) -> str:
    """Markdown of a table."""
    head, *body = (f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in [columns, *rows])
    return "\n".join([head, "|---" * len(columns) + "|", *body])
