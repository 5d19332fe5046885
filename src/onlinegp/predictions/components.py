"""Mixtures of normal and Student's t distributions, as arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf, isinf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinegp.checks import Array, probability
from onlinegp.native_module import native
from onlinegp.predictions.base import WIDE, Predictions, quantile_between
from onlinegp.predictions.student import (
    HALF_LOG_2PI,
    Gaussian,
    StudentT,
    normal_cdf,
    normal_quantile,
    student_cdf,
    student_constant,
    student_quantile,
    student_std,
)


@dataclass(frozen=True, eq=False, repr=False)
class Components(Predictions):
    """Mixtures of K components: y comes from component k with probability weights[..., k].

    A component is a normal or a Student's t distribution with a mean and a scale. A component with weight zero is
    ignored. A component with scale zero has all its probability at its mean.

    The stretch widens intervals but does not change the density: quantiles are mean + stretch (q - mean), where q is
    the quantile of the mixture. `interval`, `pit`, `tail` and `z` use the stretched quantiles; mean, std, log_density,
    cdf and survival do not.

    Attributes
    ----------
    weights : (n, K) or (n, outputs, K); they sum to one
    means, scales : of the same shape
    degrees : K degrees of freedom, each greater than two; infinity for a normal component
    stretch : a positive number, (n,) or (n, outputs)
    """

    weights: Array
    means: Array
    scales: Array
    degrees: tuple[float, ...]
    stretch: Array | float = 1.0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.means.shape[:-1]

    @cached_property
    def mean(self) -> Array:  # type: ignore[override]
        return self._moments[0]

    @cached_property
    def std(self) -> Array:  # type: ignore[override]
        return self._moments[1]

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        """Mean and standard deviation. The compiled code gives the same bits as compiled models."""
        if len(self.degrees) == 1:
            return self.means[..., 0], self.scales[..., 0] * constants(self.degrees).std[0]
        if (twin := native()) is None:
            mean = self._mean()
            return mean, self._std(mean)
        mean, std = np.empty(self.shape), np.empty(self.shape)
        twin.mixture_moments(*self._arrays, mean, std)
        return mean, std

    @cached_property
    def _arrays(self) -> tuple[Array, Array, Array, tuple[float, ...]]:
        """The components as arrays for the compiled code."""
        contiguous = np.ascontiguousarray
        return contiguous(self.weights), contiguous(self.means), contiguous(self.scales), self.degrees

    def _mean(self) -> Array:
        # clip to the range of the means of the components, so that rounding does not change a common mean
        counted = self.means if self._all_count else np.where(self.weights == 0.0, np.nan, self.means)
        mean = np.maximum(self._sum(self.means), np.fmin.reduce(counted, axis=-1))
        return np.minimum(mean, np.fmax.reduce(counted, axis=-1))

    def _std(self, mean: Array) -> Array:
        # var = sum of w (s^2 nu / (nu - 2) + (mean_k - mean)^2)
        factor = constants(self.degrees).std
        with np.errstate(invalid="ignore"):
            return np.sqrt(self._sum((self.scales * factor) ** 2 + (self.means - mean[..., None]) ** 2))

    @cached_property
    def members(self) -> tuple[Predictions, ...]:
        """The components as separate distributions."""
        parts = ((self.means[..., k], self.scales[..., k], nu) for k, nu in enumerate(self.degrees))
        return tuple(Gaussian(mean, scale) if isinf(nu) else StudentT(mean, scale, nu) for mean, scale, nu in parts)

    def log_densities(self, y: ArrayLike) -> Array:
        """Return the log density of y under each component, in the shape of the weights."""
        # normal: -r^2 / 2 - log(s) + center; Student's t: -(nu + 1) / 2 log(1 + r^2 / nu) - log(s) + center
        own = constants(self.degrees)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            r = self._standardized(y)
            r2 = r * r
            if own.all_normal:
                density = -0.5 * r2
            else:
                density = own.power * np.log1p(r2 / own.nu)
                if own.normals is not None:
                    density = np.where(own.normals, -0.5 * r2, density)
            density -= np.log(self.scales)
            density += own.center
        return density if self._spread else np.where(np.isinf(r), -inf, density)

    def log_density(self, y: ArrayLike) -> Array:
        if len(self.degrees) == 1:
            return self.log_densities(y)[..., 0]
        if (twin := native()) is None:
            return log_of_sum(self.weights, self.log_densities(y))
        values, out = np.ascontiguousarray(np.broadcast_to(self._values(y), self.shape)), np.empty(self.shape)
        twin.mixture_log_density(*self._arrays, values, out)
        return out

    def cdf(self, y: ArrayLike) -> Array:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return self._below(self._standardized(y))

    def survival(self, y: ArrayLike) -> Array:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return self._below(-self._standardized(y))

    def pit(self, y: ArrayLike) -> Array:
        return self.cdf(self.unstretched(self._values(y)))

    def tail(self, y: ArrayLike) -> Array:
        return super().tail(self.unstretched(self._values(y)))

    def z(self, y: ArrayLike) -> Array:
        y = self.unstretched(self._values(y))
        z = super().z(y)
        normals = constants(self.degrees).normals
        if normals is None:
            return z
        alone = normals & (self.weights == 1.0)  # a row with one normal component, as of `Gaussian`
        if not alone.any():
            return z
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            own = np.where(alone, self._standardized(y), 0.0).sum(axis=-1)
        return np.where(alone.any(axis=-1), own, z)

    def quantile(self, p: float) -> Array:
        """Return the value that y exceeds with probability 1 - p, by iteration between quantiles of components."""
        return self.stretched(self._unstretched_quantile(probability(p=p)))

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        level = probability(WIDE, level=level)
        low, high = (self._unstretched_quantile(p) for p in (0.5 * (1.0 - level), 0.5 * (1.0 + level)))
        return self.stretched(low), self.stretched(np.maximum(low, high))  # rounding may exchange them

    def _unstretched_quantile(self, p: float) -> Array:
        own = component_quantiles(self.degrees, p)
        if len(self.degrees) > 1 and (twin := native()) is not None:
            y = np.empty(self.shape)
            twin.mixture_quantile(*self._arrays, p, own, y)
            return y
        quantiles = self.means + self.scales * own
        if len(self.degrees) == 1:
            return quantiles[..., 0]
        counts = self.weights > 0.0
        low = np.where(counts, quantiles, inf).min(axis=-1)
        high = np.where(counts, quantiles, -inf).max(axis=-1)
        return quantile_between(self, p, self._sum(quantiles), low, high)

    def stretched(self, y: Array) -> Array:
        """Return mean + stretch (y - mean): map a value of the mixture to the stretched intervals."""
        if self.plain:
            return y
        return np.where(self.stretch == 1.0, y, self.mean + self.stretch * (y - self.mean))

    def unstretched(self, y: Array) -> Array:
        """Return mean + (y - mean) / stretch, the inverse of `stretched`."""
        if self.plain:
            return y
        # Without a stretch, return y itself, so that the bits of a row do not depend on other rows
        return np.where(self.stretch == 1.0, y, self.mean + (y - self.mean) / self.stretch)

    def affine(self, center: Array | float, scale: Array | float) -> Components:
        center, scale = np.asarray(center)[..., None], np.asarray(scale)[..., None]
        means = center + scale * self.means
        return Components(self.weights, means, scale * self.scales, self.degrees, self.stretch)

    def kind(self) -> Any:
        return type(self), self.degrees

    def map_arrays(self, change: Callable[[Array], Array]) -> Components:
        stretch = change(self.stretch) if isinstance(self.stretch, np.ndarray) else self.stretch
        changed = Components(change(self.weights), change(self.means), change(self.scales), self.degrees, stretch)
        if "_moments" in vars(self):  # already computed
            mean, std = self._moments
            vars(changed)["_moments"] = change(mean), change(std)
        return changed

    def __len__(self) -> int:
        return len(self.means)

    def _standardized(self, y: ArrayLike) -> Array:
        """Return (y - mean) / scale for each component, and 0 where y = mean, even if the scale is zero."""
        e = self._values(y)[..., None] - self.means
        return e / self.scales if self._spread else np.where(e == 0.0, 0.0, e / self.scales)

    def _below(self, r: Array) -> Array:
        """Return the probability of a value below r, the standardized value for each component."""
        groups = constants(self.degrees).groups
        if len(groups) == 1:
            p = cdf(self.degrees[0], r)
        else:
            p = np.empty(r.shape)
            for nu, columns in groups:
                p[..., columns] = cdf(nu, r[..., columns])
        return p[..., 0] if len(self.degrees) == 1 else self._sum(p)

    def _sum(self, values: Array) -> Array:
        """Return the weighted sum over the components. Components of weight zero are ignored, even if they are NaN.

        Terms are added in order, so that components of weight zero do not change the rounding.
        """
        terms = self.weights * values
        counted = terms if self._all_count else np.where(self.weights == 0.0, 0.0, terms)
        return np.add.accumulate(counted, axis=-1)[..., -1]

    @cached_property
    def _all_count(self) -> bool:
        """Whether every weight is nonzero."""
        return bool(self.weights.all())

    @cached_property
    def _spread(self) -> bool:
        """Whether no scale is zero."""
        return bool(self.scales.all())

    @property
    def plain(self) -> bool:
        """Whether nothing is stretched."""
        return isinstance(self.stretch, float) and self.stretch == 1.0


@dataclass(frozen=True, eq=False)
class Constants:
    """Constants that depend only on the degrees of freedom, for densities and probabilities."""

    center: Array  # (K,) log densities at the center, for a scale of one
    std: Array  # (K,) standard deviations, for a scale of one
    normals: NDArray[np.bool_] | None  # (K,) which are normal; None if none is
    all_normal: bool
    nu: Array  # (K,) degrees of freedom; one for a normal component
    power: Array  # (K,) -(nu + 1) / 2
    groups: list[tuple[float, NDArray[np.int64]]]  # degrees, and the components with these degrees


@lru_cache(maxsize=256)
def constants(degrees: tuple[float, ...]) -> Constants:
    """Return the constants of components with these degrees of freedom, cached."""
    nu = np.array(degrees)
    normals = np.isinf(nu)
    center = np.array([-HALF_LOG_2PI if isinf(one) else student_constant(one) for one in degrees])
    std = np.array([1.0 if isinf(one) else student_std(one) for one in degrees])
    groups = [(one, np.flatnonzero(nu == one)) for one in dict.fromkeys(degrees)]
    nu[normals] = 1.0
    some = normals if normals.any() else None
    return Constants(center, std, some, bool(normals.all()), nu, -0.5 * (nu + 1.0), groups)


@lru_cache(maxsize=256)
def component_quantiles(degrees: tuple[float, ...], p: float) -> Array:
    """Return the quantiles of the components with mean zero and scale one, (K,)."""
    return np.array([normal_quantile(p) if isinf(nu) else student_quantile(nu, p) for nu in degrees])


@lru_cache(maxsize=256)
def interval_quantiles(degrees: tuple[float, ...], level: float) -> Array:
    """Return the quantiles of the components at both ends of an interval, (2, K)."""
    return np.stack([component_quantiles(degrees, p) for p in (0.5 * (1.0 - level), 0.5 * (1.0 + level))])


def cdf(nu: float, r: Array) -> Array:
    """Return the probability of a value below r."""
    return normal_cdf(r) if isinf(nu) else student_cdf(nu, r)


def log_of_sum(weights: Array, log_densities: Array) -> Array:
    """Return log sum_k w_k p_k over the last axis from log p, without overflow or underflow."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.logaddexp.reduce(np.where(weights > 0.0, np.log(weights) + log_densities, -inf), axis=-1)
