"""The learner of lagged models: past values of y as inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np

from onlinegp.checks import LARGEST, Array
from onlinegp.engine.plan import Plan, around
from onlinegp.learner import Learner, Sizes, begin_series, skip
from onlinegp.models.combined.base import INSIDE, OuterLearner
from onlinegp.models.combined.horizon_scale import NO_ERROR, NORMAL, HorizonScale
from onlinegp.models.combined.standardize import like_so_far
from onlinegp.predictions import Gaussian, Predictions
from onlinegp.predictions.samples import Samples, draw
from onlinegp.state import Fields, array, integer

Groups = tuple[tuple[int, ...], ...]  # the lags of each input; the input is the mean of the values at these lags
SPREAD: Fields = {  # with a horizon above one
    "waiting_z2": array("waiting", "outputs", least=NO_ERROR, attribute="spread.waiting"),
    "z2_total": array("outputs", positive=True, attribute="spread.total"),
    "z2_count": array("outputs", positive=True, attribute="spread.count"),
}


class UnboundedError(ValueError):
    """Raised if a forecast grows without bound."""


class LaggedLearner(OuterLearner):
    """An inner learner, the last values of y as inputs, and the rows that must wait because of the horizon.

    With a horizon above one, the inner model learns each row when it knows the rows just before, so whatever calibrates
    it there sees errors one row ahead. `spread` corrects the predictions from their errors at the horizon.
    """

    fields: Fields = {
        "past": array("known", "outputs", attribute="_past"),
        "waiting_x": array("waiting", "width", attribute="_waiting_x"),
        "waiting_y": array("waiting", "outputs", attribute="_waiting_y"),
        "seen": integer(),
        **INSIDE,
    }
    lengths: Mapping[str, int | str | None] = {"known": "longest_memory", "waiting": "delay"}

    def __init__(self, inner: Learner, features: int, groups: Groups, horizon: int) -> None:
        self.inner, self.features, self.horizon, self.seen = inner, features, horizon, 0
        self.width, self.outputs = inner.features, inner.outputs
        self.spread = HorizonScale(self.outputs, horizon)
        if horizon > 1:
            self.fields = {**self.fields, **SPREAD}
        self.use(groups)
        self.longest_memory = self.memory  # limit for files
        self._past = np.empty((0, self.outputs))  # the last values, oldest first
        self.delay = horizon - 1  # the largest number of waiting rows
        self._waiting_x, self._waiting_y = np.empty((0, self.width)), np.empty((0, self.outputs))

    def use(self, groups: Groups) -> None:
        """Use these groups of lags as inputs from now on."""
        self.groups = groups
        self.lags = max((max(group) for group in groups), default=0)
        self.memory = self.lags + self.horizon - 1 if self.lags else 0  # number of stored values

    @property
    def together(self) -> int:
        return super().together + self.memory if super().together else 0

    def learn(self, X: Array, Y: Array) -> None:
        early, inputs = self._inputs(X, Y)
        if len(inputs) and self.horizon == 1:
            self.inner.learn(inputs, Y[early:])
        elif len(inputs):
            self._run(inputs, Y[early:])  # `spread` learns from predictions
        self._move_on(Y)

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        early, inputs = self._inputs(X, Y)
        # Rows without a prediction of the model
        prior = early if self.inner.seen else early + self.horizon - len(self._waiting_x)
        predicted = self._by_prior(X, Y, min(prior, len(X)))
        size = np.full(len(X), self.inner.size, dtype=np.int64)
        if len(inputs):
            predictions, size[early:] = self._run(inputs, Y[early:])
            predicted.append(predictions.rows(slice(max(0, prior - early), None)))
        self._move_on(Y)
        return Predictions.joined(predicted), size

    def _run(self, inputs: Array, Y: Array) -> tuple[Predictions, Sizes]:
        if self.horizon == 1:
            return self.inner.run(inputs, Y)
        first, done = len(self._waiting_x), 0
        inputs, targets = np.concatenate([self._waiting_x, inputs]), np.concatenate([self._waiting_y, Y])
        predicted, size = [], np.empty(len(Y), dtype=np.int64)
        for i in range(first, len(inputs)):
            prediction = self.inner.predict(inputs[i : i + 1])
            predicted.append(self.spread.corrected(prediction))
            self.spread.add(prediction, targets[i : i + 1], by_model=self.inner.seen > 0)
            if i + 1 - done == self.horizon:
                self.inner.learn(inputs[done : done + 1], targets[done : done + 1])
                done += 1
            size[i - first] = self.inner.size
        self._waiting_x, self._waiting_y = inputs[done:].copy(), targets[done:].copy()
        return Predictions.joined(predicted), size

    def predict(self, X: Array) -> Predictions:
        if self._knows_little():
            return self._prior(X, self._past)
        return self.spread.corrected(self.inner.predict(self._next(X)))

    def skip(self, X: Array, Y: Array | None = None) -> Predictions:
        if not self.lags:
            return self.spread.corrected(skip(self.inner, X, Y))
        if Y is None:
            return Predictions.joined([self._skip(X[i : i + 1]) for i in range(len(X))])
        early, inputs = self._inputs(X, Y)
        prior = early if self.inner.seen else len(X)
        predicted = self._by_prior(X, Y, prior)
        if prior < len(X):
            predicted.append(self.spread.corrected(skip(self.inner, inputs, Y[early:])))
        self._remember(Y)
        return Predictions.joined(predicted)

    def _skip(self, x: Array) -> Predictions:
        """Predict a row (1, d), and use the prediction as its value if there are past values."""
        if self._knows_little():
            predicted = self._prior(x, self._past)
        else:
            predicted = self.spread.corrected(skip(self.inner, self._next(x)))
        if len(self._past):
            self._remember(predicted.mean)
        return predicted

    def forecast(self, X: Array, paths: int, rng: np.random.Generator) -> Samples:
        """Return sampled paths over the next rows X (n, features). Each drawn value becomes a lag of later rows."""
        if self._knows_little():
            raise ValueError(
                f"forecast needs the last {self.memory} values of y and a fitted model, got "
                f"{len(self._past)} values. Learn at least {self.memory + self.horizon} rows first."
            )
        # values: (paths, outputs, memory + n), oldest first
        values = np.empty((paths, self.outputs, self.memory + len(X)))
        values[:, :, : self.memory] = self._past.T
        for i, x in enumerate(X):
            at = i + self.memory + 1 - self.horizon  # the position of lag 0
            each = range(self.outputs if self.lags else 0)
            lags = [self._averages(values[:, o].T, at, 1)[0].T for o in each]
            predicted = self.spread.corrected(self.inner.predict(np.hstack([np.tile(x, (paths, 1)), *lags])))
            values[:, :, self.memory + i] = drawn = draw(predicted, rng)
            if not np.abs(drawn).max() < LARGEST:  # also true for NaN
                raise UnboundedError(f"the forecast grows without bound at step {i + 1}. Use fewer steps.")
        return Samples(np.ascontiguousarray(values[:, :, self.memory :].T))

    def learn_waiting(self) -> None:
        """Learn the rows that wait, at the end of a run."""
        self.inner.learn(self._waiting_x, self._waiting_y)
        self._waiting_x, self._waiting_y = self._waiting_x[:0], self._waiting_y[:0]

    def begin_series(self) -> None:
        self._past = self._past[:0]
        begin_series(self.inner)

    def plan(self) -> Plan | None:
        lags = np.array([lag for group in self.groups for lag in group], dtype=np.float64)
        sizes = np.array([len(group) for group in self.groups], dtype=np.float64)
        numbers: dict[str, float | Array] = {"lags": lags, "sizes": sizes, "horizon": float(self.horizon)}
        numbers |= {"degrees": np.empty(0), "normal": NORMAL, **self.spread.rule()}
        fields: dict[str, Array] = {"past": self._past, "waiting_x": self._waiting_x, "waiting_y": self._waiting_y}
        if self.horizon > 1:
            fields |= {"waiting_z2": self.spread.waiting, "z2_total": self.spread.total, "z2_count": self.spread.count}
        plan = around("lagged", self, numbers, fields, {"model": self.inner})
        if self.horizon > 1 and plan is not None and plan.components > 1:  # mixed with a normal
            plan = replace(plan, numbers={**numbers, "degrees": np.array([np.inf])})
        return plan

    def steady_after(self) -> int:
        """Return the number of rows until all lags are known, the queue is full, and a row is learned; 0 afterwards."""
        missing = self.memory - len(self._past), self.delay - len(self._waiting_x)
        return max(*missing, 0 if self.inner.seen or not (self.memory or self.delay) else 1)

    # Internals

    def _inputs(self, X: Array, Y: Array) -> tuple[int, Array]:
        """Return the number of rows without enough lags, and the inputs of the other rows."""
        if not self.lags:
            return 0, X
        values = np.concatenate([self._past, Y])
        early = min(len(X), max(0, self.memory - len(self._past)))
        if early == len(X):
            return early, np.empty((0, self.width))
        oldest = len(self._past) + early - self.memory  # the oldest value of the first row with all lags
        return early, np.hstack([X[early:], *self._lags(values[oldest:], len(X) - early)])

    def _next(self, X: Array) -> Array:
        """Return the inputs of each row as if it were the next row."""
        if not self.lags:
            return X
        return np.hstack([X, *(np.repeat(lags, len(X), axis=0) for lags in self._lags(self._past, 1))])

    def _lags(self, values: Array, n: int) -> list[Array]:
        """Return the lagged inputs of n rows, output by output. `values` starts `memory` rows before the first row."""
        at = self.memory + 1 - self.horizon  # the position of lag 0 of the first row
        return [self._averages(values[:, o], at, n) for o in range(self.outputs)]

    def _averages(self, values: Array, at: int, n: int) -> Array:
        """Return the mean of each group of lags, (n, groups, ...). values[at] is lag 0 of the first row."""
        columns = [
            reduce(add, (values[at - lag : at - lag + n] for lag in group)) / len(group) for group in self.groups
        ]
        return np.stack(columns, axis=1)

    def _knows_little(self) -> bool:
        """Whether the next row is predicted without the model, because lags are missing or nothing was learned yet."""
        return len(self._past) < self.memory or not self.inner.seen

    def _by_prior(self, X: Array, Y: Array, n: int) -> list[Predictions]:
        """Predict the first n rows, each by the mean and spread of the values before it."""
        values, start = np.concatenate([self._past, Y[:n]]), len(self._past)
        return [self._prior(X[i : i + 1], self._recent(values[: start + i])) for i in range(n)]

    def _prior(self, X: Array, past: Array) -> Predictions:
        """Predict rows by the mean and spread of the past values that are known `horizon` rows before."""
        prior = self.inner.predict(np.hstack([X, np.zeros((len(X), self.width - self.features))]))
        prior = like_so_far(prior, past[: max(0, len(past) - self.horizon + 1)])
        return self.spread.half_normal(prior, Gaussian(prior.mean, prior.std))

    def _move_on(self, Y: Array) -> None:
        self.seen += len(Y)
        self._remember(Y)

    def _remember(self, Y: Array) -> None:
        if self.memory:
            self._past = self._recent(np.concatenate([self._past, Y])).copy()

    def _recent(self, values: Array) -> Array:
        return values[max(0, len(values) - self.memory) :]


def run_delayed(learner: Learner, X: Array, Y: Array, delay: int) -> tuple[Predictions, Sizes]:
    """Predict each row, and learn it just before row i + `delay` is predicted. The last rows are learned at the end."""
    late = LaggedLearner(learner, learner.features, (), delay)
    predicted, size = late.run(X, Y)
    late.learn_waiting()
    return predicted, size
