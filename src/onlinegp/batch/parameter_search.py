"""Search for the best parameters of a model, starting from tuned hyperparameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from math import inf
from time import monotonic
from typing import Any

import numpy as np

from onlinegp.batch.likely_kernels import Hyperparameters, likely_kernels, likely_noise, linear_noise
from onlinegp.batch.maximum_posterior import Progress
from onlinegp.batch.search_space import Move, search_of, suggested, uses_kernel
from onlinegp.checks import Array
from onlinegp.kernels import RBF
from onlinegp.models import OnlineRegressor
from onlinegp.processes import Jobs

BUDGET = 300
EFFORT = 100_000  # largest number of rows for all trials of a model
DRAWS = 1000  # number of random starting points, many of which have been tried already in a small space


@dataclass(frozen=True)
class Outcome:
    """The mean scores of a model over the last rows, each predicted before it was learned.

    A model that has diverged has an infinite error, and a log density of minus infinity.
    """

    log_density: float = -inf
    squared_error: float = inf
    rows: int = 0  # number of rows of the run

    def merit(self, by: str) -> float:
        """Return a score by "density" or "error" that is larger for a better model."""
        return self.log_density if by == "density" else -self.squared_error


Judge = Callable[[OnlineRegressor], Outcome]


@dataclass(frozen=True)
class Trial:
    """The best model of a class in a search: its parameters, its scores, and the effort of the search.

    `tried` is the number of models, `rows` the number of rows in all their runs.
    """

    estimator: type[OnlineRegressor]
    params: dict[str, Any]
    outcome: Outcome
    tried: int = 1
    rows: int = 0

    @property
    def log_density(self) -> float:
        """The mean log density of the scored rows."""
        return self.outcome.log_density

    def build(self) -> OnlineRegressor:
        """Return a new model with these parameters."""
        return self.estimator(**self.params)


def prequential(model: OnlineRegressor, X: Array, y: Array, *, last: float = 0.5) -> Outcome:
    """Return the scores over the last share `last` of the rows, each predicted before it was learned.

    The first row, which is predicted before any row is learned, does not count.
    """
    with np.errstate(all="ignore"):
        try:
            trace = model.run(X, y, progress=False)
        except (ValueError, FloatingPointError):  # the model has diverged
            return Outcome(rows=len(y))
        scored = trace.scored & (np.arange(len(y)) >= int((1.0 - last) * len(y)))
        if not scored.any():
            return Outcome(rows=len(y))
        density, error = trace.log_density[scored].mean(), ((trace.mean - y)[scored] ** 2).mean()
    if not np.isfinite([density, error]).all():
        return Outcome(rows=len(y))
    return Outcome(float(density), float(error), len(y))


def prequential_density(model: OnlineRegressor, X: Array, y: Array) -> float:
    """Return the mean log density of the second half of the rows, each predicted before it was learned."""
    return prequential(model, X, y).log_density


def hyperparameters(
    Z: Array,
    t: Array,
    given: Mapping[str, Any],
    *,
    jobs: Jobs = 1,
    progress: Progress = lambda share: None,
) -> list[Hyperparameters]:
    """Return the kernels and noises to try: likely kernels, or the given kernel with its likely noise."""
    kernel, noise = given.get("kernel"), given.get("noise")
    if kernel is None:
        return likely_kernels(Z, t, jobs=jobs, progress=progress)
    if noise is None:
        return [likely_noise(kernel, Z, t)]
    return [Hyperparameters(kernel, noise, 1.0, np.nan)]


def starts(
    cls: type[OnlineRegressor], Z: Array, t: Array, likely: Callable[[], list[Hyperparameters]]
) -> list[Hyperparameters]:
    """Return the kernels and noises from which the search for a class starts.

    A class without a kernel starts from the noise of linear regression: the likely kernels fit better than it can.
    """
    return likely() if uses_kernel(cls) else [Hyperparameters(RBF(), linear_noise(Z, t), 1.0, np.nan, len(t))]


def best_of(
    candidate: type[OnlineRegressor],
    found: list[Hyperparameters],
    judge: Judge,
    *,
    budget: int = BUDGET,
    given: Mapping[str, Any] | None = None,
    searched: Mapping[str, tuple[Move, ...]] | None = None,
    by: str | None = None,
    effort: int = EFFORT,
    seed: int | None = None,
    until: float = inf,
) -> Trial:
    """Return the best model of a class: try the suggested models, then search around them.

    The search starts from each suggested model and changes one parameter at a time: it tries all values of a parameter,
    keeps the best value, and repeats until nothing improves or the effort is used up. The result is never worse than
    the suggested models.

    Parameters
    ----------
    candidate : class of models
    found : list of Hyperparameters
        Kernels and noises. Other parameters are suggested for each of them. Without a kernel, only the first is used.
    judge : callable
        Returns the outcome of an unfitted model; see `prequential`.
    budget : int
        The largest number of centers, for a model with a budget.
    given : mapping, optional
        Parameters that are not searched.
    searched : mapping, optional
        {parameter: values to try in addition to the suggested value}. By default `search_of(candidate).tried`.
    by : {"density", "error"}, optional
        The criterion. By default `search_of(candidate).by`.
    effort : int
        The largest number of rows for all trials together; the suggested models are always tried.
    seed : int, optional
        If given, the search continues from random points until the effort is used up or nothing is left to try.
    until : float
        The time at which the search ends, on the clock of ``time.monotonic``.
    """
    search = search_of(candidate)
    searched = search.tried if searched is None else searched
    starts = found if uses_kernel(candidate) else found[:1]
    spaces = [_Space(candidate, one, judge, budget, given or {}, searched, by or search.by) for one in starts]
    for space in spaces:
        space.search(effort // len(spaces), until, None if seed is None else np.random.default_rng(seed))
    best = max(spaces, key=lambda space: space.merit(space.best))
    tried, rows = sum(len(space.tried) for space in spaces), sum(space.rows for space in spaces)
    return Trial(candidate, best.params(best.best), best.tried[best.best], tried, rows)


Point = tuple[int, ...]  # the index of a move for each searched parameter; zero means the suggested value


class _Space:
    """The search space around a suggested model."""

    def __init__(
        self,
        candidate: type[OnlineRegressor],
        one: Hyperparameters,
        judge: Judge,
        budget: int,
        given: Mapping[str, Any],
        searched: Mapping[str, tuple[Move, ...]],
        by: str,
    ) -> None:
        known = set(candidate.parameter_names())
        fixed = {name: value for name, value in given.items() if name in known}
        self.candidate, self.judge, self.by = candidate, judge, by
        self.suggested = candidate(**suggested(candidate, one.kernel, one.noise, budget) | fixed).get_params(deep=False)
        self.moves = {name: moves for name, moves in searched.items() if name in known - set(given)}
        self.best: Point = (0,) * len(self.moves)
        self.tried: dict[Point, Outcome] = {}
        self._try(self.best)

    @property
    def rows(self) -> int:
        """The number of rows in the runs of all trials."""
        return sum(outcome.rows for outcome in self.tried.values())

    def search(self, effort: int, until: float, rng: np.random.Generator | None) -> None:
        """Descend from the suggested point and, with a generator, from random points."""
        for point in chain([self.best], self._starts(rng)):
            if not self._descend(point, effort, until):
                return

    def _starts(self, rng: np.random.Generator | None) -> Iterator[Point]:
        """Draw points that have not been tried. There are few of them in a small space."""
        sizes = [1 + len(moves) for moves in self.moves.values()]
        for _ in range(0 if rng is None else DRAWS):
            assert rng is not None
            point = tuple(rng.integers(sizes).tolist())
            if point not in self.tried:
                yield point

    def _descend(self, here: Point, effort: int, until: float) -> bool:
        """Improve a point along each coordinate in turn. Return whether effort is left."""
        before = None
        while here != before:
            before = here
            for i, moves in enumerate(self.moves.values()):
                line = [here, *((*here[:i], move, *here[i + 1 :]) for move in range(1 + len(moves)))]
                for point in line:
                    if self.rows + self.tried[self.best].rows > effort or monotonic() >= until:
                        return False
                    self._try(point)
                here = max(line, key=self.merit)
        return True

    def merit(self, point: Point) -> float:
        return self.tried[point].merit(self.by)

    def params(self, point: Point) -> dict[str, Any]:
        params = dict(self.suggested)
        for (name, moves), move in zip(self.moves.items(), point, strict=True):
            if move:
                params[name] = moves[move - 1].of(params[name])
        return params

    def _try(self, point: Point) -> None:
        if point not in self.tried:
            self.tried[point] = self.judge(self.candidate(**self.params(point)))
        if self.merit(point) > self.merit(self.best):
            self.best = point
