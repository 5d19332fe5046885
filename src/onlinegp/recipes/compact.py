"""A compact form of states, for storing many models.

The compact form omits L, k(c, c) and dQ, which are computed again from the centers, as if the centers were admitted one
after the other. S (as scale S + (1 - scale) I) is stored as a lower triangle R with R R' = S, in float32. In this form,
variances keep twice the digits of float32, and R R' never has a negative eigenvalue (Bierman, "Factorization methods
for discrete sequential estimation", 1977). Centers and weights keep their full precision, because their offset may be
large compared with a length scale or the noise.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from math import sqrt
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.recipes.beliefs import LEAST_DOUBT, SMALLEST_NOVELTY, Exact
from onlinegp.recipes.contents import FIELDS, NUMBERS, dump_state
from onlinegp.recipes.linear_algebra import solve
from onlinegp.recipes.state import TRACKED
from onlinegp.recipes.update import Recipe
from onlinegp.state import Fields, Schemas, Values, WithFields, check_contents, triangle

FACTOR = "R"
KEPT = ("centers", "alpha", "born")


class StateLayout(WithFields):
    """The fields of a state that tracks these arrays. If `compactable`, also its compact fields."""

    def __init__(self, tracks: tuple[str, ...], compactable: bool, features: int, outputs: int) -> None:
        self._tracks, self._compactable, self.features, self.outputs = tracks, compactable, features, outputs

    @cached_property
    def fields(self) -> Fields:
        return {name: FIELDS[name] for name in FIELDS if name not in TRACKED or name in self._tracks}

    @cached_property
    def compact_fields(self) -> Fields | None:
        factor = {FACTOR: triangle("size", dtype=np.float32)} if "S" in self._tracks else {}
        return {name: FIELDS[name] for name in (*NUMBERS, *KEPT)} | factor if self._compactable else None


@lru_cache(maxsize=256)
def recipe_schemas(tracks: tuple[str, ...], compactable: bool, features: int, outputs: int) -> Schemas:
    """Return the schemas of the records of such states. Cached, because each call of `step` needs them."""
    return Schemas(StateLayout(tracks, compactable, features, outputs))


class StateFields(StateLayout):
    """The fields of the state of a recipe. `check` also expands compact fields."""

    def __init__(self, recipe: Recipe, features: int, outputs: int) -> None:
        super().__init__(recipe.tracks, has_compact(recipe), features, outputs)
        self.recipe, self.budget = recipe, recipe.budget

    def check(self, values: Values) -> None:
        if "kcc" not in values:  # compact contents: expand them in place, and check the result
            full = check_contents(self, load_compact(self.recipe, self.features, self.outputs, values))
            values.clear()
            values.update(full)


def has_compact(recipe: Recipe) -> bool:
    """Whether states have a compact form. They do if the belief tracks L, not if only the dictionary needs L."""
    return "L" in recipe.belief.tracks


def dump_compact(recipe: Recipe, contents: dict[str, Any]) -> dict[str, Any]:
    """Return the contents of a state in compact form. If there is none, return them unchanged."""
    if not has_compact(recipe):
        return contents
    small = {name: contents[name] for name in (*NUMBERS, *KEPT)} | {"scale": 1.0}
    if "S" in contents:
        m = contents["size"]
        S = np.zeros((m, m))
        S[np.tri(m, dtype=bool)] = contents["scale"] * contents["S"]
        S[np.diag_indices(m)] += 1.0 - contents["scale"]
        with np.errstate(all="ignore"):  # values that are not finite raise an error later
            small[FACTOR] = factor(S)[np.tri(m, dtype=bool)].astype(np.float32)
    return small


def factor(S: Array) -> Array:
    """Return the lower triangle R with R R' = S. Only the lower triangle of S is read.

    Pivots that are too small or negative because of rounding become LEAST_DOUBT times S_ii.
    """
    R, least = np.tril(S), LEAST_DOUBT * S.diagonal()
    for k in range(len(S)):
        r = sqrt(max(R[k, k], least[k], 0.0)) if np.isfinite(R[k, k]) else np.nan
        R[k:, k] = R[k:, k] / r if r != 0.0 else 0.0
        R[k, k] = r
        R[k + 1 :, k + 1 :] -= np.tril(np.multiply.outer(R[k + 1 :, k], R[k + 1 :, k]))
    return R


def load_compact(recipe: Recipe, features: int, outputs: int, contents: dict[str, Any]) -> dict[str, Any]:
    """Return the full contents of a state, given valid contents in compact form."""
    m = contents["size"]
    state = recipe.start(features, outputs)
    state.reserve(m, recipe.budget)
    for name in NUMBERS:
        setattr(state, name, contents[name])
    state.C[:], state.a[:], state.born[:m] = (contents[name] for name in KEPT)
    if "S" in recipe.tracks:
        R = np.zeros((m, m))
        R[np.tri(m, dtype=bool)] = contents[FACTOR]
        state.square("S")[:] = R @ R.T
    L = state.square("L")
    for i, x in enumerate(state.C.copy()):
        L[i, : i + 1], state.kcc[i] = _row(recipe, L[:i, :i], state.C[:i], x)
    if state.dQ is not None:
        state.dQ[:m] = (solve(L, np.eye(m)) ** 2).sum(axis=0)
    return dump_state(state)


def _row(recipe: Recipe, L: Array, C: Array, x: Array) -> tuple[Array, float]:
    """Return the row [t, sqrt(gamma2)] that x adds to L after the centers C, and k(x, x)."""
    belief = recipe.belief
    kxx = float(recipe.kernel.diag(x[None, :])[0]) * (1.0 + getattr(belief, "jitter", 0.0))
    t = solve(L, recipe.kernel.row(C, x))
    rest = kxx - float(t @ t)
    if isinstance(belief, Exact):
        return np.append(t, sqrt(max(rest, LEAST_DOUBT * kxx) + belief.noise)), kxx
    return np.append(t, sqrt(max(rest, SMALLEST_NOVELTY * kxx))), kxx
