"""Count the multiplications to predict and learn a sample with one output.

Divisions count as multiplications; square roots and exponentials do not count. With m centers and d features, a kernel
evaluation counts d + 1: d squares, and a factor. In triangular and symmetric matrices, each number counts once.
`beliefs` lists what the tracked beliefs compute; the terms of order m^2 are

    t = L^-1 k   m^2 / 2        h = S t   m^2        S -= h h' / s   m^2 / 2
    removing a center: n = L^-1 e_j   m^2 / 2      L <- L E   m^2      S <- E' S E   4 m^2, on average over j
    choosing the center to remove by its error: two solves and the new dQ   3 m^2 / 2

If the dictionary has a budget and is full, the formulas assume that every sample replaces a center, so they give the
largest count. If only a coherence or a radius limits the dictionary, they assume that no sample becomes a center.
"""

from __future__ import annotations

from collections.abc import Callable

from onlinegp.recipes.beliefs import Beta, Exact, Isotropic, LeastSquares, Posterior, Prior, StateSpace
from onlinegp.recipes.dictionaries import Coherence, Novelty, Quantized, Surprise
from onlinegp.recipes.forgetting import Keep
from onlinegp.recipes.pruning import LeastError
from onlinegp.recipes.update import Recipe

Count = Callable[[float], float]  # a count as a function of the number of centers

CORRECTION: dict[type, Count] = {  # mean, variance, gain and tracked arrays
    Prior: lambda m: m + 1,
    Beta: lambda m: 3 * m + 3,
    Isotropic: lambda m: 3 * m + 3,
    Exact: lambda m: m**2 / 2 + 2.5 * m + 2,
    Posterior: lambda m: 2 * m**2 + 6 * m + 2,
    StateSpace: lambda m: 2 * m**2 + 7 * m + 8,  # as Posterior, and shrinks the weights
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
    """Return the number of multiplications per sample with `size` centers, or None without a formula for the belief."""
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


def kernel_row(m: float, features: int) -> float:
    """Return the multiplications for the kernel row of m centers."""
    return m * (features + 1)


def solution(n: float) -> float:
    """Return the multiplications for A^-1 b with a positive definite A (n, n): Cholesky, and two triangular solves."""
    return (n**3 - n) / 6 + n * (n - 1) / 2 + n * (n + 1)
