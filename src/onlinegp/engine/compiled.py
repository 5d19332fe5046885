"""Compiled learners: leaves (single learners), and trees (learners that contain other learners)."""

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
    """Return the compiled twin of a learner that contains other learners. Without a twin, compile the inner learners.

    A leaf is returned unchanged, because its model has chosen the engine; see `leaf`.
    """
    if getattr(learner, "holds", None) is None:
        return learner
    if plan_of(learner) is not None:
        return CompiledTree(learner)
    learner.hold(compiled)  # type: ignore[attr-defined]
    return learner


def leaf(engine: str, learner: Any) -> Any:
    """Return the learner for an engine: a Python learner with a `leaf_plan`, or its compiled twin."""
    return by_engine(engine, lambda: Compiled(learner), lambda: learner)


def readable(learner: Any) -> Any:
    """Return the Python form of a compiled learner, with everything that was learned. Other learners are unchanged."""
    return learner.readable() if isinstance(learner, Compiled) else learner


def snapshot(learner: Any) -> Array:
    """Return what a learner contains, as numbers in the order that its compiled twin reads."""
    one = learner if isinstance(learner, Compiled) else CompiledTree(learner)
    return one.snapshot()


def outer(learner: Any) -> Any:
    """Return the Python learners of a compiled tree, around the same leaves. A leaf is returned unchanged."""
    return learner.reference if isinstance(learner, CompiledTree) else learner


@contextmanager
def changing(learner: Any) -> Iterator[Any]:
    """Yield the Python learners of a compiled tree. Its twin continues from what was changed in them.

    Other learners are yielded unchanged.
    """
    if isinstance(learner, CompiledTree):
        with learner.changing() as inside:
            yield inside
    else:
        yield learner


class CompiledTree(Compiled):
    """A tree of Python learners and its compiled twin, which works on the same leaves.

    The Python learners do rare work, such as collecting the first lags. The twin processes all other rows. This depends
    only on the rows, so results do not depend on how rows are divided into calls.
    """

    def __init__(self, learner: Learner) -> None:
        super().__init__(learner)
        self._learner = learner
        self._filling = ModelLock()
        self._begin()

    def _begin(self) -> None:
        """Continue from the Python learners. The twin is created when needed, because it may take memory."""
        self._use(None)
        self.atomic = not any(map(steady_after, nodes(self._learner)))

    def _start(self) -> Any:
        """Create the compiled twin, which continues from the Python learners."""
        plan = plan_of(self._learner)
        assert plan is not None
        core = native().Tree(plan)
        core.load({path: np.array(array, dtype=np.float64) for path, array in _arrays(plan)})
        self._plan, self._before, self._counted = plan, self._learner.seen, _counts(plan)
        self._kinds = Kinds(tuple(core.degrees), any(one.kind == "conformal" for _, one in plan.walk()))
        self._filled = 0  # number of rows of the twin that are copied to the Python learners
        self._use(core)
        return core

    def plan(self) -> Plan:
        raise TypeError("a compiled tree cannot be part of another compiled tree.")

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
        """The Python learners, with everything that was learned."""
        core = self._core
        if core is not None:
            self._refresh(core)
        return self._learner

    @reference.setter
    def reference(self, learner: Any) -> None:
        self._learner = learner

    def readable(self) -> Any:
        """Return the Python learners, with everything that was learned."""
        return self.reference

    def _refresh(self, core: Any) -> None:
        """Copy what the twin has learned to the Python learners, unless another thread has done this."""
        contents, rows = core.dump()
        with self._filling:
            if core is self._core and rows > self._filled and self._plan is not None:
                self._fill(_arrays(self._plan), contents, [(one, before + rows) for one, before in self._counted])
                self._filled = rows

    def _fill(self, arrays: Iterable[tuple[str, Array]], contents: Contents, counts: Iterable[tuple[Any, int]]) -> None:
        """Set the arrays and the numbers of rows of the Python learners to the contents of the twin."""
        for path, array in arrays:
            if array.size != contents[path].size:  # for example, the number of stored rows has changed
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
        if name in ("until_tuning", "together"):  # attributes of the inner learner
            return getattr(self._learner, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _attend(self) -> None:
        """Let the Python learners do the work that is due before the next row, if any."""
        core = self._core
        if core is None or not core.due:
            return
        with self.changing() as learner:
            for one in nodes(learner):
                if attend := getattr(one, "attend", None):
                    attend()

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
        with self.changing() as learner:
            return skip(learner, X, Y)

    def begin_series(self) -> None:
        self._attend()
        with self.changing() as learner:
            begin_series(learner)

    def dump(self) -> Contents:
        self._attend()
        with self._resting() as learner:
            return learner.dump()

    def dump_compact(self) -> Contents:
        self._attend()
        with self._resting() as learner:
            return learner.dump_compact()

    def load(self, contents: Contents) -> None:
        with self.changing() as learner:
            learner.load(contents)

    def assign(self, values: Values) -> None:
        with self.changing() as learner:
            learner.assign(values)

    @contextmanager
    def changing(self) -> Iterator[Any]:
        """Yield the Python learners. The twin continues from what was changed in them."""
        with self._resting() as learner:
            yield learner
            self._begin()

    @contextmanager
    def _resting(self) -> Iterator[Any]:
        """Yield the Python learners. Meanwhile no thread can learn single rows without the lock of the model."""
        core = self._core
        if core is None:
            yield self._learner
            return
        before, core.resting = core.resting, True
        try:
            yield self.reference
        except BaseException:
            self._filled = -1  # the Python learners may be inconsistent
            raise
        finally:
            if core is self._core:
                core.resting = before

    def _next(self, rows: int) -> int:
        """Return the number of rows, at least one, that Python learns before the compiled twin can continue."""
        return min(rows, *filter(None, map(steady_after, nodes(self._learner))))


def _arrays(plan: Plan) -> list[tuple[str, Array]]:
    """Return the arrays of all Python learners with their paths."""
    return [(f"{path}{name}", array) for path, one in plan.walk() for name, array in one.fields.items()]


def _counts(plan: Plan) -> list[tuple[Any, int]]:
    """Return the Python learners that count rows, and their counts."""
    return [(one.learner, one.learner.seen) for _, one in plan.walk() if "seen" in vars(one.learner)]


def _with_leaves(plan: Plan) -> Plan:
    """Return a plan that contains the plans of its leaves instead of shared leaves."""
    if plan.kind == "leaf":
        own: Plan = plan.learner.own_plan()
        return own
    return replace(plan, inside={name: _with_leaves(one) for name, one in plan.inside.items()})


def nodes(learner: Any) -> list[Any]:
    """Return a Python learner and all inner learners."""
    inside = getattr(learner, "holds", None)
    return [learner, *(node for one in inside() for node in nodes(one))] if inside is not None else [learner]


def steady_after(learner: Any) -> int:
    """Return the number of rows until a learner may have no more rare work; zero if it has none now."""
    after = getattr(learner, "steady_after", None)
    return 0 if after is None else after()
