"""Forecasts of a growing series: past forecasts determine the weights and intervals of the next one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine.compiled import readable
from onlinegp.models.temporal.combination import FEWEST_BEFORE, MOST_ORIGINS, SCORES, combine, origin_gap, past_origins
from onlinegp.models.temporal.forecast import Forecast
from onlinegp.models.temporal.members import LARGEST_LOG, Fit, Member

MOST_RISE = 1.5  # of a forecast in logarithms, in largest rises so far
FAMILIES = ("GP", "drift GP", "smoothed lags")


@dataclass(frozen=True)
class Rows:
    """The rows of a window: values (n,), where NaN is a missing value, and inputs (n, d)."""

    values: Array
    inputs: Array

    def __len__(self) -> int:
        return len(self.values)

    def known(self, first: int, last: int) -> tuple[Array, Array]:
        """Return times and inputs (n, 1 + d), and values (n,), of the rows in [first, last) whose value is known."""
        which = np.flatnonzero(np.isfinite(self.values[first:last])) + first
        return np.column_stack([which.astype(np.float64), self.inputs[which]]), self.values[which]

    def after(self, first: int, future: Array) -> Array:
        """Return times and inputs of the rows from `first` on, with the inputs `future`."""
        return np.column_stack([np.arange(first, first + len(future), dtype=np.float64), future])


class Rolling:
    """The members of a fit, and their forecasts of h steps from the last 40 origins, which are `gap` rows apart.

    Later rows add origins, and members learn each row once. A past forecast with inputs needs the inputs of later rows,
    so it cannot be kept: see `SeriesLearner.forecast`.
    """

    def __init__(self, fit: Fit, rows: int, h: int) -> None:
        self.row, self.seasons, self.h = fit.row, fit.seasons, h
        self.families = fit.started()
        self.gap = origin_gap(rows, h)
        self.due: list[int] = past_origins(rows, h)[:-1].tolist() or [max(rows, FEWEST_BEFORE)]  # next origins
        self.origins: list[int] = []
        self.past: list[list[list[tuple[Array, Array]]]] = [[[] for _ in family] for family in self.families]
        self.learned = 0  # number of learned rows of the window

    def forecast(self, rows: Rows, future: Array) -> Forecast:
        """Forecast the rows after the window, whose inputs are `future`."""
        n, h = len(rows), self.h
        while self.due[0] < n:
            origin = self.due.pop(0)
            steps = min(h, n - origin) if rows.inputs.shape[1] else h  # steps with known inputs
            ahead = rows.after(origin, np.concatenate([rows.inputs[origin : origin + steps], future])[:steps])
            for family, kept in zip(self.families, self.past, strict=True):
                for member, moments in zip(family, kept, strict=True):
                    moments.append(_padded(*self._ahead(member, rows, origin, ahead), h))
                    del moments[:-MOST_ORIGINS]
            self.learned = origin
            self.origins = [*self.origins, origin][-MOST_ORIGINS:]
            if not self.due:
                self.due.append(origin + self.gap)
        after = rows.after(n, future)
        families: list[list[Array]] = []
        for family, kept in zip(self.families, self.past, strict=True):
            families.append([])
            for member, moments in zip(family, kept, strict=True):
                every = [*moments, self._ahead(member, rows, n, after)]
                families[-1].append(member.quantiles(*(np.array(one) for one in zip(*every, strict=True))))
        self.learned = n
        origins = np.array([*self.origins, n])
        known = rows.values[np.isfinite(rows.values)]
        if known.min() >= 0 and known.max() > 0:
            self._limit(families, highest(rows.values, origins, h))
        quantiles, weights = combine(families, rows.values, origins, h)
        if known.min() >= 0:
            quantiles = np.maximum(quantiles, 0.0)
        shares = dict(zip(FAMILIES, weights.round(6).tolist(), strict=True))
        sampler = Sampler(readable(self.families[0][-1].learner), after)
        return Forecast(quantiles.T, None, self.seasons, shares, sampler)

    def _limit(self, families: list[list[Array]], highest: Array) -> None:
        """Cut quantiles of members in logarithms at the highest values, or at those of other members if larger."""
        linear = [member.shift is None for family in self.families for member in family]
        quantiles = [q for family in families for q in family]
        most = np.max([q for q, is_linear in zip(quantiles, linear, strict=True) if is_linear], axis=0)
        for q, is_linear in zip(quantiles, linear, strict=True):
            if not is_linear:
                np.minimum(q, np.maximum(most, highest[:, None]), out=q)

    def _ahead(self, member: Member, rows: Rows, origin: int, ahead: Array) -> tuple[Array, Array]:
        """Learn the rows before `origin`, then return means and standard deviations of the rows `ahead`."""
        member.learn(*rows.known(self.learned, origin))
        return member.ahead(ahead)


def _padded(means: Array, stds: Array, h: int) -> tuple[Array, Array]:
    """Extend means and deviations to h steps with NaN."""
    rest = np.full(h - len(means), np.nan)
    return np.append(means, rest), np.append(stds, rest)


def highest(y: Array, origins: Array, h: int) -> Array:
    """Return for each origin the highest value that a forecast in logarithms may have.

    The largest value so far may rise by 1.5 times its largest logarithmic rise over h rows, measured from the median of
    the positive values or above. A short series of counts would have quantiles of thousands otherwise.
    """
    lowest, width = np.where(np.isfinite(y), y, np.inf), 1  # of as many values
    while width <= min(h, len(y) - 1):
        step = min(width, h + 1 - width)
        lowest[step:] = np.minimum(lowest[step:], lowest[:-step])
        width += step
    found = np.empty(len(origins))
    for i, n in enumerate(origins.tolist()):
        before = y[:n]
        usual = np.median(before[before > 0]) if (before > 0).any() else 1.0
        rise = np.nanmax(np.log(np.maximum(before, usual) / np.maximum(lowest[:n], usual)))
        steps = h / min(h, max(n - 1, 1))
        found[i] = np.nanmax(before) * np.exp(min(MOST_RISE * rise * steps, LARGEST_LOG / 2))
    return found


def random_walk(y: Array, h: int) -> Forecast:
    """Return the forecast of a random walk, for a series that is short or constant."""
    last = y[-1] if len(y) else 0.0
    spread = spread_of(last, np.diff(y)) * np.sqrt(np.arange(1.0, h + 1.0))
    quantiles = last + spread[:, None] * SCORES
    return Forecast(np.maximum(quantiles, 0.0) if len(y) and y.min() >= 0 else quantiles, weights={"random walk": 1.0})


def spread_of(last: float, changes: Array) -> float:
    """Return the root mean square of changes until the last value. If all are zero, it is tiny."""
    if not len(changes):
        return max(abs(float(last)), 1.0)  # one value shows no spread
    largest = float(np.abs(changes).max()) or 1.0  # whose square may be zero
    return max(largest * float(np.sqrt(np.mean((changes / largest) ** 2))), 1e-9 * abs(float(last))) or 1e-9


@dataclass(frozen=True)
class Sampler:
    """Sample normal scores of the next steps, correlated as in a Gaussian process over time.

    Attributes
    ----------
    learner : the Python learner after the last row
    after : times and inputs of the next rows
    """

    learner: Any
    after: Array

    def __call__(self, steps: int, n: int, rng: np.random.Generator) -> Array:
        learner = self.learner
        root = _root(learner.P[0])
        states = learner.m[0] + rng.standard_normal((n, learner.states)) @ root.T
        A, Q = learner.transition(1.0)
        root, drawn = _root(Q), np.empty((steps, n))
        predicted = learner.predict(self.after[:steps])
        for i in range(steps):
            states = states @ A.T + rng.standard_normal(states.shape) @ root.T
            observed = states @ learner.observed(float(self.after[i, 0]), self.after[i])
            noise = np.sqrt(learner.noise) * rng.standard_normal(n)
            drawn[i] = (observed + noise - predicted.mean[i, 0]) / predicted.std[i, 0]
        return drawn


def _root(P: Array) -> Array:
    values, vectors = np.linalg.eigh(0.5 * (P + P.T))
    return vectors * np.sqrt(np.maximum(values, 0.0))
