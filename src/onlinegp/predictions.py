"""A prediction is a distribution: mean and standard deviation, and whatever else one may ask of it.

Whoever scores, draws or writes predictions asks them for an interval, a log density or a quantile, and need not know
what kind of distribution they are. Models answer with `Gaussian` unless they say otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import Array, fraction

SMALLEST = 1e-300  # probability of which a normal quantile is asked
HALF_LOG_2PI = 0.5 * float(np.log(2.0 * np.pi))


class Predictions(ABC):
    """The predictive distributions of y, one for each row; noise included.

    A kind of distribution is a frozen dataclass of arrays whose first axis is the row. What is missing is NaN.

    Attributes
    ----------
    mean, std : (n,) or (n, outputs)
    """

    mean: Array
    std: Array

    @abstractmethod
    def log_density(self, y: ArrayLike) -> Array:
        """Return the log of the density at y, of the shape of the mean."""

    @abstractmethod
    def cdf(self, y: ArrayLike) -> Array:
        """Return the probability of a value of at most y: uniform on [0, 1] if the predictions are right."""

    @abstractmethod
    def quantile(self, p: float) -> Array:
        """Return the value that y exceeds with probability 1 - p, 0 < p < 1."""

    def tail(self, y: ArrayLike) -> Array:
        """Return the two-sided tail probability of y: that of a value at least as far out, on either side."""
        p = self.cdf(y)
        return 2.0 * np.minimum(p, 1.0 - p)

    def z(self, y: ArrayLike) -> Array:
        """Return how far out y is, in standard deviations of a normal: N(0, 1) if the predictions are right.

        That is (y - mean) / std of a normal prediction; of another kind, the number with the same cdf, within +-37.
        """
        from scipy.special import ndtri

        p = self.cdf(y)
        return np.where(p > 0.5, -1.0, 1.0) * ndtri(np.maximum(np.minimum(p, 1.0 - p), SMALLEST))

    @abstractmethod
    def affine(self, center: Array | float, scale: Array | float) -> Predictions:
        """Return the distributions of center + scale y, for positive scales."""

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return the ends of the central interval that holds y with probability `level`."""
        level = fraction(level=level)
        if level == 1.0:
            raise ValueError("level must be less than 1, got 1.0. Use 0.99 or 0.999 for a wide interval.")
        return self.quantile(0.5 * (1.0 - level)), self.quantile(0.5 * (1.0 + level))

    def __len__(self) -> int:
        return len(self.mean)

    def rows(self, which: Any) -> Self:
        """Return the predictions of some rows: a slice, a mask or indices."""
        return self._each(lambda array: array[which])

    def output(self, i: int) -> Self:
        """Return the predictions of one of several outputs, as arrays of shape (n,)."""
        return self._each(lambda array: array[:, i])

    @staticmethod
    def joined(parts: Sequence[Predictions]) -> Predictions:
        """Return predictions of one kind, one after the other."""
        first = parts[0]
        if len(parts) == 1:
            return first
        names = [field.name for field in fields(first)]  # type: ignore[arg-type]
        arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return replace(first, **arrays)  # type: ignore[type-var]

    def _each(self, change: Callable[[Array], Array]) -> Self:
        changed = {field.name: change(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]
        return replace(self, **changed)  # type: ignore[type-var]


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

    def tail(self, y: ArrayLike) -> Array:
        from scipy.special import ndtr

        return 2.0 * ndtr(-np.abs(self._standardized(y)))  # 1 - cdf would be 0 from 8.3 standard deviations on

    def z(self, y: ArrayLike) -> Array:
        return self._standardized(y)

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
