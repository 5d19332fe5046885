"""Compiled learners: leaves, and trees of learners that contain others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine import by_engine
from onlinegp.engine.compiled_leaf import Compiled, Kinds, Tree
from onlinegp.engine.plan import Plan, plan_of
from onlinegp.learner import Learner, Sizes, begin_series, skip
from onlinegp.locks import ModelLock
from onlinegp.native_module import native
from onlinegp.predictions import Predictions
from onlinegp.state import Contents, Values


def compiled(learner: Learner) -> Learner:
    """Return the compiled twin of a learner that contains others; if it has none, compile the learners inside.

    A leaf is returned unchanged, because the model that starts it has chosen its engine; see `leaf`.
    """
    if getattr(learner, "holds", None) is None:
        return learner
    if plan_of(learner) is not None:
        return CompiledTree(learner)
    learner.hold(compiled)  # type: ignore[attr-defined]
    return learner


def leaf(engine: str, learner: Any) -> Any:
    """Return the learner that an engine runs: this readable learner with a `leaf_plan`, or its compiled twin."""
    return by_engine(engine, lambda: Compiled(learner), lambda: learner)


def readable(learner: Any) -> Any:
    """Return the readable learner of a compiled one, with all that was learned; other learners unchanged."""
    return learner.readable() if isinstance(learner, Compiled) else learner


def snapshot(learner: Any) -> Array:
    """Return the contents of a learner with a compiled twin as numbers, in the order of the twin."""
    one = learner if isinstance(learner, Compiled) else CompiledTree(learner)
    return one.snapshot()


def outer(learner: Any) -> Any:
    """Return the readable learners of a compiled tree, around the same leaves. A leaf is returned unchanged."""
    return learner.reference if isinstance(learner, CompiledTree) else learner


class CompiledTree(Compiled):
    """A readable tree of learners and its compiled twin, which works on the same leaves.

    The readable learners do rare work, such as collecting the first lags. The twin runs at all other rows. Only the
    rows decide which of them runs, so results do not depend on how rows are split into calls.
    """

    def __init__(self, learner: Learner) -> None:
        super().__init__(learner)
        self._learner = learner
        self._filling = ModelLock()
        self._begin()

    def _begin(self) -> None:
        """Continue from the readable learners. The twin is made when it is needed, because it may take memory."""
        self._use(None)
        self.atomic = not any(map(steady_after, nodes(self._learner)))

    def _start(self) -> Any:
        """Make the compiled twin, which continues from the readable learners."""
        plan = plan_of(self._learner)
        assert plan is not None
        core = native().Tree(plan)
        core.load({path: np.array(array, dtype=np.float64) for path, array in _arrays(plan)})
        self._plan, self._before, self._counted = plan, self._learner.seen, _counts(plan)
        self._kinds = Kinds(tuple(core.degrees), any(one.kind == "conformal" for _, one in plan.walk()))
        self._filled = 0  # rows of the twin that the readable learners have
        self._use(core)
        return core

    def plan(self) -> Plan:
        raise TypeError("a compiled tree cannot be part of another one.")

    def tree(self) -> Tree | None:
        return (
            None if any(getattr(one, "detector", None) is not None for one in nodes(self._learner)) else super().tree()
        )

    def own_plan(self) -> Plan | None:
        plan = plan_of(self._learner)
        return None if plan is None or any(one.kind == "shared rows" for _, one in plan.walk()) else _with_leaves(plan)

    def continue_from(self, core: Any) -> None:
        contents, rows = core.dump()
        plan = plan_of(self._learner)
        assert plan is not None
        self._fill(_arrays(plan), contents, [(learner, rows) for learner, _ in _counts(plan)])
        for path, one in plan.walk():
            if one.core is not None:
                one.core.load({name[len(path) :]: contents[name] for name in contents if name.startswith(path)})
        self._begin()

    @property
    def reference(self) -> Any:
        """The readable learners, with all that was learned."""
        core = self._core
        if core is not None:
            self._refresh(core)
        return self._learner

    @reference.setter
    def reference(self, learner: Any) -> None:
        self._learner = learner

    def readable(self) -> Any:
        """Return the readable learners, with all that was learned."""
        return self.reference

    def _refresh(self, core: Any) -> None:
        """Copy what the twin has learned to the readable learners, unless another thread has done so."""
        contents, rows = core.dump()
        with self._filling:
            if core is self._core and rows > self._filled and self._plan is not None:
                self._fill(_arrays(self._plan), contents, [(one, before + rows) for one, before in self._counted])
                self._filled = rows

    def _fill(self, arrays: Iterable[tuple[str, Array]], contents: Contents, counts: Iterable[tuple[Any, int]]) -> None:
        """Set the arrays of the readable learners to the contents of a twin, and the rows that they have learned."""
        for path, array in arrays:
            if array.size != contents[path].size:  # the rows that are kept, for example
                array.resize(contents[path].shape, refcheck=False)
            array[...] = contents[path].reshape(array.shape)
        for learner, seen in counts:
            learner.seen = seen
        for one in nodes(self._learner):
            if counted := getattr(one, "counted", None):
                counted()

    @property
    def size(self) -> int:
        core = self._core
        return self._learner.size if core is None else core.size

    @property
    def seen(self) -> int:
        core = self._core
        return self._learner.seen if core is None else self._before + core.rows

    def __getattr__(self, name: str) -> Any:
        if name in ("until_tuning", "together"):  # of the inner learner
            return getattr(self._learner, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _attend(self) -> None:
        """Let the readable learners do the work that is due before the next row, if any."""
        core = self._core
        if core is None or not core.due:
            return
        with self._resting() as learner:
            for one in nodes(learner):
                if attend := getattr(one, "attend", None):
                    attend()
            self._begin()

    def learn(self, X: Array, Y: Array) -> None:
        done = 0
        self._attend()
        while not self.atomic and done < len(X):
            part = slice(done, done + self._next(len(X) - done))
            self._learner.learn(X[part], Y[part])
            self._begin()
            done = part.stop
        while done < len(X):
            before = self._working().rows
            super().learn(X[done:], Y[done:])
            done += self._working().rows - before
            self._attend()

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        done, parts, sizes = 0, [], []
        self._attend()
        while not self.atomic and done < len(X):
            part = slice(done, done + self._next(len(X) - done))
            predictions, size = self._learner.run(X[part], Y[part])
            self._begin()
            parts.append(predictions)
            sizes.append(size)
            done = part.stop
        while done < len(X) or not parts:
            predictions, size = super().run(X[done:], Y[done:])
            parts.append(predictions)
            sizes.append(size)
            done += len(size)
            self._attend()
        return (parts[0], sizes[0]) if len(parts) == 1 else (Predictions.joined(parts), np.concatenate(sizes))

    def predict(self, X: Array) -> Predictions:
        self._attend()
        return super().predict(X) if self.atomic else self._learner.predict(X)

    def skip(self, X: Array, Y: Array | None = None) -> Predictions:
        self._attend()
        with self._resting() as learner:
            predictions = skip(learner, X, Y)
            self._begin()
        return predictions

    def begin_series(self) -> None:
        self._attend()
        with self._resting() as learner:
            begin_series(learner)
            self._begin()

    def dump(self) -> Contents:
        self._attend()
        with self._resting() as learner:
            return learner.dump()

    def dump_compact(self) -> Contents:
        self._attend()
        with self._resting() as learner:
            return learner.dump_compact()

    def load(self, contents: Contents) -> None:
        with self._resting() as learner:
            learner.load(contents)
            self._begin()

    def assign(self, values: Values) -> None:
        with self._resting() as learner:
            learner.assign(values)
            self._begin()

    @contextmanager
    def _resting(self) -> Iterator[Any]:
        """Yield the readable learners while no thread can learn single rows without the model's lock."""
        core = self._core
        if core is None:
            yield self._learner
            return
        before, core.resting = core.resting, True
        try:
            yield self.reference
        except BaseException:
            self._filled = -1  # they may be half changed
            raise
        finally:
            if core is self._core:
                core.resting = before

    def _next(self, rows: int) -> int:
        """Return how many of the next rows to learn before the compiled twin may be able to continue, at least one."""
        return min(rows, *filter(None, map(steady_after, nodes(self._learner))))


def _arrays(plan: Plan) -> list[tuple[str, Array]]:
    """Return the arrays of all readable learners with their paths."""
    return [(f"{path}{name}", array) for path, one in plan.walk() for name, array in one.fields.items()]


def _counts(plan: Plan) -> list[tuple[Any, int]]:
    """Return the readable learners that count rows, each with its count."""
    return [(one.learner, one.learner.seen) for _, one in plan.walk() if "seen" in vars(one.learner)]


def _with_leaves(plan: Plan) -> Plan:
    """Return a plan with the plans of its leaves instead of shared leaves."""
    if plan.kind == "leaf":
        own: Plan = plan.learner.own_plan()
        return own
    return replace(plan, inside={name: _with_leaves(one) for name, one in plan.inside.items()})


def nodes(learner: Any) -> list[Any]:
    """Return a readable learner and all that are inside."""
    inside = getattr(learner, "holds", None)
    return [learner, *(node for one in inside() for node in nodes(one))] if inside is not None else [learner]


def steady_after(learner: Any) -> int:
    """Return the number of rows after which a learner may have no rare work; zero if it has none now."""
    after = getattr(learner, "steady_after", None)
    return 0 if after is None else after()
