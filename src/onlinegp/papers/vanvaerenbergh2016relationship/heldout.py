"""Compute errors on a whole test set along a stream, at the cost of one kernel column per sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import Kernel
from onlinegp.models.recipe import RecipeRegressor


class HeldOut:
    """A test set and its kernel columns k(c, X), one per sample c of the stream.

    Each column is computed once, when its sample arrives, and is used for all models with samples as centers: their
    mean is a sum of columns, mean(X) = sum_c alpha_c k(c, X).

    Parameters
    ----------
    kernel : Kernel
    X, y : arrays, (n, d) and (n,)
        The test set.
    samples : int
        The length of the stream.
    """

    def __init__(self, kernel: Kernel, X: Array, y: Array, samples: int) -> None:
        self.kernel, self.X, self.y = kernel, X, y
        self.K = np.empty((samples, len(X)))  # each column k(c, X) is stored as a row, which is contiguous
        self.place: dict[bytes, int] = {}  # the row of K for a sample, by its bytes
        self.size = 0

    def extend(self, C: Array) -> None:
        """Add the columns of the next samples, (m, d)."""
        m = self.size
        self.K[m : m + len(C)] = self.kernel(C, self.X)
        self.place |= {c.tobytes(): m + i for i, c in enumerate(C)}
        self.size = m + len(C)

    def means(self, models: Sequence[RecipeRegressor]) -> Array:
        """Return the predictions of all models, (models, n)."""
        weights = np.zeros((len(models), self.size))
        for row, model in zip(weights, models, strict=True):
            row[[self.place[c.tobytes()] for c in model.centers_]] = model.alpha_
        return weights @ self.K[: self.size]

    def errors(self, models: Sequence[RecipeRegressor]) -> Array:
        """Return the mean squared errors divided by the variance of y, (models,)."""
        return ((self.means(models) - self.y) ** 2).mean(axis=1) / self.y.var()

    def squares(self) -> Array:
        """Return |k|^2 at every test point, (n,), where k contains all samples so far."""
        K = self.K[: self.size]
        return np.einsum("ij,ij->j", K, K)
