"""What the models that correct several rows at once share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from onlinegp.checks import Array
from onlinegp.kernels import Kernel, kernel_or_default
from onlinegp.kernels.spec import columns
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.expansion import Expansion
from onlinegp.models.lms.base import LMSRegressor
from onlinegp.models.moves import Move
from onlinegp.models.steps import ErrorScale, StepLearner

NO_VARIANCE = "none of its own: the root mean square of the last hundred errors or so, the same everywhere"


class AffineRegressor(OnlineRegressor):
    """Base class of the affine projections and of the projections onto hyperslabs.

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    engine : {"auto", "native", "python"}
        What computes kernel rows: the compiled engine, NumPy, or the best that is there.
    """

    kernel: Kernel | None = None
    engine: str = "auto"

    variance: ClassVar[str] = NO_VARIANCE
    remedy: ClassVar[str] = "Lower the step, and start anew with fit."
    tuned_by: ClassVar[Literal["density", "error"]] = "error"
    searched: ClassVar[Mapping[str, tuple[Move, ...]]] = LMSRegressor.searched

    def check(self) -> None:
        self.start(columns(self._kernel()), 1)

    def _kernel(self) -> Kernel:
        return kernel_or_default(self.kernel)

    @property
    def centers_(self) -> Array:
        """The centers, (m, d)."""
        return self._expansion.centers

    @property
    def alpha_(self) -> Array:
        """The kernel weights, (m,) or (m, outputs): the mean at x is k(centers_, x) . alpha_."""
        weights = self._expansion.weights.copy()
        return weights[:, 0] if self._single else weights

    @property
    def _expansion(self) -> Expansion:
        learner: Any = self._working
        return learner.expansion


class ExpansionLearner(StepLearner):
    """A kernel expansion whose standard deviation is that of its errors of late."""

    expansion: Expansion

    def __init__(self, expansion: Expansion) -> None:
        self.expansion, self.errors = expansion, ErrorScale(expansion.outputs)
        self.features, self.outputs = expansion.features, expansion.outputs
        self.parts = {"expansion": expansion, "errors": self.errors}

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.expansion.size

    def look(self, x: Array) -> tuple[Array, Array, Any]:
        k, mean = self.expansion.at(x)
        return mean, self.errors.std, (k, mean)
