"""What the models that correct several rows at once share."""

from __future__ import annotations

from typing import Any, ClassVar

from onlinegp.checks import Array
from onlinegp.models.expansion import Expansion
from onlinegp.models.lms.base import ExpansionRegressor
from onlinegp.models.steps import ErrorScale, StepLearner

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

    variance: ClassVar[str] = NO_VARIANCE
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
