"""The parameters with which a model would have predicted some rows best, around the tuned hyperparameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Any

import numpy as np

from onlinegp.batch.tuning import Hyperparameters
from onlinegp.checks import Array
from onlinegp.models import OnlineRegressor
from onlinegp.models.moves import Move

BUDGET = 300
EFFORT = 100_000  # rows that the search for the parameters of one model may run, the same for every model


@dataclass(frozen=True)
class Outcome:
    """How a model predicted the second half of some rows, each before it was learned: means over those.

    A model that broke down has an infinite error, and a log density of minus infinity.
    """

    log_density: float = -inf
    squared_error: float = inf
    rows: int = 0  # that the model ran through, the first half included

    def merit(self, by: str) -> float:
        """Return what is larger for a better model, by "density" or by "error"."""
        return self.log_density if by == "density" else -self.squared_error


Judge = Callable[[OnlineRegressor], Outcome]


@dataclass(frozen=True)
class Trial:
    """A model that was tried, the best of its class: parameters, how it fared, and what it took to find it.

    `tried` counts the models that were tried for it, `rows` those that all of them ran through.
    """

    estimator: type[OnlineRegressor]
    params: dict[str, Any]
    outcome: Outcome
    tried: int = 1
    rows: int = 0

    @property
    def log_density(self) -> float:
        """The mean log density of the second half of the rows."""
        return self.outcome.log_density

    def build(self) -> OnlineRegressor:
        """Return the model, which has not learned anything."""
        return self.estimator(**self.params)


def prequential(model: OnlineRegressor, X: Array, y: Array) -> Outcome:
    """Return how well the second half of the rows was predicted, each before it was learned."""
    half = slice(len(y) // 2, None)
    with np.errstate(all="ignore"):
        try:
            trace = model.run(X, y)
        except (ValueError, FloatingPointError):  # it broke down: not a model for these rows
            return Outcome(rows=len(y))
        density, error = trace.log_density[half].mean(), ((trace.mean - y)[half] ** 2).mean()
    if not np.isfinite([density, error]).all():
        return Outcome(rows=len(y))
    return Outcome(float(density), float(error), len(y))


def prequential_density(model: OnlineRegressor, X: Array, y: Array) -> float:
    """Return the mean log density of the second half of the rows, each predicted before it was learned."""
    return prequential(model, X, y).log_density


def best_of(
    candidate: type[OnlineRegressor],
    found: list[Hyperparameters],
    judge: Judge,
    *,
    budget: int = BUDGET,
    given: dict[str, Any] | None = None,
    effort: int = EFFORT,
    until: float = inf,
) -> Trial:
    """Return the best model of a class: the suggested ones first, then what the class declares to be searched.

    From each suggested model, one coordinate at a time: all values of one parameter, the others held, the best is kept;
    round after round until none gets better, or the effort is spent. The result is never worse than the suggested ones.

    Parameters
    ----------
    candidate : class of models
    found : list of Hyperparameters
        Kernels and noises to begin with.
    judge : callable
        Returns the `Outcome` of a model on the rows.
    budget : int
        The most centers.
    given : dict, optional
        Parameters that are not searched, by name.
    effort : int
        Rows that all trials together may run; what is begun is finished.
    until : float
        When to end the search, on the clock of ``time.monotonic``.
    """
    spaces = [_Space(candidate, one, judge, budget, given or {}) for one in found]
    for space in spaces:
        space.search(effort // len(spaces), until)
    best = max(spaces, key=lambda space: space.merit(space.best))
    tried, rows = sum(len(space.tried) for space in spaces), sum(space.rows for space in spaces)
    return Trial(candidate, best.params(best.best), best.tried[best.best], tried, rows)


class _Space:
    """The models around a suggested one. A point is the number of a move for each searched parameter, zero for none."""

    def __init__(
        self, candidate: type[OnlineRegressor], one: Hyperparameters, judge: Judge, budget: int, given: dict[str, Any]
    ) -> None:
        known = set(candidate.parameter_names())
        fixed = {name: value for name, value in given.items() if name in known}
        searched = {name: moves for name, moves in candidate.searched.items() if name in known - set(given)}
        suggested = candidate.suggested(one.kernel, one.noise, budget=budget) | fixed
        self.candidate, self.judge = candidate, judge
        self.suggested = candidate(**suggested).get_params(deep=False)
        self.moves: dict[str, tuple[Move, ...]] = searched
        self.best = (0,) * len(searched)
        self.tried: dict[tuple[int, ...], Outcome] = {}
        self._try(self.best)

    @property
    def rows(self) -> int:
        """The rows that all trials ran through."""
        return sum(outcome.rows for outcome in self.tried.values())

    def search(self, effort: int, until: float) -> None:
        """Go from one best point to the next, along one coordinate after the other."""
        before = None
        while self.best != before:
            before = self.best
            for i, moves in enumerate(self.moves.values()):
                here = self.best
                for move in range(1 + len(moves)):
                    if self.rows >= effort or monotonic() >= until:
                        return
                    self._try((*here[:i], move, *here[i + 1 :]))

    def merit(self, point: tuple[int, ...]) -> float:
        return self.tried[point].merit(self.candidate.tuned_by)

    def params(self, point: tuple[int, ...]) -> dict[str, Any]:
        params = dict(self.suggested)
        for (name, moves), move in zip(self.moves.items(), point, strict=True):
            if move:
                params[name] = moves[move - 1].of(params[name])
        return params

    def _try(self, point: tuple[int, ...]) -> None:
        if point not in self.tried:
            self.tried[point] = self.judge(self.candidate(**self.params(point)))
        if self.merit(point) > self.merit(self.best):
            self.best = point
