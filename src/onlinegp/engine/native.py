"""The compiled engine: packs a recipe for it and moves states in and out. The maths is in the native sources."""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import get_args

import numpy as np

from onlinegp.checks import Array, choice
from onlinegp.engine import _native, thread_count
from onlinegp.engine.program import UnsupportedError, program
from onlinegp.kernels import Kernel
from onlinegp.recipes.beliefs import Belief, Beta
from onlinegp.recipes.contents import dump_state, filled
from onlinegp.recipes.dictionaries import Dictionary
from onlinegp.recipes.forgetting import Forgetting
from onlinegp.recipes.pruning import Pruning
from onlinegp.recipes.state import KINDS, State
from onlinegp.recipes.update import Recipe
from onlinegp.state import Contents

PARTS = {"belief": get_args(Belief), "dictionary": get_args(Dictionary), "forgetting": get_args(Forgetting)}
PARTS["pruning"] = get_args(Pruning)
assert dict(_native.STATE) == KINDS, "the compiled engine was built for another State. Install onlinegp again."


class NativeEngine:
    """A recipe and its state, compiled. The same interface as PythonEngine; it starts from a copy of the state."""

    name = "native"

    def __init__(self, recipe: Recipe, state: State, *, dtype: str = "float64") -> None:
        self.recipe = recipe
        self.dtype = dtype
        self.features, self.outputs = state.centers.shape[1], state.alpha.shape[1]
        single = is_single(recipe, dtype)
        self._core = _native.Engine(packed(recipe, self.features), self.features, self.outputs, single)
        self._core.load(dump_state(state))
        # the calls for one sample, without a detour
        self.learn_one = self._core.learn_one
        self.predict_one = self._core.predict_one

    core = property(attrgetter("_core"), doc="The compiled model.")
    size = property(attrgetter("_core.size"), doc="The number of centers.")
    seen = property(attrgetter("_core.seen"), doc="The number of samples learned.")

    @property
    def state(self) -> State:
        """The state as it is now; what is exported and imported again continues bit for bit."""
        return filled(self.recipe, self.features, self.outputs, self.dump())

    def dump(self) -> Contents:
        """Return what is in use of the state, by name."""
        return self._core.save()

    def weights(self) -> tuple[Array, Array]:
        """Return copies of the centers (m, d) and of their weights (m, p)."""
        return self._core.weights()

    def learn(self, X: Array, Y: Array) -> None:
        """Learn the rows of X (n, d) and Y (n, p) in order."""
        self._core.learn(_rows(X), _rows(Y))

    def run(self, X: Array, Y: Array) -> tuple[Array, Array, np.ndarray]:
        """Predict, then learn, row by row: the means (n, p), the variances of y (n,), the sizes after each row (n,)."""
        return self._core.run(_rows(X), _rows(Y))

    def predict(self, X: Array, threads: int | None = None) -> tuple[Array, Array]:
        """Return the means (n, p) and the variances of y (n,)."""
        return self._core.predict(_rows(X), thread_count() if threads is None else threads)


def is_single(recipe: Recipe, dtype: str) -> bool:
    """Return whether a recipe is to run in float32, which is refused where it would keep too few digits."""
    single = choice(("float64", "float32"), dtype=dtype) == "float32"
    if single and "L" in recipe.tracks:
        raise ValueError(
            f"dtype must be 'float64' for the belief {type(recipe.belief).__name__}, got 'float32': it keeps too "
            f"few digits for a tracked covariance. Use float64, or a filter of the KLMS family."
        )
    return single


def _rows(X: Array) -> Array:
    return np.ascontiguousarray(X, dtype=np.float64)


# Recipes


def packed(recipe: Recipe, features: int) -> _native.Recipe:
    """Return a recipe as the compiled engine reads it: the same parts, by the same names."""
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
    pack_kernel(core, recipe.kernel, features)
    return core


def pack_kernel(core: _native.Recipe, kernel: Kernel, features: int) -> None:
    """Give a recipe that has none a kernel, as a postfix program."""
    for op, values, each, a, b, c in program(kernel, features):
        core.add(getattr(_native.Op, op), values, each, a, b, c)
