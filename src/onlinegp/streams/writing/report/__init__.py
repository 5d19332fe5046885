"""A page about a run: one file, no network, with curves that can be zoomed and read off."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.files.atomic import write_atomically
from onlinegp.streams.running.score import LEVELS, Curves, Score

POINTS = 120  # of the error curve: fewer than the buckets, so that each is a mean of many rows
DIGITS = 6  # that a screen can show


def write_report(
    path: str, figures: dict[str, Any], score: Score, curves: Curves, *, command: str, model: list[str]
) -> None:
    """Write the page.

    Parameters
    ----------
    path : str
    figures : dict, what `onlinegp run --summary` writes
    score, curves : what was gathered along the stream
    command : str, how to run it again
    model : list of str, the parameters in use
    """
    page = files("onlinegp.streams.writing.report").joinpath("page.html").read_text(encoding="utf-8")
    data = json.dumps(report_data(figures, score, curves), separators=(",", ":"), allow_nan=False)
    page = page.replace("@COMMAND@", html.escape(command)).replace("@MODEL@", html.escape("\n".join(model)))
    write_atomically(path, [page.replace("@DATA@", data.replace("<", "\\u003c")).encode()])


def report_data(figures: dict[str, Any], score: Score, curves: Curves) -> dict[str, Any]:
    """Return what the page draws, in plain values."""
    b = {name: np.array(values, dtype=np.float64) for name, values in curves.buckets.items()}
    ends = np.cumsum(b["rows"])
    rows, error = error_curve(curves)
    tail = {name: np.array(values, dtype=np.float64) for name, values in curves.tail.items()}
    return {
        "figures": {name: _number(value) for name, value in figures.items()},
        "width": curves.width,
        "whole": {
            "row": _list(ends - b["rows"] + 1),
            **{name: _list(b[name]) for name in ("y_low", "y_high", "mean_low", "mean_high", "lower", "upper", "size")},
        },
        "tail": {
            "row": _list(np.arange(curves.rows - len(tail["y"]) + 1.0, curves.rows + 1.0)),
            "y_low": _list(tail["y"]),
            "y_high": _list(tail["y"]),
            "mean_low": _list(tail["mean"]),
            "mean_high": _list(tail["mean"]),
            "lower": _list(tail["lower"]),
            "upper": _list(tail["upper"]),
        },
        "error": {"row": _list(rows), "db": _list(error)},
        "pit": score.pit,
        "levels": list(LEVELS),
        "within": [count / score.n if score.n else None for count in score.within],
    }


def error_curve(curves: Curves) -> tuple[Array, Array]:
    """Return rows and mean squared error in dB along the stream, NaN where nothing was scored."""
    b = {name: np.array(curves.buckets[name], dtype=np.float64) for name in ("rows", "scored", "squares")}
    if len(b["rows"]) == 0:
        return np.empty(0), np.empty(0)
    starts = np.unique(np.linspace(0, len(b["rows"]), POINTS, endpoint=False).astype(int))
    rows, scored, squares = (np.add.reduceat(b[name], starts) for name in ("rows", "scored", "squares"))
    with np.errstate(divide="ignore", invalid="ignore"):
        error = 10.0 * np.log10(squares / scored)
    return np.cumsum(rows), np.where(np.isfinite(error), error, np.nan)


def _list(values: Array) -> list[float | None]:
    return [_number(value) for value in values.tolist()]


def _number(value: Any) -> Any:
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None
    return value
