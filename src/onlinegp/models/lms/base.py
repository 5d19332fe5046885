"""Base class of the LMS models that are not recipes, with the checks of their parameters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, cast

from onlinegp.checks import Array, count, fraction, non_negative, positive
from onlinegp.engine.compiled import leaf, readable
from onlinegp.kernels import Kernel, kernel_or_default
from onlinegp.kernels.spec import columns
from onlinegp.learner import Learner
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.expansion import Expansion
from onlinegp.models.rowwise import StepLearner

REMEDY = "Lower the step (KLMS is stable below 2 / k(x, x)), and start again with fit."


CHECKS: dict[str, Callable[..., float]] = {  # parameter name: its check
    "step": positive,
    "coherence": fraction,
    "epsilon": positive,
    "penalty": non_negative,
    "radius": non_negative,
    "budget": count,
    "selected": count,
    "novelty": non_negative,
    "forgetting": partial(fraction, "Use 1.0 to forget nothing."),
    "width": partial(non_negative, "Use 0.0 to correct every error."),
}


def checked(model: OnlineRegressor, *names: str) -> dict[str, Any]:
    """Return the named parameters of a model. Raise an error that names the first invalid value."""
    return {name: CHECKS[name](**{name: getattr(model, name)}) for name in names}


class ExpansionRegressor(OnlineRegressor):
    """Base class of models with one kernel that are not recipes.

    A subclass sets `readable`, its Python learner, and defines `rule`. The learner keeps its kernel expansion in `f`.

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    engine : {"auto", "native", "python"}
        The engine: compiled, pure Python, or the best available.
    """

    shared: ClassVar[dict[str, str]] = {"engine": "auto"}
    readable: ClassVar[type[StepLearner]]

    kernel: Kernel | None = None
    engine: str = "auto"

    def rule(self) -> dict[str, Any]:
        """Return the parameters of the learner. Raise an error that names the first invalid value."""
        raise TypeError(f"{type(self).__name__} must define rule().")

    def check(self) -> None:
        self.start(columns(kernel_or_default(self.kernel)), 1)

    def start(self, features: int, outputs: int) -> Learner:
        rule, make = self.rule(), cast(Any, self.readable)
        return leaf(self.engine, make(kernel_or_default(self.kernel), features, outputs, **rule))

    @property
    def centers_(self) -> Array:
        """The centers, (m, d)."""
        return self._expansion.centers.copy()

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
        """The Python form of the learner, with everything that it has learned."""
        learner = readable(self._working)
        assert isinstance(learner, StepLearner)
        return learner
