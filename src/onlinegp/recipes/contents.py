"""Convert a state to named arrays and numbers, and back, for copies, files and fleets.

Only centers in use are included. A symmetric or triangular matrix becomes its lower triangle, row by row.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from onlinegp.recipes.state import KINDS, MATRICES, State
from onlinegp.recipes.update import Recipe
from onlinegp.state import array, integer, integers, number, points, triangle

BY_KIND = {
    "points": points("size"),
    "outputs": array("size", "outputs"),
    "vector": array("size"),
    "counts": integers("size"),
    "triangular": triangle("size"),
    "symmetric": triangle("size"),
    "integer": integer(),
    "number": number(),
}
FIELDS = {name: BY_KIND[kind] for name, kind in KINDS.items()}
FIELDS |= {"size": integer(most="budget"), "scale": number(positive=True), "power": number(positive=True)}
NUMBERS = {name: int if kind == "integer" else float for name, kind in KINDS.items() if kind in ("integer", "number")}


def dump_state(state: State) -> dict[str, Any]:
    """Return the numbers and the used parts of the arrays of a state, by name."""
    numbers = {name: getattr(state, name) for name in NUMBERS}
    return numbers | {name: _used(state, name) for name in state.arrays()}


def filled(recipe: Recipe, features: int, outputs: int, contents: dict[str, Any]) -> State:
    """Return a state with these contents, which must be valid."""
    state = recipe.start(features, outputs)
    for name in NUMBERS:
        setattr(state, name, contents[name])
    state.reserve(state.size, recipe.budget)
    for name in state.arrays():
        value = contents[name]
        state.used(name)[...] = _square(name, value, state.size) if name in MATRICES else value
    return state


def _used(state: State, name: str) -> np.ndarray:
    used = state.used(name)
    return used[_lower(state.size)] if name in MATRICES else used.copy()


def _square(name: str, triangle: np.ndarray, m: int) -> np.ndarray:
    """Return an (m, m) matrix from its lower triangle: symmetric, or zero above the diagonal."""
    square, lower = np.zeros((m, m)), _lower(m)
    square[lower] = triangle
    if KINDS[name] == "symmetric":
        square.T[lower] = triangle
    return square


def _lower(m: int) -> np.ndarray:
    """Return a mask of the lower triangle of a square matrix. Small masks are cached, for fleets."""
    return _small_lower(m) if m <= 200 else np.tri(m, dtype=bool)


@lru_cache(maxsize=200)
def _small_lower(m: int) -> np.ndarray:
    return np.tri(m, dtype=bool)
