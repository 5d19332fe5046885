"""Shared code for learning curves: errors along a stream, means over repeats with bands, the figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.comparing.intervals import Interval, of_mean_in_db, of_ratio_in_db
from onlinegp.models.base import OnlineRegressor
from onlinegp.papers import style
from onlinegp.papers.common import decimals

LEVEL = 0.95  # the level of the bands
Part = dict[str, list[float]]  # one curve per algorithm, for one repeat
COLORS = (style.BLACK, style.BLUE, style.VERMILION, style.GREEN, style.ORANGE, style.PURPLE, style.SKY, style.GREY)


def windowed(errors: Array, every: int) -> list[float]:
    """Return the means of consecutive blocks of `every` errors. The number of errors must be divisible by `every`."""
    return errors.reshape(-1, every).mean(axis=1).tolist()


def held_out(
    models: Mapping[str, OnlineRegressor], X: Array, y: Array, tests: Sequence[tuple[int, Array, Array]], every: int
) -> Part:
    """Return the mean squared error of each model on a test set, once every `every` samples.

    `tests` holds the number of samples up to which a test set applies, its inputs and its targets.
    """
    curves: Part = {}
    for name, fresh in models.items():
        model, curve = fresh.unfitted(), []
        for start in range(0, len(X), every):
            model.partial_fit(X[start : start + every], y[start : start + every])
            _, X_test, y_test = next(test for test in tests if start < test[0])
            curve.append(float(np.mean((model.predict(X_test) - y_test) ** 2)))
        curves[name] = curve
    return curves


def stacked(parts: Sequence[Part]) -> dict[str, Array]:
    """Return the curves of all repeats by algorithm, (repeats, points) each."""
    return {name: np.array([part[name] for part in parts]) for name in parts[0]}


def banded(runs: Array) -> dict[str, list[Any]]:
    """Return the mean over repeats in dB and its band, for JSON. With a single repeat the band has no width."""
    band = interval(runs)
    return {"mean": decimals(band.value), "low": decimals(band.low), "high": decimals(band.high)}


def interval(runs: Array) -> Interval:
    """Return the mean over repeats in dB and its interval. With a single repeat the interval has no width."""
    if len(runs) == 1:
        value = 10.0 * np.log10(runs[0])
        return Interval(value, value, value)
    return of_mean_in_db(runs, LEVEL)


def level(runs: Array, points: slice) -> dict[str, float]:
    """Return the mean error in dB over a range of points of all repeats, and half the width of its interval."""
    found = interval(runs[:, points].mean(axis=1))
    return {"error": round(float(found.value), 3), "+-": round(float(found.high - found.value), 3)}


def better(one: Array, other: Array, points: slice) -> list[float]:
    """Return the error of `one` relative to `other` in dB over a range of points, with the ends of its interval.

    Below zero, `one` is better.
    """
    runs, others = one[:, points].mean(axis=1), other[:, points].mean(axis=1)
    if len(runs) == 1:
        return [round(float(10.0 * np.log10(runs[0] / others[0])), 3)] * 3
    return [round(float(end), 3) for end in of_ratio_in_db(runs, others, LEVEL)]


def gathered(
    s: Any, note: str, models: Mapping[str, Any], parts: Sequence[Part], last: int
) -> tuple[dict[str, Any], dict[str, Array], slice]:
    """Return common results of learning curves, the curves of all repeats, and the points of the last samples.

    The results are the settings, a note, the curves, and the level of each algorithm over its last samples.
    """
    runs, end = stacked(parts), slice(-last // s.every, None)
    results = {
        "settings": asdict(s) | {"models": {name: repr(model) for name, model in models.items()}},
        "note": note,
        "samples": list(range(s.every, s.rows + 1, s.every)),
        "curves": {name: banded(one) for name, one in runs.items()},
        "levels": {name: level(one, end) for name, one in runs.items()},
    }
    return results, runs, end


def draw(results: dict[str, Any], title: str, *, ylabel: str = "MSE [dB]", switch: int | None = None) -> Any:
    """Draw all mean curves with their bands, and return the figure."""
    figure, ax = style.figure(3.2)
    for (name, curve), color in zip(results["curves"].items(), COLORS, strict=False):
        ax.fill_between(results["samples"], curve["low"], curve["high"], color=color, alpha=0.15, lw=0)
        ax.plot(results["samples"], curve["mean"], color=color, lw=1.2, label=name)
    if switch is not None:
        ax.axvline(switch, color="0.35", ls=":", lw=0.9)
    repeats = results["settings"]["repeats"]
    style.title(ax, f"{title}, {'one run' if repeats == 1 else f'mean of {repeats} runs, {LEVEL:.0%} band'}")
    ax.set(xlabel="samples", ylabel=ylabel)
    ax.margins(x=0.01)
    style.legend(figure, ax, ncols=3)
    return figure
