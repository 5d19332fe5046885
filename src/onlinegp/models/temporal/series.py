"""The learner of `Forecaster`: the rows of a series, members that are fitted as rows double, and their mixture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onlinegp.checks import LARGEST, Array
from onlinegp.engine.compiled import readable
from onlinegp.learner import RowLearner, Sizes
from onlinegp.models.temporal.combination import SCORES, combine, past_origins
from onlinegp.models.temporal.forecast import Forecast
from onlinegp.models.temporal.members import FORGETTING, Member, fit_members
from onlinegp.predictions import Components, Predictions
from onlinegp.processes import single_threaded_blas
from onlinegp.seasons import find_seasons
from onlinegp.state import Values, array, flags, integer

FIRST_FIT = 12  # rows
MAX_WINDOW = 3000  # rows that a fit uses; a further fit comes after as many rows, at the latest
FEWEST_KNOWN = 8
SMALLEST_RANGE = 1e-100  # of the values: the square of a share of it is not rounded to zero
FAMILIES = ("GP", "drift GP", "smoothed lags")
MEMBERS = 2 * (1 + len(FORGETTING))  # one step ahead, where the drift GP adds nothing
KEEP = 0.99  # of a log density, per row
ERROR_RATE = 0.03  # of the mean square error, which is half of a member's variance


@dataclass
class Fit:
    """Members that were fitted to the rows up to one, and their errors one step ahead since then."""

    row: int
    seasons: tuple[float, ...]
    families: list[list[Member]]
    learned: int = 0  # rows of the window
    log_weights: Array | None = None
    squares: Array | None = None  # mean square errors

    @property
    def members(self) -> list[Member]:
        return [member for family in self.families for member in family]


class SeriesLearner(RowLearner):
    """The last rows of a series. Everything else is computed from them and from the row of the last fit, on demand."""

    fields = {
        "seen": integer(),
        "position": integer(),
        "start": integer(),
        "fitted": integer(),
        "values": array("kept", least=-LARGEST, most=LARGEST),
        "known": flags("kept"),
        "inputs": array("kept", "features", least=-LARGEST, most=LARGEST),
    }
    lengths = {"kept": 2 * MAX_WINDOW}

    def __init__(self, features: int, seasons: tuple[float, ...] | None) -> None:
        self.features, self.outputs, self.seasons = features, 1, seasons
        self.position = self.start = self.fitted = 0  # rows so far, those that were dropped, those at the last fit
        self.values, self.known, self.inputs = np.empty(0), np.empty(0, dtype=bool), np.empty((0, features))
        self._fit: Fit | None = None

    # Rows

    def learn(self, X: Array, Y: Array) -> None:
        self._append(X, Y[:, 0])
        self.seen += len(Y)

    def skip(self, X: Array, Y: Array | None = None) -> Predictions:
        predictions = self.predict(X)
        self._append(X, np.full(len(X), np.nan) if Y is None else Y[:, 0])
        return predictions

    def _append(self, X: Array, y: Array) -> None:
        done = 0
        while done < len(y):
            part = slice(done, done + min(len(y) - done, self._next_fit() - self.position))
            known = np.isfinite(y[part])
            self.values = np.append(self.values, np.where(known, y[part], 0.0))
            self.known = np.append(self.known, known)
            self.inputs = np.concatenate([self.inputs, X[part]])
            self.position += part.stop - part.start
            done = part.stop
            if self.position == self._next_fit():
                self.fitted = self.position
                self._drop(max(0, len(self.values) - MAX_WINDOW))

    def _next_fit(self) -> int:
        return FIRST_FIT if not self.fitted else min(2 * self.fitted, self.fitted + MAX_WINDOW)

    def _drop(self, rows: int) -> None:
        self.start += rows
        self.values, self.known, self.inputs = self.values[rows:], self.known[rows:], self.inputs[rows:]

    def window(self, first: int = 0, last: int | None = None) -> tuple[Array, Array]:
        """Return times and inputs (n, 1 + features), and values (n,), of the known rows of a part of the window."""
        which = np.flatnonzero(self.known[first:last]) + first
        return np.column_stack([which.astype(np.float64), self.inputs[which]]), self.values[which]

    def rebuild(self) -> None:
        self._fit = None

    def check(self, values: Values) -> None:
        rows, position, start, fitted = len(values["values"]), values["position"], values["start"], values["fitted"]
        if position != start + rows or not (start <= fitted <= position or not fitted):
            raise ValueError(f"position must be start + the {rows} rows that are kept, and fitted between both.")
        if not position < (min(2 * fitted, fitted + MAX_WINDOW) if fitted else FIRST_FIT):
            raise ValueError(f"fitted must be the row of the last fit, got {fitted}.")

    # One step ahead

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        parts, done = [], 0
        while done < len(Y):
            part = slice(done, done + min(len(Y) - done, self._next_fit() - self.position))
            parts.append(self._run(X[part], Y[part, 0]))
            self.learn(X[part], Y[part])
            if self._fit is not None:
                self._fit.learned += part.stop - part.start
            done = part.stop
        return _mixtures(*(np.concatenate(one) for one in zip(*parts, strict=True))), np.zeros(len(Y), dtype=np.int64)

    def _run(self, X: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return weights, means and deviations of members, (n, MEMBERS), of rows up to the next fit."""
        fit = self._current()
        if fit is None:
            before = self.window()[1]
            return _stacked([_so_far(np.concatenate([before, y[:i]])) for i in range(len(y))])
        times = np.arange(len(self.values), len(self.values) + len(y), dtype=np.float64)
        return _mix(fit, np.column_stack([times, X]), y)

    def predict(self, X: Array) -> Predictions:
        fit = self._current()
        if fit is None:
            return _mixtures(*_stacked([_so_far(self.window()[1])] * len(X)))
        rows_of = np.column_stack([np.full(len(X), float(len(self.values))), X])
        pairs = [member.moments(*member.ahead(rows_of)) for member in fit.members]
        means, stds = (np.stack(one, axis=1) for one in zip(*pairs, strict=True))
        return _mixtures(*_padded(np.tile(_weights(fit), (len(X), 1)), means, _widened(fit, stds)))

    def _current(self) -> Fit | None:
        """Return the members of the last fit, after they learned all rows; None before the first fit."""
        if not self.fitted:
            return None
        fit = self._fit
        if fit is None or fit.row != self.fitted:
            fit = self.fit_to(self.fitted - self.start, quick=True)
            if fit is None:
                return None
            fit.row = self.fitted
            self._fit = fit
        if fit.learned < len(self.values):
            X, y = self.window(fit.learned)
            if len(y):
                _mix(fit, X, y)
            fit.learned = len(self.values)
        return fit

    def fit_to(self, rows: int, *, quick: bool) -> Fit | None:
        """Return members with parameters from the first rows of the window, which have learned nothing.

        A quick fit, for one step ahead, takes about a fifth of the time: without the drift GP, with rough parameters.
        """
        X, y = self.window(0, rows)
        if len(y) < FEWEST_KNOWN or np.ptp(y) <= max(1e-12 * np.abs(y).max(), SMALLEST_RANGE):
            return None
        series = np.where(self.known[:rows], self.values[:rows], np.nan)
        with np.errstate(all="ignore"), single_threaded_blas:
            seasons = find_seasons(series) if self.seasons is None else self.seasons
            return Fit(rows, seasons, fit_members(X, y, seasons, quick=quick))

    # Several steps ahead

    def forecast(self, future: Array, *, refit: bool) -> Forecast:
        """Return the forecast of the next rows, whose inputs are `future`; with parameters from all rows if `refit`."""
        h, n = len(future), len(self.values)
        fit = self.fit_to(n if refit else max(self.fitted - self.start, 0), quick=False)
        if fit is None:
            return _naive(self.window()[1], h)
        known = self.window()
        after = np.column_stack([np.arange(n, n + h, dtype=np.float64), future])
        table = np.concatenate([np.column_stack([np.arange(n, dtype=np.float64), self.inputs]), after])
        origins = past_origins(n, h)
        families = [[_past_forecasts(member, known, table, origins, h) for member in family] for family in fit.families]
        series = np.where(self.known, self.values, np.nan)
        quantiles, weights = combine(families, series, origins, h)
        if known[1].min() >= 0:
            quantiles = np.maximum(quantiles, 0.0)
        shares = dict(zip(FAMILIES, weights.round(6).tolist(), strict=True))
        return Forecast(quantiles.T, None, fit.seasons, shares, _sampler(fit.families[0][-1], after))


def _past_forecasts(member: Member, known: tuple[Array, Array], table: Array, origins: Array, h: int) -> Array:
    """Return the quantiles of forecasts before each origin, (levels, origins, h); then the member has learned all."""
    X, y = known
    means, stds = np.full((2, len(origins), h), np.nan)
    done = 0
    for i, origin in enumerate(origins):
        upto = int(np.searchsorted(X[:, 0], origin))
        member.learn(X[done:upto], y[done:upto])
        steps = min(h, len(table) - h - origin) or h  # of a past origin, those that have come
        means[i, :steps], stds[i, :steps] = member.ahead(table[origin : origin + steps])
        done = upto
    return member.quantiles(means, stds)


def _naive(y: Array, h: int) -> Forecast:
    """Return the forecast of a random walk, for a series that is short or constant."""
    last = y[-1] if len(y) else 0.0
    change = np.sqrt(np.mean(np.diff(y) ** 2)) if len(y) > 1 else 1.0
    spread = max(float(change), 1e-9 * abs(last), 1e-300) * np.sqrt(np.arange(1.0, h + 1.0))
    quantiles = last + spread[:, None] * SCORES
    return Forecast(np.maximum(quantiles, 0.0) if len(y) and y.min() >= 0 else quantiles, weights={"random walk": 1.0})


def _sampler(member: Member, after: Array) -> Callable[[int, int, np.random.Generator], Array]:
    """Return a function that draws normal scores of the next steps, as a Gaussian process over time links them."""

    def sample(steps: int, n: int, rng: np.random.Generator) -> Array:
        learner = readable(member.learner)
        root = _root(learner.P[0])
        states = learner.m[0] + rng.standard_normal((n, learner.states)) @ root.T
        A, Q = learner.transition(1.0)
        root, drawn = _root(Q), np.empty((steps, n))
        predicted = learner.predict(after[:steps])
        for i in range(steps):
            states = states @ A.T + rng.standard_normal(states.shape) @ root.T
            observed = states @ learner.observed(float(after[i, 0]), after[i])
            noise = np.sqrt(learner.noise) * rng.standard_normal(n)
            drawn[i] = (observed + noise - predicted.mean[i, 0]) / predicted.std[i, 0]
        return drawn

    return sample


def _root(P: Array) -> Array:
    values, vectors = np.linalg.eigh(0.5 * (P + P.T))
    return vectors * np.sqrt(np.maximum(values, 0.0))


# The mixture one step ahead


def _mix(fit: Fit, X: Array, y: Array) -> tuple[Array, Array, Array]:
    """Predict rows with the members, and learn them. Return weights, means and deviations, (n, MEMBERS)."""
    pairs = [member.moments(*member.run(X, y)) for member in fit.members]
    means, stds = (np.stack(one, axis=1) for one in zip(*pairs, strict=True))
    weights = np.empty_like(means)
    with np.errstate(all="ignore"):
        for i in range(len(y)):
            weights[i], stds[i] = _weights(fit), _widened(fit, stds[i])
            e = y[i] - means[i]
            density = -0.5 * np.minimum((e / stds[i]) ** 2, 1e4) - np.log(stds[i])
            before = np.zeros(len(e)) if fit.log_weights is None else fit.log_weights
            fit.log_weights = KEEP * before + density - density.max()
            squares = stds[i] ** 2 if fit.squares is None else fit.squares
            fit.squares = squares + ERROR_RATE * (np.minimum(e * e, 25 * stds[i] ** 2) - squares)
    return _padded(weights, means, stds)


def _weights(fit: Fit) -> Array:
    if fit.log_weights is None:
        return np.full(len(fit.members), 1 / len(fit.members))
    weights = np.exp(fit.log_weights - fit.log_weights.max())
    return weights / weights.sum()


def _widened(fit: Fit, stds: Array) -> Array:
    """Return deviations of which half of the variance is that of recent errors."""
    return stds if fit.squares is None else np.sqrt(0.5 * stds**2 + 0.5 * fit.squares)


def _padded(weights: Array, means: Array, stds: Array) -> tuple[Array, Array, Array]:
    """Return all possible members. Missing ones repeat the first with a weight of zero."""
    missing = MEMBERS - weights.shape[1]
    weights = np.hstack([weights, np.zeros((len(weights), missing))])
    return weights, *(np.hstack([one, np.repeat(one[:, :1], missing, axis=1)]) for one in (means, stds))  # type: ignore[return-value]


def _stacked(rows: list[tuple[Array, Array, Array]]) -> tuple[Array, Array, Array]:
    weights, means, stds = (np.reshape([row[i] for row in rows], (len(rows), MEMBERS)) for i in range(3))
    return weights, means, stds


def _so_far(y: Array) -> tuple[Array, Array, Array]:
    """Return the mixture of a row that follows a few others: their mean and spread."""
    mean, std = (y.mean(), y.std()) if len(y) > 1 else (y[0] if len(y) else 0.0, 1.0)
    weights = np.zeros(MEMBERS)
    weights[0] = 1.0
    return weights, np.full(MEMBERS, mean), np.full(MEMBERS, max(float(std), 1e-9 * abs(mean), 1e-300))


def _mixtures(weights: Array, means: Array, stds: Array) -> Components:
    """Return predictions of one output."""
    return Components(weights[:, None], means[:, None], stds[:, None], (np.inf,) * MEMBERS, 1.0)
