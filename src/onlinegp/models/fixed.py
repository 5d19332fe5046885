"""Learners of fixed memory, compiled: the readable ones say what they must give, and check what was stored."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine import is_native, thread_count
from onlinegp.engine.learner import gaussian
from onlinegp.engine.plan import Plan
from onlinegp.learner import Contents, Learner, RowLearner, Sizes
from onlinegp.predictions import Gaussian
from onlinegp.state import Values

Arrays = dict[str, Array]
CompiledRule = tuple[str, dict[str, float], Array | None]  # its name, its constants, a table of more of them


class Readable(Learner, Protocol):
    """A readable learner that has a compiled twin: a few arrays, whatever the number of rows."""

    def compiled_rule(self) -> CompiledRule:
        """Return the rule of the compiled twin."""
        ...

    def arrays(self) -> Arrays:
        """Return all that it keeps beside the number of rows, as the twin keeps it."""
        ...

    def take(self, arrays: Arrays, seen: int) -> None:
        """Go on from arrays of the twin, and its number of rows."""

    def assign(self, values: Values) -> None:
        """Take the values of all fields."""


Twin = TypeVar("Twin", bound=Readable)


def fixed_learner(engine: str, make: Callable[[], Readable]) -> Learner:
    """Return the readable learner that `make` returns, or its compiled twin, by the engine's name."""
    return CompiledLearner(make) if is_native(engine) else make()


def readable(learner: Learner) -> Learner:
    """Return a readable learner, or a readable twin of a compiled one with all that was learned."""
    return learner.readable() if isinstance(learner, CompiledLearner) else learner


class CompiledLearner(RowLearner, Generic[Twin]):
    """A compiled rule, with the contents of its readable twin: what one of them stored, the other can load."""

    atomic = True

    def __init__(self, make: Callable[[], Twin]) -> None:
        self.reference = make()
        self._make, self.features, self.outputs = make, self.reference.features, self.reference.outputs
        self._use(make())

    def _use(self, twin: Twin) -> None:
        # The core is made when it is needed: a file that only says that it has many features takes no memory. Whoever
        # does not hold the model's lock reads `_start` first: it goes after the core has come.
        self._start: Twin | None = twin
        self._core: Any = None

    @property
    def seen(self) -> int:  # type: ignore[override]
        start, core = self._start, self._core
        return core.seen if start is None or core is not None else start.seen

    def learn(self, X: Array, Y: Array) -> None:
        self._working().learn(np.ascontiguousarray(X), np.ascontiguousarray(Y))

    def run(self, X: Array, Y: Array) -> tuple[Gaussian, Sizes]:
        mean, variance, size = self._working().run(np.ascontiguousarray(X), np.ascontiguousarray(Y))
        return gaussian(mean, variance), size

    def predict(self, X: Array) -> Gaussian:
        return gaussian(*self._working().predict(np.ascontiguousarray(X), thread_count()))

    def learn_one(self, x: object, y: object) -> bool | None:
        return None if self._core is None else self._core.learn_one(x, y)

    def predict_one(self, x: object) -> tuple[float, float] | None:
        quick = None if self._core is None else self._core.predict_one(x)
        return None if quick is None else (quick[0], sqrt(quick[1]))

    def plan(self) -> Plan:
        return Plan("leaf", self, model=self._working)

    def dump(self) -> Contents:
        return self.readable().dump()

    def assign(self, values: Values) -> None:
        twin = self._make()
        twin.assign(values)
        self._use(twin)

    def readable(self) -> Twin:
        """Return a readable twin with all that was learned."""
        start, core = self._start, self._core
        if start is not None and core is None:
            return start
        twin = self._make()
        twin.take(*core.save())
        return twin

    def change(self, change: Callable[[Twin], None]) -> None:
        """Let a readable twin change what was learned; again, if a row was learned meanwhile."""
        core, changed = self._working(), False
        while not changed:
            twin = self.readable()
            before = twin.seen
            change(twin)
            changed = core.load(twin.arrays(), twin.seen, before)

    def _working(self) -> Any:
        if self._core is None:
            assert self._start is not None
            self._core = _made(self._start)
            self._start = None
        return self._core


def _made(twin: Readable) -> Any:
    """Return the compiled twin of a readable learner, with all that it has learned."""
    from onlinegp.engine import _native

    kind, constants, table = twin.compiled_rule()
    rule = _native.FixedRule()
    rule.kind = getattr(_native.FixedKind, kind)
    for name, value in constants.items():
        setattr(rule, name, value)
    if table is not None:
        rule.set_table(table)
    core = _native.FixedFilter(rule, twin.features, twin.outputs)
    core.load(twin.arrays(), twin.seen)
    return core
