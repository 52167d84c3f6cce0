"""Charts as SVG: lines or points over two axes, bars, and rankings."""

import math
import statistics
from dataclasses import dataclass
from html import escape

# Suffix of the file: background, text, muted text, grid, colours of the series.
THEMES = {
    "": ("#ffffff", "#1f2328", "#59636e", "#d8dee4", ["#1a7f5a", "#3d6fd1", "#b35900", "#8250df", "#59636e", "#cf222e"]),
    "-dark": ("#0d1117", "#f0f6fc", "#9198a1", "#30363d", ["#3fb68b", "#6ca4f8", "#e09b52", "#b392f0", "#9198a1", "#ff7b72"]),
}
# Pixels.
WIDTH, PLOT, LEFT, RIGHT, TOP, BOTTOM, LINE = 640, 200, 64, 20, 50, 44, 18
# Average width of a character.
CHARACTER = 6.2
# Of a ranking: names and values beside the bars, and the heights of a row and a bar.
NAMES, VALUES, ROW, BAR = 150, 90, 24, 16


@dataclass
class Chart:
    """Points by series; `is_joined` draws lines between them, `is_log` has a logarithmic x axis."""

    title: str
    x: str
    y: str
    series: dict[str, list[tuple[float, float]]]
    is_joined: bool = True
    is_log: bool = False


@dataclass
class Bars:
    """Groups of bars, one bar per series; values from 0."""

    title: str
    y: str
    groups: list[str]
    series: dict[str, list[float]]


@dataclass
class Ranking:
    """Horizontal bars from 0: panel, name and runs of each. A bar ends at the median; a whisker covers all runs.

    Bars of `ours` have a colour.
    """

    title: str
    unit: str
    bars: list[tuple[str, str, list[float]]]
    ours: set[str]


def draw(charts: list, theme: tuple) -> str:
    """Draws charts below each other."""
    parts, y = [], 0
    for each in charts:
        drawn, height = DRAW[type(each)](each, theme, y)
        parts += drawn
        y += height
    titles = escape("; ".join(each.title for each in charts))
    head = f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{y}' viewBox='0 0 {WIDTH} {y}' role='img'>"
    style = "<style>text{font:12px system-ui,sans-serif}</style>"
    return "\n".join([head, f"<title>{titles}</title>", style, f"<rect width='{WIDTH}' height='{y}' fill='{theme[0]}'/>", *parts, "</svg>", ""])


def draw_points(chart: Chart, theme: tuple, top: int) -> tuple[list[str], int]:
    """The elements of a chart from `top` on, and its height."""
    points = [point for series in chart.series.values() for point in series]
    scale = math.log10 if chart.is_log else float
    find = log_ticks if chart.is_log else ticks
    xs, ys = [scale(x) for x in find([x for x, _ in points])], ticks([y for _, y in points])
    labels = [text(10**x if chart.is_log else x) for x in xs]
    parts, height = frame(chart.title, chart.y, ys, chart.series, theme, top)
    place = lambda x, y: (at(scale(x), xs, LEFT, WIDTH - RIGHT), at(y, ys, top + TOP + PLOT, top + TOP))
    for tick, label in zip(xs, labels):
        parts.append(label_at(at(tick, xs, LEFT, WIDTH - RIGHT), top + TOP + PLOT + 16, label, theme[2], "middle"))
    parts.append(label_at((LEFT + WIDTH - RIGHT) / 2, top + TOP + PLOT + 34, chart.x, theme[2], "middle"))
    for series, colour in zip(chart.series.values(), theme[4]):
        placed = [place(x, y) for x, y in series]
        if chart.is_joined and len(placed) > 1:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
            parts.append(f"<polyline points='{path}' fill='none' stroke='{colour}' stroke-width='2'/>")
        parts += [f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3.5' fill='{colour}'/>" for x, y in placed]
    return parts, height


def draw_bars(bars: Bars, theme: tuple, top: int) -> tuple[list[str], int]:
    """The elements of bars from `top` on, and their height."""
    ys = ticks([0.0, *(value for values in bars.series.values() for value in values)])
    step = (WIDTH - LEFT - RIGHT) / len(bars.groups)
    width = step * 0.8 / len(bars.series)
    longest = CHARACTER * max(map(len, bars.groups))
    # Names that would overlap are turned by 45 degrees.
    is_turned = longest > step
    parts, height = frame(bars.title, bars.y, ys, bars.series, theme, top, longest * math.sqrt(0.5) if is_turned else 0.0)
    for group, name in enumerate(bars.groups):
        begin = LEFT + group * step + step * 0.1
        x, y = begin + step * 0.4, top + TOP + PLOT + 16
        turn = f"transform='rotate(-45 {x:.1f} {y:.1f})'" if is_turned else ""
        parts.append(label_at(x, y, name, theme[2], "end" if is_turned else "middle", turn))
        for number, (values, colour) in enumerate(zip(bars.series.values(), theme[4])):
            y = at(values[group], ys, top + TOP + PLOT, top + TOP)
            size = top + TOP + PLOT - y
            parts.append(f"<rect x='{begin + number * width:.1f}' y='{y:.1f}' width='{width * 0.92:.1f}' height='{size:.1f}' fill='{colour}'/>")
    return parts, height


def draw_ranking(ranking: Ranking, theme: tuple, top: int) -> tuple[list[str], int]:
    """The elements of a ranking from `top` on, and its height."""
    parts = [label_at(LEFT / 4, top + 20, ranking.title, theme[1], "start", "font-weight='600'"), label_at(LEFT / 4, top + 38, ranking.unit, theme[2], "start")]
    y, panel = top + TOP, ""
    scale = (WIDTH - NAMES - VALUES) / max(value for _, _, runs in ranking.bars for value in runs)
    for of_panel, name, runs in ranking.bars:
        if of_panel != panel:
            panel = of_panel
            parts.append(label_at(LEFT / 4, y + 14, panel, theme[1], "start", "font-weight='600'"))
            y += ROW
        value, is_ours, middle = statistics.median(runs), name in ranking.ours, y + BAR / 2
        low, end, high = (NAMES + each * scale for each in (min(runs), value, max(runs)))
        weight, colour = ("font-weight='600'", theme[4][0]) if is_ours else ("", theme[4][4])
        parts.append(label_at(NAMES - 8, middle + 4, name, theme[1], "end", weight))
        parts.append(f"<rect x='{NAMES}' y='{y}' width='{end - NAMES:.1f}' height='{BAR}' fill='{colour}' fill-opacity='{1 if is_ours else 0.5}'/>")
        whisker = f"M{low:.1f} {middle}H{high:.1f}M{low:.1f} {middle - 3}v6M{high:.1f} {middle - 3}v6"
        parts.append(f"<path d='{whisker}' stroke='{theme[2]}' fill='none'/>")
        parts.append(label_at(high + 8, middle + 4, f"{value:,.0f}" if value >= 100 else f"{value:.3g}", theme[1], "start", weight))
        y += ROW
    return parts, y - top + 12


DRAW = {Chart: draw_points, Bars: draw_bars, Ranking: draw_ranking}


def frame(title: str, unit: str, ys: list[float], series: dict, theme: tuple, top: int, names: float = 0.0) -> tuple[list[str], int]:
    """Title, legend, grid and y axis. `names` is the height of the names below the x axis, if it is more than a line."""
    parts = [label_at(LEFT, top + 20, title, theme[1], "start", "font-weight='600'"), label_at(LEFT, top + 38, unit, theme[2], "start")]
    for tick in ys:
        y = at(tick, ys, top + TOP + PLOT, top + TOP)
        parts.append(f"<line x1='{LEFT}' x2='{WIDTH - RIGHT}' y1='{y:.1f}' y2='{y:.1f}' stroke='{theme[3]}'/>")
        parts.append(label_at(LEFT - 6, y + 4, text(tick), theme[2], "end"))
    y = top + TOP + PLOT + BOTTOM + round(names)
    for name, colour in zip(series, theme[4]):
        parts.append(f"<rect x='{LEFT}' y='{y}' width='12' height='12' fill='{colour}'/>")
        parts.append(label_at(LEFT + 18, y + 10, name, theme[1], "start"))
        y += LINE
    return parts, y - top + 12


def ticks(values: list[float]) -> list[float]:
    """Four to seven round numbers that enclose all values."""
    least, most = min(values), max(values)
    if most == least:
        least, most = least - 0.5, most + 0.5
    raw = (most - least) / 5
    power = 10 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)
    first, last = math.floor(least / step + 1e-9), math.ceil(most / step - 1e-9)
    return [number * step for number in range(first, last + 1)]


def log_ticks(values: list[float]) -> list[float]:
    """The numbers 1, 2 and 5 times powers of ten that enclose all values."""
    powers = range(math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) + 1)
    numbers = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    first = max(number for number in numbers if number <= min(values))
    last = min(number for number in numbers if number >= max(values))
    return [number for number in numbers if first <= number <= max(last, 2 * first)]


def at(value: float, scale: list[float], begin: float, end: float) -> float:
    """The place of a value between the ends of an axis."""
    return begin + (value - scale[0]) / (scale[-1] - scale[0]) * (end - begin)


def text(value: float) -> str:
    return f"{value:,.10g}" if abs(value) >= 1000 else f"{value:.4g}"


def label_at(x: float, y: float, content: str, colour: str, anchor: str, more: str = "") -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' fill='{colour}' text-anchor='{anchor}' {more}>{escape(content)}</text>"
