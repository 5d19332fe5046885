"""The base class of beliefs, and linear algebra for several beliefs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import Kernel
from onlinegp.recipes.state import NEW, PROJECTED, Prediction, State


def unit(m: int, slot: int) -> Array:
    """Return the unit vector of a slot. NEW is the slot after the last one."""
    e = np.zeros(m + (slot == NEW))
    e[slot] = 1.0
    return e


def solve(L: Array, x: Array, *, transposed: bool = False) -> Array:
    """Return L^-1 x, or L^-T x; x (m,) or (m, p)."""
    from scipy.linalg.lapack import dtrtrs

    # LAPACK gets L', because it stores columns
    return dtrtrs(L.T, x, lower=0, trans=0 if transposed else 1)[0] if len(L) else x.copy()


def coordinates(state: State, prediction: Prediction, slot: int) -> Array:
    """Return q, the coordinates of x in the dictionary: a unit vector, or K^-1 k = L^-T t for a projection."""
    if slot == PROJECTED:
        return solve(state.square("L"), prediction.t, transposed=True)
    return unit(state.size, slot)


def turned(X: Array, n: Array, j: int) -> Array:
    """Return X E, where the columns of E (m, m - 1) are an orthonormal basis of the space orthogonal to n.

    n is 0 before entry j.

    The columns of E are e_i for i < j, and (nu_{i-1} e_i - n_i / nu_{i-1} n_{<i}) / nu_i for i > j, with nu_i the
    length of n up to i. If every row of X except j is orthogonal to n, as in L, X E without row j is triangular again.
    """
    nu = np.sqrt(np.cumsum(n[j:] ** 2))
    sums = np.cumsum(X[..., j:-1] * n[j:-1], axis=-1)
    rest = (nu[:-1] * X[..., j + 1 :] - n[j + 1 :] / nu[:-1] * sums) / nu[1:]
    return np.concatenate([X[..., :j], rest], axis=-1)


@dataclass(frozen=True)
class BeliefBase(ABC):
    """Base class of beliefs. By default nothing is tracked, and removing a center only removes its weight."""

    tracks: ClassVar[tuple[str, ...]] = ()
    projects: ClassVar[bool] = False

    @abstractmethod
    def gain(self, state: State, prediction: Prediction, slot: int) -> tuple[Array, float]:
        """Return the gain g and the innovation variance s. If x was admitted, the last entry of g is for x."""

    def expresses(self, prediction: Prediction) -> bool:
        """Return whether x lies in the span of the centers, so that it need not become a center."""
        return False

    def track(self, state: State, prediction: Prediction, g: Array, s: float, admitted: bool) -> None:
        """Update the tracked arrays. The default updates L if the dictionary needs it."""
        if admitted and state.L is not None:
            state.square("L")[-1] = np.append(prediction.t, sqrt(prediction.gamma2))

    def candidates(self, state: State, prediction: Prediction, e: Array) -> tuple[Array, Array]:
        """Return the weights after admitting x as the last center, and d for each weight, for pruning."""
        g, s = self.gain(state, prediction, NEW)
        alpha = np.multiply.outer(g, e / s)
        alpha[:-1] += state.a
        return alpha, np.ones(len(g))

    def drop(self, state: State, j: int, kernel: Kernel) -> int:
        """Remove center j, and return the slot of the newest center."""
        return state.move_last_to(j)

    def weights(self, state: State) -> Array:
        return state.a.copy()
