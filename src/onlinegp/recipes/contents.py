"""A state as named arrays and numbers, and back: what copies, files and fleets hold.

Only the centers in use are there, and of a symmetric or triangular matrix only the lower triangle, row by row.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from onlinegp.checks import stored_array, stored_names, stored_number
from onlinegp.recipes.state import KINDS, MATRICES, State
from onlinegp.recipes.update import Recipe

NUMBERS = {name: int if kind == "integer" else float for name, kind in KINDS.items() if kind in ("integer", "number")}


def dump_state(state: State) -> dict[str, Any]:
    """Return what is in use of a state, by name."""
    numbers = {name: getattr(state, name) for name in NUMBERS}
    return numbers | {name: _used(state, name) for name in state.arrays()}


def load_state(recipe: Recipe, features: int, outputs: int, contents: dict[str, Any]) -> State:
    """Return the state with these contents; whatever does not fit is refused with a ValueError."""
    buffers = recipe.start(features, outputs).arrays()
    return filled(recipe, features, outputs, checked(contents, buffers, recipe.budget))


def filled(recipe: Recipe, features: int, outputs: int, contents: dict[str, Any]) -> State:
    """Return the state with these contents, which fit."""
    state = recipe.start(features, outputs)
    for name in NUMBERS:
        setattr(state, name, contents[name])
    state.reserve(state.size, recipe.budget)
    for name in state.arrays():
        value = contents[name]
        state.used(name)[...] = _square(name, value, state.size) if name in MATRICES else value
    return state


def checked(contents: dict[str, Any], buffers: dict[str, np.ndarray], budget: int | None) -> dict[str, Any]:
    """Return contents for a state with these buffers, its numbers as such; refuse what does not fit."""
    stored_names(contents, NUMBERS.keys() | buffers.keys(), "the state")
    found = {name: stored_number(name, contents[name], kind) for name, kind in NUMBERS.items()}
    m = found["size"]
    if budget is not None and m > budget:
        raise ValueError(f"{m} centers exceed the budget of {budget}.")
    for name, buffer in buffers.items():
        wanted = (m * (m + 1) // 2,) if name in MATRICES else (m, *buffer.shape[1:])
        stored_array(name, contents[name], wanted, buffer.dtype)
    return found | {name: contents[name] for name in buffers}


def _used(state: State, name: str) -> np.ndarray:
    used = state.used(name)
    return used[_lower(state.size)] if name in MATRICES else used.copy()


def _square(name: str, triangle: np.ndarray, m: int) -> np.ndarray:
    """Return the matrix of a lower triangle: symmetric, or zero above the diagonal."""
    square, lower = np.zeros((m, m)), _lower(m)
    square[lower] = triangle
    if KINDS[name] == "symmetric":
        square.T[lower] = triangle
    return square


def _lower(m: int) -> np.ndarray:
    """Return which entries of a square matrix are in its lower triangle; small answers are kept, for fleets."""
    return _small_lower(m) if m <= 200 else np.tri(m, dtype=bool)


@lru_cache(maxsize=200)
def _small_lower(m: int) -> np.ndarray:
    return np.tri(m, dtype=bool)
