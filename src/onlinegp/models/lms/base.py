"""What the kernel least mean squares family shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import Kernel, kernel_or_default
from onlinegp.kernels.spec import columns
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.expansion import Expansion
from onlinegp.models.moves import Isotropic, LengthScales, Move, Times, Value
from onlinegp.models.recipe import RecipeRegressor


class StepSized(OnlineRegressor):
    """What the models with a step declare: how they are tuned, and what to do if they break down."""

    remedy: ClassVar[str] = "Lower the step (KLMS is stable below 2 / k(x, x)), and start anew with fit."
    tuned_by: ClassVar[Literal["density", "error"]] = "error"
    searched: ClassVar[Mapping[str, tuple[Move, ...]]] = {  # what a model does not have is left out
        "radius": tuple(map(Times, (0.25, 0.5, 2.0, 4.0))),
        "coherence": tuple(map(Value, (0.5, 0.8, 0.9, 0.99))),
        "kernel": (*map(LengthScales, (0.25, 0.5, 2.0)), *map(Isotropic, (0.125, 0.25, 0.5, 1.0, 2.0))),
        "step": tuple(map(Times, (0.0625, 0.125, 0.25, 0.5, 2.0))),
        "noise": tuple(map(Times, (0.1, 10.0, 100.0))),
        "leak": tuple(map(Times, (0.01, 0.1))),
    }

    @classmethod
    def suggested(cls, kernel: Kernel, noise: float, **wishes: Any) -> dict[str, Any]:
        """The step of KLMS as an online GP, 1 / (noise + k(x, x)), and a radius of half a length scale."""
        step = 1.0 / (noise + float(kernel.diag(np.zeros((1, 1)))[0]))
        own = {"radius": 0.5 * _typical_length_scale(kernel)} | ({"step": step} if cls.step_implies_noise else {})
        return super().suggested(kernel, noise, **own, **wishes)

    step_implies_noise: ClassVar[bool] = False  # whether `step` stands for 1 / (noise + k(x, x))


class LMSRegressor(StepSized, RecipeRegressor):
    """Base class of the models with a fixed posterior covariance.

    Parameters
    ----------
    engine : {"auto", "native", "python"}
        What runs the update; see :mod:`onlinegp.engine`.
    dtype : {"float64", "float32"}
        The precision of the compiled engine; float32 takes half the time and memory, and keeps six digits.
    """

    shared: ClassVar[dict[str, str]] = {"engine": "auto", "dtype": "float64"}


class ExpansionRegressor(StepSized):
    """Base class of the models whose learner updates one kernel expansion, its `f`, and that are no recipe.

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    engine : {"auto", "native", "python"}
        What computes the kernel rows: the compiled engine, the readable one, or the best that is there.
    """

    shared: ClassVar[dict[str, str]] = {"engine": "auto"}

    kernel: Kernel | None = None
    engine: str = "auto"

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
        alpha = self._expansion.weights.copy()
        return alpha[:, 0].copy() if self._single else alpha

    @property
    def _expansion(self) -> Expansion:
        learner: Any = self._working
        return learner.f


def _typical_length_scale(kernel: Kernel) -> float:
    """Return the length scale l with 1 / l^2 the mean of 1 / length_scale^2, or one if the kernel has none.

    Over all directions, a step of a given length then changes the squared scaled distance as much on average; inputs
    that do not matter, with their length scales without end, leave l as it is but for their number.
    """
    scales = [value for name, value in zip(kernel.names, kernel.theta, strict=True) if "length_scale" in name]
    return float(np.mean(np.exp(-2.0 * np.array(scales))) ** -0.5) if scales else 1.0
