"""Correct standard deviations from the size of past errors."""

from __future__ import annotations

from dataclasses import KW_ONLY

import numpy as np

from onlinegp.checks import Array, positive
from onlinegp.engine.plan import Plan, around
from onlinegp.learner import Learner
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import INSIDE, OuterRegressor, SpreadLearner, stretched
from onlinegp.models.error_tracking import MAX_RATIO, TINY, fading_scales, keep_of
from onlinegp.models.recipe import parameters
from onlinegp.predictions import Predictions
from onlinegp.state import array

START = 20.0  # the initial scale 1 counts like this number of rows


@parameters
class Calibrated(OuterRegressor):
    """Wrap a model and rescale its variance by the fading mean of z^2, z = (y - mean) / std.

    The mean does not change, and the inner model learns as it would alone. Each output has its own factor, which starts
    at one with the weight of 20 rows. Errors are clipped at ten standard deviations. The distribution is stretched
    around its mean. This corrects the width of intervals on average, but not the shape of the distribution. For
    outliers use :class:`HeavyTailed`.

    Cost: as for the inner model
    Memory: as for the inner model
    Equation: variance <- variance times the fading mean of z^2, z = (y - mean) / std
    Variance of y: right on average over recent rows

    Parameters
    ----------
    model : OnlineRegressor
        The inner model. A copy with the same parameters learns; this object does not change.
    half_life : float
        The number of rows after which the weight of an error has halved.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> y = X[:, 0] + 0.1 * rng.normal(size=400)
    >>> trace = ogp.run(ogp.Calibrated(ogp.LinearRLS(noise=1.0)), X, y)  # the noise is a hundred times too large
    >>> bool(trace.std[-1] < 0.2)
    True
    """

    model: OnlineRegressor
    _: KW_ONLY
    half_life: float = 100.0

    def check(self) -> None:
        positive(half_life=self.half_life)
        super().check()

    def start(self, features: int, outputs: int) -> CalibratedLearner:
        keep = keep_of(positive(half_life=self.half_life))
        return CalibratedLearner(self._inside().start(features, outputs), keep)

    @property
    def factor_(self) -> Array | float:
        """The current factor of the variance: a number, or (outputs,)."""
        learner = self._working
        assert isinstance(learner, CalibratedLearner)
        factor = learner.scale.current()
        return float(factor[0]) if self._single else factor


class FadingScale:
    """The fading mean of squared residuals per output: total / count. `degrees` as in `fading_scales`."""

    def __init__(self, outputs: int, keep: float, *, first: float = 1.0, degrees: float = 0.0) -> None:
        self.keep, self.degrees = keep, degrees
        self.total, self.count = np.full(outputs, first * START), np.full(outputs, START)

    def current(self) -> Array:
        return self.total / self.count

    def update(self, Z2: Array) -> Array:
        """Learn squared residuals (n, p). Return the scales before each row, (n, p)."""
        return fading_scales(Z2, self.degrees, self.keep, self.total, self.count)

    def rule(self) -> dict[str, float]:
        """Return the constants for the compiled twin."""
        return {"keep": self.keep, "far": MAX_RATIO, "tiny": TINY}


class CalibratedLearner(SpreadLearner):
    """An inner learner, and the factors that rescale its variances."""

    fields = {
        "total": array("outputs", positive=True, attribute="scale.total"),
        "count": array("outputs", positive=True, attribute="scale.count"),
        **INSIDE,
    }

    def __init__(self, inner: Learner, keep: float) -> None:
        super().__init__(inner)
        self.scale = FadingScale(inner.outputs, keep)

    def update(self, predicted: Predictions, Y: Array, before: int) -> Predictions:
        return stretched(predicted, np.sqrt(self.scale.update(squared(predicted, Y))))

    def current(self, predicted: Predictions) -> Predictions:
        return stretched(predicted, np.sqrt(self.scale.current()))

    def plan(self) -> Plan | None:
        fields = {"total": self.scale.total, "count": self.scale.count}
        return around("calibrated", self, self.scale.rule(), fields, {"model": self.inner})


def squared(predicted: Predictions, Y: Array) -> Array:
    """Return z^2, (n, p)."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = (Y - predicted.mean) / predicted.std
        return np.where(predicted.mean == Y, 0.0, z * z)  # 0 also where std is 0
