"""Forecast a series without settings. Seasons, models, their weights and the intervals come from the data."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any, Self
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike

from onlinegp import frames
from onlinegp.checks import Array, count, positive
from onlinegp.columns.time_steps import infer_step
from onlinegp.learner import Learner
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.iterated_forecaster import IteratedForecaster, IteratedLearner
from onlinegp.models.combined.lagged import Lagged, next_features
from onlinegp.models.recipe import parameters
from onlinegp.models.temporal.combination import LEVELS, pinball
from onlinegp.models.temporal.forecast import Forecast
from onlinegp.models.temporal.series import FIRST_FIT, SeriesLearner
from onlinegp.predictions import Predictions
from onlinegp.predictions.samples import Samples
from onlinegp.trace import Trace

MAX_STEPS = 100_000
ALONE: Any = object()  # default of y: the first argument is the series, and there are no inputs


@parameters
class Forecaster(OnlineRegressor):
    """Forecast a series without choosing any settings.

    The model finds seasons (:func:`onlinegp.seasons.find_seasons`), then fits three families of members: Gaussian
    processes over time with a trend, a short memory and drifting seasons; the same with a constant slope; and
    regressions on smoothed lags with three memories. Each member is fitted to y and, if no value is negative, also to
    log y. Forecasts from 40 past rows are compared with the values that followed. Members with smaller errors get
    more weight, and these errors also correct the quantiles. On a short series all members count about the same; on a
    long series the best members count most.

    On a stream, `learn_one(y)` stores the row. Members are fitted again in the background each time the number of rows
    has doubled, later every 3,000 rows. The new fit is used after 1/16 more rows; between fits, members learn each row.
    ``forecast(steps, refit=False)`` uses the current fit and takes a few milliseconds. `run` and `predict` predict the
    next row by a mixture of the last value and of fewer members that are quicker to fit, weighted by their recent log
    densities. Missing values are NaN in y. Inputs that are known ahead, such as holidays, are columns of X with linear
    effects.

    With ``model=Lagged(...)`` forecasts are sampled paths of your own model, with their spread corrected by the errors
    of past forecasts.

    Use it for series of at least 12 values. For thousands of related series, a global model is better.

    Cost: O(1) to keep a row; a fit takes about 0.1 s for 1,000 rows with a day and a week
    Memory: the last 6,000 rows, at most
    Equation: weights (mean pinball loss of past forecasts)^-nu, nu = rows of the past / steps
    Variance of y: of past forecasts, at every step

    Parameters
    ----------
    model : Lagged, optional
        Your own model with lags. It predicts step by step and replaces all members.
    seasons : "auto", float or tuple of float
        Season lengths in rows, at most two. Use ``()`` for none.
    steps : int
        With `model`: check forecasts this number of rows ahead.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> t = np.arange(120)
    >>> y = 10 + 0.1 * t + 3 * np.sin(2 * np.pi * t / 12) + np.random.default_rng(0).normal(size=120)
    >>> model = ogp.Forecaster().fit(y)
    >>> ahead = model.forecast(12)
    >>> ahead.seasons
    (12.0,)
    >>> lower, upper = ahead.interval(0.95)
    """

    model: Lagged | None = None
    _: KW_ONLY
    seasons: Any = "auto"
    steps: int = 20

    @property
    def features_optional(self) -> bool:
        return True

    def check(self) -> None:
        self._seasons()
        if self.model is not None:
            self._iterated().check()

    def start(self, features: int, outputs: int) -> Learner:
        if self.model is not None:
            return self._iterated().start(features, outputs)
        if outputs != 1:
            raise ValueError(f"y must be one series, got {outputs}. Use a Forecaster for each.")
        return SeriesLearner(features, self._seasons())

    def _iterated(self) -> IteratedForecaster:
        if not isinstance(self.model, Lagged):
            raise TypeError(
                f"model must be a Lagged, which predicts from past values, got {self.model!r}. "
                "Write Forecaster(model=Lagged(model, lags=10)), or leave it out."
            )
        inner = self.model
        return IteratedForecaster(inner.model, lags=inner.lags, horizon=inner.horizon, steps=self.steps)

    def _seasons(self) -> tuple[float, ...] | None:
        if isinstance(self.seasons, str):
            if self.seasons != "auto":
                raise ValueError(f'seasons must be "auto" or periods in rows such as (24, 168), got {self.seasons!r}.')
            return None
        periods = (self.seasons,) if np.ndim(self.seasons) == 0 else self.seasons
        seasons = tuple(float(positive("A season is a number of rows.", season=season)) for season in periods)
        if len(seasons) > 2 or any(s < 2 for s in seasons) or (len(seasons) == 2 and not seasons[1] > seasons[0]):
            raise ValueError(f"seasons must be at most two periods of 2 rows or more, in order, got {seasons}.")
        return seasons

    # The series y may be the only argument. Missing values are NaN

    def fit(self, X: Any, y: Any = ALONE) -> Self:
        """Forget everything, then learn a series: ``fit(y)``, or ``fit(X, y)`` with inputs. NaN is a missing value."""
        _warn_of_gaps(X if y is ALONE else y)
        X, y = _series(X, y)
        if np.ndim(y) != 1 or not np.isnan(y).any():
            return super().fit(X, y)
        known = np.flatnonzero(~np.isnan(y))
        if not len(known):
            raise ValueError("y has no value: all of them are missing.")
        first, rest = slice(known[0], known[0] + 1), slice(known[0] + 1, len(y))
        first_inputs: Any = None if X is None else _rows(X, first)
        super().fit(first_inputs, y[first])
        return self.partial_fit(X if X is None else _rows(X, rest), y[rest]) if rest.start < len(y) else self

    def partial_fit(self, X: Any, y: Any = ALONE) -> Self:
        """Learn more rows, in order. NaN is a missing value."""
        X, y = _series(X, y)
        if np.ndim(y) != 1 or not np.isnan(y).any():
            return super().partial_fit(X, y)
        missing = np.isnan(y)
        if self._learner is None:  # skip missing values at the start
            return self if missing.all() else self.fit(X, y)
        for part in _runs(missing):
            rows: Any = None if X is None else _rows(X, part)
            if missing[part.start]:
                self.skip(np.empty((part.stop - part.start, 0)) if rows is None else rows)
            else:
                super().partial_fit(rows, y[part])
        return self

    def learn_one(self, x: Any, y: Any = ALONE) -> Self:
        """Learn the next value: ``learn_one(y)``, or ``learn_one(x, y)`` with inputs. NaN or None is missing."""
        if y is ALONE:
            x, y = None, x
        if y is None or (isinstance(y, float | np.floating) and np.isnan(y)):
            return self.partial_fit(None if x is None else [x], np.array([y]))
        return super().learn_one(x, y)

    def run(self, X: Any, y: Any = ALONE, *, delay: int = 0, progress: bool | None = None) -> Trace:
        """Predict each row, then learn it: ``run(y)``, or ``run(X, y)`` with inputs."""
        return super().run(*_series(X, y), delay=delay, progress=progress)

    # Forecasts

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Predict the next value, for each row of inputs. For several steps ahead use `forecast`."""
        if isinstance(X, Integral):
            raise TypeError(f"predict takes the inputs of the next row. For the next {X} values use forecast({X}).")
        return super().predict(X, return_std)

    def forecast(
        self,
        steps: int,
        X: ArrayLike | None = None,
        *,
        refit: bool = True,
        paths: int = 1000,
        seed: int | np.random.Generator | None = 0,
    ) -> Predictions:
        """Predict the next values without learning.

        Parameters
        ----------
        steps : int
            The number of rows to predict.
        X : array-like of shape (steps, d), optional
            The future inputs, if the model was fitted with inputs.
        refit : bool
            Whether to fit the parameters to all rows first, which takes most of the time. If False, use the last fit,
            which saw at least half of the rows.
        paths, seed :
            With `model`: the number of sampled paths, and their seed. Without, see :meth:`Forecast.paths`.

        Returns
        -------
        Forecast
            Quantiles, mean, intervals, `paths()`, `to_frame()`, `plot()`. With `model`: `Samples`.
        """
        if count(steps=steps) > MAX_STEPS:
            raise ValueError(f"steps must be at most {MAX_STEPS}, got {steps}.")
        with self._lock:
            learner = self._working
            future = next_features(self, steps, X, learner.features)
            if isinstance(learner, IteratedLearner):
                predicted = self._checked_predictions(learner.forecast(future, paths, np.random.default_rng(seed)))
                assert isinstance(predicted, Samples)
                return predicted
            assert isinstance(learner, SeriesLearner)
            return learner.forecast(future, refit=refit)

    def backtest(self, steps: int, origins: int = 5) -> Backtest:
        """Forecast the last part of the series from the rows before it, and score these forecasts.

        Parameters
        ----------
        steps : int
            The number of rows per forecast.
        origins : int
            The number of forecasts. They follow each other without gaps, and the last forecast ends with the series.
        """
        steps, origins = count(steps=steps), count(origins=origins)
        with self._lock:
            learner = self._working
            if not isinstance(learner, SeriesLearner):
                raise TypeError("backtest is for the automatic forecaster. For a model of your own, use onlinegp.run.")
            n = len(learner.values)
            if n < FIRST_FIT + origins * steps:
                raise ValueError(
                    f"a backtest of {origins} forecasts of {steps} steps needs {FIRST_FIT + origins * steps} rows, "
                    f"got {n}. Use fewer steps or origins."
                )
            results = []
            for k in range(origins, 0, -1):
                cut = n - k * steps
                ahead = learner.first_rows(cut).forecast(learner.inputs[cut : cut + steps], refit=True)
                actual = learner.rows.values
                results.append(_scored(actual[:cut], actual[cut : cut + steps], ahead))
        return Backtest(steps, results)


@dataclass(frozen=True)
class Backtest:
    """Scores of past forecasts, relative to the mean error of repeating the last season on the earlier rows.

    Attributes
    ----------
    results : a dictionary for each origin: row, mase (absolute error), sql (quantile loss), coverage of the 95%
    intervals
    """

    steps: int
    results: list[dict[str, float]]

    @property
    def mean(self) -> dict[str, float]:
        return {name: float(np.nanmean([one[name] for one in self.results])) for name in ("mase", "sql", "coverage")}

    def __str__(self) -> str:
        lines = [f"{'after row':>10} {'MASE':>7} {'sQL':>7} {'in 95% interval':>16}"]
        rows = [(f"{int(one['row'])}", one) for one in self.results] + [("mean", self.mean)]
        lines += [f"{name:>10} {one['mase']:7.3f} {one['sql']:7.3f} {one['coverage']:16.0%}" for name, one in rows]
        return "\n".join(lines)


def _scored(before: Array, actual: Array, ahead: Forecast) -> dict[str, float]:
    s = round(ahead.seasons[0]) if ahead.seasons else 1
    scale = float(np.nanmean(np.abs(before[s:] - before[:-s]))) + 1e-300
    known = np.isfinite(actual)
    q, y = ahead.quantiles[known].T, actual[known]
    if not len(y):
        return {"row": len(before), "mase": np.nan, "sql": np.nan, "coverage": np.nan}
    error = np.abs(y - q[len(LEVELS) // 2]).mean() / scale
    inside = np.mean((y >= q[0]) & (y <= q[-1]))
    return {"row": len(before), "mase": error, "sql": 2 * pinball(y, q).mean() / scale, "coverage": float(inside)}


def _series(X: Any, y: Any) -> tuple[Any, Any]:
    """Return inputs and values. If y is ALONE, X is the series, and there are no inputs."""
    X, y = (None, X) if y is ALONE else (X, y)
    return X, None if y is None else frames.series(y)  # the base class refuses None


def _warn_of_gaps(y: Any) -> None:
    """Warn if the dates of a pandas index are out of order or have gaps, because rows are learned as consecutive."""
    index: Any = getattr(y, "index", None)
    if not hasattr(index, "to_pydatetime") or index.hasnans:
        return
    if not (index.is_monotonic_increasing and index.is_unique):
        warn(
            "the dates of y are out of order or repeat. Rows are learned in the order they have. Sort them by date, "
            "such as by y.sort_index(), and leave one row for each date.",
            stacklevel=3,
        )
        return
    moments = index.to_pydatetime().tolist()
    step = infer_step(moments)
    places = {0.0} if step is None else set(np.rint(step.places(moments)).tolist())
    gaps = round(max(places) - min(places)) + 1 - len(places)
    if gaps:
        warn(
            f"{gaps} rows are missing between the dates of y, which has a row {step}. Rows are learned as consecutive, "
            "so seasons are shifted after a gap. Insert the rows with NaN, such as by y.asfreq('D') for days or "
            "y.asfreq('h') for hours.",
            stacklevel=3,
        )


def _rows(X: Any, part: slice) -> Any:
    return X.iloc[part] if hasattr(X, "iloc") else X[part]


def _runs(missing: Array) -> list[slice]:
    """Return a slice for each run of equal flags."""
    ends = np.flatnonzero(np.diff(missing.astype(np.int8))) + 1
    edges = [0, *ends.tolist(), len(missing)]
    return [slice(a, b) for a, b in pairwise(edges)]
