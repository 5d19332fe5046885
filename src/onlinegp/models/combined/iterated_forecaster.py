"""Forecasts of a model with lags, with a spread corrected by the errors of earlier forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from onlinegp.checks import Array, count
from onlinegp.learner import Learner, Sizes
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import OuterRegressor
from onlinegp.models.combined.calibrated import FadingScale, squared
from onlinegp.models.combined.lagged import WIDEST, Lagged
from onlinegp.models.combined.lagged_learner import Groups, LaggedLearner, UnboundedError
from onlinegp.models.error_tracking import fading_scales
from onlinegp.models.recipe import parameters
from onlinegp.predictions import Gaussian, Predictions
from onlinegp.predictions.samples import Samples
from onlinegp.state import Values, array, integer, integers

PATHS = 20  # number of sampled paths of a checked forecast
OPEN = 5  # largest number of open forecasts, which wait for values
SHARE = 50  # after n rows, checked forecasts begin every n / SHARE rows
KEEP = 0.5 ** (1.0 / 100.0)  # the weight of an error halves with 100 forecasts
# E[z^2] = (1 + 1 / n) (n - 1) / (n - 3) if mean and deviation are estimated from n samples of the right distribution
EXPECTED = (1.0 + 1.0 / PATHS) * (PATHS - 1.0) / (PATHS - 3.0)


@parameters
class IteratedForecaster(OuterRegressor):
    """Wrap a model with lags, compare its forecasts with the values that followed, and correct their spread.

    Sampled paths treat all noise as part of the series, so that noise affects later values. With measurement noise or a
    biased model, the spread of the paths after many steps is wrong. So the model makes forecasts along the stream and
    checks them. z_h is the error at step h in standard deviations of the forecast. The variance of later forecasts at
    step h is multiplied by the fading mean of z_h^2; the mean does not change. Steps beyond `steps` use the factor of
    the last step. At first, a checked forecast begins every steps / 5 rows, later after every 2% more rows. It has 20
    paths.

    If the model has features in addition to its lags, forecasts are not corrected, because future features are unknown
    when a checked forecast begins.

    `run` and `predict` work as for :class:`Lagged`.

    Cost: as for the inner model, plus up to 100 predictions
    Memory: as for the inner model, plus the lags and 10 numbers for each step
    Equation: variance at step h <- variance times the fading mean of z_h^2, z_h = (y - mean_h) / std_h
    Variance of y: as for the inner model; of a forecast, right on average at every step

    Parameters
    ----------
    model : OnlineRegressor
        The inner model. A copy with the same parameters learns; this object does not change.
    lags : int or list of int
        The number of past values, or a list of lags.
    horizon : int
        The inner model predicts this number of rows ahead, as for `Lagged`.
    steps : int
        The number of rows of a checked forecast.
    after : int
        The number of rows before the first checked forecast, for example the rows that `Auto` needs to tune itself.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> from onlinegp.models.combined import IteratedForecaster
    >>> rng = np.random.default_rng(0)
    >>> series = np.sin(0.3 * np.arange(500)) + 0.1 * rng.normal(size=500)  # measurement noise
    >>> model = IteratedForecaster(ogp.Scaled(ogp.KRLST(noise=0.02)), lags=8, steps=20).fit(None, series)
    >>> lower, upper = model.forecast(20).interval(0.95)
    >>> model.factors_.shape
    (20,)

    References
    ----------
    Takens, "Detecting strange attractors in turbulence", 1981.
    """

    model: OnlineRegressor
    _: KW_ONLY
    lags: int | Sequence[int] | str = 10
    horizon: int = 1
    steps: int = 20
    after: int = 0

    def check(self) -> None:
        self._checked()
        self._lagged().check()

    @property
    def features_optional(self) -> bool:
        return self._lagged().features_optional

    @property
    def delay(self) -> int:
        return self._lagged().delay

    @property
    def longest_lag(self) -> int:
        """The largest lag."""
        return self._lagged().longest_lag

    def start(self, features: int, outputs: int) -> IteratedLearner:
        steps, after = self._checked()
        lagged = self._lagged().start(features, outputs)
        assert isinstance(lagged, LaggedLearner)
        return IteratedLearner(lagged.inner, features, lagged.groups, lagged.horizon, steps, after)

    forecast = Lagged.forecast

    def _lagged(self) -> Lagged:
        """Return the model with lags that makes the predictions."""
        return Lagged(self.model, lags=self.lags, horizon=self.horizon)

    def _checked(self) -> tuple[int, int]:
        """Return `steps` and `after`, checked."""
        if isinstance(self.lags, str):
            raise ValueError(
                f"lags must be a number or a list, got {self.lags!r}. Forecaster() without a model chooses lags."
            )
        if not self.longest_lag:
            count("A forecast needs past values: 10 is a usual choice.", lags=self.lags)
        at_once = self.after == 0 and type(self.after) is int
        if count(steps=self.steps) > WIDEST:
            raise ValueError(f"steps must be at most {WIDEST}, got {self.steps}. 20 is a usual choice.")
        return self.steps, 0 if at_once else count("Use 0 to check forecasts from the start.", after=self.after)

    @property
    def factors_(self) -> Array:
        """The factors that correct the variances of a forecast, (steps,) or (steps, outputs)."""
        learner = self._working
        assert isinstance(learner, IteratedLearner)
        return learner.factors()[:, 0] if self._single else learner.factors()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # scikit-learn scores rows out of order
        return tags


WithLags = Lagged | IteratedForecaster  # the models whose inputs are past values of y


class IteratedLearner(LaggedLearner):
    """A learner with lags, open forecasts, and the fading means of their squared errors by step."""

    fields = {
        **LaggedLearner.fields,
        "total": array("entries", positive=True, attribute="scale.total"),
        "count": array("entries", positive=True, attribute="scale.count"),
        "due": integer(attribute="_due"),
        "ages": integers("open", least=0, attribute="_ages"),
        "mean": array("open", "steps", "outputs", attribute="_mean"),
        "std": array("open", "steps", "outputs", least=0.0, attribute="_std"),
    }
    lengths = {**LaggedLearner.lengths, "open": OPEN}

    def __init__(
        self,
        inner: Learner,
        features: int,
        groups: Groups,
        horizon: int,
        steps: int,
        after: int,
    ) -> None:
        super().__init__(inner, features, groups, horizon)
        self.steps, self.entries = steps, steps * self.outputs
        self.scale = FadingScale(self.entries, KEEP)  # entries: all outputs at step 1, all outputs at step 2, ...
        self._due = after  # the next forecast begins at this row
        self._ages: Sizes = np.empty(0, dtype=np.int64)  # steps so far of the open forecasts, oldest first
        self._mean, self._std = np.empty((2, 0, steps, self.outputs))

    def factors(self) -> Array:
        return self.scale.current().reshape(self.steps, self.outputs)

    def learn(self, X: Array, Y: Array) -> None:
        start = 0
        while start < len(X):
            part = slice(start, start + self._together(len(X) - start))
            super().learn(X[part], Y[part])
            self._meet(Y[part])
            start = part.stop

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        predicted, size, start = [], np.empty(len(X), dtype=np.int64), 0
        while start < len(X):
            part = slice(start, start + self._together(len(X) - start))
            predictions, size[part] = super().run(X[part], Y[part])
            self._meet(Y[part])
            predicted.append(predictions)
            start = part.stop
        return Predictions.joined(predicted), size

    def skip(self, X: Array, Y: Array | None = None) -> Predictions:
        self._close()
        return super().skip(X, Y)

    def begin_series(self) -> None:
        self._close()
        super().begin_series()

    def forecast(self, X: Array, paths: int, rng: np.random.Generator) -> Samples:
        predicted = super().forecast(X, paths, rng)
        factor = self.factors()[np.minimum(np.arange(len(X)), self.steps - 1)]
        mean = predicted.mean[:, :, None]
        return Samples(mean + np.sqrt(factor)[:, :, None] * (predicted.values - mean))

    # Open forecasts

    def _together(self, rows: int) -> int:
        """Begin a forecast if one is due, and return how many of the next rows can be learned in one call."""
        if self.features:
            return rows
        if self.seen >= self._due and not self._knows_little():
            self._begin()
        return min(rows, max(1, self._due - self.seen))

    def _begin(self) -> None:
        """Begin a forecast at the next row. Drop it if it grows without bound."""
        self._due = self.seen + max(self.seen // SHARE, -(-self.steps // OPEN))
        try:
            predicted = super().forecast(np.empty((self.steps, 0)), PATHS, np.random.default_rng(self.seen))
        except UnboundedError:
            return
        self._mean = np.concatenate([self._mean, predicted.mean[None]])
        self._std = np.concatenate([self._std, predicted.std[None]])
        self._ages = np.append(self._ages, 0)

    def _meet(self, Y: Array) -> None:
        """Learn the errors of the open forecasts at new rows, and close the forecasts that end there."""
        for age, mean, std in zip(self._ages, self._mean, self._std, strict=True):  # oldest first
            steps = slice(age, min(age + len(Y), self.steps))
            z2 = squared(Gaussian(mean[steps], std[steps]), Y[: steps.stop - age]) / EXPECTED
            own = slice(age * self.outputs, steps.stop * self.outputs)
            fading_scales(z2.reshape(1, -1), 0.0, KEEP, self.scale.total[own], self.scale.count[own])
        going = self._ages + len(Y) < self.steps
        self._ages, self._mean, self._std = self._ages[going] + len(Y), self._mean[going], self._std[going]

    def _close(self) -> None:
        """Drop all open forecasts."""
        self._ages, self._mean, self._std = self._ages[:0], self._mean[:0], self._std[:0]

    def check(self, values: Values) -> None:
        ages = values["ages"]
        if not (np.all(ages < self.steps) and np.all(np.diff(ages) < 0)):
            raise ValueError(f"ages must decrease, from less than {self.steps} to 0 or more, got {ages!r}.")
