"""Let a model learn the logarithm or a power of y."""

from __future__ import annotations

from dataclasses import KW_ONLY

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import LARGEST, Array
from onlinegp.learner import Learner, Outcome, Sizes, learn_one, skip
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import INSIDE, OuterLearner, OuterRegressor
from onlinegp.models.combined.standardize import TINY
from onlinegp.models.recipe import parameters
from onlinegp.predictions import Predictions, TransformedPredictions
from onlinegp.predictions.transformed import transformed


@parameters
class Transformed(OuterRegressor):
    """Wrap a model and let it learn a power or the logarithm of y. Predictions are in the units of y.

    Use it for positive, skewed targets with errors that grow with y: prices, counts, durations. The inner model learns

        z = sign(y) ((1 + |y| / unit)^power - 1) / power,      log(1 + |y| / unit) for y >= 0 and power 0

    which is defined for all y, even for negative values. Intervals, quantiles and densities of z are converted to the
    units of y. The mean omits the outermost 1% of the probability on each side, because a log-normal distribution with
    heavy tails has no mean.

    Put :class:`Scaled` inside, because z is not in standard units. `Auto` chooses such a transformation by itself.

    Cost: as for the inner model
    Memory: as for the inner model
    Equation: z = sign(y) ((1 + |y| / unit)^power - 1) / power
    Variance of y: as for the inner model, in the units of the data, without the outermost 1% on each side

    Parameters
    ----------
    model : OnlineRegressor
        The inner model. A copy with the same parameters learns; this object does not change.
    power : float, or array-like of shape (outputs,)
        From 0 (the logarithm) to 1 (y itself).
    unit : float, or array-like of shape (outputs,)
        For |y| below this value, z is nearly linear in y. Use a tenth of a typical value, or 1 for counts.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (500, 1))
    >>> y = np.exp(np.sin(X[:, 0]) + 0.5 * rng.standard_normal(500))
    >>> plain = ogp.run(ogp.Scaled(ogp.KRLST(noise=0.3)), X, y)
    >>> skewed = ogp.run(Transformed(ogp.Scaled(ogp.KRLST(noise=0.3)), unit=0.1), X, y)
    >>> bool(skewed.log_density.mean() > plain.log_density.mean() + 0.1)
    True

    References
    ----------
    Box and Cox, "An analysis of transformations", J. Royal Statistical Society B, 1964.
    """

    model: OnlineRegressor
    _: KW_ONLY
    power: ArrayLike = 0.0
    unit: ArrayLike = 1.0

    def check(self) -> None:
        for name in ("power", "unit"):
            self._numbers(name, max(np.size(getattr(self, name)), 1))
        super().check()

    def start(self, features: int, outputs: int) -> TransformedLearner:
        power, unit = self._numbers("power", outputs), self._numbers("unit", outputs)
        return TransformedLearner(self._inside().start(features, outputs), power, unit)

    def _numbers(self, name: str, outputs: int) -> Array:
        value, array = getattr(self, name), np.asarray(getattr(self, name))
        if array.dtype.kind not in "fiu" or array.shape not in ((), (outputs,)):
            raise ValueError(f"{name} must be one number, or one for each output ({outputs}), got {value!r}.")
        low, high, rule = (0.0, 1.0, "between 0 and 1") if name == "power" else (TINY, LARGEST, "positive")
        if not np.all((array >= low) & (array <= high)):
            remedy = "Use 0 for the logarithm." if name == "power" else "Use a tenth of a typical value of y."
            raise ValueError(f"{name} must be {rule}, got {value!r}. {remedy}")
        return np.full(outputs, array, dtype=np.float64)


class TransformedLearner(OuterLearner):
    """An inner learner of transformed targets, and the powers and units, (outputs,)."""

    fields = INSIDE

    def __init__(self, inner: Learner, power: Array, unit: Array) -> None:
        self.inner, self.features, self.outputs = inner, inner.features, inner.outputs
        self.power, self.unit = power, unit

    @property
    def seen(self) -> int:
        return self.inner.seen

    @property
    def atomic(self) -> bool:
        return getattr(self.inner, "atomic", False)

    def learn(self, X: Array, Y: Array) -> None:
        self.inner.learn(X, self._transformed(Y))

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        predicted, size = self.inner.run(X, self._transformed(Y))
        return self._restored(predicted), size

    def predict(self, X: Array) -> Predictions:
        return self._restored(self.inner.predict(X))

    def skip(self, X: Array, Y: Array | None = None) -> Predictions:
        return self._restored(skip(self.inner, X, None if Y is None else self._transformed(Y)))

    def learn_one(self, x: object, y: object) -> int:
        if self.outputs > 1 or not isinstance(y, float) or not abs(y) < LARGEST:
            return Outcome.UNSUPPORTED
        return learn_one(self.inner, x, float(self._transformed(np.full((1, 1), y))[0, 0]))

    def _transformed(self, Y: Array) -> Array:
        return transformed(Y, self.power, self.unit)

    def _restored(self, predicted: Predictions) -> TransformedPredictions:
        shape = predicted.shape
        return TransformedPredictions(predicted, np.broadcast_to(self.power, shape), np.broadcast_to(self.unit, shape))
