"""Predictions known by samples: what comes of following a model along many possible futures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import Array, probability
from onlinegp.predictions.base import Predictions
from onlinegp.predictions.components import Components
from onlinegp.predictions.mixture import MixtureOf
from onlinegp.predictions.student import HALF_LOG_2PI, Gaussian, StudentT

THINNEST = 1e-100  # width of a density whose samples are all the same
HALVINGS = 60  # of an interval, until only rounding is left
FARTHEST = 1e15  # standard deviations: no distribution that a model predicts reaches beyond


@dataclass(frozen=True, eq=False)
class Samples(Predictions):
    """Distributions of which only samples are known, equally likely.

    Mean, standard deviation, quantiles and cdf are those of the samples. The k-th smallest of S samples is taken for
    the quantile of k / (S + 1), which is right on average for any distribution; between two samples the quantiles are
    linear, and beyond the outermost ones nothing is known. The density is smoothed: the mean of normal densities
    around the samples, of the width 1.06 std S^(-1/5) (Silverman, "Density estimation", 1986).

    Attributes
    ----------
    values : (n, S) or (n, outputs, S)
        The samples, last axis. For a forecast, ``values[..., j]`` is one possible future.
    """

    values: Array

    @cached_property
    def mean(self) -> Array:  # type: ignore[override]
        return self.values.mean(axis=-1)

    @cached_property
    def std(self) -> Array:  # type: ignore[override]
        return self.values.std(axis=-1, ddof=1)

    def __len__(self) -> int:
        return len(self.values)

    def log_density(self, y: ArrayLike) -> Array:
        # log (1 / S) sum_j N(y | x_j, h^2)
        h = np.maximum(1.06 * self.std * self.values.shape[-1] ** -0.2, THINNEST)
        r = (self._values(y)[..., None] - self.values) / h[..., None]
        nearest = np.abs(r).min(axis=-1)
        near = np.exp(0.5 * (nearest[..., None] ** 2 - r**2)).mean(axis=-1)
        return np.log(near) - 0.5 * nearest**2 - np.log(h) - HALF_LOG_2PI

    def cdf(self, y: ArrayLike) -> Array:
        y = np.broadcast_to(self._values(y), self.mean.shape)
        p = np.arange(1, self.values.shape[-1] + 1) / (self.values.shape[-1] + 1.0)
        rows = zip(y.ravel(), self._sorted.reshape(-1, len(p)), strict=True)
        return np.reshape([np.interp(value, samples, p) for value, samples in rows], y.shape)

    def survival(self, y: ArrayLike) -> Array:
        return 1.0 - self.cdf(y)  # at least 1 / (S + 1)

    def quantile(self, p: float) -> Array:
        return np.quantile(self._sorted, probability(p=p), axis=-1, method="weibull")

    def affine(self, center: Array | float, scale: Array | float) -> Samples:
        return Samples(np.asarray(center)[..., None] + np.asarray(scale)[..., None] * self.values)

    @cached_property
    def _sorted(self) -> Array:
        return np.sort(self.values, axis=-1)


def draw(predictions: Predictions, rng: np.random.Generator) -> Array:
    """Return one value of each distribution, independent of the others: of the shape of the mean.

    Of a mixture, a member is drawn first, by the weights; a stretch of intervals stretches the values. Of a kind that
    is not known here the cdf is inverted, by halving an interval that holds the value.
    """
    mean = predictions.mean
    if type(predictions) is Gaussian:
        return mean + predictions.std * rng.standard_normal(mean.shape)
    if type(predictions) is StudentT:
        return mean + predictions.scale * rng.standard_t(predictions.degrees, mean.shape)
    if isinstance(predictions, MixtureOf | Components):
        p = rng.random(mean.shape)
        which = (np.cumsum(predictions.weights, axis=-1)[..., :-1] <= p[..., None]).sum(axis=-1)
        values = np.stack([draw(member, rng) for member in predictions.members], axis=-1)
        y = np.take_along_axis(values, which[..., None], axis=-1)[..., 0]
        return predictions.stretched(y) if isinstance(predictions, Components) else y
    return _inverted(predictions, rng.random(mean.shape))


def _inverted(predictions: Predictions, p: Array) -> Array:
    """Return the values that have these probabilities below them."""
    mean, std = predictions.mean, predictions.std
    low, high, reach = mean - std, mean + std, 1.0
    while reach < FARTHEST:
        low_done, high_done = predictions.cdf(low) <= p, predictions.cdf(high) >= p
        if low_done.all() and high_done.all():
            break
        reach *= 2.0
        low, high = np.where(low_done, low, mean - reach * std), np.where(high_done, high, mean + reach * std)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        below = predictions.cdf(middle) < p
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return 0.5 * (low + high)
