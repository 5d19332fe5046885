"""Centers and scales of columns. Scales are never zero or infinite, even for few or constant rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import LARGEST, Array
from onlinegp.predictions import Predictions

CONSTANT = 1e-12  # columns with a smaller deviation, relative to their largest magnitude, are constant up to rounding
LIMIT = 0.5 * LARGEST  # the largest magnitude in standard units
TINY = 1e-140  # smaller deviations count as zero: dividing by them would overflow


@dataclass(eq=False)
class Scale:
    """Standardize columns: (x - center) / scale, with one center and one positive scale per column."""

    center: Array
    scale: Array

    @classmethod
    def none(cls, width: int) -> Scale:
        return cls(np.zeros(width), np.ones(width))

    @classmethod
    def of(cls, X: Array) -> Scale:
        """Return mean and standard deviation of the columns. A constant column has scale 1."""
        center, std, varies = moments(X)
        return cls(center, np.where(varies, std, 1.0))

    def numbers(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return centers and scales as plain numbers."""
        return tuple(self.center.tolist()), tuple(self.scale.tolist())

    def __call__(self, X: Array) -> Array:
        """Return the standardized columns, clipped so that their squares do not overflow."""
        Z = X - self.center
        Z /= self.scale
        np.minimum(Z, LIMIT, out=Z)  # np.clip takes five times as long for one row
        return np.maximum(Z, -LIMIT, out=Z)


def moments(values: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return mean and standard deviation of the columns (n, k), and whether each column varies."""
    largest = np.abs(values).max(axis=0)
    unit = np.where(largest > TINY, largest, 1.0)
    share = values / unit  # squares of `share` neither overflow nor underflow
    mean = _mean(share)
    std = np.sqrt(_mean((share - mean) ** 2))
    varies = (std > CONSTANT) & (unit * std > TINY)
    return np.where(varies, unit * mean, values[0]), unit * std, varies


def _mean(values: Array) -> Array:
    """Return the mean of the columns, added row by row as in compiled code. np.sum adds in another order."""
    mean: Array = np.add.accumulate(values, axis=0)[-1] / len(values)
    return mean


def own_size(center: Array) -> Array:
    """Return the scale of constant columns: their magnitude, or 1 if they are zero."""
    return np.where(np.abs(center) > TINY, np.abs(center), 1.0)


def like_so_far(prior: Predictions, Y: Array) -> Predictions:
    """Return the prior, shifted and stretched to the mean and spread of the values Y (n, p) so far.

    Without values, return the prior. If all values are equal, the spread is their magnitude.
    """
    n = len(Y)
    if n == 0:
        return prior
    center, std, varies = moments(Y)
    # variance of the next value around the mean of n values: s^2 (1 + 1 / n) with s^2 = n std^2 / (n - 1)
    spread = np.where(varies, std * np.sqrt((n + 1) / max(n - 1, 1)), own_size(center))
    stretch = spread / np.maximum(prior.std, TINY)
    return prior.affine(center - stretch * prior.mean, stretch)
