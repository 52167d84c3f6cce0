"""Writes docs/experiments.md from the results in docs/experiments/."""

import inspect
import re
import sys
from pathlib import Path

import result
from machine import GENERATED

HEAD = """# Experiments

One command measures each section; `make experiments` runs all of them. The results are in
[experiments/](experiments/) as CSV. An *earlier system* is a published project whose own figures are compared here. The
*original system* is one of them: it converted 92.45 GB of Amazon reviews with Hadoop Streaming in Python on 32 virtual cores,
and trained an LSTM in PyTorch on GPUs. `--profile original` and `--recipe original` are its settings.

The folder `DATA` contains `amazon/*.json.gz`, `imdb/train.jsonl.gz`, `imdb/test.jsonl.gz` and
`yelp/sentences_polarity.csv.gz`. Without `DATA`, reviews are generated. Some experiments require root, for control groups and
network namespaces, and `ip`, `tc`, GNU time, Java and Maven.

The tables of this page took TOTAL minutes, without the build and its downloads. `--small` runs all of them on few reviews in
about two minutes, which the tests do. `experiments/run.py --again` repeats a table. The page then states, for each column, the
largest difference between the runs, in percent of the larger value. If nothing has changed, 60 % of the medians of three runs are
expected to be within the range of three other runs, and 83 % of those of five.

Virtual machines of one kind differ in speed: ranges are those of one machine. Most second runs of this page were made on another
machine of the same kind, which was about a fifth slower. There, ratios between programs in the same round differed by at most
12 %, the percentages of the ideal speed by 2 %, and accuracies by 0.1 %. Speed-ups and efficiencies compare runs of different
minutes, and differ more.

<!-- experiments/run.py --page writes this file. -->
"""


def write(experiments, docs: Path, check: bool) -> None:
    """Writes the page, or with `check` compares it."""
    folder, path = docs / "experiments", docs / "experiments.md"
    measured = [experiment for experiment in experiments if (folder / f"{experiment.__name__}.csv").exists()]
    seconds = sum(result.read(folder, experiment.__name__)[2]["seconds"] for experiment in measured)
    head = HEAD.replace("TOTAL", f"{seconds / 60:.0f}")
    page = "\n".join([head, *(section(experiment, folder) for experiment in measured)])
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
    drawn = re.search("<title>(.*)</title>", (folder / f"{name}.svg").read_text(encoding="utf-8"))[1]
    picture = (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="experiments/{name}-dark.svg">'
        f'<img src="experiments/{name}.svg" width="80%" alt="{experiment.TITLE}, charts: {drawn}"></picture>'
    )
    origin = f"{about['machine']}; load {about['load']} at the end; {about['date']}; {about['seconds']} s. Data: {about['data']}."
    if "programs" in about:
        origin += f" Programs: {about['programs']}."
    if further := about.get("further"):
        origin += f"\n\n{result.spread_of(further)}"
    needs_data = about["data"] != GENERATED
    command = f"    make experiments {'DATA=FOLDER ' * needs_data}EXPERIMENTS={name}"
    notes = [" ".join(about["notes"])] if "notes" in about else []
    parts = [f"## {experiment.TITLE}", inspect.getdoc(experiment), "\n".join(lines), *notes, picture, origin, command]
    return "\n\n".join(parts) + "\n"
