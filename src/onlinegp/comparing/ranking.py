"""Rank models that ran on the same stream within a time limit, by all rows or by common rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from onlinegp.streams.running.score import Curves


@dataclass
class Result:
    """The result of one model: figures and curves over the rows that it reached.

    `stopped` says why it ended early, and `wrong` what went wrong; otherwise they are empty.
    """

    name: str
    figures: dict[str, Any] = field(default_factory=dict)
    curves: Curves | None = None
    stopped: str = ""
    wrong: str = ""


@dataclass(frozen=True)
class Stopped:
    """A model that did not finish, and its comparison with the best finished model, over its `rows` rows.

    `own` and `best` are the log densities or errors of the two models, or None if no row was scored or no model
    finished.
    """

    result: Result
    rows: int
    own: float | None
    best: float | None

    def ahead(self, by: str) -> bool:
        """Whether the model was better on these rows than the best finished model."""
        return _loss(self.own, by) < _loss(self.best, by) < inf


@dataclass(frozen=True)
class Ranking:
    """Results in order by "density" or "error": finished models, the best first, then models that did not finish.

    The latter are compared with the best model over the rows that they reached. If no model finished, they are compared
    over the rows that all models reached.
    """

    by: str
    finished: list[Result]
    stopped: list[Stopped]
    failed: list[Result] = field(default_factory=list)

    @property
    def all(self) -> list[Result]:
        """All results, in order."""
        return [*self.finished, *(one.result for one in self.stopped)]

    def plain(self) -> list[dict[str, Any]]:
        """Return the table for JSON."""
        finished = [{"model": one.name} | one.figures for one in self.finished]
        return finished + [
            {"model": one.result.name}
            | one.result.figures
            | {"shared": {"rows": one.rows, "by": self.by, "own": one.own, "best": one.best}}
            for one in self.stopped
        ]


def ranked(results: Sequence[Result], *, by: str) -> Ranking:
    """Return the ranking, and separately the results that failed."""
    good = [one for one in results if not one.wrong]
    finished = sorted((one for one in good if not one.stopped), key=lambda one: _loss(_whole(one, by), by))
    cut = [one for one in good if one.stopped]
    if finished:
        pairs = [(one, _common([one, finished[0]])) for one in cut]
        stopped = [Stopped(one, rows, _over(one, rows, by), _over(finished[0], rows, by)) for one, rows in pairs]
    else:
        rows = _common(cut)
        stopped = [Stopped(one, rows, _over(one, rows, by), None) for one in cut]
    return Ranking(
        by, finished, sorted(stopped, key=lambda one: _behind(one, by)), [one for one in results if one.wrong]
    )


def _whole(one: Result, by: str) -> float | None:
    return one.figures["log_density"] if by == "density" else one.figures["rmse"]


def _common(results: list[Result]) -> int:
    """Return the number of rows that all models have reached, in complete buckets of their curves."""
    curves = [one.curves for one in results if one.curves is not None]
    width = max((one.width for one in curves), default=1)
    return min((one.rows for one in curves), default=0) // width * width


def _over(one: Result, rows: int, by: str) -> float | None:
    """Return the score of a model over the first rows of the stream, or None if no row was scored."""
    assert one.curves is not None
    sums = one.curves.sums(rows)
    if not sums["scored"]:
        return None
    return sums["density"] / sums["scored"] if by == "density" else (sums["squares"] / sums["scored"]) ** 0.5


def _behind(one: Stopped, by: str) -> float:
    """Return how far a model is behind the best finished model. If no model finished, return its loss."""
    return inf if one.own is None else _loss(one.own, by) - (0.0 if one.best is None else _loss(one.best, by))


def _loss(value: float | None, by: str) -> float:
    """Return a loss, which is smaller for a better model."""
    if value is None:
        return inf
    return -value if by == "density" else value
