"""Base classes of the models that correct several rows at once."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from onlinegp.checks import Array
from onlinegp.engine.compiled import leaf
from onlinegp.engine.plan import Plan
from onlinegp.learner import Learner
from onlinegp.models.affine.window import Window
from onlinegp.models.expansion import Expansion, ExpansionLearner
from onlinegp.models.lms.base import ExpansionRegressor
from onlinegp.models.rowwise import ErrorScale
from onlinegp.recipes.costs import ERRORS, kernel_row
from onlinegp.state import Fields, learner

NO_VARIANCE = "none of its own: the mean square of about the last 100 errors, the same everywhere"


class AffineRegressor(ExpansionRegressor):
    """Base class of affine projections and projections onto hyperslabs. Their learners have a window of rows.

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    engine : {"auto", "native", "python"}
        The engine: compiled, pure Python, or the best available.
    """

    remedy: ClassVar[str] = "Lower the step, and start again with fit."
    std_from_errors: ClassVar[bool] = True

    window: int

    def looking(self, size: float, features: int) -> float:
        """Return the multiplications for the kernel rows of x, the mean, and the mean square of the errors."""
        return kernel_row(size, features) + size + ERRORS + kernel_row(self.window, features)

    def expansion(self, features: int, outputs: int) -> Expansion:
        """Return the expansion to learn, without centers."""
        raise TypeError(f"{type(self).__name__} must define expansion(features, outputs).")

    def start(self, features: int, outputs: int) -> Learner:
        make = cast(Any, self.readable)
        return leaf(self.engine, make(self.expansion(features, outputs), **self.rule()))


class WindowLearner(ExpansionLearner):
    """A kernel expansion that corrects the rows of a window. Its standard deviation is that of its recent errors."""

    fields: Fields = {**ExpansionLearner.fields, "errors": learner(), "window": learner()}

    kind: ClassVar[str]  # the name of its compiled twin,
    constants: ClassVar[tuple[str, ...]]  # and the attributes that it is made from

    window: Window

    def __init__(self, f: Expansion) -> None:
        super().__init__(f)
        self.errors = ErrorScale(f.outputs)

    def leaf_plan(self) -> Plan:
        numbers = {name: float(getattr(self, name)) for name in self.constants}
        numbers |= {"window": float(self.window.length), "budget": float(self.f.most or 0)}
        return Plan(self.kind, self, numbers, kernels=self.kernels)

    def look(self, x: Array) -> tuple[Array, Array, Any]:
        k, mean = self.f.at(x)
        return mean, self.errors.std, (k, mean)
