"""Intervals that hold y as often as they say, whatever the model inside believes."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import ClassVar

import numpy as np

from onlinegp.checks import Array, positive, probability, stored_array
from onlinegp.engine.tracking import WIDEST, tracked_quantiles
from onlinegp.learner import Contents, Learner
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import OuterRegressor, SpreadLearner, stretched
from onlinegp.models.recipe import parameters
from onlinegp.predictions import Predictions
from onlinegp.predictions.base import WIDE


@parameters
class Conformal(OuterRegressor):
    """A model whose interval at one level is widened after each miss and narrowed after each hit, so that it holds.

    The interval from the quantiles of the model inside is stretched around the mean by s, one for each output: log s
    grows by step level after a miss, and shrinks by step (1 - level) after a hit. The share of misses over many rows
    is then 1 - level, whatever the data do; under drift it may take some rows. At other levels the same stretch is
    used, without such a promise. Predictions are the stretched distributions.

    Use it for those who need the level and not the density: `Calibrated` and `HeavyTailed` give better densities.
    Around :class:`HeavyTailed` it has less to do.

    Parameters
    ----------
    model : OnlineRegressor
        The model inside. Its parameters are used, and it stays as it is: what learns is a copy.
    level : float
        The probability that intervals at this level shall have, greater than 0 and less than 1.
    step : float
        How much a row may change the logarithm of the stretch. Less follows changes more slowly and costs less density.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X, y = np.zeros((3000, 1)), np.random.default_rng(0).standard_t(3, 3000)
    >>> trace = ogp.run(ogp.Conformal(ogp.LinearRLS(noise=0.01), level=0.9), X, y)
    >>> lower, upper = trace.interval(0.9)
    >>> bool(abs(np.mean((lower <= y) & (y <= upper)) - 0.9) < 0.01)
    True
    """

    model: OnlineRegressor
    _: KW_ONLY
    level: float = 0.95
    step: float = 0.05

    cost: ClassVar[str] = "that of the model inside"
    equation: ClassVar[str] = "log s <- log s + step (level - 1[y inside]), s the stretch of the interval"
    memory: ClassVar[str] = "that of the model inside"
    variance: ClassVar[str] = "the interval at one level contains y as often as it promises, whatever the data"
    citation: ClassVar[str] = (
        'Angelopoulos, Candes and Tibshirani, "Conformal PID control for time series prediction", NeurIPS, 2023.'
    )

    def check(self) -> None:
        self._level()
        positive(step=self.step)
        super().check()

    def start(self, features: int, outputs: int) -> ConformalLearner:
        return ConformalLearner(self._inside().start(features, outputs), self._level(), positive(step=self.step))

    def _level(self) -> float:
        return probability(WIDE, level=self.level)


class ConformalLearner(SpreadLearner):
    """The log of the stretch of the inner learner's intervals, (outputs,)."""

    def __init__(self, inner: Learner, level: float, step: float) -> None:
        super().__init__(inner)
        self.level, self.step, self.log_scale = level, step, np.zeros(inner.outputs)

    def along(self, said: Predictions, Y: Array, before: int) -> Predictions:
        return stretched(said, tracked_quantiles(self._scores(said, Y), self.level, self.step, before, self.log_scale))

    def now(self, said: Predictions) -> Predictions:
        return stretched(said, np.exp(self.log_scale))

    def _scores(self, said: Predictions, Y: Array) -> Array:
        """Return by how much the interval of each row had to be stretched to end at y, (n, p)."""
        lower, upper = said.interval(self.level)
        above = said.mean < Y
        with np.errstate(divide="ignore", invalid="ignore"):
            r = (Y - said.mean) / np.where(above, upper - said.mean, lower - said.mean)
        return np.where(said.mean == Y, 0.0, r)

    def dump(self) -> Contents:
        return self._dump({"log_scale": self.log_scale.copy()})

    def load(self, contents: Contents) -> None:
        own = self._own(contents, ("log_scale",))
        log_scale = stored_array("log_scale", own["log_scale"], self.log_scale.shape)
        if not np.all(np.abs(log_scale) <= WIDEST):
            raise ValueError(f"log_scale must be at most {WIDEST} in magnitude, got {log_scale!r}.")
        self.log_scale = log_scale.copy()
