"""Compiled learners: the adapter between readable ones and their compiled twins, leaves and trees of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from math import inf
from typing import Any, NamedTuple

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine import by_engine, thread_count
from onlinegp.engine.plan import Plan, plan_of
from onlinegp.learner import Learner, Outcome, Sizes, begin_series, skip
from onlinegp.locks import ModelLock
from onlinegp.predictions import Components, Gaussian, Predictions
from onlinegp.predictions.components import interval_quantiles
from onlinegp.state import Contents, Fields, Values, load_contents


def compiled(learner: Learner) -> Learner:
    """Return a learner around others with a compiled twin; if it has none, with compiled ones inside.

    A leaf stays as it is: the model that starts it knows its engine. See `leaf`.
    """
    if getattr(learner, "holds", None) is None:
        return learner
    if plan_of(learner) is not None:
        return CompiledTree(learner)
    learner.hold(compiled)  # type: ignore[attr-defined]
    return learner


def leaf(engine: str, learner: Any) -> Any:
    """Return a readable learner that has a `leaf_plan`, or its compiled twin, by the engine's name."""
    return by_engine(engine, lambda: Compiled(learner), lambda: learner)


def run_once(plan: Plan, contents: Contents, X: Array, Y: Array) -> tuple[Array, Array]:
    """Predict rows and learn them with a compiled leaf of one output that is then dropped: means and deviations."""
    from onlinegp.engine import _native

    core = _native.Tree(plan)
    core.load(contents)
    _, means, scales, _, _ = core.run(_rows(X), _rows(Y))
    return means[:, 0, 0], scales[:, 0, 0]


def readable(learner: Any) -> Any:
    """Return the readable learner of a compiled one, with all that was learned; any other learner as it is."""
    return learner.readable() if isinstance(learner, Compiled) else learner


def outer(learner: Any) -> Any:
    """Return the readable learners of a compiled tree, around the same leaves; a leaf, compiled or not, as it is."""
    return learner.reference if isinstance(learner, CompiledTree) else learner


class Kinds(NamedTuple):
    """What the predictions of a compiled tree are: the degrees of freedom of their components, and if they stretch."""

    degrees: tuple[float, ...]
    stretches: bool

    def predictions(self, weights: Array, means: Array, scales: Array, stretch: Array) -> Predictions:
        """Return predictions from the arrays of a compiled tree."""
        if self.degrees == (inf,) and not self.stretches:
            return Gaussian(means[..., 0], scales[..., 0])
        return Components(weights, means, scales, self.degrees, stretch if self.stretches else 1.0)


class Tree(NamedTuple):
    """A compiled tree for a fleet. Its plan keeps its leaves alive; `before` rows were learned before it was made."""

    core: Any
    plan: Plan | None
    before: int
    kinds: Kinds


class Compiled:
    """A compiled leaf, with the fields of its readable twin: what one of them dumped, the other can load.

    Attributes
    ----------
    reference : the readable learner, whose fields say what is stored; it learns nothing itself
    atomic : whether a call that is interrupted leaves all layers with the same rows, as those of compiled learners do
    """

    atomic: bool = True

    def __init__(self, learner: Any) -> None:
        self.reference, self.features, self.outputs = learner, learner.features, learner.outputs
        if hasattr(learner, "kernels"):
            _ = learner.leaf_plan().programs  # raises an UnsupportedError for what only the Python engine runs
        # The compiled learner is made when it is needed, from what was loaded: a file that only says that it has many
        # features takes no memory. Whoever does not hold the model's lock reads `_loaded` first, which goes later.
        self._loaded: Any = None
        self._core: Any = None
        self._kinds = Kinds((inf,), False)
        self._plan: Plan | None = None

    def _working(self) -> Any:
        """Return the compiled learner."""
        return self._start() if self._core is None else self._core

    def _start(self) -> Any:
        """Make a compiled learner that goes on from what was loaded, or has learned nothing."""
        from onlinegp.engine import _native

        twin = self._uncompiled()
        core = _native.Tree(twin.leaf_plan())
        core.load(twin.dump())
        self._before = twin.seen
        self._use(core)
        self._loaded = None
        return core

    def _uncompiled(self) -> Any:
        """Return a readable learner as the compiled one starts; it may draw or allocate what is not needed later."""
        return deepcopy(self.reference) if self._loaded is None else self._loaded

    def _use(self, core: Any) -> None:
        """Go on with another compiled learner, or none."""
        vars(self).pop("learn_one", None)
        vars(self).pop("predict_one", None)
        if self._core is not None:
            self._core.resting = True  # for a thread that still has its learn_one
        self._core = core
        if core is not None:
            vars(self).update(learn_one=core.learn_one, predict_one=core.predict_one)  # without a detour

    @property
    def fields(self) -> Fields:
        fields: Fields = self.reference.fields
        return fields

    def plan(self) -> Plan:
        return Plan("leaf", self, model=self._working)

    def tree(self) -> Tree | None:
        """Return what a fleet works on, if the compiled learner goes on from here."""
        return Tree(self._working(), self._plan, self._before, self._kinds) if self.atomic else None

    @property
    def size(self) -> int:
        loaded, core = self._loaded, self._core
        return (loaded or self.reference).size if core is None else core.size

    @property
    def seen(self) -> int:
        loaded, core = self._loaded, self._core
        return (loaded or self.reference).seen if core is None else core.seen

    def learn(self, X: Array, Y: Array) -> None:
        self._working().learn(_rows(X), _rows(Y))

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        core = self._working()
        before = core.rows
        *arrays, sizes = core.run(_rows(X), _rows(Y))
        learned = core.rows - before  # up to a row where something is due
        return self._kinds.predictions(*(one[:learned] for one in arrays)), sizes[:learned]

    def predict(self, X: Array) -> Predictions:
        arrays = self._working().predict(_rows(X), thread_count())
        return self._kinds.predictions(*arrays)

    # A ResidualGP also gives what a LocalGP on its rows predicts

    def run_both(self, X: Array, Y: Array) -> tuple[Gaussian, Gaussian, Sizes]:
        mean, std, local_mean, local_std, sizes = self._working().run_both(_rows(X), _rows(Y))
        return Gaussian(mean[..., 0], std[..., 0]), Gaussian(local_mean, local_std), sizes

    def predict_both(self, X: Array) -> tuple[Gaussian, Gaussian]:
        mean, std, local_mean, local_std = self._working().predict_both(_rows(X), thread_count())
        return Gaussian(mean[..., 0], std[..., 0]), Gaussian(local_mean, local_std)

    # Threads come here without the model's lock: the compiled learner is there, or it is made in a call that has it

    def learn_one(self, x: object, y: object) -> int:
        core = self._core
        return Outcome.UNSUPPORTED if core is None else core.learn_one(x, y)

    def predict_one(self, x: object) -> tuple[float, float] | None:
        core = self._core
        return None if core is None else core.predict_one(x)

    def interval_one(self, x: object, level: float) -> tuple[float, float, float, float] | None:
        core = self._core
        return None if core is None else core.interval_one(x, level, interval_quantiles(self._kinds.degrees, level))

    def dump(self) -> Contents:
        core = self._core
        return self._uncompiled().dump() if core is None else core.dump()[0]

    def dump_compact(self) -> Contents:
        compact = getattr(self.reference, "compact_contents", None)
        return self.dump() if compact is None else compact(self.dump())

    def load(self, contents: Contents) -> None:
        load_contents(self, contents)

    def assign(self, values: Values) -> None:
        twin = deepcopy(self.reference)
        twin.assign(values)
        self._loaded = twin
        self._use(None)

    def readable(self) -> Any:
        """Return a readable learner with all that was learned, which is the caller's."""
        twin = deepcopy(self.reference)
        twin.load(self.dump())
        return twin

    def change(self, name: str, *arguments: Any) -> Any:
        """Let a method of the readable learner change what was learned; again, if a row was learned meanwhile."""
        core = self._working()
        while True:
            contents, rows = core.dump()
            twin = deepcopy(self.reference)
            twin.load(contents)
            answer = getattr(twin, name)(*arguments)
            if core.load(twin.dump(), rows):
                return answer


class CompiledTree(Compiled):
    """A readable tree of learners and its compiled twin, which works on the same leaves.

    The twin runs while the readable learners have nothing rare to do: they find scales from the first rows and collect
    the first lags themselves. When they do is decided by the rows alone, so that results do not depend on how rows are
    split into calls.
    """

    def __init__(self, learner: Learner) -> None:
        super().__init__(learner)
        self._learner = learner
        self._filling = ModelLock()
        self._begin()

    def _begin(self) -> None:
        """Go on from the readable learners. The twin is made when it is needed: it may take memory."""
        self._use(None)
        self.atomic = not any(steady_after(one, None) for one in nodes(self._learner))

    def _start(self) -> Any:
        """Make the compiled twin, which goes on from the readable learners."""
        from onlinegp.engine import _native

        plan = plan_of(self._learner)
        assert plan is not None
        core = _native.Tree(plan)
        arrays = [(f"{path}{name}", array) for path, one in plan.walk() for name, array in one.fields.items()]
        core.load({path: array.ravel() for path, array in arrays})
        self._plan, self._arrays, self._before = plan, arrays, self._learner.seen
        self._counting = [(one.learner, one.learner.seen) for _, one in plan.walk() if "seen" in vars(one.learner)]
        self._kinds = Kinds(tuple(core.degrees), any(one.kind == "conformal" for _, one in plan.walk()))
        self._filled = 0  # rows of the twin that the readable learners know of
        self._use(core)
        return core

    def plan(self) -> Plan:
        raise TypeError("a compiled tree cannot be part of another one.")

    def tree(self) -> Tree | None:
        return (
            None if any(getattr(one, "detector", None) is not None for one in nodes(self._learner)) else super().tree()
        )

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
        """Fill the readable learners with what the twin has learned; nothing if another thread filled in the same."""
        contents, rows = core.dump()
        with self._filling:
            if core is not self._core or rows <= self._filled:
                return
            for path, array in self._arrays:
                array[...] = contents[path].reshape(array.shape)
            for learner, before in self._counting:
                learner.seen = before + rows
            self._filled = rows

    @property
    def size(self) -> int:
        core = self._core
        return self._learner.size if core is None else core.size

    @property
    def seen(self) -> int:
        core = self._core
        return self._learner.seen if core is None else self._before + core.rows

    def __getattr__(self, name: str) -> Any:
        if name in ("until_tuning", "together"):  # of what is inside
            return getattr(self._learner, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _attend(self) -> None:
        """Let the readable learners do what is due before the next row, if anything is."""
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
            part = slice(done, done + self._next(Y[done:]))
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
            part = slice(done, done + self._next(Y[done:]))
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
        """Yield the readable learners for a while in which no thread learns rows one by one, past the model's lock."""
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

    def _next(self, Y: Array) -> int:
        """Return after how many of the rows the compiled twin may be able to go on; at least one."""
        inside = [steady_after(one, None) for one in nodes(self._learner)[1:]]
        waiting = [after for after in (steady_after(self._learner, Y), *inside) if after]
        return max(1, min(len(Y), *waiting))


def nodes(learner: Any) -> list[Any]:
    """Return a readable learner and all that are inside."""
    inside = getattr(learner, "holds", None)
    return [learner, *(node for one in inside() for node in nodes(one))] if inside is not None else [learner]


def steady_after(learner: Any, Y: Array | None) -> int:
    """Return after how many rows a learner may have nothing rare to do; zero if it has nothing now.

    Y are the next targets, None if they are not known.
    """
    after = getattr(learner, "steady_after", None)
    return 0 if after is None else after(Y)


def _rows(X: Array) -> Array:
    return np.ascontiguousarray(X, dtype=np.float64)
