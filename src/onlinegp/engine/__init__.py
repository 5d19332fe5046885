"""What runs a recipe over data: the readable Python engine, or its compiled twin where that was built."""

from __future__ import annotations

from onlinegp.checks import choice
from onlinegp.engine.python import PythonEngine
from onlinegp.learn import Recipe
from onlinegp.state import State

Engine = PythonEngine


def make_engine(name: str, recipe: Recipe, state: State) -> Engine:
    """Return the engine of that name for a recipe and a state, which it takes over."""
    choice(("auto", "python"), engine=name)
    return PythonEngine(recipe, state)
