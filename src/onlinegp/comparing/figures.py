"""Figures of a comparison: learning curves with bands, and error against cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onlinegp.checks import choice
from onlinegp.comparing.results import COSTS, Comparison
from onlinegp.comparing.tables import TITLES
from onlinegp.plots import COLORS, STYLES

AXES = {
    "microseconds": "processor time per sample [us]",
    "bytes": "memory [bytes]",
}
MARKS = ("o", "s", "^", "D", "v", "P", "X")  # used if there are more curves than colors
LETTER, LINE = 5.0, 9.0  # approximate width of a letter and height of a line in labels, in points
ROOM = 5  # the largest distance of a name from its point, in lines


def draw(found: Comparison, cost: str, names: Sequence[str], figure: Any) -> Any:
    """Return the figure: curves on the left, the steady state against the cost on the right."""
    choice(COSTS, cost=cost)
    if figure is None:
        from matplotlib import pyplot

        figure = pyplot.figure(figsize=(10.5, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    points = {}
    faint = min(0.15, 1.2 / max(1, len(names)))
    for i, name in enumerate(names):
        used_up = i // len(COLORS)
        look = {"color": COLORS[i % len(COLORS)], "ls": STYLES[used_up % len(STYLES)]}
        mark = MARKS[used_up % len(MARKS)]
        curve, steady = found.curve(name), found.steady_state(name)
        left.fill_between(found.samples, curve.low, curve.high, color=look["color"], alpha=faint, lw=0)
        in_legend = {"marker": mark, "ms": 5, "markevery": []}
        left.plot(found.samples, curve.value, label=name, lw=1.4, **in_legend, **look)
        points[name] = (float(np.mean(found[name].of(cost))), float(steady.value))
        half = [[float(steady.value - steady.low)], [float(steady.high - steady.value)]]
        right.errorbar(*points[name], yerr=half, fmt=mark, color=look["color"], capsize=2)
    level = f"{found.settings.level:.0%} band"
    left.set(
        xlabel="samples", ylabel=TITLES[found.settings.by], title=f"Mean of {len(found.settings.seeds)} runs, {level}"
    )
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8, frameon=False)
    front = [name for name in found.pareto(cost) if name in points]
    right.plot(*np.transpose([points[name] for name in front]), color="0.6", lw=1, ls="--", zorder=0)
    right.set(
        xscale="log",
        xlabel=AXES[cost],
        ylabel=f"{TITLES[found.settings.by]}, steady state",
        title="Error against cost",
    )
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
        ax.margins(*((0.02, 0.05) if ax is left else (0.25, 0.15)))
    plain(right)
    label(right, points, front)
    return figure


def plain(ax: Any) -> None:
    """Label a short logarithmic axis with 2, 5, 10, because powers of ten are too far apart."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

    low, high = ax.get_xlim()
    ax.xaxis.set_minor_formatter(NullFormatter())
    if high < 50.0 * low:
        ax.xaxis.set_major_locator(MaxNLocator(4) if high < 5.0 * low else LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


def label(ax: Any, points: dict[str, tuple[float, float]], first: Sequence[str] = ()) -> None:
    """Write names next to points, toward the middle. Names that would cover another name move below it.

    Names in `first` are placed first. Names without enough room are only in the legend.
    """
    from matplotlib.patheffects import withStroke

    ax.figure.draw_without_rendering()  # this determines the position of each point
    unit = ax.figure.dpi / 72.0  # pixels in a typographic point
    places = {name: (ax.transData.transform(point) - ax.bbox.min) / unit for name, point in points.items()}
    taken: list[tuple[float, float, float]] = []
    for name in sorted(places, key=lambda name: (name not in first, -places[name][1])):
        x, y = places[name]
        left = x < ax.bbox.width / unit / 2
        start = x + 5 if left else x - 5 - LETTER * len(name)
        height = y + 3
        beside = [at for first, last, at in taken if first < start + LETTER * len(name) and start < last]
        for at in sorted(beside, reverse=True):
            if abs(at - height) < LINE:
                height = at - LINE
        if height < max(0.0, y + 3 - ROOM * LINE):
            continue
        taken.append((start, start + LETTER * len(name), height))
        offset = (5 if left else -5, height - y)
        text = ax.annotate(
            name, points[name], xytext=offset, textcoords="offset points", fontsize=8, ha="left" if left else "right"
        )
        # Readable over the intervals of other points
        text.set_path_effects([withStroke(linewidth=2.5, foreground="white")])
