"""The members of a forecast: Gaussian processes over time and regressions on smoothed lags, of y and of log y."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine.compiled import leaf, readable
from onlinegp.models.temporal.combination import SCORES
from onlinegp.models.temporal.smoothed_lags import SmoothedLagsLearner
from onlinegp.models.temporal.structure import Structure
from onlinegp.native_module import available
from onlinegp.processes import single_threaded_blas
from onlinegp.seasons import find_seasons

MIN_SHARE = 0.05  # smallest robust scale, relative to the standard deviation of the changes
LARGEST_LOG = 700.0
SHIFTS = (0.03, 0.1, 0.3, 1.0, 3.0)  # candidates for `shift` if y has zeros, relative to the median positive value
FEWEST_KNOWN = 8  # minimum number of known values for a fit
FEWEST_FOR_LOG_LAGS = 16  # the same for regressions on logarithms, whose iterated forecasts can explode
SMALLEST_RANGE = 1e-100  # series with a smaller range count as constant, because squares would underflow


@dataclass(frozen=True)
class Effort:
    """How much work a fit may do.

    Attributes
    ----------
    evaluations : likelihood evaluations per Gaussian process, for y and for log y (which starts from the result for y)
    rows : the number of last rows in the likelihood
    forgetting : the forgetting factor of each regression on smoothed lags
    """

    evaluations: tuple[int, int]
    rows: int
    forgetting: tuple[float, ...]


FULL, QUICK = Effort((25, 12), 1500, (0.99, 0.997, 1.0)), Effort((8, 2), 350, (0.997,))


@dataclass
class Member:
    """A learner of f = y or f = log(y + shift), with the scales from y to the values that it learns.

    Attributes
    ----------
    learner : learns from the time and, if `weights` is None, from the other inputs
    center, scale : the learner learns (f - center) / scale
    spread : the factor from standard deviations of the learner to standard deviations of f
    shift : None if f = y
    weights : linear weights of the other inputs, whose effect is subtracted from f; None if `learner` has them
    """

    learner: Any
    center: float
    scale: float
    spread: float
    shift: float | None
    weights: Array | None = None

    def learn(self, X: Array, y: Array) -> None:
        if len(y):
            self.learner.learn(self._inputs(X), self._targets(X, y))

    def run(self, X: Array, y: Array) -> tuple[Array, Array]:
        """Predict rows and learn them. Return means and standard deviations of f."""
        predictions, _ = self.learner.run(self._inputs(X), self._targets(X, y))
        return self._back(X, predictions)

    def ahead(self, X: Array) -> tuple[Array, Array]:
        return self._back(X, self.learner.predict(self._inputs(X)))

    def quantiles(self, mean: Array, std: Array) -> Array:
        """Return quantiles of y from the mean and std of f, (levels, ...)."""
        q = mean + SCORES.reshape(-1, *[1] * np.ndim(mean)) * std
        return q if self.shift is None else np.exp(np.clip(q, -LARGEST_LOG, LARGEST_LOG)) - self.shift

    def moments(self, mean: Array, std: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of y, given mean and std of f. If f = log(y + shift), y is log-normal."""
        if self.shift is None:
            return mean, std
        s2 = np.minimum(std**2, 4.0)
        mean = np.exp(np.clip(mean + s2 / 2, -LARGEST_LOG / 2, LARGEST_LOG / 2))
        return mean - self.shift, mean * np.sqrt(np.expm1(s2))

    def _inputs(self, X: Array) -> Array:
        return X if self.weights is None else X[:, :1]

    def _effect(self, X: Array) -> Array | float:
        return (
            0.0 if self.weights is None else np.einsum("ij,j->i", X[:, 1:], self.weights)
        )  # einsum: each row gives the same bits in any batch

    def _targets(self, X: Array, y: Array) -> Array:
        return ((transformed(y, self.shift) - self._effect(X) - self.center) / self.scale)[:, None]

    def _back(self, X: Array, predictions: Any) -> tuple[Array, Array]:
        mean = predictions.mean[:, 0] * self.scale + self.center + self._effect(X)
        return mean, predictions.std[:, 0] * self.spread


def transformed(y: Array, shift: float | None) -> Array:
    return y if shift is None else np.log(np.maximum(y + shift, 1e-300))


def shifts(y: Array, seasons: tuple[float, ...]) -> list[float | None]:
    """Return `shift` of each kind of member: None for y, and a number for log(y + shift) if no value is negative.

    If all values are positive, the number is 0. If there are zeros, it is the shift with the largest likelihood of the
    changes (from season to season, if there is a season) under a Laplace distribution.
    """
    if y.min() < 0:
        return [None]
    if y.min() > 0:
        return [None, 0.0]
    s = int(max([*seasons, 1]))
    s = s if len(y) > s + FEWEST_KNOWN else 1
    usual = float(np.median(y[y > 0]))

    def likelihood(shift: float) -> float:
        f = transformed(y, shift)
        return -len(f[s:]) * np.log(np.abs(f[s:] - f[:-s]).mean()) - f[s:].sum()

    return [None, max((usual * share for share in SHIFTS), key=likelihood)]


@dataclass(frozen=True)
class Fit:
    """The result of a fit to the rows up to `row`: seasons, and families of members that have not learned any row yet.

    Their learners are Python objects, so that another process can compute and return them. `first` is the first value,
    and `change` the robust deviation of changes from row to row.
    """

    row: int
    seasons: tuple[float, ...]
    families: list[list[Member]]
    first: float
    change: float

    def started(self) -> list[list[Member]]:
        """Return copies of the members with compiled learners, ready to learn."""
        return [[replace(member, learner=_compiled(member.learner)) for member in family] for family in self.families]


def find_fit(
    values: Array, inputs: Array, seasons: tuple[float, ...] | None, row: int, quick: bool, progress: Any = None
) -> Fit | None:
    """Fit members to the window of `values` that ends at `row`. Return None if the window is too short or constant.

    Missing values are NaN. If `seasons` is None, they are found. A quick fit, for predictions one step ahead, takes
    about a fifth of the time: it has no drift GPs, fewer regressions, and rough parameters.
    """
    known = np.flatnonzero(np.isfinite(values))
    X, y = np.column_stack([known.astype(np.float64), inputs[known]]), values[known]
    if len(y) < FEWEST_KNOWN or np.ptp(y) <= max(1e-12 * np.abs(y).max(), SMALLEST_RANGE):
        return None
    effort = QUICK if quick else FULL
    last = slice(-effort.rows, None)
    families: list[list[Member]] = [[], [], []]
    theta, drift_theta = None, None
    with np.errstate(all="ignore"), single_threaded_blas:
        if seasons is None:
            seasons = find_seasons(values)
        for shift, evaluations in zip(shifts(y, seasons), effort.evaluations, strict=False):
            f = transformed(y, shift)
            gp, theta, weights = _gp(X[last], f[last], seasons, evaluations, theta, shift=shift)
            families[0].append(gp)
            rest, times = f - X[:, 1:] @ weights, X[:, :1]
            if not quick:
                drift, drift_theta, _ = _gp(
                    times[last], rest[last], seasons, evaluations, drift_theta, shift=shift, drift=True
                )
                families[1].append(_without_inputs(drift, weights))
            lags = effort.forgetting if shift is None or len(y) >= FEWEST_FOR_LOG_LAGS else ()
            for forgetting in lags:
                families[2].append(_without_inputs(_lags(rest, seasons, forgetting, shift=shift), weights))
    return Fit(row, seasons, families, float(y[0]), _units(X[:, 0], y, ())[1])


def _without_inputs(member: Member, weights: Array) -> Member:
    member.weights = weights if len(weights) else None
    return member


def _compiled(learner: Any) -> Any:
    """Return a copy of a learner, compiled if possible."""
    return leaf("native", learner) if available() else deepcopy(learner)


def _gp(
    X: Array,
    f: Array,
    seasons: tuple[float, ...],
    evaluations: int,
    start: Array | None,
    *,
    shift: float | None,
    drift: bool = False,
) -> tuple[Member, Array, Array]:
    """Fit a Gaussian process over time. Return it with its parameters and the posterior weights of the inputs."""
    center, scale = _units(X[:, 0], f, seasons)
    z = (f - center) / scale
    structure = Structure(seasons, drift, float(np.var(z)), X.shape[1] - 1)
    shifted = np.column_stack([X[:, 0] - X[0, 0], X[:, 1:]])
    theta, sigma2 = structure.fit(shifted, z, evaluations, start)
    member = Member(structure.learner(theta), center, scale, scale * np.sqrt(sigma2), shift)
    if not structure.inputs:
        return member, theta, np.empty(0)
    learned = _compiled(structure.learner(theta))
    learned.learn(shifted, z[:, None])
    return member, theta, readable(learned).m[0, -structure.inputs :] * scale


def _units(t: Array, f: Array, seasons: tuple[float, ...]) -> tuple[float, float]:
    """Return the median of the first values, and a robust deviation of the changes (seasonal, if there is a season)."""
    n, s = len(f), int(max([*seasons, 1]))
    center = float(np.median(f[: max(5, min(n, max(s, 10)))]))
    grid = np.full(int(t[-1] - t[0]) + 1, np.nan)
    grid[np.rint(t - t[0]).astype(np.int64)] = f
    e = np.diff(grid[s:] - grid[:-s]) / np.sqrt(2) if s > 1 and len(grid) >= s + 5 else np.diff(grid)
    e = e[np.isfinite(e)]
    if len(e) < 5:
        e = np.diff(f)
    scale = np.sqrt(np.median(e**2) / 0.4549) + 1e-4 * f.std() + 1e-300
    return center, float(scale if scale >= MIN_SHARE * e.std() else e.std() + 1e-300)


def _lags(f: Array, seasons: tuple[float, ...], forgetting: float, *, shift: float | None) -> Member:
    """Return a regression on smoothed lags."""
    s1, s2 = [*(round(s) for s in seasons), 1, 1][:2]
    center, scale = float(f.mean()), float(f.std()) + 1e-300
    earliest = min(max(s1, s2) + 4, len(f) // 2)
    learner = SmoothedLagsLearner(1, 1, (s1, s2), forgetting, 0, earliest=earliest)
    return Member(learner, center, scale, scale, shift)
