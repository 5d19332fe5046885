"""Convert recipes for the compiled engine, which has the same parts with the same names."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args

from onlinegp.checks import choice
from onlinegp.engine.program import UnsupportedError, program
from onlinegp.native_module import native
from onlinegp.recipes.beliefs import Belief, Beta
from onlinegp.recipes.dictionaries import Dictionary
from onlinegp.recipes.forgetting import Forgetting
from onlinegp.recipes.pruning import Pruning
from onlinegp.recipes.state import KINDS
from onlinegp.recipes.update import Recipe

PARTS = {"belief": get_args(Belief), "dictionary": get_args(Dictionary), "forgetting": get_args(Forgetting)}
PARTS["pruning"] = get_args(Pruning)


def is_single(recipe: Recipe, dtype: str) -> bool:
    """Return whether a recipe runs in float32. Raise an error if float32 has too few digits."""
    single = choice(("float64", "float32"), dtype=dtype) == "float32"
    if single and "L" in recipe.tracks:
        raise ValueError(
            f"dtype must be 'float64' for the belief {type(recipe.belief).__name__}, got 'float32': it keeps too "
            f"few digits for a tracked covariance. Use float64, or a filter of the KLMS family."
        )
    return single


def compiled_recipe(recipe: Recipe, features: int) -> dict[str, Any]:
    """Return a recipe as data for the compiled engine: name and numbers of each part, and the program of the kernel.

    Raise an UnsupportedError if only the Python engine can run the recipe.
    """
    compiled = native()
    assert dict(compiled.STATE) == KINDS, "the compiled engine was built for another State. Install onlinegp again."
    parts = {axis: getattr(recipe, axis) for axis in PARTS}
    named = {axis: _named(axis, part) for axis, part in parts.items() if part is not None}
    return {**named, "learn_power": recipe.learn_power, "kernel": program(recipe.kernel, features)}


def _named(axis: str, part: Any) -> tuple[str, dict[str, float]]:
    """Return the name of a part and its numbers by name."""
    if type(part) not in PARTS[axis]:  # a part of the user can have the name of one of ours
        raise UnsupportedError(f"engine 'native' has no {axis} {part!r}. Use engine='python' for your own parts.")
    numbers = {field.name: getattr(part, field.name) for field in fields(part)}
    if isinstance(part, Beta) and part.beta == "auto":
        numbers = {name: value for name, value in numbers.items() if name != "beta"} | {"automatic": 1.0}
    return type(part).__name__, {name: float(value) for name, value in numbers.items()}
