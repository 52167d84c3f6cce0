"""The result of an experiment: a table, and charts of its columns."""

import csv
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import chart
from machine import GENERATED


@dataclass
class Result:
    """Columns and rows of a table. Each chart is one of chart.py's. Notes are sentences below the table."""

    columns: list[str]
    rows: list[list] = field(default_factory=list)
    charts: list = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def write(self, folder: Path, name: str, about: dict) -> None:
        """Writes NAME.csv, NAME.json and the charts, one below the other, as NAME.svg and NAME-dark.svg."""
        write_table(folder / f"{name}.csv", self.columns, self.rows)
        write_about(folder, name, about | ({"notes": self.notes} if self.notes else {}))
        for suffix, theme in chart.THEMES.items():
            (folder / f"{name}{suffix}.svg").write_text(chart.draw(self.charts, theme), encoding="utf-8")

    def compare(self, folder: Path, name: str, about: dict) -> None:
        """Notes in NAME.json how much the values of this further run differ from those that were written before."""
        columns, rows, before = read(folder, name)
        again = [[str(cell) for cell in row] for row in self.rows]
        if (before["data"], columns, len(rows)) != (about["data"], self.columns, len(again)):
            kept = folder / f"{name}.further.csv"
            write_table(kept, self.columns, again)
            sys.exit(
                f"{folder / name}.csv has {len(rows)} rows of {', '.join(columns)} for {before['data']}; this run has "
                f"{len(again)} rows of {', '.join(self.columns)} for {about['data']}, in {kept}. Measure {name} without --again."
            )
        percent, texts = differences(columns, rows, again)
        further = {key: about[key] for key in ("date", "seconds", "programs")}
        further |= {"differences": percent, "texts": texts, "equal": rows == again}
        before.setdefault("further", []).append(further)
        write_about(folder, name, before)


def spread_of(further: list[dict]) -> str:
    """The column that differs most in further runs of a table, as a sentence."""
    dates, is_one = ", ".join(run["date"] for run in further), len(further) == 1
    found = largest(further)
    most = max(found, key=found.get, default="")
    same = f"ha{'s' if is_one else 've'} the same numbers" if all(run.get("equal") for run in further) else f"differ{'s' * is_one} by less than 0.05 %"
    spread = f"differ{'s' * is_one} by at most {found[most]:g} % ({most})" if found else same
    spread += "".join(f"; {text}" for run in further for text in run["texts"])
    return f"{'A second run' if is_one else f'{len(further)} further runs'} ({dates}) {spread}."


def largest(further: list[dict]) -> dict[str, float]:
    """The largest difference of each column."""
    found: dict[str, float] = {}
    for run in further:
        for column, percent in run["differences"].items():
            found[column] = max(found.get(column, 0.0), percent)
    return found


def error_of(model: list[float], measured: list[float]) -> str:
    """A sentence about the error of a model in the runs from which it was left out."""
    errors = [100 * abs(predicted - value) / value for predicted, value in zip(model, measured, strict=True)]
    return f"The model differs from the measured times by {sum(errors) / len(errors):.0f} % on average, and by at most {max(errors):.0f} %."


def check_comparable(folder: Path, name: str, about: dict, has_data: bool) -> None:
    """Ends the program unless a second run can be compared with the table that was written before."""
    if not (folder / f"{name}.csv").exists():
        sys.exit(f"{folder / name}.csv: not found; --again requires the table of a first run")
    _, _, before = read(folder, name)
    for what in ("machine", "small"):
        if before.get(what, False) != about[what]:
            sys.exit(f"{folder / name}.csv: {what}: {before.get(what, False)}, now {about[what]}; measure it without --again")
    if before["data"] != GENERATED and not has_data:
        sys.exit(f"{folder / name}.csv: data: {before['data']}, now {GENERATED}; pass --data")


NUMBER = re.compile(r"-?[\d,]*\.?\d+")


def number(text: str) -> float:
    return float(text.replace(",", ""))


def differences(columns: list[str], rows: list[list[str]], others: list[list[str]]) -> tuple[dict[str, float], list[str]]:
    """The largest difference of the values of each column, in percent of the larger value, and the cells that are not both
    numbers. Of a cell with a range, the median is compared. Columns that differ by less than 0.05 percent are left out."""
    percent: dict[str, float] = {}
    texts = []
    for row, other in zip(rows, others, strict=True):
        for column, cell, other_cell in zip(columns, row, other, strict=True):
            if cell == other_cell:
                continue
            numbers = [NUMBER.match(text) for text in (cell, other_cell)]
            if not all(numbers):
                texts.append(f"{column}: {cell} in the table, {other_cell} in the other run")
                continue
            one, two = (number(found[0]) for found in numbers)
            found = 100 * abs(one - two) / max(abs(one), abs(two), sys.float_info.min)
            if round(found, 1) > 0:
                percent[column] = max(percent.get(column, 0.0), round(found, 1))
    return percent, texts


def write_table(path: Path, columns: list[str], rows: list[list]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([columns, *rows])


def write_about(folder: Path, name: str, about: dict) -> None:
    (folder / f"{name}.json").write_text(json.dumps(about, indent=2) + "\n")


def read(folder: Path, name: str) -> tuple[list[str], list[list[str]], dict]:
    """The columns, the rows and what is known about a result that was written."""
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        columns, *rows = csv.reader(file)
    return columns, rows, json.loads((folder / f"{name}.json").read_text())
