"""Recipes as compiled filters read them: the same parts, by the same names."""

from __future__ import annotations

from dataclasses import fields
from typing import get_args

from onlinegp.checks import choice
from onlinegp.engine import _native
from onlinegp.engine.program import UnsupportedError, program
from onlinegp.recipes.beliefs import Belief, Beta
from onlinegp.recipes.dictionaries import Dictionary
from onlinegp.recipes.forgetting import Forgetting
from onlinegp.recipes.pruning import Pruning
from onlinegp.recipes.state import KINDS
from onlinegp.recipes.update import Recipe

PARTS = {"belief": get_args(Belief), "dictionary": get_args(Dictionary), "forgetting": get_args(Forgetting)}
PARTS["pruning"] = get_args(Pruning)
assert dict(_native.STATE) == KINDS, "the compiled engine was built for another State. Install onlinegp again."


def is_single(recipe: Recipe, dtype: str) -> bool:
    """Return whether a recipe is to run in float32, which is refused where it would keep too few digits."""
    single = choice(("float64", "float32"), dtype=dtype) == "float32"
    if single and "L" in recipe.tracks:
        raise ValueError(
            f"dtype must be 'float64' for the belief {type(recipe.belief).__name__}, got 'float32': it keeps too "
            f"few digits for a tracked covariance. Use float64, or a filter of the KLMS family."
        )
    return single


def compiled_recipe(recipe: Recipe, features: int) -> _native.Recipe:
    """Return a recipe for the compiled engine, or raise an UnsupportedError."""
    core = _native.Recipe()
    for axis, known in PARTS.items():
        part = getattr(recipe, axis)
        if part is None:
            continue
        name = type(part).__name__
        if type(part) not in known:  # one of your own may have the name of ours
            raise UnsupportedError(
                f"engine 'native' has no {axis} {part!r}. Use engine='python' for parts of your own."
            )
        twin = getattr(core, axis)
        twin.kind = getattr(getattr(_native, axis.capitalize()), name)
        for field in fields(part):
            value = getattr(part, field.name)
            if isinstance(part, Beta) and value == "auto":
                twin.automatic = True
            else:
                setattr(twin, field.name, value)
    core.learn_power = recipe.learn_power
    for op, values, each, a, b, c in program(recipe.kernel, features):
        core.add(getattr(_native.Op, op), values, each, a, b, c)
    return core
