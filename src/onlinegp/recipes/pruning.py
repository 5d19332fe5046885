"""Which center is removed when the dictionary is full.

A rule sees the weights as they would be with the new sample admitted, in the last place, and names the slot to
remove; naming the last place refuses the sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array


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
        return int((alpha**2).sum(axis=1).argmin())


@dataclass(frozen=True)
class LeastError:
    """Remove the center whose removal changes the mean least, by the score |alpha_i| / d_i.

    d is the diagonal of (L L')^-1: of K^-1 for a posterior over centers, where the score is the error that removing i
    causes at i; of (K + noise I)^-1 for a posterior over data, where it is the leave-one-out error.

    de Kruif and de Vries, "Pruning error minimization in least squares support vector machines", 2003.
    """

    budget: int

    def candidate(self, alpha: Array, d: Array, born: NDArray[np.int64]) -> int:
        return int(((alpha**2).sum(axis=1) / d**2).argmin())


Pruning = Oldest | LeastWeight | LeastError
