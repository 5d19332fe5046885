"""Compiled leaves: learners that run compiled code and have the fields of their Python twin."""

from __future__ import annotations

from copy import deepcopy
from math import inf
from typing import Any, NamedTuple

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine import thread_count
from onlinegp.engine.plan import Plan
from onlinegp.learner import Outcome, Sizes
from onlinegp.native_module import native
from onlinegp.predictions import Components, Gaussian, Predictions
from onlinegp.predictions.components import interval_quantiles
from onlinegp.state import Contents, Fields, Values, load_contents


class Kinds(NamedTuple):
    """The kind of the predictions of a tree: degrees of freedom, and whether intervals are stretched."""

    degrees: tuple[float, ...]
    stretches: bool

    def predictions(self, weights: Array, means: Array, scales: Array, stretch: Array) -> Predictions:
        """Return predictions from the arrays of a compiled tree."""
        if self.degrees == (inf,) and not self.stretches:
            return Gaussian(means[..., 0], scales[..., 0])
        return Components(weights, means, scales, self.degrees, stretch if self.stretches else 1.0)


class Tree(NamedTuple):
    """A compiled tree for a fleet. Its plan keeps its leaves alive; `before` rows were learned before its creation."""

    core: Any
    plan: Plan | None
    before: int
    kinds: Kinds


class Compiled:
    """A compiled leaf with the fields of its Python twin. Each can load the contents of the other.

    Attributes
    ----------
    reference : the Python learner that defines the fields; it does not learn
    atomic : whether an interrupted call leaves all layers with the same rows, which is True for compiled learners
    """

    atomic: bool = True

    def __init__(self, learner: Any) -> None:
        self.reference, self.features, self.outputs = learner, learner.features, learner.outputs
        if hasattr(learner, "kernels"):
            _ = learner.leaf_plan().programs  # raises an UnsupportedError if only the Python engine can run the learner
        # The compiled learner is created when needed, so that a file that only claims many features takes no memory. A
        # thread without the lock of the model reads `_loaded` first, which is removed last.
        self._loaded: Any = None
        self._core: Any = None
        self._kinds = Kinds((inf,), False)
        self._plan: Plan | None = None

    def _working(self) -> Any:
        """Return the compiled learner."""
        return self._start() if self._core is None else self._core

    def snapshot(self) -> Array:
        """Return all contents as numbers, in the order of the compiled learner."""
        numbers: Array = self._working().snapshot()
        return numbers

    def _start(self) -> Any:
        """Create a compiled learner that continues from the loaded contents, or a new compiled learner."""
        twin = self.reference if self._loaded is None else self._loaded
        core = native().Tree(twin.leaf_plan())
        core.load(twin.dump())
        self._before = twin.seen
        self._use(core)
        self._loaded = None
        return core

    def _uncompiled(self) -> Any:
        """Return a new Python learner, from which the compiled learner starts. It may allocate more memory."""
        return deepcopy(self.reference) if self._loaded is None else self._loaded

    def _use(self, core: Any) -> None:
        """Continue with another compiled learner, or with None."""
        vars(self).pop("learn_one", None)
        vars(self).pop("predict_one", None)
        if self._core is not None:
            self._core.resting = True  # for a thread that still holds a reference to its learn_one
        self._core = core
        if core is not None:
            vars(self).update(learn_one=core.learn_one, predict_one=core.predict_one)  # called directly

    @property
    def fields(self) -> Fields:
        fields: Fields = self.reference.fields
        return fields

    def plan(self) -> Plan:
        return Plan("leaf", self, model=self._working)

    def tree(self) -> Tree | None:
        """Return the tree for a fleet, or None if the compiled learner cannot run all further rows."""
        return Tree(self._working(), self._plan, self._before, self._kinds) if self.atomic else None

    def own_plan(self) -> Plan | None:
        """Return the plan of a compiled tree that does not share leaves with other trees, or None."""
        plan: Plan = self.reference.leaf_plan()
        return plan

    def continue_from(self, core: Any) -> None:
        """Continue from a compiled tree that was created from `own_plan`."""
        self._working().load(core.dump()[0])

    @property
    def size(self) -> int:
        loaded, core = self._loaded, self._core
        return (loaded or self.reference).size if core is None else core.size

    @property
    def seen(self) -> int:
        loaded, core = self._loaded, self._core
        return (loaded or self.reference).seen if core is None else core.seen

    def learn(self, X: Array, Y: Array) -> None:
        self._working().learn(float_rows(X), float_rows(Y))

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        core = self._working()
        before = core.rows
        *arrays, sizes = core.run(float_rows(X), float_rows(Y))
        learned = core.rows - before  # up to a row with other work, such as a tuning
        return self._kinds.predictions(*(one[:learned] for one in arrays)), sizes[:learned]

    def predict(self, X: Array) -> Predictions:
        arrays = self._working().predict(float_rows(X), thread_count())
        return self._kinds.predictions(*arrays)

    # ResidualGP also returns the predictions of a LocalGP on its rows

    def run_both(self, X: Array, Y: Array) -> tuple[Gaussian, Gaussian, Sizes]:
        mean, std, local_mean, local_std, sizes = self._working().run_both(float_rows(X), float_rows(Y))
        return Gaussian(mean[..., 0], std[..., 0]), Gaussian(local_mean, local_std), sizes

    def predict_both(self, X: Array) -> tuple[Gaussian, Gaussian]:
        mean, std, local_mean, local_std = self._working().predict_both(float_rows(X), thread_count())
        return Gaussian(mean[..., 0], std[..., 0]), Gaussian(local_mean, local_std)

    # Threads call these without the lock of the model. A compiled learner is created only in calls with the lock

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
        """Return a Python copy with everything that was learned."""
        twin = deepcopy(self.reference)
        twin.load(self.dump())
        return twin

    def change(self, name: str, *arguments: Any) -> Any:
        """Let a method of the Python learner change what was learned. Repeat it if a row was learned meanwhile."""
        core = self._working()
        while True:
            contents, rows = core.dump()
            twin = deepcopy(self.reference)
            twin.load(contents)
            answer = getattr(twin, name)(*arguments)
            if core.load(twin.dump(), rows):
                return answer


def float_rows(X: Array) -> Array:
    """Return rows as a contiguous array of float64 for compiled code."""
    return np.ascontiguousarray(X, dtype=np.float64)
