"""How many multiplications a sample takes: predicted, then learned, with one output.

Divisions count as multiplications; square roots and exponentials are not counted. With m centers and d features, an
evaluation of the kernel counts d + 1: the squares of the scaled distances, and a factor. Triangles and symmetric
matrices are counted once. What the tracked beliefs do is listed in `beliefs`; of orders of m^2 the terms are

    t = L^-1 k   m^2 / 2        h = S t   m^2        S -= h h' / s   m^2 / 2
    a center that leaves: n = L^-1 e_j   m^2 / 2      L <- L E   m^2      S <- E' S E   4 m^2, on average over j
    which one leaves by its error: two solutions and the new dQ   3 m^2 / 2

Where there is a budget and it is full, every sample is taken to replace a center, so the count is the largest that may
occur. Where only a coherence or a radius keeps samples out, a sample is taken to become none. Models that are no recipe
have formulas of their own, in their classes, which are made of the ones at the end of this file.
"""

from __future__ import annotations

from collections.abc import Callable

from onlinegp.recipes.beliefs import Beta, Exact, Isotropic, LeastSquares, Posterior, Prior, StateSpace
from onlinegp.recipes.dictionaries import Coherence, Novelty, Quantized, Surprise
from onlinegp.recipes.forgetting import Keep
from onlinegp.recipes.pruning import LeastError
from onlinegp.recipes.update import Recipe

Count = Callable[[float], float]  # of the number of centers

CORRECTION: dict[type, Count] = {  # the mean, the variance, the gain and what is tracked
    Prior: lambda m: m + 1,
    Beta: lambda m: 3 * m + 3,
    Isotropic: lambda m: 3 * m + 3,
    Exact: lambda m: m**2 / 2 + 2.5 * m + 2,
    Posterior: lambda m: 2 * m**2 + 6 * m + 2,
    StateSpace: lambda m: 2 * m**2 + 7 * m + 8,  # the same, and the weights fade
    LeastSquares: lambda m: 2 * m**2 + 6 * m + 2,
}
REMOVAL: dict[type, Count] = {
    Prior: lambda m: 0.0,
    Beta: lambda m: 0.0,
    Isotropic: lambda m: 0.0,
    Exact: lambda m: 1.5 * m**2,
    Posterior: lambda m: 5.5 * m**2,
    StateSpace: lambda m: 5.5 * m**2,
    LeastSquares: lambda m: 5.5 * m**2,
}


def multiplications(recipe: Recipe, size: float, features: int) -> float | None:
    """Return how many multiplications a sample takes with so many centers; None if the belief is not counted here."""
    belief, m = type(recipe.belief), size
    if belief not in CORRECTION:
        return None
    total = kernel_row(m, features) + CORRECTION[belief](m)
    if isinstance(recipe.dictionary, (Quantized, Novelty, Surprise)):
        total += m * features  # the Euclidean distances
    elif isinstance(recipe.dictionary, Coherence):
        total += 2 * m
    if not isinstance(recipe.forgetting, Keep):
        total += m
    if recipe.budget is not None and m >= recipe.budget:
        total += REMOVAL[belief](m)
        if isinstance(recipe.pruning, LeastError):
            total += 1.5 * m**2
    return total


ERRORS = 6  # their fading mean square, and its floor, for models whose standard deviation it is


def kernel_row(m: float, features: int) -> float:
    """Return those of the kernel row of m centers."""
    return m * (features + 1)


def solution(n: float) -> float:
    """Return those of A^-1 b for a positive definite A (n, n): Cholesky's factor, and two triangles solved."""
    return (n**3 - n) / 6 + n * (n - 1) / 2 + n * (n + 1)
