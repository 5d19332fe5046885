"""An exact Gaussian process over time with a constant cost per row, computed by a Kalman filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from math import inf
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import Array, positive
from onlinegp.engine.compiled import leaf
from onlinegp.engine.plan import Plan
from onlinegp.kernels import Kernel, kernel_or_default
from onlinegp.kernels.temporal import LocalTrend
from onlinegp.learner import Learner
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.recipe import parameters
from onlinegp.models.rowwise import StepLearner
from onlinegp.models.temporal.state_space import WALK, Block, state_space
from onlinegp.predictions import Predictions
from onlinegp.state import Values, array, dump, integer, number


@parameters
class TemporalGP(OnlineRegressor):
    """An exact Gaussian process over time with a constant cost per row, and optional linear inputs.

        y_t = f(t) + w'x_t + e,   f ~ GP(0, kernel),   w ~ N(0, input_variance I),   e ~ N(0, noise)

    The kernel is converted to a state space (:mod:`onlinegp.models.temporal.state_space`), whose Kalman filter predicts
    the same as the batch GP. Supported kernels are sums and products of Constant, Linear, Matern12, Matern32, Matern52,
    Periodic, and of RandomWalk, LocalTrend and Season from :mod:`onlinegp.kernels.temporal`.

    Times may be irregular but must not decrease. Predictions stay exact across gaps: leave missing values out.
    `predict` takes times after the last row. A fleet and other models around a TemporalGP do not check the order: they
    learn a late row as if no time had passed since the last row.

    With `robust=c` an error of z > c standard deviations moves the state as far as an error of c: the variance of this
    row is multiplied by z / c.

    Use it for series, for irregularly sampled sensors, and for forecasts. Do not use it for functions of several
    inputs.

    Cost: O(s^2) per sample with s states, 25 for a trend, a day of 11 harmonics and Matern12
    Memory: O(s^2)
    Equation: m <- A m, P <- A P A' + Q;  v = h'P h + noise;  m += P h e / v, P -= P h h'P / v
    Variance of y: of the exact GP; with `robust`, outliers count less

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance over time; ``LocalTrend()`` if None.
    noise : float
        The variance of the noise in y.
    time : int, optional
        The column of X that holds the time. With None the rows are at times 0, 1, 2, .... All other columns are inputs
        with linear effects.
    input_variance : float
        The prior variance of the weights of these inputs.
    robust : float, optional
        Errors above this number of standard deviations are outliers. None for the exact GP.
    engine : str
        "auto", "native" or "python".

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> from onlinegp.kernels import Matern32, Periodic
    >>> t = np.sort(np.random.default_rng(0).uniform(0, 100, 300))[:, None]  # irregular times
    >>> kernel = Matern32(30.0) + Periodic(1.0, period=12.0)
    >>> model = ogp.TemporalGP(kernel, noise=0.01, time=0).fit(t, np.sin(2 * np.pi * t[:, 0] / 12))
    >>> model.predict([[103.0], [106.0]]).round(1)  # -0.5 and -0.9 are right
    array([-0.5, -0.9])

    References
    ----------
    Hartikainen and Sarkka, "Kalman filtering and smoothing solutions to temporal Gaussian process regression models",
    MLSP 2010.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    noise: float = 0.1
    time: int | None = None
    input_variance: float = 1.0
    robust: float | None = None
    engine: str = "auto"

    @property
    def features_optional(self) -> bool:
        return self.time is None

    def check(self) -> None:
        self._blocks()
        self._checked()

    def start(self, features: int, outputs: int) -> Learner:
        noise, variance, robust = self._checked()
        if self.time is not None and not 0 <= self.time < features:
            raise ValueError(f"time must be a column of X, from 0 to {features - 1}, got {self.time}.")
        inputs = [column for column in range(features) if column != self.time]
        blocks = (*self._blocks(), *(Block(WALK, variance, column=column) for column in inputs))
        return leaf(self.engine, TemporalLearner(features, outputs, blocks, noise, self.time, robust))

    def _blocks(self) -> tuple[Block, ...]:
        return state_space(LocalTrend() if self.kernel is None else kernel_or_default(self.kernel))

    def _checked(self) -> tuple[float, float, float]:
        if self.time is not None and (isinstance(self.time, bool) or not isinstance(self.time, int)):
            raise TypeError(f"time must be the number of a column, or None, got {self.time!r}.")
        robust = inf if self.robust is None else positive("Use None for the exact GP.", robust=self.robust)
        return positive(noise=self.noise), positive(input_variance=self.input_variance), robust

    # The order of the rows

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        if self.time is not None:
            rows, _, _ = self.checked_Xy(X, y, first=True)
            self._refuse_late(rows[:, self.time : self.time + 1].ravel())
        return super().fit(X, y)

    def rows_to_learn(self, X: ArrayLike, y: ArrayLike) -> tuple[Learner, Array, Array]:
        self._check_times(X)
        return super().rows_to_learn(X, y)

    def learn_one(self, x: ArrayLike, y: ArrayLike) -> Self:
        if self.time is not None and self._learner is not None:
            self._check_times(np.reshape(np.asarray(self._check_x(x), dtype=np.float64), (1, -1)))
        return super().learn_one(x, y)

    def predict_one(self, x: ArrayLike, return_std: bool = False) -> Any:
        if self.time is not None and self._learner is not None:
            self._refuse_past(np.reshape(np.asarray(self._check_x(x), dtype=np.float64), (1, -1)))
        return super().predict_one(x, return_std)

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        self._refuse_past(X)
        return super().predict(X, return_std)

    def predict_distribution(self, X: ArrayLike) -> Predictions:
        self._refuse_past(X)
        return super().predict_distribution(X)

    def predict_interval(self, X: ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
        self._refuse_past(X)
        return super().predict_interval(X, level)

    def _refuse_past(self, X: ArrayLike) -> None:
        """Raise an error if rows to predict are before the last learned row."""
        if self.time is None or self._learner is None or not self._learner.seen:
            return
        last, t = dump(self._learner)["time"], self.checked_X(X)[:, self.time]
        if (t < last).any():
            raise ValueError(
                f"times to predict must not be before the last learned row, at {last:g}, got {t.min():g}. Use "
                "GPRegression, which predicts at any time."
            )

    def _check_times(self, X: ArrayLike) -> None:
        """Raise an error if the rows are not in temporal order."""
        if self.time is None:
            return
        X = self.checked_X(X)
        if not self.time < X.shape[1]:
            return
        t = X[:, self.time]
        if self._learner is not None and self._learner.seen:
            t = np.append(dump(self._learner)["time"], t)
        self._refuse_late(t)

    def _refuse_late(self, t: Array) -> None:
        late = np.flatnonzero(np.diff(t) < 0)
        if len(late):
            i = int(late[0])
            raise ValueError(
                f"times must not decrease: {t[i + 1]:g} comes after {t[i]:g}. Sort the rows by column {self.time}, or "
                "use GPRegression, which takes rows in any order."
            )


class TemporalLearner(StepLearner):
    """Kalman filters, one for each output, with the mean m and the covariance P of the state."""

    fields = {
        "seen": integer(),
        "time": number(least=None, attribute="last"),
        "m": array("outputs", "states"),
        "P": array("outputs", "states", "states"),
    }

    def __init__(
        self,
        features: int,
        outputs: int,
        blocks: Sequence[Block],
        noise: float,
        time: int | None = None,
        robust: float = inf,
    ) -> None:
        self.features, self.outputs, self.blocks, self.noise, self.robust = features, outputs, blocks, noise, robust
        self.time, self.last = time, 0.0  # the column of the time, and the time of the last row
        self.first = np.cumsum([0, *(block.states for block in blocks)])  # first state of each block
        self.states = int(self.first[-1])
        self.m = np.zeros((outputs, self.states))
        P = np.zeros((self.states, self.states))
        for block, i in zip(blocks, self.first, strict=False):
            P[i : i + block.states, i : i + block.states] = block.start()
        self.P = np.tile(P, (outputs, 1, 1))

    def look(self, x: Array) -> tuple[Array, Array, Any]:
        t = self._time_of(x)
        A, Q = self.transition(max(0.0, t - self.last))
        m, P = self.m @ A.T, A @ self.P @ A.T + Q
        h = self.observed(t, x)
        g = P @ h  # (outputs, states)
        v = np.maximum(g @ h, 0.0) + self.noise
        return m @ h, np.sqrt(v), (t, m, P, g, v)

    def correct(self, x: Array, y: Array, e: Array, seen: Any) -> None:
        t, m, P, g, v = seen
        self.last = max(self.last, t) if self.seen else t  # `last` never decreases
        s = v * np.maximum(1.0, np.abs(e) / (np.sqrt(v) * self.robust))
        self.m = m + g * (e / s)[:, None]
        u = g / np.sqrt(s)[:, None]
        self.P = P - u[:, :, None] * u[:, None, :]

    def leaf_plan(self) -> Plan:
        numbers: dict[str, Any] = {
            "noise": self.noise,
            "robust": self.robust,
            "blocks": np.array(self.blocks, dtype=np.float64),
        }
        numbers["time"] = -1 if self.time is None else self.time
        return Plan("temporal", self, numbers)

    def check(self, values: Values) -> None:
        P = values["P"]
        if not np.allclose(P, P.transpose(0, 2, 1), rtol=1e-6, atol=1e-9 * np.abs(P).max(initial=0.0)):
            raise ValueError("P must be symmetric.")

    def _time_of(self, x: Array) -> float:
        return float(self.seen) if self.time is None else float(x[self.time])

    def observed(self, t: float, x: Array) -> Array:
        """Return h, (states,), for which y = h'state + noise."""
        h = np.zeros(self.states)
        h[self.first[:-1]] = [block.observed(t, x) for block in self.blocks]
        return h

    def transition(self, dt: float) -> tuple[Array, Array]:
        """Return the matrices A(dt) and Q(dt) of all blocks, (states, states)."""
        A, Q = np.zeros((2, self.states, self.states))
        for block, i in zip(self.blocks, self.first, strict=False):
            own = slice(i, i + block.states)
            A[own, own], Q[own, own] = block.transition(dt)
        return A, Q
