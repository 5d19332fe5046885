"""What the models that correct several rows at once share."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar

import numpy as np

from onlinegp.checks import Array
from onlinegp.learner import Sizes
from onlinegp.models.affine.window import Window
from onlinegp.models.expansion import Expansion
from onlinegp.models.lms.base import ExpansionRegressor
from onlinegp.models.steps import ErrorScale, StepLearner
from onlinegp.predictions import Gaussian

BLOCK = 256  # rows of a compiled call, between which Ctrl-C is heard
Kind = IntEnum("Kind", ["KAP", "LKAPA", "NLKAPA", "KAPSM"], start=0)  # as in native/api.hpp
NO_VARIANCE = "none of its own: the root mean square of the last hundred errors or so, the same everywhere"


class AffineRegressor(ExpansionRegressor):
    """Base class of the affine projections and of the projections onto hyperslabs.

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    engine : {"auto", "native", "python"}
        What computes kernel rows: the compiled engine, NumPy, or the best that is there.
    """

    remedy: ClassVar[str] = "Lower the step, and start anew with fit."


class ExpansionLearner(StepLearner):
    """A kernel expansion whose standard deviation is that of its errors of late."""

    def __init__(self, f: Expansion) -> None:
        self.f, self.errors = f, ErrorScale(f.outputs)
        self.features, self.outputs = f.features, f.outputs
        self.parts = {"f": f, "errors": self.errors}

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.f.size

    def look(self, x: Array) -> tuple[Array, Array, Any]:
        k, mean = self.f.at(x)
        return mean, self.errors.std, (k, mean)


class WindowLearner(ExpansionLearner):
    """One that corrects the rows of a window; where a compiled rule is set, by a compiled loop over the rows.

    Attributes
    ----------
    rule : parameters by name for the compiled loop, or None: what `look` and `correct` do, row by row
    """

    window: Window
    rule: dict[str, Any] | None = None

    def compiled(self, **rule: Any) -> Any:
        """Let the compiled loop of this rule run, if the engine of the expansion is compiled; return the learner."""
        if self.f.compiled:
            self.rule = {"window": self.window.length, "budget": self.f.most or 0} | rule
        return self

    def matrices(self, room: int, capacity: int) -> tuple[Array, Array, Array]:
        """Return what else the compiled loop changes: H (room, capacity), G (room, room), and norms (p,)."""
        return np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(self.outputs)

    def learn(self, X: Array, Y: Array) -> None:
        if self.rule is None:
            super().learn(X, Y)
        else:
            self.run(X, Y)

    def run(self, X: Array, Y: Array) -> tuple[Gaussian, Sizes]:
        if self.rule is None:
            return super().run(X, Y)
        X, Y = np.ascontiguousarray(X), np.ascontiguousarray(Y)
        mean, std, size = np.empty(Y.shape), np.empty(Y.shape), np.empty(len(Y), np.int64)
        for i in range(0, len(X), BLOCK):
            rows = slice(i, i + BLOCK)
            self._run(X[rows], Y[rows], mean[rows], std[rows], size[rows])
        return Gaussian(mean, std), size

    def _run(self, X: Array, Y: Array, mean: Array, std: Array, size: Sizes) -> None:
        from onlinegp.engine import _native

        n, most, errors = len(X), self.f.most, self.errors
        f, numbers = self.f.opened(n if most is None else min(n, most - self.f.size))
        points, K, Yw, F = self.window.opened(n)
        H, G, norms = self.matrices(len(K), numbers.shape[1])
        rule, fade = _native.AffineRule(**(self.rule or {})), errors.keep
        state = (f, points, numbers, K, Yw, F, H, G, norms, errors.squares, errors.count, fade, self.window.count)
        errors.counted(_native.affine_run(rule, *state, X, Y, mean, std, size))
        self.f.closed()
        self.window.closed(n)
        self.seen += n
