"""The learners of steps, compiled: the readable ones say what they must give, and check what was stored."""

from __future__ import annotations

from math import sqrt
from operator import attrgetter
from typing import Any, cast

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine import by_engine
from onlinegp.engine.learner import gaussian
from onlinegp.engine.plan import Plan
from onlinegp.learner import Contents, Learner, RowLearner, Sizes
from onlinegp.models.expansion import Expansion
from onlinegp.models.rowwise import ErrorScale, StepLearner
from onlinegp.predictions import Gaussian
from onlinegp.state import Values


def step_learner(engine: str, readable: StepLearner, kind: str, rule: dict[str, Any]) -> Learner:
    """Return a readable learner, or its compiled twin, by the engine's name; `kind` is that of the compiled rule."""
    return by_engine(engine, lambda: NativeStepLearner(readable, kind, rule), lambda: readable)


class NativeStepLearner(RowLearner):
    """A compiled rule, with the contents of its readable twin: what one of them stored, the other can load."""

    atomic = True

    def __init__(self, twin: StepLearner, kind: str, rule: dict[str, Any]) -> None:
        from onlinegp.engine import _native

        self.reference: Any = twin
        self.features, self.outputs = twin.features, twin.outputs
        self._fs: list[Expansion] = cast(Any, twin).fs
        self._core: Any = _native.StepFilter(_packed(self._fs, kind, rule), self.features, self.outputs)

    size = property(attrgetter("_core.size"), doc="The number of centers.")
    seen = property(attrgetter("_core.seen"), doc="The number of rows learned.")

    def learn(self, X: Array, Y: Array) -> None:
        self._core.learn(np.ascontiguousarray(X), np.ascontiguousarray(Y))

    def run(self, X: Array, Y: Array) -> tuple[Gaussian, Sizes]:
        mean, variance, size = self._core.run(np.ascontiguousarray(X), np.ascontiguousarray(Y))
        return gaussian(mean, variance), size

    def predict(self, X: Array) -> Gaussian:
        from onlinegp.engine import thread_count

        return gaussian(*self._core.predict(np.ascontiguousarray(X), thread_count()))

    def learn_one(self, x: object, y: object) -> bool | None:
        return self._core.learn_one(x, y)

    def predict_one(self, x: object) -> tuple[float, float] | None:
        quick = self._core.predict_one(x)
        return None if quick is None else (quick[0], sqrt(quick[1]))

    def plan(self) -> Plan:
        return Plan("leaf", self, model=lambda: self._core)

    def dump(self) -> Contents:
        return self.readable().dump()

    def assign(self, values: Values) -> None:
        twin, fs = self.reference, self._fs
        twin.assign(values)
        numbers = [f.weights.T for f in fs] + [f.numbers(name)[None, :] for f in fs for name in f.also]
        gates = getattr(twin, "gates", np.zeros((len(fs), self.outputs)))  # of a mixture of kernels
        errors = getattr(twin, "errors", None) or ErrorScale(self.outputs)
        self._core.load(fs[0].centers, np.vstack(numbers), gates.copy(), errors.vector, twin.seen)

    def readable(self) -> StepLearner:
        """Return the readable twin with all that was learned."""
        C, values, gates, errors = self._core.save()
        weights, numbers = np.split(values, [len(self._fs) * self.outputs])
        numbers_in_order = iter(numbers)
        for f, own in zip(self._fs, np.split(weights, len(self._fs)), strict=True):
            also = {name: next(numbers_in_order) for name in f.also}
            f.assign({"centers": C, "weights": np.ascontiguousarray(own.T), **also})
        twin = self.reference
        twin.gates, twin.seen = gates, self.seen
        if hasattr(twin, "errors"):
            twin.errors.vector = errors
        return twin


def _packed(fs: list[Expansion], kind: str, rule: dict[str, Any]) -> Any:
    """Return the rule and its kernels as the compiled learner reads them."""
    from onlinegp.engine import _native
    from onlinegp.engine.native import pack_kernel

    core = _native.StepRule()
    core.kind = getattr(_native.StepKind, kind)
    for name, value in rule.items():
        setattr(core, name, value)
    for f in fs:
        recipe = _native.Recipe()
        pack_kernel(recipe, f.kernel, f.features)
        core.add(recipe)
    return core
