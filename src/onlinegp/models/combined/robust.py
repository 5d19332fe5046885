"""Limit the effect of each sample, so that outliers do little harm."""

from __future__ import annotations

from dataclasses import KW_ONLY
from math import inf

import numpy as np

from onlinegp.checks import Array, count, positive
from onlinegp.engine.plan import Plan, around
from onlinegp.learner import Learner, Sizes, skip
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import INSIDE, OuterLearner, OuterRegressor
from onlinegp.models.recipe import parameters
from onlinegp.predictions import Predictions
from onlinegp.state import Fields, array


@parameters
class Robust(OuterRegressor):
    """Wrap a model and limit the effect of each sample, so that outliers change the model only a little.

    The model learns mean + clip(y - mean, -bound std, bound std) in place of y, where mean and std are its prediction
    of y (Huber's weight on the innovation). Use it inside `Scaled`, so that predictions have the size of the data from
    the start; otherwise the first samples would look like outliers. Rows are learned one by one.

    Cost: as for the inner model
    Memory: as for the inner model
    Equation: learns mean + clip(y - mean, -bound std, bound std), less of it beyond reject std
    Variance of y: as for the inner model

    Parameters
    ----------
    model : OnlineRegressor
        The inner model. A copy with the same parameters learns; this object does not change.
    bound : float
        The largest deviation that is learned without clipping, in standard deviations of the prediction.
    reject : float
        Beyond this number of standard deviations, the clipped deviation is multiplied by (reject std / deviation)^2, so
        that extreme outliers have almost no effect. Infinity switches this off. With a finite value the model follows a
        jump of the data slowly.
    rows : int
        The number of first rows to learn without clipping, if they have no outliers. Use it if the noise is small: the
        first errors of a model can be many predicted standard deviations, and with clipping it would learn slowly.
    in_a_row : int, optional
        After this number of clipped rows in a row, the model learns rows in full until one is within the bound: a spike
        is clipped, a jump is followed. If None, all rows are clipped.

    Examples
    --------
    >>> import onlinegp as ogp
    >>> model = ogp.Scaled(ogp.Robust(ogp.KRLST(noise=0.1), bound=2.0))

    References
    ----------
    Huber, "Robust estimation of a location parameter", Annals of Math. Statistics, 1964.
    """

    model: OnlineRegressor
    _: KW_ONLY
    bound: float = 3.0
    reject: float = inf
    rows: int = 0
    in_a_row: int | None = None

    def check(self) -> None:
        self._options()
        super().check()

    def start(self, features: int, outputs: int) -> RobustLearner:
        return RobustLearner(self._inside().start(features, outputs), *self._options())

    def _options(self) -> tuple[float, float, int, int]:
        bound = positive(bound=self.bound)
        if self.reject != inf and not positive(reject=self.reject) >= bound:
            raise ValueError(f"reject must be at least bound, {bound:g}, got {self.reject!r}.")
        rows = count("Use 0 to clip from the start.", least=0, rows=self.rows)
        in_a_row = 0 if self.in_a_row is None else count("Use None to clip all rows.", in_a_row=self.in_a_row)
        return bound, float(self.reject), rows, in_a_row


class RobustLearner(OuterLearner):
    """Clip each target to `bound` predicted standard deviations before learning.

    If `in_a_row` is not zero, `clipped` (1,) is the number of clipped rows in a row.
    """

    def __init__(self, inner: Learner, bound: float, reject: float = inf, rows: int = 0, in_a_row: int = 0) -> None:
        self.inner, self.bound, self.reject, self.rows, self.in_a_row = inner, bound, reject, rows, in_a_row
        self.features, self.outputs = inner.features, inner.outputs
        self.clipped = np.zeros(1)

    @property
    def fields(self) -> Fields:
        return {"clipped": array(1, least=0.0, most=float(self.in_a_row)), **INSIDE} if self.in_a_row else INSIDE

    @property
    def seen(self) -> int:
        return self.inner.seen

    def learn(self, X: Array, Y: Array) -> None:
        self.run(X, Y)

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        predicted, size = [], np.empty(len(Y), dtype=np.int64)
        for i in range(len(Y)):
            row = slice(i, i + 1)
            predicted.append(self.inner.predict(X[row]))
            self.inner.learn(X[row], self._believed(predicted[-1], Y[row]))
            size[i] = self.inner.size
        return Predictions.joined(predicted), size

    def _believed(self, predicted: Predictions, Y: Array) -> Array:
        """Return the clipped targets, which the inner learner gets in place of Y."""
        if self.seen < self.rows:
            return Y
        error, most = Y - predicted.mean, self.bound * predicted.std
        if self.in_a_row and self._jumped(bool((np.abs(error) > most).any())):
            return Y
        kept = np.clip(error, -most, most)
        if self.reject < inf:
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.minimum(self.reject * predicted.std / np.abs(error), 1.0)
            kept = np.where(error == 0.0, 0.0, share * share * kept)
        return predicted.mean + kept

    def _jumped(self, far: bool) -> bool:
        """Count rows beyond the bound. Return whether enough rows in a row before this one were clipped."""
        if far and self.clipped[0] >= self.in_a_row:
            return True
        self.clipped[0] = self.clipped[0] + 1.0 if far else 0.0
        return False

    def predict(self, X: Array) -> Predictions:
        return self.inner.predict(X)

    def skip(self, X: Array, Y: Array | None = None) -> Predictions:
        return skip(self.inner, X, Y)

    def plan(self) -> Plan | None:
        left = max(0, self.rows - self.seen)  # rows that are still learned without clipping
        numbers = {"bound": self.bound, "reject": self.reject, "rows": float(left), "in_a_row": float(self.in_a_row)}
        return around(
            "robust", self, numbers, {"clipped": self.clipped} if self.in_a_row else {}, {"model": self.inner}
        )
