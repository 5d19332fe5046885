"""What the models with a learning rate share: how to tune them, and the base class of those that are not recipes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, cast

from onlinegp.checks import Array
from onlinegp.engine.compiled import leaf, readable
from onlinegp.kernels import Kernel, kernel_or_default
from onlinegp.kernels.spec import columns
from onlinegp.learner import Learner
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.expansion import Expansion
from onlinegp.models.rowwise import StepLearner
from onlinegp.models.search_space import Isotropic, LengthScales, Move, Times, Value

REMEDY = "Lower the step (KLMS is stable below 2 / k(x, x)), and start again with fit."
SEARCHED: Mapping[str, tuple[Move, ...]] = {  # parameters that a model does not have are left out
    "radius": tuple(map(Times, (0.25, 0.5, 2.0, 4.0))),
    "coherence": tuple(map(Value, (0.5, 0.8, 0.9, 0.99))),
    "kernel": (*map(LengthScales, (0.25, 0.5, 2.0)), *map(Isotropic, (0.125, 0.25, 0.5, 1.0, 2.0))),
    "step": tuple(map(Times, (0.0625, 0.125, 0.25, 0.5, 2.0))),
    "noise": tuple(map(Times, (0.1, 10.0, 100.0))),
    "leak": tuple(map(Times, (0.01, 0.1))),
}


class ExpansionRegressor(OnlineRegressor):
    """Base class of models with one kernel that are not recipes. Their learners have the expansion `f`.

    A subclass names its Python learner, and defines the rule that it follows.

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    engine : {"auto", "native", "python"}
        The engine: compiled, pure Python, or the best available.
    """

    remedy: ClassVar[str] = REMEDY
    tuned_by: ClassVar[Literal["density", "error"]] = "error"
    searched: ClassVar[Mapping[str, tuple[Move, ...]]] = SEARCHED
    shared: ClassVar[dict[str, str]] = {"engine": "auto"}
    readable: ClassVar[type[StepLearner]]

    kernel: Kernel | None = None
    engine: str = "auto"

    def rule(self) -> dict[str, Any]:
        """Return the parameters of the learner, or raise an error that names the invalid one."""
        raise TypeError(f"{type(self).__name__} must define rule().")

    def check(self) -> None:
        self.start(columns(kernel_or_default(self.kernel)), 1)

    def start(self, features: int, outputs: int) -> Learner:
        rule, make = self.rule(), cast(Any, self.readable)
        return leaf(self.engine, make(kernel_or_default(self.kernel), features, outputs, **rule))

    @property
    def centers_(self) -> Array:
        """The centers, (m, d)."""
        return self._expansion.centers

    @property
    def alpha_(self) -> Array:
        """The kernel weights, (m,) or (m, outputs): the mean at x is k(centers_, x) . alpha_."""
        alpha = self._expansion.weights.copy()
        return alpha[:, 0].copy() if self._single else alpha

    @property
    def _expansion(self) -> Expansion:
        learner: Any = self._readable
        return learner.f

    @property
    def _readable(self) -> StepLearner:
        """The Python learner, with everything that was learned."""
        learner = readable(self._working)
        assert isinstance(learner, StepLearner)
        return learner
