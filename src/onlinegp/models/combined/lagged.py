"""Use past values of y as inputs, for series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import LARGEST, Array, count
from onlinegp.engine.plan import Plan, around
from onlinegp.lags import windows
from onlinegp.learner import Learner, Sizes, begin_series, skip
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import INSIDE, OuterLearner, OuterRegressor
from onlinegp.models.combined.standardize import like_so_far
from onlinegp.models.facts import Facts
from onlinegp.models.recipe import parameters
from onlinegp.predictions import Predictions
from onlinegp.predictions.samples import Samples, draw
from onlinegp.state import Fields, array, integer

WIDEST = 100_000  # the largest number of inputs of the inner model


@parameters
class Lagged(OuterRegressor):
    """Wrap a model and add the last values of y to its inputs, for series.

    The inputs of a row are its features, then ``y[i - horizon], ..., y[i - horizon - lags + 1]``, the newest first, as
    in `onlinegp.datasets.embed`. With several outputs, the values of the first output come first, then those of the
    second, ... A series without features has ``X=None``. Until there are enough past values, rows are predicted by the
    mean and spread of the values so far, and not learned.

    `predict` treats each of its rows as the next row of the stream. `forecast` predicts many rows ahead. `skip`
    continues over rows without y, and uses each prediction in place of the value.

    Parameters
    ----------
    model : OnlineRegressor
        The inner model. A copy with the same parameters learns; this object does not change.
    lags : int or list of int
        The number of past values; zero for none. Or which ones, such as ``[1, 2, 24, 168]``: the value before, ..., the
        value 168 rows before. With a horizon h, lag 1 is the value h rows before.
    horizon : int
        The number of rows ahead: row i is predicted from values up to row i - horizon, by a model that has learned rows
        up to i - horizon. If it is greater than one, `run` works row by row.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> series = np.sin(0.3 * np.arange(300))
    >>> model = ogp.Lagged(ogp.Scaled(ogp.KRLST(noise=1e-4)), lags=4).fit(None, series)
    >>> ahead = model.forecast(3)
    >>> float(abs(ahead.mean - np.sin(0.3 * np.arange(300, 303))).max()) < 0.01
    True
    >>> lower, upper = ahead.interval(0.95)
    """

    model: OnlineRegressor
    _: KW_ONLY
    lags: int | Sequence[int] = 10
    horizon: int = 1

    facts: ClassVar[Facts] = Facts(
        cost="that of the model inside, with lags more inputs",
        memory="that of the model inside, and the lags",
        equation="x_i = [features, y_{i - h}, ..., y_{i - h - lags + 1}], h the horizon",
        variance="that of the model inside",
        citation='Takens, "Detecting strange attractors in turbulence", 1981.',
    )

    def check(self) -> None:
        self._sizes()
        super().check()

    @property
    def features_optional(self) -> bool:
        return self._sizes()[0] > 0 or super().features_optional

    @property
    def delay(self) -> int:
        return self._sizes()[1] + super().delay - 1

    def start(self, features: int, outputs: int) -> LaggedLearner:
        lags, horizon = self._sizes()
        chosen = self._chosen()
        width = features + (lags if chosen is None else len(chosen)) * outputs
        if width > WIDEST:
            raise ValueError(f"features + lags x outputs must be at most {WIDEST}, got {width}. Use fewer lags.")
        return LaggedLearner(self._inside().start(width, outputs), features, lags, horizon, chosen)

    def forecast(
        self,
        steps: int,
        X: ArrayLike | None = None,
        *,
        paths: int = 1000,
        seed: int | np.random.Generator | None = 0,
    ) -> Samples:
        """Predict the next `steps` values of y. The model does not change.

        The forecast simulates many possible futures. In each, a value is drawn from the prediction of the next row and
        becomes one of its lags, so that the uncertainty of one step affects the later steps. The errors of the model
        are drawn independently at each step, like the noise.

        Parameters
        ----------
        steps : int
            The number of rows ahead.
        X : array-like of shape (steps, d), optional
            The features of these rows, for a model with features in addition to its lags.
        paths : int
            The number of futures. The ends of an interval are estimates: with 1000 futures, the ends of a 95% interval
            are usually accurate to a tenth of a standard deviation.
        seed : int, Generator or None
            The same seed gives the same forecast; None draws a new one.

        Returns
        -------
        Samples
            The distributions of the rows; ``values[..., j]`` is the j-th future.
        """
        steps, paths = count(steps=steps), count(paths=paths)
        if paths < 2:
            raise ValueError(f"paths must be at least 2, got {paths}. 1000 is a usual choice.")
        with self._lock:
            learner = self._working
            assert isinstance(learner, LaggedLearner)
            if learner.features and X is None:
                raise ValueError(
                    f"X must be given: the model has {learner.features} features in addition to its lags, whose future "
                    f"values are not known. Pass an array of shape ({steps}, {learner.features}), or use lags only."
                )
            X = self._check_X(np.empty((steps, 0)) if X is None else X)
            if len(X) != steps:
                raise ValueError(f"X must have one row per step, {steps}, got {len(X)}.")
            predicted = self._said(learner.forecast(X, paths, np.random.default_rng(seed)))
            assert isinstance(predicted, Samples)
            return predicted

    @property
    def longest_lag(self) -> int:
        """How many rows back the oldest value is that a prediction needs, but for the horizon."""
        return self._sizes()[0]

    def _chosen(self) -> tuple[int, ...] | None:
        """Return the lags of a list, in order; None if they are the first ones."""
        if isinstance(self.lags, str) or not isinstance(self.lags, Sequence | np.ndarray):
            return None
        hint = "Lag 1 is the value before."
        chosen = tuple(count(hint, **{f"lags[{i}]": int(lag)}) for i, lag in enumerate(self.lags))
        if not chosen or any(a >= b for a, b in pairwise(chosen)):
            raise ValueError(f"lags must increase, such as [1, 2, 24], got {self.lags!r}. Use 0 for no past values.")
        return chosen

    def _sizes(self) -> tuple[int, int]:
        """Return the longest lag and the horizon."""
        chosen = self._chosen()
        none = chosen is None and self.lags == 0 and type(self.lags) is int
        lags = chosen[-1] if chosen else 0 if none else count("Use 0 for no past values.", lags=self.lags)
        if lags > WIDEST:
            raise ValueError(f"lags must be at most {WIDEST}, got {lags}.")
        return lags, count(horizon=self.horizon)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # scikit-learn scores rows out of order
        return tags


class UnboundedError(ValueError):
    """Raised if a forecast grows without bound."""


class LaggedLearner(OuterLearner):
    """The last values of y, and the rows that a longer horizon keeps from the inner learner for now."""

    fields: Fields = {
        "past": array("known", "outputs", attribute="_past"),
        "waiting_x": array("waiting", "width", attribute="_waiting_x"),
        "waiting_y": array("waiting", "outputs", attribute="_waiting_y"),
        "seen": integer(),
        **INSIDE,
    }
    lengths: Mapping[str, int | str | None] = {"known": "memory", "waiting": "delay"}

    def __init__(
        self, inner: Learner, features: int, lags: int, horizon: int, chosen: tuple[int, ...] | None = None
    ) -> None:
        self.chosen = chosen  # the lags that are used; all up to the longest if None
        self.inner, self.features, self.lags, self.horizon, self.seen = inner, features, lags, horizon, 0
        self.width, self.outputs = inner.features, inner.outputs
        self.memory = lags + horizon - 1 if lags else 0  # values that the next row may need
        self._past = np.empty((0, self.outputs))  # the last of them, oldest first
        self.delay = horizon - 1  # the largest number of waiting rows
        self._waiting_x, self._waiting_y = np.empty((0, self.width)), np.empty((0, self.outputs))

    @property
    def together(self) -> int:
        return super().together + self.memory if super().together else 0

    def learn(self, X: Array, Y: Array) -> None:
        early, inputs = self._inputs(X, Y)
        if len(inputs):
            inputs, targets = self._with_waiting(inputs, Y[early:])
            done = max(0, len(inputs) - self.horizon + 1)
            if done:
                self.inner.learn(inputs[:done], targets[:done])
            self._waiting_x, self._waiting_y = inputs[done:].copy(), targets[done:].copy()
        self._move_on(Y)

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        early, inputs = self._inputs(X, Y)
        prior = early if self.inner.seen else early + self.horizon - len(self._waiting_x)  # until a row is learned
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
        inputs, targets = self._with_waiting(inputs, Y)
        predicted, size = [], np.empty(len(Y), dtype=np.int64)
        for i in range(first, len(inputs)):
            predicted.append(self.inner.predict(inputs[i : i + 1]))
            if i + 1 - done == self.horizon:
                self.inner.learn(inputs[done : done + 1], targets[done : done + 1])
                done += 1
            size[i - first] = self.inner.size
        self._waiting_x, self._waiting_y = inputs[done:].copy(), targets[done:].copy()
        return Predictions.joined(predicted), size

    def predict(self, X: Array) -> Predictions:
        return self._prior(X, self._past) if self._knows_little() else self.inner.predict(self._next(X))

    def skip(self, X: Array, Y: Array | None = None) -> Predictions:
        if not self.lags:
            return skip(self.inner, X, Y)
        if Y is None:
            return Predictions.joined([self._skip(X[i : i + 1]) for i in range(len(X))])
        early, inputs = self._inputs(X, Y)
        prior = early if self.inner.seen else len(X)
        predicted = self._by_prior(X, Y, prior)
        if prior < len(X):
            predicted.append(skip(self.inner, inputs, Y[early:]))
        self._remember(Y)
        return Predictions.joined(predicted)

    def _skip(self, x: Array) -> Predictions:
        """Predict a row (1, d), and use the prediction in place of its y if there are past values."""
        predicted = self._prior(x, self._past) if self._knows_little() else skip(self.inner, self._next(x))
        if len(self._past):
            self._remember(predicted.mean)
        return predicted

    def forecast(self, X: Array, paths: int, rng: np.random.Generator) -> Samples:
        """Return samples of the next rows X (n, features). The values drawn for a path become its lags."""
        if self._knows_little():
            raise ValueError(
                f"forecast needs the last {self.memory} values of y and a fitted model, got "
                f"{len(self._past)} values. Learn at least {self.memory + self.horizon} rows first."
            )
        # values: (paths, outputs, memory + n), oldest first
        values = np.empty((paths, self.outputs, self.memory + len(X)))
        values[:, :, : self.memory] = self._past.T
        for i, x in enumerate(X):
            lags = values[:, :, i : i + self.lags][:, :, ::-1].reshape(paths, -1)  # the newest first
            predicted = self.inner.predict(np.hstack([np.tile(x, (paths, 1)), self._chosen(lags)]))
            values[:, :, self.memory + i] = drawn = draw(predicted, rng)
            if not np.abs(drawn).max() < LARGEST:  # NaN fails the comparison too
                raise UnboundedError(f"the forecast grows without bound at step {i + 1}. Use fewer steps.")
        return Samples(np.ascontiguousarray(values[:, :, self.memory :].T))

    def begin_series(self) -> None:
        self._past = self._past[:0]
        begin_series(self.inner)

    def plan(self) -> Plan | None:
        numbers = {"lags": float(self.lags), "horizon": float(self.horizon)}
        fields = {"past": self._past, "waiting_x": self._waiting_x, "waiting_y": self._waiting_y}
        return None if self.chosen else around("lagged", self, numbers, fields, {"model": self.inner})

    def steady_after(self, Y: Array | None) -> int:
        """Return the number of rows until all lags are known, the queue is full, and a row was learned; 0 if so."""
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
        oldest = len(self._past) + early - self.memory  # value of the first row that has all of them
        return early, np.hstack([X[early:], self._chosen(windows(values[oldest:], self.lags)[: len(X) - early])])

    def _next(self, X: Array) -> Array:
        """Return the inputs of rows, each as if it were the next row."""
        if not self.lags:
            return X
        lags = self._chosen(windows(self._past[: self.lags], self.lags))
        return np.hstack([X, np.repeat(lags, len(X), axis=0)])

    def _chosen(self, lags: Array) -> Array:
        """Return the lags that are used, of rows that have all of them."""
        if self.chosen is None:
            return lags
        return lags[:, [o * self.lags + lag - 1 for o in range(self.outputs) for lag in self.chosen]]

    def _knows_little(self) -> bool:
        """Whether the next row is predicted by mean and spread: lags are missing, or nothing was learned yet."""
        return len(self._past) < self.memory or not self.inner.seen

    def _by_prior(self, X: Array, Y: Array, n: int) -> list[Predictions]:
        """Return the predictions of the first n rows, each by the mean and spread of the values before it."""
        values, start = np.concatenate([self._past, Y[:n]]), len(self._past)
        return [self._prior(X[i : i + 1], self._recent(values[: start + i])) for i in range(n)]

    def _prior(self, X: Array, past: Array) -> Predictions:
        """Predict rows by the mean and spread of past values, without the last horizon - 1, which are not known yet."""
        prior = self.inner.predict(np.hstack([X, np.zeros((len(X), self.width - self.features))]))
        return like_so_far(prior, past[: max(0, len(past) - self.horizon + 1)])

    def _with_waiting(self, inputs: Array, Y: Array) -> tuple[Array, Array]:
        if self.horizon == 1:
            return inputs, Y
        return np.concatenate([self._waiting_x, inputs]), np.concatenate([self._waiting_y, Y])

    def _move_on(self, Y: Array) -> None:
        self.seen += len(Y)
        self._remember(Y)

    def _remember(self, Y: Array) -> None:
        if self.memory:
            self._past = self._recent(np.concatenate([self._past, Y])).copy()

    def _recent(self, values: Array) -> Array:
        return values[max(0, len(values) - self.memory) :]


def _plain(y: Array) -> Any:
    """Return the value of one output as a number."""
    return y.item() if len(y) == 1 else y
