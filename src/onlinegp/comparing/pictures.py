"""Pictures of a comparison: learning curves with bands, and error against cost."""

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
    "multiplications": "multiplications per sample",
    "bytes": "memory [bytes]",
}
FEW_DECADES = 100.0
MANY = 12  # algorithms: of more, only those on the front are named beside their points
LETTER, LINE = 5.0, 9.0  # about the width of a letter and the height of a line in labels, in typographic points


def draw(found: Comparison, cost: str, names: Sequence[str], figure: Any) -> Any:
    """Return the figure: curves on the left, the front of the steady state against the cost on the right."""
    choice(COSTS, cost=cost)
    if figure is None:
        from matplotlib import pyplot

        figure = pyplot.figure(figsize=(10.5, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    points = {}
    for i, name in enumerate(names):
        look = {"color": COLORS[i % len(COLORS)], "ls": STYLES[i // len(COLORS) % len(STYLES)]}
        curve, steady = found.curve(name), found.steady_state(name)
        left.fill_between(found.samples, curve.low, curve.high, color=look["color"], alpha=0.15, lw=0)
        left.plot(found.samples, curve.value, label=name, lw=1.4, **look)
        points[name] = (float(np.mean(found[name].of(cost))), float(steady.value))
        half = [[float(steady.value - steady.low)], [float(steady.high - steady.value)]]
        right.errorbar(*points[name], yerr=half, fmt="o", color=look["color"], capsize=2)
    level = f"{found.settings.level:.0%} band"
    left.set(
        xlabel="samples", ylabel=TITLES[found.settings.by], title=f"Mean of {len(found.settings.seeds)} runs, {level}"
    )
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8, frameon=False)
    front = {name: points[name] for name in found.pareto(cost) if name in points}
    right.plot(*np.transpose(list(front.values())), color="0.6", lw=1, ls="--", zorder=0)
    mark_costs(right, [cost for cost, _ in points.values()])
    right.set(
        xlabel=AXES[cost],
        ylabel=f"{TITLES[found.settings.by]}, steady state",
        title="Error against cost",
    )
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
        ax.margins(*((0.02, 0.05) if ax is left else (0.25, 0.15)))
    label(right, points if len(points) <= MANY else front)
    return figure


def mark_costs(ax: Any, costs: Sequence[float]) -> None:
    """Make the horizontal axis logarithmic, with marks at 1, 2 and 5 where there are few decades."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

    ax.set_xscale("log")
    if costs and max(costs) < FEW_DECADES * min(costs):
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def label(ax: Any, points: dict[str, tuple[float, float]]) -> None:
    """Write the names beside points, toward the middle; a name that would cover another moves below it."""
    from matplotlib.patheffects import withStroke

    ax.figure.draw_without_rendering()  # only now is the place of each point known
    unit = ax.figure.dpi / 72.0  # pixels in a typographic point
    places = {name: (ax.transData.transform(point) - ax.bbox.min) / unit for name, point in points.items()}
    taken: list[tuple[float, float, float]] = []
    for name in sorted(places, key=lambda name: -places[name][1]):
        x, y = places[name]
        left = x < ax.bbox.width / unit / 2
        start = x + 5 if left else x - 5 - LETTER * len(name)
        height = y + 3
        beside = [at for first, last, at in taken if first < start + LETTER * len(name) and start < last]
        for at in sorted(beside, reverse=True):
            if abs(at - height) < LINE:
                height = at - LINE
        taken.append((start, start + LETTER * len(name), height))
        offset = (5 if left else -5, height - y)
        ax.annotate(
            name,
            points[name],
            xytext=offset,
            textcoords="offset points",
            fontsize=8,
            ha="left" if left else "right",
            path_effects=[withStroke(linewidth=2.5, foreground="white")],  # readable on top of bars and lines
        )
