"""Write an interactive page about a run: a single HTML file that works offline."""

from __future__ import annotations

import html
import json
import re
from importlib.resources import files
from typing import Any

import numpy as np

from onlinegp.auto.learner import AutoLearner
from onlinegp.checks import Array
from onlinegp.files.atomic import write_atomically
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import innermost, working
from onlinegp.streams.running.member_weights import Weights
from onlinegp.streams.running.requested_model import changes_of, described, inside
from onlinegp.streams.running.run import Job
from onlinegp.streams.running.run_by_key import ModelPerKey
from onlinegp.streams.running.score import LEVELS, TAILED, Curves, Score

POINTS = 120  # number of points of the error curve, each an average over many rows
COVERED_ROWS = 100  # smallest number of scored rows for a point of the curve of coverage
DIGITS = 6  # digits of the numbers on the page
ROOM = "onlinegp.streams.writing.report"


def write_report(path: str, job: Job, figures: dict[str, Any], *, command: str) -> None:
    """Write the page about a finished job with curves, weights and surprises.

    Parameters
    ----------
    path : str
    job : Job
    figures : dict, the contents of `onlinegp run --summary`
    command : str, the command of the run
    """
    texts = {
        name: files(ROOM).joinpath(name).read_text(encoding="utf-8") for name in ("page.html", "page.css", "page.js")
    }
    data = json.dumps(report_data(job, figures), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    parts = {
        "@STYLE@": texts["page.css"],
        "@SCRIPT@": texts["page.js"],
        "@TITLE@": html.escape(f"{model_name(job.model)}, {job.source.columns.target}"),
        "@COMMAND@": html.escape(command),
        "@MODEL@": html.escape("\n".join(model_lines(job.model))),
        "@DATA@": data,
    }
    page = re.sub(
        "|".join(parts), lambda name: parts[name[0]], texts["page.html"]
    )  # in one pass, because a part may contain the name of another part
    write_atomically(path, [page.encode()])


def model_name(model: OnlineRegressor | None) -> str:
    return "no model" if model is None else type(inside(model)).__name__


def model_lines(model: OnlineRegressor | None) -> list[str]:
    """Return lines with the parameters of a model and of its members."""
    if model is None:
        return []
    learner = working(model) if model.__sklearn_is_fitted__() else None
    members = learner.members() if isinstance(learner, AutoLearner) else []
    told = [f"member {one.name}, weight {one.weight:.2f}: {'; '.join(described(one.model))}" for one in members]
    return [*described(innermost(model)), *told]


def report_data(job: Job, figures: dict[str, Any]) -> dict[str, Any]:
    """Return the data of the page as plain values."""
    return {
        "model": model_name(job.model),
        "source": job.source.path,
        "target": str(job.source.columns.target),
        "figures": {name: _number(value) for name, value in figures.items() if name != "surprises"},
        "surprises": [_rounded(row) for row in figures.get("surprises", [])],
        "events": _events(job),
        **({"by": job.models.rules.by} if isinstance(job.models, ModelPerKey) else _along(job)),
        "pit": job.score.pit.tolist(),
        "levels": list(LEVELS),
        "within": [count / job.score.n if job.score.n else None for count in job.score.within.tolist()],
    }


def _along(job: Job) -> dict[str, Any]:
    """Return the error, the intervals and the weights along one stream."""
    assert job.curves is not None
    assert job.weights is not None
    curves = job.curves
    rows, model = error_curve(curves)
    _, persistence = error_curve(curves, "persistence")
    return {
        "width": curves.width,
        **_curves(curves),
        "coverage": coverage_curve(curves),
        "error": {"row": _list(rows), "model": _list(model), "persistence": _list(persistence)},
        "baselines": baselines(job.score, curves),
        "weights": _weights(job.weights) | {"changes": changes_of(job.model)},
    }


def _events(job: Job) -> list[dict[str, Any]]:
    """Return the worst events in the order of their rows, with the rows around them if they were stored."""
    if job.flags is None:
        return []
    found = [_rounded(event) for event in job.flags.events]
    return [event | {"scene": None if job.scenes is None else job.scenes.found(event)} for event in found]


def _curves(curves: Curves) -> dict[str, Any]:
    """Return curves of ranges over the whole stream, and of the last rows. A point covers the rows `row` to `end`."""
    ends = np.cumsum(curves["rows"])
    ranges = ("y_low", "y_high", "mean_low", "mean_high", "lower", "upper", "size")
    whole = {"row": _list(ends - curves["rows"] + 1), "end": _list(ends)}
    t = {name: _list(values) for name, values in zip(TAILED, curves.tail, strict=True)}
    rows = _list(np.arange(curves.rows - len(t["y"]) + 1.0, curves.rows + 1.0))
    tail = {"row": rows, "end": rows, "lower": t["lower"], "upper": t["upper"]}
    return {
        "whole": whole | {name: _list(curves[name]) for name in ranges},
        "tail": tail | {f"{name}_{end}": t[name] for name in ("y", "mean") for end in ("low", "high")},
    }


def _weights(weights: Weights) -> dict[str, Any]:
    """Return the average weights of the members. `row` and `end` are the first and last row of each average."""
    first = 1 + weights.stride * weights.places
    means = weights.sums / weights.counts[:, None]
    return {
        "members": weights.members,
        "row": first.tolist(),
        "end": (first + weights.counts - 1).tolist(),
        "series": [_list(column) for column in means.T],
    }


def baselines(score: Score, curves: Curves) -> dict[str, float | None]:
    """Return the root mean squared errors of the model, of persistence, and of the mean of all scored targets."""
    if not score.n:
        return {"model": None, "persistence": None, "mean": None}
    squares = {
        "model": score.squares,
        "persistence": float(np.sum(curves["persistence"])),
        "mean": score.y_squares,
    }
    return {name: _number((value / score.n) ** 0.5) for name, value in squares.items()}


def error_curve(curves: Curves, squares: str = "squares") -> tuple[Array, Array]:
    """Return row numbers and mean squared errors in dB over the stream. NaN without scored rows.

    `squares` is the name of the sums of squared errors: "squares" for the model, "persistence" for the baseline.
    """
    b = [curves[name] for name in ("rows", "scored", squares)]
    if len(b[0]) == 0:
        return np.empty(0), np.empty(0)
    starts = np.unique(np.linspace(0, len(b[0]), POINTS, endpoint=False).astype(int))
    rows, scored, errors = (np.add.reduceat(values, starts) for values in b)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = 10.0 * np.log10(errors / scored)
    return np.cumsum(rows), np.where(np.isfinite(error), error, np.nan)


def coverage_curve(curves: Curves) -> dict[str, list[float | None]]:
    """Return the coverage over the stream, from `row` to `end`; each point has at least COVERED_ROWS scored rows."""
    rows, scored, covered = (np.cumsum(curves[name]) for name in ("rows", "scored", "covered"))
    if not len(rows) or not scored[-1]:
        return {"row": [], "end": [], "share": []}
    points = max(1, min(POINTS, int(scored[-1]) // COVERED_ROWS))
    ends = np.unique(np.searchsorted(scored, np.linspace(0.0, scored[-1], points + 1)[1:]))
    first = np.append(0.0, rows[ends][:-1]) + 1.0
    share = np.diff(covered[ends], prepend=0.0) / np.diff(scored[ends], prepend=0.0)
    return {"row": _list(first), "end": _list(rows[ends]), "share": _list(share)}


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _number(value) for name, value in row.items()}


def _list(values: Array) -> list[float | None]:
    return [_number(value) for value in values.tolist()]


def _number(value: Any) -> Any:
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None
    return value
