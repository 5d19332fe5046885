"""Bounded innovations: no single sample can do much."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np

from onlinegp.checks import LARGEST, Array, positive
from onlinegp.engine.plan import Plan, around
from onlinegp.learner import Learner, Sizes, run_by_row
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import INSIDE, OuterLearner, OuterRegressor, is_gaussian, learn_single, single
from onlinegp.models.recipe import parameters
from onlinegp.predictions import Gaussian, Predictions


@parameters
class Robust(OuterRegressor):
    """A model that limits the effect of each sample, so that outliers change it only a little.

    It learns mean + clip(y - mean, -bound std, bound std) in place of y, where mean and std are what it predicts for y:
    Huber's weight on the innovation. Use it inside `Scaled`, where a prediction has the size of the data from the
    start; a model in other units would take every first sample for an outlier. Rows are learned one by one.

    Parameters
    ----------
    model : OnlineRegressor
        The model inside. Its parameters are used, and it stays as it is: what learns is a copy.
    bound : float
        The largest deviation that is learned from in full, in standard deviations of the prediction.

    Examples
    --------
    >>> import onlinegp as ogp
    >>> model = ogp.Scaled(ogp.Robust(ogp.KRLST(noise=0.1), bound=2.0))
    """

    model: OnlineRegressor
    _: KW_ONLY
    bound: float = 3.0

    cost: ClassVar[str] = "that of the model inside"
    equation: ClassVar[str] = "learns mean + clip(y - mean, -bound std, bound std)"
    memory: ClassVar[str] = "that of the model inside"
    variance: ClassVar[str] = "that of the model inside"
    citation: ClassVar[str] = 'Huber, "Robust estimation of a location parameter", Annals of Math. Statistics, 1964.'

    def check(self) -> None:
        positive(bound=self.bound)
        super().check()

    def start(self, features: int, outputs: int) -> RobustLearner:
        return RobustLearner(self._inside().start(features, outputs), positive(bound=self.bound))


class RobustLearner(OuterLearner):
    """Learns what its inner learner lets it believe of each row."""

    fields = INSIDE

    def __init__(self, inner: Learner, bound: float) -> None:
        self.inner, self.bound = inner, bound
        self.features, self.outputs = inner.features, inner.outputs

    @property
    def seen(self) -> int:
        return self.inner.seen

    def believed(self, y: Any, mean: Any, std: Any) -> Any:
        """Return mean + clip(y - mean, -bound std, bound std)."""
        most = self.bound * std
        if isinstance(mean, float):
            return mean + min(max(y - mean, -most), most)
        return mean + np.clip(y - mean, -most, most)

    def learn(self, X: Array, Y: Array) -> None:
        for x, y in zip(X, Y, strict=True):
            self._step(x, y)

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        if not is_gaussian(self.inner, X):
            return run_by_row(self, X, Y)
        mean, std, size = np.empty(Y.shape), np.empty(Y.shape), np.empty(len(Y), dtype=np.int64)
        for i in range(len(Y)):
            mean[i], std[i] = self._step(X[i], Y[i])
            size[i] = self.inner.size
        return Gaussian(mean, std), size

    def _step(self, x: Array, y: Array) -> tuple[Any, Any]:
        """Predict and learn one row, x (d,) and y (p,); return what was predicted."""
        mean, std = single(self.inner, x)
        target = self.believed(y.item() if isinstance(mean, float) else y, mean, std)
        learn_single(self.inner, x, target)
        return mean, std

    def predict(self, X: Array) -> Predictions:
        return self.inner.predict(X)

    def skip(self, X: Array, Y: Array | None = None) -> Predictions:
        return self.inner.skip(X, Y)

    def learn_one(self, x: object, y: object) -> bool | None:
        quick = self.inner.predict_one(x)
        if quick is None or not isinstance(y, float) or not abs(y) < LARGEST:
            return None
        return self.inner.learn_one(x, self.believed(y, *quick))

    def predict_one(self, x: object) -> tuple[float, float] | None:
        return self.inner.predict_one(x)

    def plan(self) -> Plan | None:
        return around("robust", self, {"bound": self.bound}, {}, {"model": self.inner})
