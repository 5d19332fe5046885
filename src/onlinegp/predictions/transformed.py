"""Predictions of y from predictions on another scale: a logarithm, a square root, or a power in between."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import LARGEST, Array, probability
from onlinegp.predictions.base import Predictions
from onlinegp.predictions.components import component_quantiles
from onlinegp.predictions.mixture import as_components

OUTERMOST = 0.01  # probability on each side that moments omit
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
LEVELS = (OUTERMOST + (1.0 - 2.0 * OUTERMOST) * 0.5 * (1.0 + NODES)).tolist()  # the probabilities of the nodes
FARTHEST = float(np.log(LARGEST))  # limit of log(1 + |y| / unit)


def transformed(y: Array, power: Array | float, unit: Array | float) -> Array:
    """Return z = sign(y) ((1 + |y| / unit)^power - 1) / power, with its limit sign(y) log(1 + |y| / unit) for power 0.

    This function increases, is defined for all y, and is linear near zero. For power 1 it is y / unit.
    """
    r = np.abs(y) / unit
    return np.sign(y) * np.where(power == 1.0, r, _power(np.log1p(r), power))


def restored(z: Array, power: Array | float, unit: Array | float) -> Array:
    """Return y with transformed(y) = z."""
    r, some = np.abs(z), np.where(power == 0.0, 1.0, power)
    t = np.minimum(np.where(power == 0.0, r, np.log1p(power * r) / some), FARTHEST)
    return np.sign(z) * unit * np.where(power == 1.0, r, np.expm1(t))


def _log_slope(y: Array, power: Array | float, unit: Array | float) -> Array:
    """Return the log of dz / dy."""
    return (power - 1.0) * np.log1p(np.abs(y) / unit) - np.log(unit)


def _power(t: Array, power: Array | float) -> Array:
    return np.where(power == 0.0, t, np.expm1(power * t) / np.where(power == 0.0, 1.0, power))


@dataclass(frozen=True, eq=False)
class TransformedPredictions(Predictions):
    """The distributions of center + scale y, given `base`, the distributions of `transformed(y, power, unit)`.

    Quantiles, probabilities and densities are exact. A log-normal distribution with the tails of Student's t has
    neither mean nor variance, so mean and std omit the outermost 1% of the probability on each side. With a power of 1,
    they omit nothing.

    Attributes
    ----------
    base : the predictions on the other scale
    power, unit, center, scale : each a number, or an array that broadcasts to the shape of the mean; all but the
        center are positive, and a power may be zero
    """

    base: Predictions
    power: Array | float
    unit: Array | float
    center: Array | float = 0.0
    scale: Array | float = 1.0

    @property
    def weights(self) -> Array:
        """The weights of the components of `base`, if it has components."""
        return self.base.weights  # type: ignore[attr-defined]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.base.shape

    def __len__(self) -> int:
        return len(self.base)

    @cached_property
    def mean(self) -> Array:  # type: ignore[override]
        return self._moments[0]

    @cached_property
    def std(self) -> Array:  # type: ignore[override]
        return self._moments[1]

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        as_is = np.broadcast_to(self.power == 1.0, self.shape)
        mean, std = self.unit * self.base.mean, self.unit * self.base.std
        if not as_is.all():
            weights, values = self._nodes()
            own = _sum(weights, values)
            off = values - own[..., None]
            spread = np.sqrt(_sum(weights, off * off))
            mean, std = np.where(as_is, mean, own), np.where(as_is, std, spread)
        return self.center + self.scale * mean, self.scale * std

    def _nodes(self) -> tuple[Array, Array]:
        """Return the weights of components, and values of y at the NODES of their probabilities, (nodes, ..., K)."""
        flat = as_components(self.base)
        if flat is None:
            parts = [self._inverse(self.base.quantile(p))[..., None] for p in LEVELS]
            return np.ones((*self.shape, 1)), np.stack(parts)
        power, unit = (np.asarray(one)[..., None] for one in (self.power, self.unit))
        r = np.stack([component_quantiles(flat.degrees, p) for p in LEVELS])  # (nodes, K)
        z = flat.means + flat.scales * r.reshape(len(LEVELS), *[1] * (flat.means.ndim - 1), -1)
        return flat.weights, restored(z, power, unit)

    def log_density(self, y: ArrayLike) -> Array:
        own = self._own(y)
        return self.base.log_density(self._forward(own)) + _log_slope(own, self.power, self.unit) - np.log(self.scale)

    def cdf(self, y: ArrayLike) -> Array:
        return self.base.cdf(self._forward(self._own(y)))

    def survival(self, y: ArrayLike) -> Array:
        return self.base.survival(self._forward(self._own(y)))

    def pit(self, y: ArrayLike) -> Array:
        return self.base.pit(self._forward(self._own(y)))

    def tail(self, y: ArrayLike) -> Array:
        return self.base.tail(self._forward(self._own(y)))

    def z(self, y: ArrayLike) -> Array:
        return self.base.z(self._forward(self._own(y)))

    def quantile(self, p: float) -> Array:
        return self.center + self.scale * self._inverse(self.base.quantile(probability(p=p)))

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        low, high = self.base.interval(level)
        return self.center + self.scale * self._inverse(low), self.center + self.scale * self._inverse(high)

    def affine(self, center: Array | float, scale: Array | float) -> TransformedPredictions:
        return replace(self, center=center + scale * self.center, scale=scale * self.scale)

    def including(self, other: Predictions) -> TransformedPredictions:
        return other if isinstance(other, TransformedPredictions) else TransformedPredictions(other, 1.0, 1.0)

    def _own(self, y: ArrayLike) -> Array:
        """Return y without center and scale."""
        return (self._values(y) - self.center) / self.scale

    def _forward(self, y: Array) -> Array:
        return np.broadcast_to(transformed(y, self.power, self.unit), self.shape)

    def _inverse(self, z: Array) -> Array:
        return restored(z, self.power, self.unit)


def _sum(weights: Array, values: Array) -> Array:
    """Return the mean over nodes and components. Terms are added in order, for the same bits in any batch."""
    each = np.add.accumulate(weights * values, axis=-1)[..., -1]
    shares = 0.5 * NODE_WEIGHTS.reshape(-1, *[1] * (each.ndim - 1))
    return np.add.accumulate(shares * each, axis=0)[-1]
