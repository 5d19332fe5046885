"""Use past values of y as inputs, for series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import Array, count
from onlinegp.learner import Learner
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.automatic_lags import AutomaticLagsLearner, lags_of_seasons
from onlinegp.models.combined.base import OuterRegressor
from onlinegp.models.combined.lagged_learner import Groups, LaggedLearner
from onlinegp.models.recipe import parameters
from onlinegp.predictions.samples import Samples

WIDEST = 100_000  # the largest number of inputs of the inner model


@parameters
class Lagged(OuterRegressor):
    """Wrap a model and add the last values of y to its inputs, for series.

    The inputs of a row are its features, then ``y[i - horizon], ..., y[i - horizon - lags + 1]``, the newest first, as
    in `onlinegp.datasets.embed`. With several outputs, all values of the first output come first, then all values of
    the second, ... A series without features has ``X=None``. Rows without enough past values are predicted by the mean
    and spread of the values so far, and are not learned.

    With a horizon above one, the inner model learns a row when it knows the rows just before it, so it sees errors one
    row ahead, which are usually smaller. Predictions are stretched around their mean by a factor: the root of the
    fading mean of z^2, z = (y - mean) / std, of the predictions made at the horizon. The factor of row i uses errors up
    to row i - horizon. It starts at one with the weight of 20 rows, and the mean fades over 500 + 10 horizon rows. If
    the stretched prediction is no normal distribution, it is mixed in equal parts with a normal distribution of the
    same mean and variance: an error far ahead is a sum of errors, so its tails are lighter than those one row ahead.
    The stretch of intervals by a `Conformal` inside is dropped.

    `predict` treats each row as the next row of the stream. `forecast` predicts several rows ahead. `skip` passes rows
    without y, and uses predictions as their values.

    Cost: as for the inner model with additional inputs
    Memory: as for the inner model, plus the lags
    Equation: x_i = [features, y_{i - h}, ..., y_{i - h - lags + 1}], h the horizon
    Variance of y: as for the inner model; with a horizon above one, right on average over recent rows

    Parameters
    ----------
    model : OnlineRegressor
        The inner model. A copy with the same parameters learns; this object does not change.
    lags : int, list of int or "auto"
        The number of past values; zero for none. Or a list of lags: ``[1, 2, 24, 168]`` means the last value, ..., the
        value 168 rows before. With a horizon h, lag 1 is the value h rows before. Or "auto": recent values, and values
        one season ago, with the seasons found in the first 3,200 rows; see
        :class:`~onlinegp.models.combined.automatic_lags.AutomaticLagsLearner`.
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

    References
    ----------
    Takens, "Detecting strange attractors in turbulence", 1981.
    """

    model: OnlineRegressor
    _: KW_ONLY
    lags: int | Sequence[int] | str = 10
    horizon: int = 1

    def check(self) -> None:
        self._sizes()
        super().check()

    @property
    def features_optional(self) -> bool:
        return self._sizes()[0] > 0 or super().features_optional

    @property
    def delay(self) -> int:
        return self._sizes()[1] + super().delay - 1

    def start(self, features: int, outputs: int) -> Learner:
        groups, horizon = self._groups(), self._sizes()[1]
        width = features + len(groups) * outputs
        if width > WIDEST:
            raise ValueError(f"features + lags x outputs must be at most {WIDEST}, got {width}. Use fewer lags.")
        if not self._automatic:
            return LaggedLearner(self._inside().start(width, outputs), features, groups, horizon)
        if outputs != 1:
            raise ValueError(f'lags="auto" is for one series, got {outputs} outputs. Give a list such as [1, 2, 24].')
        model = self._inside().unfitted()  # a copy, so that changing parameters later has no effect
        return AutomaticLagsLearner(partial(model.start, width, outputs), features, horizon)

    def forecast(
        self: OnlineRegressor,
        steps: int,
        X: ArrayLike | None = None,
        *,
        paths: int = 1000,
        seed: int | np.random.Generator | None = 0,
    ) -> Samples:
        """Predict the next `steps` values of y without learning.

        The forecast simulates many possible futures. In each future, a value is drawn from the prediction of the next
        row and becomes a lag of later rows, so that the uncertainty of one step affects the later steps. The errors of
        different steps are drawn independently.

        Parameters
        ----------
        steps : int
            The number of rows ahead.
        X : array-like of shape (steps, d), optional
            The future features, if the model has features in addition to its lags.
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
            if isinstance(learner, AutomaticLagsLearner):
                learner = learner.inner
            assert isinstance(learner, LaggedLearner)
            X = next_features(self, steps, X, learner.features)
            predicted = self._checked_predictions(learner.forecast(X, paths, np.random.default_rng(seed)))
            assert isinstance(predicted, Samples)
            return predicted

    @property
    def longest_lag(self) -> int:
        """The largest lag."""
        return self._sizes()[0]

    @property
    def seasons_(self) -> tuple[float, ...]:
        """The seasons, in rows, that lags="auto" has found so far."""
        learner = self._working
        if not isinstance(learner, AutomaticLagsLearner):
            raise AttributeError('seasons_ exists only with lags="auto".')
        return learner.found

    @property
    def lags_(self) -> tuple[tuple[int, ...], ...]:
        """The lags of each input. An input is the mean of the values at its lags."""
        learner = self._working
        lagged = learner.inner if isinstance(learner, AutomaticLagsLearner) else learner
        assert isinstance(lagged, LaggedLearner)
        return lagged.groups

    @property
    def _automatic(self) -> bool:
        if isinstance(self.lags, str) and self.lags != "auto":
            raise ValueError(f'lags must be a number, a list of numbers or "auto", got {self.lags!r}.')
        return isinstance(self.lags, str)

    def _groups(self) -> Groups:
        """Return the lags of each input. An input is the mean of the values at its lags."""
        if self._automatic:
            return lags_of_seasons(())
        if not isinstance(self.lags, str) and isinstance(self.lags, Sequence | np.ndarray):
            hint = "Lag 1 is the last value."
            listed: list[Any] = list(self.lags)
            chosen = tuple(count(hint, **{f"lags[{i}]": int(lag)}) for i, lag in enumerate(listed))
            if not chosen or any(a >= b for a, b in pairwise(chosen)):
                raise ValueError(
                    f"lags must increase, such as [1, 2, 24], got {self.lags!r}. Use 0 for no past values."
                )
            return tuple((lag,) for lag in chosen)
        none = self.lags == 0 and type(self.lags) is int
        lags = 0 if none else count("Use 0 for no past values.", lags=self.lags)
        if lags > WIDEST:
            raise ValueError(f"lags must be at most {WIDEST}, got {lags}.")
        return tuple((lag,) for lag in range(1, lags + 1))

    def _sizes(self) -> tuple[int, int]:
        """Return the longest lag and the horizon."""
        longest = max((max(group) for group in self._groups()), default=0)
        if longest > WIDEST:
            raise ValueError(f"lags must be at most {WIDEST}, got {longest}.")
        return longest, count(horizon=self.horizon)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # scikit-learn scores rows out of order
        return tags


def next_features(model: OnlineRegressor, steps: int, X: ArrayLike | None, features: int) -> Array:
    """Return the features of the next rows, (steps, features). Raise an error if they are missing."""
    if features and X is None:
        raise ValueError(
            f"X must be given, with shape ({steps}, {features}): the model has learned with features, and their future "
            f"values are not known."
        )
    checked = model.checked_X(np.empty((steps, 0)) if X is None else X)
    if len(checked) != steps:
        raise ValueError(f"X must have one row for each of the {steps} steps, got {len(checked)} rows.")
    return checked
