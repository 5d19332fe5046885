"""A forecast: quantiles for every step ahead, and sampled paths."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinegp import frames
from onlinegp.checks import Array, count, probability
from onlinegp.html_tables import table
from onlinegp.models.temporal.combination import LEVELS, SCORES
from onlinegp.predictions import Predictions
from onlinegp.predictions.samples import Samples
from onlinegp.predictions.student import HALF_LOG_2PI

GRID = (np.arange(400) + 0.5) / 400  # probabilities at which moments are computed
SHOWN_STEPS = 8  # rows of the table in a notebook
MIN_SLOPE = 1e-12  # smallest slope of the quantile function, relative to the largest quantile


@dataclass(frozen=True, eq=False, repr=False)
class Forecast(Predictions):
    """The distributions of the next values, given by quantiles at 11 levels.

    Between two levels, and outside them, the quantile is linear in the normal score ``ndtri(probability)``. So a normal
    distribution is represented exactly.

    Attributes
    ----------
    quantiles : (n, 11)
        The quantiles of each step at the levels .025, .1, .2, ..., .9, .975.
    dates : array of length n, optional
        The dates of the values, if the series had dates.
    seasons : tuple of float
        The periods that were found, in rows.
    weights : dict
        The share of each family of members in the forecast.
    """

    quantiles: Array
    dates: NDArray[Any] | None = None
    seasons: tuple[float, ...] = ()
    weights: dict[str, float] = field(default_factory=dict)
    sampler: Any = None

    @cached_property
    def mean(self) -> Array:  # type: ignore[override]
        return self._on_grid.mean(axis=1)

    @cached_property
    def std(self) -> Array:  # type: ignore[override]
        return self._on_grid.std(axis=1)

    @property
    def median(self) -> Array:
        return self.quantiles[:, len(LEVELS) // 2]

    @cached_property
    def _on_grid(self) -> Array:
        from scipy.special import ndtri

        return np.stack([self._at(z) for z in ndtri(GRID)], axis=1)

    def _at(self, z: Any) -> Array:
        """Return the quantile of each row at the normal score z, which is one number or one per row."""
        z = np.broadcast_to(z, len(self.quantiles))
        i = np.clip(np.searchsorted(SCORES, z) - 1, 0, len(SCORES) - 2)
        rows = np.arange(len(z))
        low, high = self.quantiles[rows, i], self.quantiles[rows, i + 1]
        return low + (high - low) * (z - SCORES[i]) / (SCORES[i + 1] - SCORES[i])

    def quantile(self, p: float) -> Array:
        from scipy.special import ndtri

        return self._at(float(ndtri(probability(p=p))))

    def _scores(self, y: ArrayLike) -> tuple[Array, Array]:
        """Return the normal scores of the values y, and the derivative of y with respect to the score."""
        y = np.broadcast_to(self._values(y), self.shape)
        slopes = np.diff(self.quantiles, axis=1) / np.diff(SCORES)
        slopes = np.maximum(slopes, MIN_SLOPE * np.abs(self.quantiles).max(axis=1, keepdims=True) + 1e-300)
        i = np.clip((self.quantiles <= y[:, None]).sum(axis=1) - 1, 0, len(SCORES) - 2)
        rows = np.arange(len(y))
        return SCORES[i] + (y - self.quantiles[rows, i]) / slopes[rows, i], slopes[rows, i]

    def log_density(self, y: ArrayLike) -> Array:
        z, slope = self._scores(y)
        return -0.5 * z * z - HALF_LOG_2PI - np.log(slope)

    def cdf(self, y: ArrayLike) -> Array:
        from scipy.special import ndtr

        return ndtr(self._scores(y)[0])

    def survival(self, y: ArrayLike) -> Array:
        from scipy.special import ndtr

        return ndtr(-self._scores(y)[0])

    def affine(self, center: Array | float, scale: Array | float) -> Forecast:
        center, scale = np.asarray(center), np.asarray(scale)
        return replace(self, quantiles=center[..., None] + scale[..., None] * self.quantiles)

    def paths(self, n: int = 1000, seed: int | np.random.Generator | None = 0) -> Samples:
        """Sample n possible futures, `values` (steps, n), for questions about several steps together.

        Each step has the distribution of the forecast. Steps are correlated as in the Gaussian process with the
        best past forecasts: a path that starts high stays high, so that sums of steps have honest intervals.

        Examples
        --------
        >>> import numpy as np, onlinegp as ogp
        >>> ahead = ogp.Forecaster().fit(np.random.default_rng(0).normal(size=100).cumsum()).forecast(10)
        >>> total = ahead.paths().values.sum(axis=0)  # the sum of all ten steps
        >>> low, high = np.quantile(total, [0.025, 0.975])
        """
        rng, n = np.random.default_rng(seed), count(n=n)
        z = rng.standard_normal((len(self), n)) if self.sampler is None else self.sampler(len(self), n, rng)
        return Samples(np.stack([self._at(column) for column in z.T], axis=1))

    def to_frame(self, level: float = 0.95, *, kind: str = "pandas") -> Any:
        """Return a data frame with a row for each step: mean, median, std, and the interval as lower and upper.

        `kind` is "pandas", "polars" or "pyarrow". Dates or steps are the index in pandas, else the first column.
        """
        lower, upper = self.interval(level)
        name = "step" if self.dates is None else "date"
        when = np.arange(1, len(self) + 1) if self.dates is None else self.dates.tolist()
        columns = {"mean": self.mean, "median": self.median, "std": self.std, "lower": lower, "upper": upper}
        frame = frames.build({name: when, **columns}, frames.Origin(kind))
        return frame.set_index(name) if kind == "pandas" else frame

    def summary_line(self) -> str:
        when = "" if self.dates is None or not len(self) else f" from {self.dates[0]} to {self.dates[-1]}"
        return f"{super().summary_line()}{when}"

    def to_html(self) -> str:
        """Return a picture, and the first steps as a table, for a notebook."""
        lower, upper = self.interval(0.95)
        first, numbers = range(min(SHOWN_STEPS, len(self))), (self.mean, lower, upper)
        steps = self.dates if self.dates is not None else np.arange(1, len(self) + 1)
        rows = [[steps[i], *(f"{part[i]:.4g}" for part in numbers)] for i in first]
        more = "" if len(rows) == len(self) else f"<div>and {len(self) - len(rows)} more: to_frame()</div>"
        when = "step" if self.dates is None else "date"
        return super().to_html() + table([when, "mean", "lower", "upper"], rows) + more

    def plot(self, y: ArrayLike | None = None, *, level: float = 0.95, ax: Any = None) -> Any:
        """Draw the forecast and, before it, the last values y of the series."""
        from onlinegp import plots

        return plots.forecast(() if y is None else y, self, level=level, ax=ax)
