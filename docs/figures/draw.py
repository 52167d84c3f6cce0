#!/usr/bin/env python3
"""Draws the charts of BENCHMARKS.md: data.csv into NAME.svg (light) and NAME-dark.svg, in this folder.

The output depends on data.csv and this script alone. `--check` writes nothing and fails if a file differs; `make check`
runs it.
"""

import csv
import sys
from html import escape
from itertools import groupby
from pathlib import Path

# Chart in data.csv: title, note below it.
CHARTS = {
    "engines": ("From 1 GB of JSON lines to one dataset", "wall seconds, less is better"),
    "training": ("Training on IMDB", "reviews per second, more is better"),
    "hadoop": ("The Hadoop job on 1 GB", "seconds, less is better"),
}
# Bars of this project; the others are grey.
OURS = {"sentimill", "Sentimill", "trainer"}
# Suffix of the file: background, text, muted text, bar of this project, other bars, whisker.
THEMES = {
    "": ("#ffffff", "#1f2328", "#59636e", "#1a7f5a", "#b6bec8", "#59636e"),
    "-dark": ("#0d1117", "#f0f6fc", "#9198a1", "#3fb68b", "#4a525c", "#9198a1"),
}
# Pixels.
WIDTH, LEFT, RIGHT, MARGIN = 640, 150, 90, 16
HEAD, PANEL_HEAD, ROW, BAR, PANEL_GAP = 58, 22, 24, 16, 10


def main():
    folder = Path(__file__).parent
    drawn = draw_all(folder / "data.csv")
    if sys.argv[1:] == ["--check"]:
        expected = set(drawn)
        found = {path.name for path in folder.glob("*.svg")}
        stale = [name for name in expected & found if (folder / name).read_text("utf-8") != drawn[name]]
        wrong = sorted(stale + list(expected ^ found))
        if wrong:
            sys.exit(f"docs/figures: {', '.join(wrong)}: not what draw.py makes of data.csv; run docs/figures/draw.py")
    elif sys.argv[1:]:
        sys.exit("usage: docs/figures/draw.py [--check]")
    else:
        for name, svg in drawn.items():
            (folder / name).write_text(svg, "utf-8")


def draw_all(data):
    """Returns the text of each SVG by its file name."""
    with data.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    charts = {name: list(group) for name, group in groupby(rows, key=lambda row: row["chart"])}
    if charts.keys() != CHARTS.keys():
        sys.exit(f"{data}: charts {sorted(charts)}, expected {sorted(CHARTS)}, each in adjacent lines")
    return {
        f"{name}{suffix}.svg": draw(*CHARTS[name], rows, theme)
        for name, rows in charts.items()
        for suffix, theme in THEMES.items()
    }


def draw(title, note, rows, theme):
    """One chart: horizontal bars from 0, a whisker from the least to the most measured value, the value in figures."""
    background, text, muted, ours, others, whisker = theme
    largest = max(float(row["most"]) for row in rows)
    scale = (WIDTH - LEFT - RIGHT) / largest
    parts, y = [], HEAD
    for panel, bars in groupby(rows, key=lambda row: row["panel"]):
        if panel:
            parts.append(label(MARGIN, y + 14, panel, text, "font-weight='600'"))
            y += PANEL_HEAD
        for bar in bars:
            value, least, most = (float(bar[column]) for column in ("value", "least", "most"))
            if not least <= value <= most:
                sys.exit(f"data.csv: {bar}: the value is not between least and most")
            end, middle = LEFT + value * scale, y + BAR / 2
            colour = ours if bar["bar"] in OURS else others
            weight = "font-weight='600'" if bar["bar"] in OURS else ""
            parts.append(label(LEFT - 8, middle + 4, bar["bar"], text, f"text-anchor='end' {weight}".strip()))
            parts.append(f"<rect x='{LEFT}' y='{y}' width='{value * scale:.1f}' height='{BAR}' fill='{colour}'/>")
            low, high = LEFT + least * scale, LEFT + most * scale
            parts.append(
                f"<path d='M{low:.1f} {middle}H{high:.1f}M{low:.1f} {middle - 3}v6M{high:.1f} {middle - 3}v6'"
                f" stroke='{whisker}' fill='none'/>"
            )
            parts.append(label(max(end, high) + 8, middle + 4, figure(bar["value"]), text, weight))
            y += ROW
        y += PANEL_GAP
    height = y + MARGIN - PANEL_GAP
    head = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{height}' viewBox='0 0 {WIDTH} {height}'"
        f" role='img' font-family='-apple-system, Segoe UI, Helvetica, Arial, sans-serif' font-size='13'>",
        f"<title>{escape(title)}: {escape(note)}</title>",
        f"<rect width='{WIDTH}' height='{height}' rx='6' fill='{background}'/>",
        label(MARGIN, 26, title, text, "font-size='16' font-weight='600'"),
        label(MARGIN, 45, note, muted),
    ]
    return "\n".join([*head, *parts, "</svg>", ""])


def label(x, y, words, colour, attributes=""):
    attributes = f" {attributes}" if attributes else ""
    return f"<text x='{x:g}' y='{y:g}' fill='{colour}'{attributes}>{escape(words)}</text>"


def figure(value):
    """The value as data.csv has it, with commas between thousands."""
    return f"{int(value):,}" if value.isdigit() else value


if __name__ == "__main__":
    main()
