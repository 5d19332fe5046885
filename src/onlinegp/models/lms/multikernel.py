"""Base classes of the models with several kernels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine.compiled import leaf, readable
from onlinegp.kernels import RBF, Kernel, kernel_or_default
from onlinegp.kernels.spec import columns
from onlinegp.learner import Learner
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.expansion import Expansion
from onlinegp.models.rowwise import StepLearner
from onlinegp.state import Fields, Values, integer, learner

LENGTH_SCALES = (0.5, 1.0, 1.5, 2.0)


class MultikernelLearner(StepLearner):
    """One expansion per kernel, all with the same centers."""

    def __init__(self, kernels: Sequence[Kernel], features: int, outputs: int, also: tuple[str, ...] = ()) -> None:
        self.features, self.outputs = features, outputs
        self.fs = [Expansion(kernel, features, outputs, also=also) for kernel in kernels]

    @cached_property
    def fields(self) -> Fields:
        return {"seen": integer()} | {f"f{i}": learner() for i in range(len(self.fs))}

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return tuple(f.kernel for f in self.fs)

    def children(self) -> dict[str, Any]:
        return {f"f{i}": f for i, f in enumerate(self.fs)}

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.fs[0].size

    def check(self, values: Values) -> None:
        if any(not np.array_equal(values[name]["centers"], values["f0"]["centers"]) for name in self.children()):
            raise ValueError("all kernels must have the same stored centers.")


class MultikernelRegressor(OnlineRegressor):
    """Base class of the models with several kernels. A subclass sets `readable`, its Python learner, and `rule`.

    Parameters
    ----------
    kernels : sequence of Kernel, optional
        The covariance functions; RBF with the length scales 0.5, 1, 1.5 and 2 if None.
    engine : {"auto", "native", "python"}
        The engine: compiled, pure Python, or the best available.
    """

    shared: ClassVar[dict[str, str]] = {"engine": "auto"}
    readable: ClassVar[type[StepLearner]]

    kernels: Sequence[Kernel] | None = None
    engine: str = "auto"

    def rule(self) -> dict[str, Any]:
        """Return the parameters of the learner. Raise an error that names the first invalid value."""
        raise TypeError(f"{type(self).__name__} must define rule().")

    def check(self) -> None:
        self.start(max(map(columns, self.over())), 1)

    def start(self, features: int, outputs: int) -> Learner:
        rule, make = self.rule(), cast(Any, self.readable)
        return leaf(self.engine, make(self.over(), features, outputs, **rule))

    def over(self) -> tuple[Kernel, ...]:
        if self.kernels is None:
            return tuple(map(RBF, LENGTH_SCALES))
        if isinstance(self.kernels, Kernel | str) or not hasattr(self.kernels, "__iter__"):
            raise TypeError(f"kernels must be a list of kernels, such as [RBF(0.5), RBF(1.0)], got {self.kernels!r}.")
        kernels = tuple(kernel_or_default(kernel) for kernel in self.kernels)
        if not kernels:
            raise ValueError("kernels must have at least one kernel, got none. Use None for RBF of four length scales.")
        return kernels

    @property
    def centers_(self) -> Array:
        """The centers, (m, d)."""
        return self._several.fs[0].centers.copy()

    @property
    def alpha_(self) -> tuple[Array, ...]:
        """The weights of each kernel, (m,) or (m, outputs)."""
        return tuple(f.weights[:, 0].copy() if self._single else f.weights.copy() for f in self._several.fs)

    @property
    def _several(self) -> MultikernelLearner:
        learner = readable(self._working)
        assert isinstance(learner, MultikernelLearner)
        return learner
