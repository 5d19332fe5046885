"""Pruning rules: choose which center to remove when the dictionary is full.

A rule gets the weights as they would be with the new sample as the last center, and returns the slot to remove.
Returning the last slot rejects the new sample. Ties go to the oldest center.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array

TIE = 1e-9  # a share of the largest score: scores that differ by less count as equal


def oldest_of_least(scores: Array, born: NDArray[np.int64]) -> int:
    """Return the slot with the lowest score, (m,). Ties go to the oldest."""
    limit = scores.min() + TIE * scores.max()
    return int(np.where(scores > limit, np.iinfo(np.int64).max, born).argmin())


def sizes(alpha: Array) -> Array:
    """Return the size of each weight over all outputs, (m,)."""
    return np.sqrt((alpha**2).sum(axis=1))


@dataclass(frozen=True)
class Oldest:
    """Remove the oldest center: a sliding window."""

    budget: int

    def candidate(self, alpha: Array, d: Array, born: NDArray[np.int64]) -> int:
        return int(born.argmin())


@dataclass(frozen=True)
class LeastWeight:
    """Remove the center with the smallest weight."""

    budget: int

    def candidate(self, alpha: Array, d: Array, born: NDArray[np.int64]) -> int:
        return oldest_of_least(sizes(alpha), born)


@dataclass(frozen=True)
class LeastError:
    """Remove the center whose removal changes the mean least, by the score |alpha_i| / d_i.

    d is the diagonal of (L L')^-1. For a posterior over centers this is K^-1, and the score is the error at i that
    removing i causes. For a posterior over data it is (K + noise I)^-1, and the score is the leave-one-out error.

    de Kruif and de Vries, "Pruning error minimization in least squares support vector machines", 2003.
    """

    budget: int

    def candidate(self, alpha: Array, d: Array, born: NDArray[np.int64]) -> int:
        return oldest_of_least(sizes(alpha) / d, born)


Pruning = Oldest | LeastWeight | LeastError
