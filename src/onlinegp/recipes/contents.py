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
    contents: dict[str, Any] = {name: getattr(state, name) for name in NUMBERS}
    for name, buffer in state.arrays().items():
        contents[name] = state.square(name)[_lower(state.size)] if name in MATRICES else buffer[: state.size].copy()
    return contents


def load_state(recipe: Recipe, features: int, outputs: int, contents: dict[str, Any]) -> State:
    """Return the state with these contents; whatever does not fit is refused with a ValueError."""
    state = recipe.start(features, outputs)
    stored_names(contents, {*NUMBERS, *state.arrays()}, "the state")
    for name, kind in NUMBERS.items():
        setattr(state, name, stored_number(name, contents[name], kind))
    if recipe.budget is not None and state.size > recipe.budget:
        raise ValueError(f"{state.size} centers exceed the budget of {recipe.budget}.")
    m = state.size
    for name, buffer in state.arrays().items():  # all shapes before any memory
        wanted = (m * (m + 1) // 2,) if name in MATRICES else (m, *buffer.shape[1:])
        stored_array(name, contents[name], wanted, buffer.dtype)
    state.reserve(m, recipe.budget)
    for name, buffer in state.arrays().items():
        if name in MATRICES:
            rows, columns = _lower(m)
            buffer[rows, columns] = contents[name]
            if KINDS[name] == "symmetric":
                buffer[columns, rows] = contents[name]
        else:
            buffer[:m] = contents[name]
    return state


def _lower(m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of a lower triangle; small ones are kept, for fleets."""
    return _small_lower(m) if m <= 200 else np.tril_indices(m)


@lru_cache(maxsize=16)
def _small_lower(m: int) -> tuple[np.ndarray, np.ndarray]:
    return np.tril_indices(m)
