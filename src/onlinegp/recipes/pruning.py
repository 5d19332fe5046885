"""Which center is removed when the dictionary is full.

A rule sees the weights as they would be with the new sample admitted, in the last place, and names the slot to
remove; naming the last place refuses the sample. Of centers that matter equally little, the oldest is removed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array

TIE = 1e-9  # a share of the largest score: scores that differ by less are the same, but for rounding


def oldest_of_least(scores: Array, born: NDArray[np.int64]) -> int:
    """Return the slot with the least score, (m,); of several the oldest."""
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

    d is the diagonal of (L L')^-1: of K^-1 for a posterior over centers, where the score is the error that removing i
    causes at i; of (K + noise I)^-1 for a posterior over data, where it is the leave-one-out error.

    de Kruif and de Vries, "Pruning error minimization in least squares support vector machines", 2003.
    """

    budget: int

    def candidate(self, alpha: Array, d: Array, born: NDArray[np.int64]) -> int:
        return oldest_of_least(sizes(alpha) / d, born)


Pruning = Oldest | LeastWeight | LeastError
