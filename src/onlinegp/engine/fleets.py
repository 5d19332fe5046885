"""What runs a fleet: many states of one recipe, compiled or in Python, told apart by number."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.engine import available, make_engine
from onlinegp.engine.python import PythonEngine
from onlinegp.recipes.state import State
from onlinegp.recipes.update import Recipe

Who = NDArray[np.int64]


class Numbers:
    """Which number each key has, in the order in which they came.

    A dictionary knows them all; whole numbers that are not large are looked up in a table, which a cache holds longer.
    Several threads may add keys and find them: a number belongs to one key, for good.
    """

    def __init__(self) -> None:
        self._adding = Lock()
        self._of: dict[Hashable, int] = {}
        self._table: Who = np.empty(0, dtype=np.int64)  # -1: not there
        self._native: Any = None
        if available():
            from onlinegp.engine import _native

            self._native = _native

    def __len__(self) -> int:
        return len(self._of)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._of)

    def __contains__(self, key: object) -> bool:
        return key in self._of

    def __getitem__(self, key: Hashable) -> int:
        return self._of[key]

    def find(self, keys: Sequence[Hashable]) -> Who | None:
        """Return the number of each of the keys, or None if one of them has none."""
        if self._native is not None:
            return self._native.numbers(self._of, self._table, keys)
        try:
            return np.fromiter(map(self._of.__getitem__, keys), dtype=np.int64, count=len(keys))
        except KeyError:
            return None

    def add(self, keys: Iterable[Hashable]) -> None:
        """Give numbers to those of the keys that have none yet."""
        with self._adding:
            for key in keys:
                if key in self._of:
                    continue
                number = len(self._of)
                small = type(key) is int and 0 <= key < 8 * number + 1024
                if small and key >= len(self._table):  # room first, so that what fails leaves nothing behind
                    more = np.full(max(key + 1 - len(self._table), len(self._table)), -1, dtype=np.int64)
                    self._table = np.concatenate([self._table, more])
                self._of[key] = number
                if small:
                    self._table[key] = number


class PythonFleet:
    """One Python engine a member."""

    name = "python"

    def __init__(self, recipe: Recipe, features: int, outputs: int) -> None:
        self.recipe, self.features, self.outputs = recipe, features, outputs
        self._members: list[PythonEngine] = []

    def grow(self, count: int) -> None:
        """Have at least this many members; new ones start from the prior."""
        while len(self._members) < count:
            self._members.append(PythonEngine(self.recipe, self.recipe.start(self.features, self.outputs)))

    def learn(self, who: Who, X: Array, Y: Array, threads: int) -> None:
        """Let member who[i] learn row i of X (n, d) and Y (n, p), in order."""
        self.run(who, X, Y, threads)

    def run(self, who: Who, X: Array, Y: Array, threads: int) -> tuple[Array, Array]:
        """Predict, then learn: the means (n, p) and variances of y (n,)."""
        mean, variance = np.empty(Y.shape), np.empty(len(Y))
        for i, member in enumerate(who):
            here = slice(i, i + 1)
            mean[here], variance[here], _ = self._members[member].run(X[here], Y[here])
        return mean, variance

    def predict(self, who: Who, X: Array, threads: int) -> tuple[Array, Array]:
        """Return the means (n, p) and variances of y (n,) that member who[i] gives for row i."""
        mean, variance = np.empty((len(X), self.outputs)), np.empty(len(X))
        for i, member in enumerate(who):
            here = slice(i, i + 1)
            mean[here], variance[here] = self._members[member].predict(X[here])
        return mean, variance

    def state(self, member: int) -> State:
        return self._members[member].state

    def put(self, member: int, state: State) -> None:
        self._members[member] = PythonEngine(self.recipe, state)


class NativeFleet:
    """All members in one compiled object, in slabs of memory, on several threads."""

    name = "native"

    def __init__(self, recipe: Recipe, features: int, outputs: int) -> None:
        from onlinegp.engine import _native
        from onlinegp.engine.native import packed

        self.recipe, self.features, self.outputs = recipe, features, outputs
        self._core = _native.Fleet(packed(recipe, features), features, outputs, False)

    def grow(self, count: int) -> None:
        """Have at least this many members; new ones start from the prior."""
        self._core.grow(count)

    def learn(self, who: Who, X: Array, Y: Array, threads: int) -> None:
        """Let member who[i] learn row i of X (n, d) and Y (n, p), in order."""
        self._core.learn(who, X, Y, threads)

    def run(self, who: Who, X: Array, Y: Array, threads: int) -> tuple[Array, Array]:
        """Predict, then learn: the means (n, p) and variances of y (n,)."""
        return self._core.run(who, X, Y, threads)

    def predict(self, who: Who, X: Array, threads: int) -> tuple[Array, Array]:
        """Return the means (n, p) and variances of y (n,) that member who[i] gives for row i."""
        return self._core.predict(who, X, threads)

    def state(self, member: int) -> State:
        from onlinegp.engine.native import unpacked_state

        return unpacked_state(self.recipe, self.features, self.outputs, self._core.save(member))

    def put(self, member: int, state: State) -> None:
        from onlinegp.engine.native import packed_state

        self._core.load(member, packed_state(state))


def make_fleet(name: str, recipe: Recipe, features: int, outputs: int) -> PythonFleet | NativeFleet:
    """Return a fleet without members, on the engine that `make_engine` takes for this recipe."""
    chosen = make_engine(name, recipe, recipe.start(features, outputs)).name
    kind = NativeFleet if chosen == "native" and available() else PythonFleet
    return kind(recipe, features, outputs)
