"""The result of an experiment: a table, and charts of its columns."""

import csv
import json
from dataclasses import dataclass, field
from pathlib import Path

import chart


@dataclass
class Result:
    """Columns and rows of a table. Each chart is one of chart.py's."""

    columns: list[str]
    rows: list[list] = field(default_factory=list)
    charts: list = field(default_factory=list)

    def write(self, folder: Path, name: str, about: dict) -> None:
        """Writes NAME.csv, NAME.json and the charts, one below the other, as NAME.svg and NAME-dark.svg."""
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([self.columns, *self.rows])
        (folder / f"{name}.json").write_text(json.dumps(about, indent=2) + "\n")
        for suffix, theme in chart.THEMES.items():
            (folder / f"{name}{suffix}.svg").write_text(chart.draw(self.charts, theme), encoding="utf-8")


def read(folder: Path, name: str) -> tuple[list[str], list[list[str]], dict]:
    """The columns, the rows and what is known about a result that was written."""
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        columns, *rows = csv.reader(file)
    return columns, rows, json.loads((folder / f"{name}.json").read_text())
