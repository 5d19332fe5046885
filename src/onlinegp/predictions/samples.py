"""Predictions given by samples, such as simulated futures of a series."""

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

THINNEST = 1e-100  # smallest width of the smoothed density, if all samples are equal
HALVINGS = 60  # number of bisections to full precision
FARTHEST = 1e15  # limit of the search for a quantile, in standard deviations


@dataclass(frozen=True, eq=False, repr=False)
class Samples(Predictions):
    """Distributions given by equally likely samples.

    Mean, standard deviation, quantiles and cdf come from the samples. The k-th smallest of S samples is the quantile
    of k / (S + 1), which is right on average for any distribution. Quantiles are linear between two samples and
    constant outside all samples. The density is smoothed: the mean of normal densities around the samples, with the
    width 1.06 std S^(-1/5) (Silverman, "Density estimation", 1986).

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
    """Draw one value from each distribution, independently, in the shape of the mean.

    For a mixture, first draw a member with the probabilities `weights`, then a value of this member; a stretch also
    applies to values. For other distributions, invert the cdf by bisection.
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
    """Invert the cdf: return the values at which the cdf is p."""
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
