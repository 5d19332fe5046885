"""Base classes of the kernel least mean squares family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, cast

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine.compiled import leaf, readable
from onlinegp.kernels import Kernel, kernel_or_default
from onlinegp.kernels.spec import columns
from onlinegp.learner import Learner
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.expansion import Expansion
from onlinegp.models.recipe import RecipeRegressor
from onlinegp.models.rowwise import StepLearner
from onlinegp.models.search_space import Isotropic, LengthScales, Move, Times, Value, typical_length_scale


class StepSized(OnlineRegressor):
    """Base class of models with a learning rate: how to tune them, and what to do if they break down."""

    remedy: ClassVar[str] = "Lower the step (KLMS is stable below 2 / k(x, x)), and start again with fit."
    tuned_by: ClassVar[Literal["density", "error"]] = "error"
    searched: ClassVar[Mapping[str, tuple[Move, ...]]] = {  # parameters that a model does not have are left out
        "radius": tuple(map(Times, (0.25, 0.5, 2.0, 4.0))),
        "coherence": tuple(map(Value, (0.5, 0.8, 0.9, 0.99))),
        "kernel": (*map(LengthScales, (0.25, 0.5, 2.0)), *map(Isotropic, (0.125, 0.25, 0.5, 1.0, 2.0))),
        "step": tuple(map(Times, (0.0625, 0.125, 0.25, 0.5, 2.0))),
        "noise": tuple(map(Times, (0.1, 10.0, 100.0))),
        "leak": tuple(map(Times, (0.01, 0.1))),
    }

    @classmethod
    def suggested(cls, kernel: Kernel, noise: float, **wishes: Any) -> dict[str, Any]:
        """Suggest the step of KLMS as an online GP, 1 / (noise + k(x, x)), and a radius of half a length scale."""
        step = 1.0 / (noise + float(kernel.diag(np.zeros((1, 1)))[0]))
        own = {"radius": 0.5 * typical_length_scale(kernel)} | ({"step": step} if cls.step_implies_noise else {})
        return super().suggested(kernel, noise, **(own | wishes))

    step_implies_noise: ClassVar[bool] = False  # whether `step` equals 1 / (noise + k(x, x))


class LMSRegressor(StepSized, RecipeRegressor):
    """Base class of the models with a fixed posterior covariance.

    Parameters
    ----------
    engine : {"auto", "native", "python"}
        The engine that runs the update; see :mod:`onlinegp.engine`.
    dtype : {"float64", "float32"}
        The precision of the compiled engine. float32 takes half the time and memory, and keeps six digits.
    """

    shared: ClassVar[dict[str, str]] = {"engine": "auto", "dtype": "float64"}


class StepRegressor(StepSized):
    """Base class of models that are not recipes. A subclass names its Python learner, the compiled one and its rule.

    Parameters
    ----------
    engine : {"auto", "native", "python"}
        The engine: compiled, pure Python, or the best available.
    """

    shared: ClassVar[dict[str, str]] = {"engine": "auto"}
    readable: ClassVar[type[StepLearner]]

    engine: str = "auto"

    def rule(self) -> dict[str, Any]:
        """Return the parameters of the learner, or raise an error that names the invalid one."""
        raise TypeError(f"{type(self).__name__} must define rule().")

    def over(self) -> Any:
        """Return the kernel or kernels."""
        raise TypeError(f"{type(self).__name__} must define over().")

    def start(self, features: int, outputs: int) -> Learner:
        rule, make = self.rule(), cast(Any, self.readable)
        return leaf(self.engine, make(self.over(), features, outputs, **rule))

    @property
    def _readable(self) -> StepLearner:
        """The Python learner, with everything that was learned."""
        learner = readable(self._working)
        assert isinstance(learner, StepLearner)
        return learner


class ExpansionRegressor(StepRegressor):
    """Base class of models with one kernel, whose learner has the expansion `f`.

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    engine : {"auto", "native", "python"}
        The engine: compiled, pure Python, or the best available.
    """

    kernel: Kernel | None = None

    def check(self) -> None:
        self.start(columns(self.over()), 1)

    def over(self) -> Kernel:
        return kernel_or_default(self.kernel)

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
