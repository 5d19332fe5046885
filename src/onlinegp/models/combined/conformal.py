"""Intervals with the right coverage, for any inner model."""

from __future__ import annotations

from dataclasses import KW_ONLY, replace

import numpy as np

from onlinegp.checks import Array, positive, probability
from onlinegp.engine.plan import Constant, Plan, around
from onlinegp.learner import Learner
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import INSIDE, OuterRegressor, SpreadLearner, stretched
from onlinegp.models.error_tracking import ALARM, MOST_ROWS, SURE, WIDEST, StretchRule, tracked_stretch
from onlinegp.models.recipe import parameters
from onlinegp.predictions import Predictions
from onlinegp.predictions.base import WIDE
from onlinegp.predictions.mixture import as_components
from onlinegp.state import array


@parameters
class Conformal(OuterRegressor):
    """Wrap a model and stretch its intervals at one level until they have the right coverage.

    The interval from the quantiles of the inner model is stretched around the mean by s; each output has its own s. A y
    outside the interval (a miss) increases s, a y inside decreases s, so that the share of misses approaches 1 - level.
    On a stream that does not change, s converges. It starts as if 400 rows had confirmed s = 1. If the coverage is
    wrong, at the start or after a change, each row moves log s by `step` until the coverage is right. So the share of
    misses over many rows is close to 1 - level for any data. Other levels use the same s, without a guarantee.

    Only intervals and quantiles change. Mean, standard deviation and density do not change.
    `Calibrated` and `HeavyTailed` correct the density: put `Conformal` around them. In the other order, the stretch has
    no effect.

    Cost: as for the inner model
    Memory: as for the inner model
    Equation: log s <- log s + g (level - 1[y inside]), s the stretch of the interval, g a decreasing gain
    Variance of y: as for the inner model; the interval at one level contains y as often as it should

    Parameters
    ----------
    model : OnlineRegressor
        The inner model. A copy with the same parameters learns; this object does not change.
    level : float
        The level of the intervals to correct, greater than 0 and less than 1.
    step : float
        The change of the logarithm of the stretch per row while coverage is wrong. A smaller step follows changes more
        slowly.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X, y = np.zeros((3000, 1)), np.random.default_rng(0).standard_t(3, 3000)
    >>> trace = ogp.run(ogp.Conformal(ogp.LinearRLS(noise=0.01), level=0.9), X, y)
    >>> lower, upper = trace.interval(0.9)
    >>> bool(abs(np.mean((lower <= y) & (y <= upper)) - 0.9) < 0.01)
    True

    References
    ----------
    Angelopoulos, Candes and Tibshirani, "Conformal PID control for time series prediction", NeurIPS, 2023.
    """

    model: OnlineRegressor
    _: KW_ONLY
    level: float = 0.95
    step: float = 0.1

    def check(self) -> None:
        self._level()
        positive(step=self.step)
        super().check()

    def start(self, features: int, outputs: int) -> ConformalLearner:
        return ConformalLearner(self._inside().start(features, outputs), self._level(), positive(step=self.step))

    def _level(self) -> float:
        return probability(WIDE, level=self.level)


class ConformalLearner(SpreadLearner):
    """An inner learner, the stretch of its intervals, and evidence of wrong coverage. Arrays are (outputs,).

    Attributes
    ----------
    log_scale : the log of the stretch
    rows : the number of rows that have confirmed the stretch
    more, fewer : evidence for too many and for too few misses, in nats
    """

    fields = {
        "log_scale": array("outputs", least=-WIDEST, most=WIDEST),
        "rows": array("outputs", least=0.0, most=MOST_ROWS),
        "more": array("outputs", least=0.0, most=ALARM),
        "fewer": array("outputs", least=0.0, most=SURE),
        **INSIDE,
    }

    def __init__(self, inner: Learner, level: float, step: float) -> None:
        super().__init__(inner)
        self.level, self.rule = level, StretchRule.at(level, step)
        self.restart(0.0)

    def restart(self, log_scale: float) -> None:
        """Continue with this stretch, as if no row had been learned."""
        self.log_scale = np.full(self.outputs, log_scale)
        self.rows, self.more, self.fewer = np.zeros((3, self.outputs))

    def update(self, predicted: Predictions, Y: Array, before: int) -> Predictions:
        """Return predictions with stretched intervals, and learn which rows were misses.

        Earlier misses determine the stretch of a row, and the stretch determines whether the row is a miss. So each
        iteration fixes at least one more row. Most blocks take a few iterations, a single row one or two.
        """
        missed = np.zeros(Y.shape)
        while True:
            state = [array.copy() for array in (self.log_scale, self.rows, self.more, self.fewer)]
            scale = tracked_stretch(missed, self.rule, *state)
            found = self._missed(predicted, Y, scale)
            if np.array_equal(found, missed):
                break
            missed = found
        self.log_scale, self.rows, self.more, self.fewer = state
        return _widened(predicted, scale)

    def current(self, predicted: Predictions) -> Predictions:
        return _widened(predicted, np.exp(self.log_scale))

    def _missed(self, predicted: Predictions, Y: Array, scale: Array) -> Array:
        """Return 1 where y is outside the stretched interval, else 0.

        y is between mean + s (lower - mean) and mean + s (upper - mean) if |cdf(mean + (y - mean) / s) - 1/2| is at
        most level / 2. This needs one CDF instead of two quantiles.
        """
        scale = scale * getattr(predicted, "stretch", 1.0)
        with np.errstate(over="ignore", invalid="ignore"):  # the inner model may have diverged
            p = predicted.cdf(predicted.mean + (Y - predicted.mean) / scale)
        return (np.abs(p - 0.5) > 0.5 * self.level).astype(np.float64)

    def plan(self) -> Plan | None:
        numbers: dict[str, Constant] = {"level": self.level, "rule": self.rule.constants}
        fields = {name: getattr(self, name) for name in ("log_scale", "rows", "more", "fewer")}
        return around("conformal", self, numbers, fields, {"model": self.inner})


def _widened(predicted: Predictions, factor: Array) -> Predictions:
    """Stretch the intervals of predictions by a factor. Keep the density if the predictions have one."""
    flat = as_components(predicted)
    if flat is None:
        return stretched(predicted, factor)
    return replace(flat, stretch=flat.stretch * np.broadcast_to(factor, flat.shape))
