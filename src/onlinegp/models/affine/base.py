"""What the models that correct several rows at once share."""

from __future__ import annotations

from abc import abstractmethod
from enum import IntEnum
from typing import Any, ClassVar, cast

import numpy as np

from onlinegp.checks import Array
from onlinegp.learner import Sizes
from onlinegp.models.affine.window import Window
from onlinegp.models.expansion import Expansion, ExpansionLearner
from onlinegp.models.lms.base import ExpansionRegressor
from onlinegp.models.steps import ErrorScale, StepLearner
from onlinegp.predictions import Gaussian
from onlinegp.recipes.multiplications import ERRORS, kernel_row
from onlinegp.state import Fields, learner

BLOCK = 256  # rows of a compiled call, between which Ctrl-C is heard
Kind = IntEnum("Kind", ["KAP", "LKAPA", "NLKAPA", "KAPSM", "PHYPASS"], start=0)  # as in native/api.hpp
NO_VARIANCE = "none of its own: the mean square of about the last 100 errors, the same everywhere"


class AffineRegressor(ExpansionRegressor):
    """Base class of the affine projections and of the projections onto hyperslabs, whose learners have a window.

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    engine : {"auto", "native", "python"}
        What runs it: the compiled loop, the readable one, or the best that is there.
    """

    remedy: ClassVar[str] = "Lower the step, and start again with fit."
    std_from_errors: ClassVar[bool] = True

    window: int

    def looking(self, size: float, features: int) -> float:
        """Return the multiplications of the kernel rows of x, the mean, and the mean square of the errors."""
        return kernel_row(size, features) + size + ERRORS + kernel_row(self.window, features)

    def expansion(self, features: int, outputs: int) -> Expansion:
        """Return the expansion that is learned, without centers."""
        raise TypeError(f"{type(self).__name__} must define expansion(features, outputs).")

    def start(self, features: int, outputs: int) -> WindowLearner:
        rule, make = self.rule(), cast(Any, self.readable)
        learner: WindowLearner = make(self.expansion(features, outputs), engine=self.engine, **rule)
        return learner.compiled(kind=Kind[self.compiled], **rule)


class BlockLearner(StepLearner):
    """A learner that has a compiled loop over rows, beside what `look` and `correct` do.

    Attributes
    ----------
    rule : parameters by name for the compiled loop; None to go row by row
    """

    rule: dict[str, Any] | None = None

    @abstractmethod
    def _run(self, X: Array, Y: Array, mean: Array, std: Array, size: Sizes) -> None:
        """Let the compiled loop predict and learn the rows, and fill in what it predicted."""

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


class WindowLearner(ExpansionLearner, BlockLearner):
    """A kernel expansion that corrects the rows of a window; its standard deviation is that of its errors of late."""

    fields: Fields = {**ExpansionLearner.fields, "errors": learner(), "window": learner()}

    window: Window

    def __init__(self, f: Expansion) -> None:
        super().__init__(f)
        self.errors = ErrorScale(f.outputs)

    def look(self, x: Array) -> tuple[Array, Array, Any]:
        k, mean = self.f.at(x)
        return mean, self.errors.std, (k, mean)

    def compiled(self, **rule: Any) -> Any:
        """Let the compiled loop of this rule run, if the engine of the expansion is compiled; return the learner."""
        if self.f.compiled:
            self.rule = {"budget": self.f.most or 0} | rule
        return self

    def opened(self, room: int, capacity: int) -> tuple[Any, dict[str, Any]]:
        """Return what else the compiled loop needs, for so many rows and centers: centers or None, arrays by name."""
        return None, {}

    def _run(self, X: Array, Y: Array, mean: Array, std: Array, size: Sizes) -> None:
        from onlinegp.engine import _native

        n, most, errors = len(X), self.f.most, self.errors
        f, numbers = self.f.opened(n if most is None else min(n, most - self.f.size))
        points, K, Yw, F = self.window.opened(n)
        others, own = self.opened(len(K), numbers.shape[1])
        arrays = {"numbers": numbers, "K": K, "Y": Yw, "F": F, "squares": errors.numbers} | own
        rule, state = _native.AffineRule(**(self.rule or {})), (self.window.count, errors.count, errors.keep)
        errors.counted(_native.affine_run(rule, f, points, others, arrays, *state, X, Y, mean, std, size))
        self.f.closed()
        self.window.closed(n)
        self.seen += n
