"""Centers and scales of columns, also from few or constant rows. Scales are never zero or infinite."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import LARGEST, Array
from onlinegp.predictions import Predictions

CONSTANT = 1e-12  # a column whose deviation is a smaller share of its largest magnitude is constant up to rounding
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
        """Return the standardized columns, limited so that the inner model can square them."""
        Z = X - self.center
        Z /= self.scale
        np.minimum(Z, LIMIT, out=Z)  # np.clip takes five times as long for one row
        return np.maximum(Z, -LIMIT, out=Z)


def moments(values: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return mean and standard deviation of the columns (n, k), and which columns vary. A constant is its own mean."""
    largest = np.abs(values).max(axis=0)
    unit = np.where(largest > TINY, largest, 1.0)
    share = values / unit  # its squares neither overflow nor vanish
    mean = _mean(share)
    std = np.sqrt(_mean((share - mean) ** 2))
    varies = (std > CONSTANT) & (unit * std > TINY)
    return np.where(varies, unit * mean, values[0]), unit * std, varies


def _mean(values: Array) -> Array:
    """Return the mean of the columns. It adds row by row, as compiled code does; np.sum adds in another order."""
    mean: Array = np.add.accumulate(values, axis=0)[-1] / len(values)
    return mean


def own_size(center: Array) -> Array:
    """Return the scale of constant columns: their magnitude, or one for zero."""
    return np.where(np.abs(center) > TINY, np.abs(center), 1.0)


def like_so_far(prior: Predictions, Y: Array) -> Predictions:
    """Return the prior, shifted to the mean of the values Y (n, p) so far and stretched to their spread.

    Without values it is the prior. If all values are equal, the spread is their magnitude.
    """
    n = len(Y)
    if n == 0:
        return prior
    center, std, varies = moments(Y)
    # the next of n values around their mean: s^2 (1 + 1 / n) with s^2 = n std^2 / (n - 1)
    spread = np.where(varies, std * np.sqrt((n + 1) / max(n - 1, 1)), own_size(center))
    stretch = spread / np.maximum(prior.std, TINY)
    return prior.affine(center - stretch * prior.mean, stretch)
