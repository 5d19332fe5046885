"""Translate recipes for the compiled engine: the same parts, by the same names."""

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
    """Return whether a recipe runs in float32. Refuse float32 if it keeps too few digits."""
    single = choice(("float64", "float32"), dtype=dtype) == "float32"
    if single and "L" in recipe.tracks:
        raise ValueError(
            f"dtype must be 'float64' for the belief {type(recipe.belief).__name__}, got 'float32': it keeps too "
            f"few digits for a tracked covariance. Use float64, or a filter of the KLMS family."
        )
    return single


def compiled_recipe(recipe: Recipe, features: int) -> Any:
    """Return a recipe for the compiled engine, or raise an UnsupportedError."""
    compiled = native()
    assert dict(compiled.STATE) == KINDS, "the compiled engine was built for another State. Install onlinegp again."
    core = compiled.Recipe()
    for axis, known in PARTS.items():
        part = getattr(recipe, axis)
        if part is None:
            continue
        name = type(part).__name__
        if type(part) not in known:  # a user's part can have the name of one of ours
            raise UnsupportedError(
                f"engine 'native' has no {axis} {part!r}. Use engine='python' for parts of your own."
            )
        twin = getattr(core, axis)
        twin.kind = getattr(getattr(compiled, axis.capitalize()), name)
        for field in fields(part):
            value = getattr(part, field.name)
            if isinstance(part, Beta) and value == "auto":
                twin.automatic = True
            else:
                setattr(twin, field.name, value)
    core.learn_power = recipe.learn_power
    for op, values, each, a, b, c in program(recipe.kernel, features):
        core.add(getattr(compiled.Op, op), values, each, a, b, c)
    return core
