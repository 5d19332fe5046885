"""Many learners of one kind, told apart by number: what a fleet works on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.engine.learner import gaussian
from onlinegp.engine.records import packed, unpacked
from onlinegp.files.container import ModelFileError, as_model_file_error
from onlinegp.learner import Contents, Learner
from onlinegp.predictions import Predictions
from onlinegp.recipes.compact import StateFields
from onlinegp.recipes.records import has_learned
from onlinegp.recipes.update import Recipe
from onlinegp.state import check_contents

Which = NDArray[np.int64]


class Members(Protocol):
    """Learners with the numbers 0, 1, ...; event i belongs to member which[i], and those of a member stay in order.

    `remembers` says whether `skip` changes a member.
    """

    remembers: bool

    @property
    def features(self) -> int: ...
    @property
    def outputs(self) -> int: ...

    def grow(self, count: int) -> None:
        """Have at least this many members; new ones have learned nothing."""

    def clear(self, member: int) -> None:
        """Let a member forget all that it has learned."""

    def seen(self, which: Which) -> Which:
        """Return how many rows each of these members has learned; a compiled one says only whether it has any."""
        ...

    def learn(self, which: Which, X: Array, Y: Array, threads: int) -> None:
        """Learn the events."""

    def run(self, which: Which, X: Array, Y: Array, threads: int) -> tuple[Predictions, NDArray[np.int64]]:
        """Predict each event, then learn it; return what was predicted, and the member's size after each."""
        ...

    def predict(self, which: Which, X: Array, threads: int) -> Predictions:
        """Return the distributions that member which[i] gives for row i."""
        ...

    def skip(self, which: Which, X: Array, threads: int) -> Predictions:
        """Predict the events, without learning them, and go on behind them: `predict`, for most."""
        ...

    def pack(self, which: Which, single: bool, compact: bool = False) -> list[bytes]:
        """Return all that each of these members has learned as bytes; `single` says that y is (n,).

        If `compact`, what can be made again is left out, and S rounded: see `onlinegp.recipes.compact`.
        """
        ...

    def unpack(self, which: Which, states: list[bytes], single: bool) -> None:
        """Let these members continue from what `pack` returned, or raise a ModelFileError; some may have changed."""

    def dump(self, member: int) -> Contents:
        """Return all that a member has learned, by name."""
        ...

    def load(self, member: int, contents: Contents) -> None:
        """Let a member continue from what `dump` returned."""


class LearnerMembers:
    """One learner for each member."""

    remembers = True

    def __init__(self, start: Callable[[], Learner]) -> None:
        self._start = start
        self._members = [start()]
        self.features, self.outputs = self._members[0].features, self._members[0].outputs

    def grow(self, count: int) -> None:
        while len(self._members) < count:
            self._members.append(self._start())

    def clear(self, member: int) -> None:
        self._members[member] = self._start()

    def seen(self, which: Which) -> Which:
        return np.fromiter((self._members[i].seen for i in which.tolist()), np.int64, len(which))

    def learn(self, which: Which, X: Array, Y: Array, threads: int) -> None:
        for member, rows in _by_member(which):
            self._members[member].learn(X[rows], Y[rows])

    def run(self, which: Which, X: Array, Y: Array, threads: int) -> tuple[Predictions, NDArray[np.int64]]:
        parts, order, sizes = [], [], np.empty(len(X), dtype=np.int64)
        for member, rows in _by_member(which):
            said, sizes[rows] = self._members[member].run(X[rows], Y[rows])
            parts.append(said)
            order.append(rows)
        return in_order(parts, order), sizes

    def predict(self, which: Which, X: Array, threads: int) -> Predictions:
        return self._each(which, lambda learner, rows: learner.predict(X[rows]))

    def skip(self, which: Which, X: Array, threads: int) -> Predictions:
        return self._each(which, lambda learner, rows: learner.skip(X[rows]))

    def _each(self, which: Which, say: Callable[[Learner, Which], Predictions]) -> Predictions:
        groups = list(_by_member(which))
        return in_order([say(self._members[member], rows) for member, rows in groups], [rows for _, rows in groups])

    def pack(self, which: Which, single: bool, compact: bool = False) -> list[bytes]:
        learners = [self._members[i] for i in which.tolist()]
        contents = [learner.dump_compact() if compact else learner.dump() for learner in learners]
        return [packed(self.features, self.outputs, single, learned) for learned in contents]

    def unpack(self, which: Which, states: list[bytes], single: bool) -> None:
        mine = {"features": self.features, "outputs": self.outputs, "single": single}
        for i, state in zip(which.tolist(), states, strict=True):
            contents = unpacked(state)
            if odd := [name for name in mine if contents[name] != mine[name]]:
                raise ModelFileError(f"the state has {odd[0]} {contents[odd[0]]}, and the model {mine[odd[0]]}.")
            with as_model_file_error():
                self.load(i, contents["learned"])

    def until_tuning(self, member: int | None) -> float:
        """Return how many more rows a member learns up to its next tuning, or one that has learned nothing."""
        learner = self._start() if member is None else self._members[member]
        return getattr(learner, "until_tuning", np.inf)

    def dump(self, member: int) -> Contents:
        return self._members[member].dump()

    def load(self, member: int, contents: Contents) -> None:
        fresh = self._start()
        fresh.load(contents)
        self._members[member] = fresh


class NativeMembers:
    """States of one recipe in one compiled object, in slabs of memory, on several threads."""

    remembers = False

    def __init__(self, recipe: Recipe, features: int, outputs: int, dtype: str) -> None:
        from onlinegp.engine import _native
        from onlinegp.engine.native import is_single
        from onlinegp.engine.native import packed as packed_recipe

        self.recipe, self.features, self.outputs = recipe, features, outputs
        self._fields = StateFields(recipe, features, outputs)
        self._core = _native.Members(packed_recipe(recipe, features), features, outputs, is_single(recipe, dtype))
        self._core.grow(1)
        self._nothing = self._core.save(0)
        self._begun: Which = np.zeros(1, dtype=np.int64)  # one for each member that has learned a row

    def grow(self, count: int) -> None:
        self._core.grow(count)
        self._begun = np.append(self._begun, np.zeros(max(0, count - len(self._begun)), dtype=np.int64))

    def clear(self, member: int) -> None:
        self._core.load(member, self._nothing)
        self._begun[member] = 0

    def seen(self, which: Which) -> Which:
        return self._begun[which]

    def learn(self, which: Which, X: Array, Y: Array, threads: int) -> None:
        self._begun[which] = 1
        self._core.learn(which, X, Y, threads)

    def run(self, which: Which, X: Array, Y: Array, threads: int) -> tuple[Predictions, NDArray[np.int64]]:
        self._begun[which] = 1
        mean, variance, size = self._core.run(which, X, Y, threads)
        return gaussian(mean, variance), size

    def predict(self, which: Which, X: Array, threads: int) -> Predictions:
        return gaussian(*self._core.predict(which, X, threads))

    skip = predict

    def pack(self, which: Which, single: bool, compact: bool = False) -> list[bytes]:
        try:
            return self._core.pack(which, single, compact)
        except ValueError as error:
            raise ModelFileError(f"{error} The model has broken down. Start from scratch.") from None

    def unpack(self, which: Which, states: list[bytes], single: bool) -> None:
        try:
            self._core.unpack(which, states, single)
        except ValueError as error:
            raise ModelFileError(str(error)) from None
        self._begun[which] = [has_learned(state) for state in states]

    def dump(self, member: int) -> Contents:
        return self._core.save(member)

    def load(self, member: int, contents: Contents) -> None:
        self._core.load(member, check_contents(self._fields, contents))
        self._begun[member] = contents["seen"] > 0


def known_before(members: Members, which: Which, delay: int) -> NDArray[np.bool_]:
    """Return for each event, before any is learned, whether its member will have seen at least `delay` rows by then."""
    known = members.seen(which) >= delay
    early = np.flatnonzero(~known)
    for _, rows in _by_member(which[early]) if len(early) else ():
        known[early[rows]] = members.seen(which[early[rows]]) + np.arange(len(rows)) >= delay
    return known


def _by_member(which: Which) -> Any:
    """Yield each member with the indices of its events, in order."""
    order = np.argsort(which, kind="stable")
    members, starts = np.unique(which[order], return_index=True)
    yield from zip(members.tolist(), np.split(order, starts[1:]), strict=True)


def in_order(parts: list[Predictions], order: list[Any]) -> Predictions:
    """Return the predictions of parts, which have these rows each, in the order of the rows."""
    if len(parts) == 1:  # all of them
        return parts[0]
    back = np.argsort(np.concatenate(order), kind="stable")
    return Predictions.joined(parts).rows(back)
