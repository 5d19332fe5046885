"""Normal and Student's t predictions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf, lgamma, log, pi, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import Array, probability
from onlinegp.predictions.base import Predictions

WHOLE = frozenset(map(float, range(1, 31)))  # degrees of freedom with a short sum for the probability
LARGE_LOG_RATIO = 20.0  # for a larger log(t / sqrt(nu)), 1 + t^2 / nu equals t^2 / nu to the last digit
FARTHEST = 1e150  # largest t whose square does not overflow
HALF_LOG_2PI = 0.5 * log(2.0 * pi)


@dataclass(frozen=True, eq=False, repr=False)
class Gaussian(Predictions):
    """Normal distributions: y ~ N(mean, std^2). If std is zero, all the probability is at the mean."""

    mean: Array
    std: Array

    def log_density(self, y: ArrayLike) -> Array:
        # -((y - mean) / std)^2 / 2 - log(std) - log(2 pi) / 2
        r = self._standardized(y)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            density = -0.5 * r**2 - np.log(self.std) - HALF_LOG_2PI
        return density if np.all(self.std) else np.where(np.isinf(r), -np.inf, density)

    def cdf(self, y: ArrayLike) -> Array:
        return normal_cdf(self._standardized(y))

    def survival(self, y: ArrayLike) -> Array:
        return normal_cdf(-self._standardized(y))

    def tail(self, y: ArrayLike) -> Array:
        return 2.0 * normal_cdf(-np.abs(self._standardized(y)))

    def z(self, y: ArrayLike) -> Array:
        return self._standardized(y)

    def quantile(self, p: float) -> Array:
        return self.mean + normal_quantile(probability(p=p)) * self.std

    def affine(self, center: Array | float, scale: Array | float) -> Gaussian:
        return Gaussian(center + scale * self.mean, scale * self.std)

    def _standardized(self, y: ArrayLike) -> Array:
        """Return (y - mean) / std, and 0 where y = mean, even if std is zero."""
        e = self._values(y) - self.mean
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            r = e / self.std
        return r if np.all(self.std) else np.where(e == 0.0, 0.0, r)


def normal_cdf(z: Array) -> Array:
    """Return P(N(0, 1) <= z)."""
    from scipy.special import ndtr

    return ndtr(z)


@lru_cache(maxsize=64)
def normal_quantile(p: float) -> float:
    """Return z with P(N(0, 1) <= z) = p."""
    return NormalDist().inv_cdf(p)


@dataclass(frozen=True, eq=False, repr=False)
class StudentT(Predictions):
    """Student's t distributions: (y - mean) / scale has `degrees` degrees of freedom.

    `mean` is the mean of the distribution if degrees > 1. The standard deviation is finite if degrees > 2:
    std = scale sqrt(degrees / (degrees - 2)).

    Attributes
    ----------
    mean, scale : (n,) or (n, outputs); the scale is positive
    degrees : float, or array of the shape of the mean
    """

    mean: Array
    scale: Array
    degrees: Array | float

    @cached_property
    def std(self) -> Array:  # type: ignore[override]
        if not isinstance(self.degrees, np.ndarray):
            return self.scale * student_std(float(self.degrees))
        nu = self.degrees.astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.scale * np.where(nu > 2.0, np.sqrt(nu / (nu - 2.0)), np.inf)

    def log_density(self, y: ArrayLike) -> Array:
        # log Gamma((nu + 1) / 2) - log Gamma(nu / 2) - log(pi nu) / 2 - log(scale) - (nu + 1) / 2 log(1 + r^2 / nu)
        nu = self.degrees
        r = self._standardized(y)
        with np.errstate(over="ignore"):
            return student_constant(nu) - np.log(self.scale) - 0.5 * (nu + 1.0) * np.log1p(r * r / nu)

    def cdf(self, y: ArrayLike) -> Array:
        return student_cdf(self.degrees, self._standardized(y))

    def survival(self, y: ArrayLike) -> Array:
        return student_cdf(self.degrees, -self._standardized(y))

    def quantile(self, p: float) -> Array:
        return self.mean + student_quantile(self.degrees, probability(p=p)) * self.scale

    def affine(self, center: Array | float, scale: Array | float) -> StudentT:
        return StudentT(center + scale * self.mean, scale * self.scale, self.degrees)

    def _standardized(self, y: ArrayLike) -> Array:
        with np.errstate(over="ignore"):
            return (self._values(y) - self.mean) / self.scale


def student_std(nu: float) -> float:
    """Return the standard deviation of Student's t with scale one."""
    return sqrt(nu / (nu - 2.0)) if nu > 2.0 else inf


def student_constant(degrees: Array | float) -> Array | float:
    """Return the log density at the center of Student's t with scale one."""
    if isinstance(degrees, np.ndarray):
        from scipy.special import gammaln

        return gammaln(0.5 * (degrees + 1.0)) - gammaln(0.5 * degrees) - 0.5 * np.log(pi * degrees)
    return lgamma(0.5 * (degrees + 1.0)) - lgamma(0.5 * degrees) - 0.5 * log(pi * degrees)


def student_quantile(degrees: Array | float, p: float) -> Array | float:
    """Return t with P(T <= t) = p. Quantiles of single numbers are cached."""
    if not isinstance(degrees, np.ndarray):
        return _one_student_quantile(float(degrees), p)
    kinds, which = np.unique(degrees, return_inverse=True)
    return np.array([_one_student_quantile(nu, p) for nu in kinds.tolist()])[which].reshape(degrees.shape)


def student_cdf(degrees: Array | float, t: Array) -> Array:
    """Return P(T <= t), which is P(T >= -t)."""
    if isinstance(degrees, np.ndarray) or degrees not in WHOLE:
        from scipy.special import stdtr

        return stdtr(degrees, t)
    return _whole_student_cdf(int(degrees), t)


def _whole_student_cdf(nu: int, t: Array) -> Array:
    """Return P(T <= t) for an integer number of degrees: a finite sum, except where the sum would lose digits.

    With theta = arctan(t / sqrt(nu)), for even nu,   1/2 + sin(theta) / 2 (1 + 1/2 cos^2 + (1 3)/(2 4) cos^4 + ...),
    and for odd nu,   1/2 + theta / pi + sin(theta) / pi (cos + 2/3 cos^3 + (2 4)/(3 5) cos^5 + ...),
    up to cos^(nu - 2): Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    from scipy.special import stdtr

    near = np.minimum(np.maximum(t, -FARTHEST), FARTHEST)
    c2 = 1.0 / (1.0 + near * near / nu)
    total = np.zeros_like(t)
    for j in range((nu - 1) // 2 if nu % 2 else nu // 2, 0, -1):  # Horner's rule: the last term first
        k = 2 * j if nu % 2 else 2 * j - 1
        total = 1.0 + total * (c2 * (k / (k + 1.0)))
    sine = near * np.sqrt(c2 / nu)
    odd = (np.arctan(near / np.sqrt(nu)) + sine * np.sqrt(c2) * total) / pi if nu % 2 else None
    p = 0.5 + (0.5 * sine * total if odd is None else odd)
    small = p < 1e-3  # here the sum loses digits, because it subtracts numbers close to 1/2
    if np.any(small):
        p[small] = stdtr(nu, t[small])
    return p


@lru_cache(maxsize=256)
def _one_student_quantile(degrees: float, p: float) -> float:
    from scipy.special import stdtr, stdtrit

    # P(T <= -t) = C t^-nu / nu for t^2 >> nu, where the density is C t^-(nu + 1) and stdtrit loses digits
    q, nu = min(p, 1.0 - p), degrees
    far = (student_constant(nu) + 0.5 * (nu - 1.0) * log(nu) - log(q)) / nu
    if far > LARGE_LOG_RATIO + 0.5 * log(nu):
        return float(np.copysign(np.exp(far), p - 0.5))
    t = float(stdtrit(degrees, p))
    density = np.exp(student_constant(degrees) - 0.5 * (degrees + 1.0) * np.log1p(t * t / degrees))
    return t - float((stdtr(degrees, t) - p) / density)  # one Newton step gives the last digits
