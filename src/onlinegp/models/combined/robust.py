"""Bounded innovations: no single sample can do much."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import ClassVar

import numpy as np

from onlinegp.checks import Array, positive
from onlinegp.engine.plan import Plan, around
from onlinegp.learner import Learner, Sizes
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import INSIDE, OuterLearner, OuterRegressor
from onlinegp.models.recipe import parameters
from onlinegp.predictions import Predictions


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

    def learn(self, X: Array, Y: Array) -> None:
        self.run(X, Y)

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        said, size = [], np.empty(len(Y), dtype=np.int64)
        for i in range(len(Y)):
            row = slice(i, i + 1)
            said.append(self.inner.predict(X[row]))
            mean, most = said[-1].mean, self.bound * said[-1].std
            self.inner.learn(X[row], mean + np.clip(Y[row] - mean, -most, most))
            size[i] = self.inner.size
        return Predictions.joined(said), size

    def predict(self, X: Array) -> Predictions:
        return self.inner.predict(X)

    def skip(self, X: Array, Y: Array | None = None) -> Predictions:
        return self.inner.skip(X, Y)

    def plan(self) -> Plan | None:
        return around("robust", self, {"bound": self.bound}, {}, {"model": self.inner})
