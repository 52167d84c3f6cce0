"""The result of an experiment: a table, and charts of its columns."""

import csv
import json
import re
import sys
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

    def compare(self, folder: Path, name: str, about: dict) -> None:
        """Notes in NAME.json how much these values differ from those that were written before."""
        columns, rows, before = read(folder, name)
        if before["machine"] != about["machine"]:
            sys.exit(f"{folder / name}.csv is of {before['machine']}, this is {about['machine']}; measure it without --again")
        before["again"] = {
            "date": about["date"],
            "seconds": about["seconds"],
            "differences": differences(columns, rows, [[str(cell) for cell in row] for row in self.rows]),
        }
        (folder / f"{name}.json").write_text(json.dumps(before, indent=2) + "\n")


NUMBER = re.compile(r"-?[\d,]*\.?\d+")


def differences(columns: list[str], rows: list[list[str]], others: list[list[str]]) -> dict[str, float]:
    """The largest difference of the values of each column, in percent of the larger value. Of a cell with a range, the median
    is compared. Columns without a difference are left out."""
    found: dict[str, float] = {}
    for row, other in zip(rows, others, strict=True):
        for column, cell, other_cell in zip(columns, row, other, strict=True):
            if cell == other_cell:
                continue
            numbers = [NUMBER.match(text) for text in (cell, other_cell)]
            if not all(numbers):
                sys.exit(f"{column}: {other_cell} in the second run, {cell} in the first one")
            one, two = (float(number[0].replace(",", "")) for number in numbers)
            percent = 100 * abs(one - two) / max(abs(one), abs(two), sys.float_info.min)
            found[column] = max(found.get(column, 0.0), round(percent, 1))
    return found


def read(folder: Path, name: str) -> tuple[list[str], list[list[str]], dict]:
    """The columns, the rows and what is known about a result that was written."""
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        columns, *rows = csv.reader(file)
    return columns, rows, json.loads((folder / f"{name}.json").read_text())
