"""The members of a fleet: learners by number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.engine import by_engine
from onlinegp.engine.compiled import compiled
from onlinegp.engine.recipe import compiled_recipe, is_single
from onlinegp.files.container import ModelFileError, as_model_file_error
from onlinegp.learner import Learner, skip
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.recipe import RecipeRegressor
from onlinegp.models.undo import MIN_FLEET_DUMP_ROWS, undoable
from onlinegp.native_module import native
from onlinegp.predictions import Gaussian, Predictions
from onlinegp.recipes.compact import StateFields, has_compact, recipe_schemas
from onlinegp.recipes.update import Recipe
from onlinegp.state import Contents, Schemas, check_contents, dump, learner_from_bytes, learner_to_bytes, load

Which = NDArray[np.int64]


class Members(Protocol):
    """Base class: numbered learners. Event i belongs to member which[i]. Members learn their events in order.

    `remembers` says whether `skip` changes a member. `largest` is the largest |y| that each member has learned; the
    fleet updates it, and records contain it. `schemas` are the schemas of full and compact records.
    """

    remembers: bool
    largest: Array
    schemas: Schemas

    @property
    def features(self) -> int: ...
    @property
    def outputs(self) -> int: ...

    def grow(self, count: int) -> None:
        """Add new members until there are at least `count`."""

    def clear(self, member: int) -> None:
        """Start a member from scratch."""

    def seen(self, which: Which) -> Which:
        """Return the number of learned rows of these members. Compiled recipes return 1 for any positive number."""
        ...

    def learn(self, which: Which, X: Array, Y: Array, threads: int) -> None:
        """Learn the events."""

    def run(self, which: Which, X: Array, Y: Array, threads: int) -> tuple[Predictions, NDArray[np.int64]]:
        """Predict each event, then learn it. Return the predictions, and the size of the member after each event."""
        ...

    def predict(self, which: Which, X: Array, threads: int) -> Predictions:
        """Return the predictions of member which[i] for row i."""
        ...

    def skip(self, which: Which, X: Array, threads: int) -> Predictions:
        """Predict events without learning them, and continue after them. For most members this is `predict`."""
        ...

    def learned(self, count: int) -> NDArray[np.bool_]:
        """Return which events the last call learned, a call of `learn` or `run` with so many events since `forget`."""
        ...

    def forget(self) -> None:
        """Forget which events the last call learned. In a signal handler during a call, it raises an error."""

    def to_bytes(self, which: Which, single: bool, compact: bool = False) -> list[bytes]:
        """Return the records of these members. `single` says whether y is (n,).

        With `compact`, arrays that can be computed again are left out, and S is rounded: see
        `onlinegp.recipes.compact`.
        """
        ...

    def from_bytes(self, which: Which, records: list[bytes], single: bool) -> None:
        """Load the records of these members. After a ModelFileError, some members may have changed."""

    def dump(self, member: int) -> Contents:
        """Return the contents of a member, by name."""
        ...

    def load(self, member: int, contents: Contents, largest: float) -> None:
        """Load contents of `dump`, and the largest |y|."""


def start_members(model: OnlineRegressor, features: int, outputs: int) -> Members:
    """Return the members of a fleet of copies of `model`, before any data."""

    def start() -> Learner:
        return compiled(model.start(features, outputs))

    def one_by_one() -> Members:
        return LearnerMembers(lambda: undoable(start(), start, None, MIN_FLEET_DUMP_ROWS))

    if not isinstance(model, RecipeRegressor):
        return one_by_one()
    return by_engine(model.engine, lambda: NativeMembers(model.recipe(), features, outputs, model.dtype), one_by_one)


class LearnerMembers:
    """One learner per member. Members that are compiled trees of wrappers and models run in a single compiled call.

    If the model can be compiled, a new member is a compiled tree from its first row, without a Python object: a single
    learner reads all trees.
    """

    remembers = True

    def __init__(self, start: Callable[[], Learner]) -> None:
        self._start = start
        self._reader = start()
        self.features, self.outputs = self._reader.features, self._reader.outputs
        self._members: list[Learner | None] = [None]  # None: has learned nothing, or is only a compiled tree
        self._trees: Any = None  # created with the first compiled tree
        self._is_tree = np.zeros(1, dtype=bool)
        self._kinds: Any = None  # kinds of the predictions of trees
        self._starts_trees: bool | None = None  # None: not known yet
        self._events: tuple[int, Which, list[Any]] = (0, np.zeros(0, dtype=np.int64), [])  # of the last call
        self.largest = np.zeros(1)
        self.schemas = Schemas(self._reader)

    def grow(self, count: int) -> None:
        self._members += [None] * (count - len(self._members))
        self._is_tree, self.largest = _longer(self._is_tree, count), _longer(self.largest, count)

    def clear(self, member: int) -> None:
        self._replace(member, None)
        self.largest[member] = 0.0

    def seen(self, which: Which) -> Which:
        seen = np.full(len(which), -1) if self._trees is None else self._trees.seen(which)
        for i in np.flatnonzero(seen < 0).tolist():
            learner = self._members[which[i]]
            seen[i] = 0 if learner is None else learner.seen
        return seen

    def learn(self, which: Which, X: Array, Y: Array, threads: int) -> None:
        self._answers("learn", which, (X, Y), threads)

    def run(self, which: Which, X: Array, Y: Array, threads: int) -> tuple[Predictions, NDArray[np.int64]]:
        parts, order, sizes = [], [], np.empty(len(X), dtype=np.int64)
        for rows, answer in self._answers("run", which, (X, Y), threads):
            *predictions, sizes[rows] = answer
            parts.append(self._predictions(predictions))
            order.append(rows)
        return in_order(parts, order), sizes

    def predict(self, which: Which, X: Array, threads: int) -> Predictions:
        answers = self._answers("predict", which, (X,), threads)
        return in_order([self._predictions(answer) for _, answer in answers], [rows for rows, _ in answers])

    def skip(self, which: Which, X: Array, threads: int) -> Predictions:
        for member in np.unique(which).tolist():
            self._replace(member, self._learner(member, self._start))
        answers = self._answers("skip", which, (X,), threads)
        return in_order([answer for _, answer in answers], [rows for rows, _ in answers])

    def _answers(self, name: str, which: Which, arrays: tuple[Array, ...], threads: int) -> list[tuple[Which, Any]]:
        """Call a method on the members of all events. Return pairs of rows and results.

        One pair holds the rows of all trees; each other member has its own pair.
        """
        trees = np.zeros(len(which), dtype=bool) if name == "skip" else self._find_trees(which)
        others, answers = np.flatnonzero(~trees), []
        _, of_trees, calls = self._events = len(which), np.flatnonzero(trees), []
        for member, some in _by_member(which[others]) if len(others) else ():
            rows, learner = others[some], self._learner(member, self._start)
            calls.append((rows, learner, learner.seen))
            mine = tuple(array[rows] for array in arrays)
            answers.append((rows, skip(learner, *mine) if name == "skip" else getattr(learner, name)(*mine)))
        if len(rows := of_trees):
            mine = arrays if len(rows) == len(which) else tuple(array[rows] for array in arrays)
            answers.append((rows, getattr(self._trees, name)(which[rows], *map(_contiguous, mine), threads)))
        return answers

    def learned(self, count: int) -> NDArray[np.bool_]:
        events, of_trees, calls = self._events
        learned = np.zeros(count, dtype=bool)
        if events == count:
            for rows, learner, before in calls:
                learned[rows[: learner.seen - before]] = True
            if len(of_trees):
                learned[of_trees] = self._trees.learned(len(of_trees))
        return learned

    def forget(self) -> None:
        if self._trees is not None:
            self._trees.forget()
        self._events = (0, np.zeros(0, dtype=np.int64), [])

    def _find_trees(self, which: Which) -> NDArray[np.bool_]:
        """Convert members that can now be compiled trees. Return which events belong to trees."""
        trees = self._is_tree[which]
        if not trees.all():
            for member in np.unique(which[~trees]).tolist():
                self._is_tree[member] = self._becomes_tree(member)
            trees = self._is_tree[which]
        return trees

    def _becomes_tree(self, member: int) -> bool:
        learner = self._members[member]
        if learner is None:
            if self._starts_trees is None:
                self._starts_trees = self._can_start_trees()
            if self._starts_trees and self._trees.start(member):
                return True
            learner = self._members[member] = self._start()
        tree = getattr(learner, "tree", lambda: None)()
        if tree is None:
            return False
        if self._trees is None:
            self._trees, self._kinds = native().Trees(self.features, self.outputs), tree.kinds
        return tree.kinds == self._kinds and self._trees.put(member, tree.core, tree.plan, tree.before)

    def _can_start_trees(self) -> bool:
        """Whether new members are compiled trees. If so, pass the initial tree to the compiled fleet."""
        tree = getattr(self._reader, "tree", lambda: None)()
        if tree is None or (plan := self._reader.own_plan()) is None:  # type: ignore[attr-defined]
            return False
        if self._trees is None:
            self._trees, self._kinds = native().Trees(self.features, self.outputs), tree.kinds
        self._trees.set_new(plan, tree.core.snapshot())
        return True

    def _learner(self, member: int, start: Callable[[], Learner]) -> Learner:
        """Return the learner of a member. For a compiled tree without a learner, `start` creates it."""
        learner = self._members[member]
        core = self._trees.tree(member) if learner is None and self._trees is not None else None
        if core is not None:
            learner = start()
            learner.continue_from(core)  # type: ignore[attr-defined]
        return self._start() if learner is None else learner

    def _replace(self, member: int, learner: Learner | None) -> None:
        """Replace the learner of a member. With None, the member starts from scratch."""
        self._is_tree[member] = False
        if self._trees is not None:
            self._trees.put(member, None, None, 0)
        self._members[member] = learner

    def _predictions(self, answer: Any) -> Predictions:
        """Convert the arrays that trees return to predictions."""
        if isinstance(answer, Predictions):
            return answer
        return answer[0] if len(answer) == 1 else self._kinds.predictions(*answer)

    def to_bytes(self, which: Which, single: bool, compact: bool = False) -> list[bytes]:
        about, records = {"features": self.features, "outputs": self.outputs, "single": single}, []
        for i in which.tolist():
            learned = dump(self._learner(i, lambda: self._reader), compact=compact)
            contents = about | {"largest": self.largest[i], "learned": learned}
            records.append(learner_to_bytes(self.schemas[compact], contents))
        return records

    def from_bytes(self, which: Which, records: list[bytes], single: bool) -> None:
        mine = {"features": self.features, "outputs": self.outputs, "single": single}
        for i, record in zip(which.tolist(), records, strict=True):
            contents = learner_from_bytes(self.schemas.of(record), record)
            if odd := [name for name in mine if contents[name] != mine[name]]:
                raise ModelFileError(f"the state has {odd[0]} {contents[odd[0]]}, but the model has {mine[odd[0]]}.")
            with as_model_file_error():
                self.load(i, contents["learned"], contents["largest"])

    def until_tuning(self, member: int | None) -> float:
        """Return the number of rows until a member, or a new member if `member` is None, is tuned again."""
        learner = None if member is None else self._members[member]
        return getattr(learner or self._reader, "until_tuning", np.inf)

    def dump(self, member: int) -> Contents:
        return dump(self._learner(member, lambda: self._reader))

    def load(self, member: int, contents: Contents, largest: float) -> None:
        fresh = self._start()
        load(fresh, contents)
        self._replace(member, fresh)
        self.largest[member] = largest


class NativeMembers:
    """Members that are states of a recipe, in one compiled object that runs on several threads."""

    remembers = False

    def __init__(self, recipe: Recipe, features: int, outputs: int, dtype: str) -> None:
        self.recipe, self.features, self.outputs = recipe, features, outputs
        self._fields = StateFields(recipe, features, outputs)
        self._core = native().Members(compiled_recipe(recipe, features), features, outputs, is_single(recipe, dtype))
        self._core.grow(1)
        self._nothing = self._core.save(0)
        self._begun: Which = np.zeros(1, dtype=np.int64)  # 1 for each member that has learned a row
        self.largest = np.zeros(1)
        self.schemas = recipe_schemas(recipe.tracks, has_compact(recipe), features, outputs)

    def grow(self, count: int) -> None:
        self._core.grow(count)
        self._begun, self.largest = _longer(self._begun, count), _longer(self.largest, count)

    def clear(self, member: int) -> None:
        self._core.load(member, self._nothing)
        self._begun[member], self.largest[member] = 0, 0.0

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

    def learned(self, count: int) -> NDArray[np.bool_]:
        learned: NDArray[np.bool_] = self._core.learned(count)
        return learned

    def forget(self) -> None:
        self._core.forget()

    def to_bytes(self, which: Which, single: bool, compact: bool = False) -> list[bytes]:
        try:
            return self._core.to_bytes(which, self.largest[which], single, self.schemas[compact].checksum, compact)
        except ValueError as error:
            raise ModelFileError(f"{error} The model has diverged. Start from scratch.") from None

    def from_bytes(self, which: Which, records: list[bytes], single: bool) -> None:
        try:
            full, compact = self.schemas[False].checksum, self.schemas[True].checksum
            seen, largest = self._core.from_bytes(which, records, single, full, compact)
        except ValueError as error:
            raise ModelFileError(str(error)) from None
        self._begun[which], self.largest[which] = seen > 0, largest

    def dump(self, member: int) -> Contents:
        return self._core.save(member)

    def load(self, member: int, contents: Contents, largest: float) -> None:
        self._core.load(member, check_contents(self._fields, contents))
        self._begun[member], self.largest[member] = contents["seen"] > 0, largest


def gaussian(mean: Array, variance: Array) -> Gaussian:
    """Return normal distributions with means (n, p) and with variances (n,) that are equal for all outputs."""
    return Gaussian(mean, np.repeat(np.sqrt(variance)[:, None], mean.shape[1], axis=1))


def known_before(members: Members, which: Which, delay: int) -> NDArray[np.bool_]:
    """Return for each event whether its member has learned at least `delay` rows when it predicts the event."""
    known = members.seen(which) >= delay
    early = np.flatnonzero(~known)
    for _, rows in _by_member(which[early]) if len(early) else ():
        known[early[rows]] = members.seen(which[early[rows]]) + np.arange(len(rows)) >= delay
    return known


def _by_member(which: Which) -> Any:
    """Yield each member and the indices of its events, in order."""
    order = np.argsort(which, kind="stable")
    members, starts = np.unique(which[order], return_index=True)
    yield from zip(members.tolist(), np.split(order, starts[1:]), strict=True)


def _longer(values: NDArray[Any], count: int) -> NDArray[Any]:
    """Append zeros to reach the length `count`."""
    return np.append(values, np.zeros(max(0, count - len(values)), dtype=values.dtype))


def _contiguous(rows: Array) -> Array:
    return np.ascontiguousarray(rows, dtype=np.float64)


def in_order(parts: list[Predictions], order: list[Any]) -> Predictions:
    """Join the predictions of parts, in the order of the rows."""
    if len(parts) == 1:  # the only part has all rows
        return parts[0]
    back = np.argsort(np.concatenate(order), kind="stable")
    return Predictions.joined(parts).rows(back)
