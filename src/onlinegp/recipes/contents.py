"""A state as named arrays and numbers, and back: what copies, files and fleets hold.

Only the centers in use are there, and of a symmetric or triangular matrix only the lower triangle, row by row.
"""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from typing import Any

import numpy as np

from onlinegp.recipes.state import MATRICES, State
from onlinegp.recipes.update import Recipe

NUMBERS = {f.name: int if f.type == "int" else float for f in fields(State) if f.type in ("int", "float")}
LARGEST_COUNT = 1 << 62


def dump_state(state: State) -> dict[str, Any]:
    """Return what is in use of a state, by name."""
    numbers = {name: getattr(state, name) for name in NUMBERS}
    return folded(
        numbers
        | {
            name: state.square(name) if name in MATRICES else buffer[: state.size].copy()
            for name, buffer in state.arrays().items()
        }
    )


def load_state(recipe: Recipe, features: int, outputs: int, contents: dict[str, Any]) -> State:
    """Return the state with these contents; whatever does not fit is refused with a ValueError."""
    state = recipe.start(features, outputs)
    contents = unfolded(contents, state.arrays(), recipe.budget)
    for name in NUMBERS:
        setattr(state, name, contents[name])
    state.reserve(state.size, recipe.budget)
    for name, buffer in state.arrays().items():
        used = state.square(name) if name in MATRICES else buffer[: state.size]
        used[...] = contents[name]
    return state


def folded(contents: dict[str, Any]) -> dict[str, Any]:
    """Return contents with the lower triangles of the matrices in place of these."""
    lower = _lower(contents["size"])
    return {name: value[lower] if name in MATRICES else value for name, value in contents.items()}


def unfolded(contents: dict[str, Any], buffers: dict[str, np.ndarray], budget: int | None) -> dict[str, Any]:
    """Return contents with whole matrices again, for a state with these buffers; refuse what does not fit."""
    expected = NUMBERS.keys() | buffers.keys()
    if odd := sorted(expected ^ contents.keys()):
        what = "lacks" if odd[0] in expected else "has the unknown entry"
        raise ValueError(f"the state {what} {odd[0]!r}. It has: {', '.join(sorted(contents))}.")
    found = {name: _number(name, contents[name], kind) for name, kind in NUMBERS.items()}
    m = found["size"]
    if budget is not None and m > budget:
        raise ValueError(f"{m} centers exceed the budget of {budget}.")
    for name, buffer in buffers.items():  # all shapes before any memory
        wanted = (m * (m + 1) // 2,) if name in MATRICES else (m, *buffer.shape[1:])
        _check_array(name, contents[name], wanted, buffer.dtype)
    return found | {name: _square(contents[name], m) if name in MATRICES else contents[name] for name in buffers}


def _square(triangle: np.ndarray, m: int) -> np.ndarray:
    """Return the symmetric matrix of a lower triangle."""
    square, lower = np.empty((m, m)), _lower(m)
    square[lower] = triangle
    square.T[lower] = triangle
    return square


def _number(name: str, value: Any, kind: type) -> Any:
    allowed = int if kind is int else (int, float)
    if (
        isinstance(value, bool)
        or not isinstance(value, allowed)
        or not 0 <= value < (LARGEST_COUNT if kind is int else np.inf)
    ):
        raise ValueError(f"{name} must be a finite number of at least zero, got {value!r}.")
    return kind(value)


def _check_array(name: str, array: Any, shape: tuple[int, ...], dtype: Any) -> None:
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
        found = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f"{name} must be {np.dtype(dtype)} of shape {shape}, got {found}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds a value that is not finite.")


def _lower(m: int) -> np.ndarray:
    """Return which entries of a square matrix are in its lower triangle; small answers are kept, for fleets."""
    return _small_lower(m) if m <= 200 else np.tri(m, dtype=bool)


@lru_cache(maxsize=200)
def _small_lower(m: int) -> np.ndarray:
    return np.tri(m, dtype=bool)
