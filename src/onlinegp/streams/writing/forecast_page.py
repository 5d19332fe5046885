"""Write a page about forecasts: a single HTML file without JavaScript that works offline."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from importlib.resources import files

import numpy as np

from onlinegp.checks import Array
from onlinegp.files.atomic import write_atomically
from onlinegp.html_tables import table
from onlinegp.models.temporal.forecast import Forecast

WIDTH, HEIGHT = 1000.0, 320.0  # size of a picture
LEFT, RIGHT, TOP, BOTTOM = 64.0, 8.0, 8.0, 24.0  # margins of a picture
TICKS = 5
MOST_SERIES = 50  # largest number of series on a page
INNER_LEVEL = 0.5  # level of the darker band
STYLE = """svg { width: 100%; height: auto; display: block; } svg text { fill: var(--soft); font-size: 12px; }
.past { stroke: var(--data); } .ahead { stroke: var(--mean); } .past, .ahead { fill: none; stroke-width: 1.5; }
.band { fill: var(--band); } .grid { stroke: var(--line); } .past-key { background: var(--data); }
.ahead-key { background: var(--mean); } .band-key { background: var(--band); }"""


@dataclass(frozen=True)
class Chapter:
    """The part of a page about one series.

    Attributes
    ----------
    title : the name of the series
    story : a sentence about what was found
    past : the last values, NaN where missing
    labels : {row: date}, where row 0 is the last row of the past; empty without dates
    ahead : the forecast
    tested : the table of a backtest, or ""
    """

    title: str
    story: str
    past: Array
    labels: dict[int, str]
    ahead: Forecast
    tested: str


def write_forecasts(path: str, chapters: list[Chapter], *, level: float, command: str) -> None:
    """Write the page: for each series a sentence, a picture, a backtest if there is one, and the forecast."""
    style = files("onlinegp.streams.writing.report").joinpath("page.css").read_text(encoding="utf-8")
    title = chapters[0].title if len(chapters) == 1 else f"{len(chapters)} series"
    more = len(chapters) - MOST_SERIES
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>onlinegp: forecast of {escape(title)}</title>\n<style>\n{style}{STYLE}</style>\n</head>",
        f"<body>\n<main>\n<h1>Forecast of {escape(title)}</h1>",
        *(_section(chapter, level) for chapter in chapters[:MOST_SERIES]),
        f"<p>{more} more series are in the output, not on this page.</p>" if more > 0 else "",
        f"<section><h2>Command</h2><pre>{escape(command)}</pre></section>\n</main>\n</body>\n</html>\n",
    ]
    write_atomically(path, ["\n".join(parts).encode()])


def _section(chapter: Chapter, level: float) -> str:
    ahead, (lower, upper) = chapter.ahead, chapter.ahead.interval(level)
    when = range(1, len(ahead) + 1) if ahead.dates is None else ahead.dates
    numbers = zip(ahead.mean, ahead.median, ahead.std, lower, upper, strict=True)
    rows = [[name, *(f"{value:.6g}" for value in row)] for name, row in zip(when, numbers, strict=True)]
    titles = ["step" if ahead.dates is None else "date", "mean", "median", "std", "lower", "upper"]
    tested = f"<h2>Backtest</h2>\n<pre>{escape(chapter.tested)}</pre>\n" if chapter.tested else ""
    key = (
        '<p class="key"><span><i class="past-key"></i>data</span><span><i class="ahead-key"></i>median of the forecast'
        f'</span><span><i class="band-key"></i>its {INNER_LEVEL:.0%} and {100 * level:g}% intervals</span></p>'
    )
    return (
        f"<section>\n<h2>{escape(chapter.title)}</h2>\n<p>{escape(chapter.story)}</p>\n"
        f"{_picture(chapter, level)}\n{key}\n"
        f'{tested}<h2>Values</h2>\n<div class="scroll tall">{table(titles, rows)}</div>\n</section>'
    )


def _round_values(low: float, high: float) -> list[float]:
    """Return about TICKS round values in a range."""
    rough = (high - low) / TICKS
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= rough)
    return [float(k * step) for k in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]


def _picture(chapter: Chapter, level: float) -> str:
    """Return an SVG image of the past and the forecast, in the colors of the page."""
    ahead, past = chapter.ahead, chapter.past
    bands = [ahead.interval(level), ahead.interval(INNER_LEVEL)]
    shown = np.concatenate([past[np.isfinite(past)], *bands[0], ahead.median])
    low, high = float(shown.min()), float(shown.max())
    low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
    first, last = 1 - len(past), len(ahead)

    def x(row: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (row - first) / max(last - first, 1)

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)

    def line(rows: Array, values: Array) -> str:
        return " ".join(f"{x(row):.1f},{y(value):.1f}" for row, value in zip(rows, values, strict=True))

    steps = np.arange(1.0, last + 1.0)
    drawn = []
    for value in _round_values(low, high):
        drawn.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>')
        drawn.append(f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.4g}</text>')
    for row in np.unique(np.linspace(first, last, TICKS).astype(int)).tolist():
        label = chapter.labels.get(row, "" if chapter.labels else f"{row:+d}")[:16].replace("T", " ")
        anchor = {first: "start", last: "end"}.get(row, "middle")
        drawn.append(f'<text x="{x(row):.1f}" y="{HEIGHT - 6}" text-anchor="{anchor}">{escape(label)}</text>')
    for lower, upper in bands:
        drawn.append(f'<polygon class="band" points="{line(steps, upper)} {line(steps[::-1], lower[::-1])}"/>')
    rows, known = np.arange(first, 1.0), np.flatnonzero(np.isfinite(past))
    for part in np.split(known, np.flatnonzero(np.diff(known) > 1) + 1):  # one line between two gaps
        drawn.append(f'<polyline class="past" points="{line(rows[part], past[part])}"/>')
    drawn.append(f'<polyline class="ahead" points="{line(steps, ahead.median)}"/>')
    title = escape(f"{chapter.title}: the last {len(past)} values and the next {last}")
    size = f'viewBox="0 0 {WIDTH:g} {HEIGHT:g}"'
    return f'<svg {size} role="img" aria-label="{title}">\n' + "\n".join(drawn) + "\n</svg>"
