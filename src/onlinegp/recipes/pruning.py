"""Pruning rules: choose which center to remove when the dictionary is full.

A rule gets the weights with the new sample as the last center, and returns the slot to remove. Returning the last slot
rejects the new sample. Ties go to the oldest center.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array

TIE = 1e-9  # scores count as equal if they differ by a smaller share of the largest score


def oldest_of_least(scores: Array, born: NDArray[np.int64]) -> int:
    """Return the slot with the lowest score, (m,). Ties go to the oldest."""
    limit = scores.min() + TIE * scores.max()
    return int(np.where(scores > limit, np.iinfo(np.int64).max, born).argmin())


def sizes(alpha: Array) -> Array:
    """Return the norm of each weight over all outputs, (m,)."""
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
    """Remove the center with the smallest score |alpha_i| / d_i, whose removal changes the mean least.

    d is the diagonal of (L L')^-1. If the centers represent all data, this is the diagonal of K^-1, and the score is
    the error at center i after its removal. If the centers are the data, it is the diagonal of (K + noise I)^-1, and
    the score is the leave-one-out error.

    de Kruif and de Vries, "Pruning error minimization in least squares support vector machines", 2003.
    """

    budget: int

    def candidate(self, alpha: Array, d: Array, born: NDArray[np.int64]) -> int:
        return oldest_of_least(sizes(alpha) / d, born)


Pruning = Oldest | LeastWeight | LeastError
