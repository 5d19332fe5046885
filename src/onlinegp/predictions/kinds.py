"""The distributions of one formula: normal and Student's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import lgamma, log, pi
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import Array
from onlinegp.predictions.base import Predictions

HALF_LOG_2PI = 0.5 * log(2.0 * pi)


@dataclass(frozen=True, eq=False)
class Gaussian(Predictions):
    """Normal distributions: y ~ N(mean, std^2). Where std is zero, all the probability is at the mean."""

    mean: Array
    std: Array

    def log_density(self, y: ArrayLike) -> Array:
        # -((y - mean) / std)^2 / 2 - log(std) - log(2 pi) / 2
        r = self._standardized(y)
        with np.errstate(divide="ignore", invalid="ignore"):
            density = -0.5 * r**2 - np.log(self.std) - HALF_LOG_2PI
        return density if np.all(self.std) else np.where(np.isinf(r), -np.inf, density)

    def cdf(self, y: ArrayLike) -> Array:
        from scipy.special import ndtr

        return ndtr(self._standardized(y))

    def quantile(self, p: float) -> Array:
        return self.mean + normal_quantile(p) * self.std

    def affine(self, center: Array | float, scale: Array | float) -> Gaussian:
        return Gaussian(center + scale * self.mean, scale * self.std)

    def _standardized(self, y: ArrayLike) -> Array:
        """Return (y - mean) / std; no error is zero, even where std is."""
        e = np.asarray(y, dtype=np.float64) - self.mean
        if np.all(self.std):
            return e / self.std
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(e == 0.0, 0.0, e / self.std)


@lru_cache(maxsize=64)
def normal_quantile(p: float) -> float:
    """Return z with P(N(0, 1) <= z) = p."""
    return NormalDist().inv_cdf(p)


@dataclass(frozen=True, eq=False)
class StudentT(Predictions):
    """Student's t distributions: (y - mean) / scale has `degrees` degrees of freedom.

    The mean is that of the distribution for more than one degree, and the standard deviation is finite for more than
    two: std = scale sqrt(degrees / (degrees - 2)).

    Attributes
    ----------
    mean, scale : (n,) or (n, outputs); the scale is positive
    degrees : float, or of the shape of the mean
    """

    mean: Array
    scale: Array
    degrees: Array | float

    @cached_property
    def std(self) -> Array:  # type: ignore[override]
        nu = np.asarray(self.degrees, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.scale * np.where(nu > 2.0, np.sqrt(nu / (nu - 2.0)), np.inf)

    def log_density(self, y: ArrayLike) -> Array:
        # log Gamma((nu + 1) / 2) - log Gamma(nu / 2) - log(pi nu) / 2 - log(scale) - (nu + 1) / 2 log(1 + r^2 / nu)
        nu = self.degrees
        r = self._standardized(y)
        return student_constant(nu) - np.log(self.scale) - 0.5 * (nu + 1.0) * np.log1p(r * r / nu)

    def cdf(self, y: ArrayLike) -> Array:
        from scipy.special import stdtr

        return stdtr(self.degrees, self._standardized(y))

    def quantile(self, p: float) -> Array:
        return self.mean + _student_quantile(self.degrees, p) * self.scale

    def affine(self, center: Array | float, scale: Array | float) -> StudentT:
        return StudentT(center + scale * self.mean, scale * self.scale, self.degrees)

    def _standardized(self, y: ArrayLike) -> Array:
        return (np.asarray(y, dtype=np.float64) - self.mean) / self.scale


def student_constant(degrees: Array | float) -> Array | float:
    """Return the log of the density at the center of Student's t of scale one."""
    if isinstance(degrees, np.ndarray):
        from scipy.special import gammaln

        return gammaln(0.5 * (degrees + 1.0)) - gammaln(0.5 * degrees) - 0.5 * np.log(pi * degrees)
    return lgamma(0.5 * (degrees + 1.0)) - lgamma(0.5 * degrees) - 0.5 * log(pi * degrees)


def _student_quantile(degrees: Array | float, p: float) -> Array | float:
    """Return t with P(T <= t) = p; a quantile of one number of degrees is found once."""
    if not isinstance(degrees, np.ndarray):
        return _one_student_quantile(float(degrees), p)
    kinds, which = np.unique(degrees, return_inverse=True)
    return np.array([_one_student_quantile(nu, p) for nu in kinds.tolist()])[which].reshape(degrees.shape)


@lru_cache(maxsize=256)
def _one_student_quantile(degrees: float, p: float) -> float:
    from scipy.special import stdtr, stdtrit

    t = float(stdtrit(degrees, p))
    density = np.exp(student_constant(degrees) - 0.5 * (degrees + 1.0) * np.log1p(t * t / degrees))
    return t - float((stdtr(degrees, t) - p) / density)  # Newton's step to the last digits
