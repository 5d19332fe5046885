"""Leaky kernel affine projection algorithms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from onlinegp.checks import Array, non_negative, positive
from onlinegp.kernels import Kernel
from onlinegp.models.affine.base import REMEDY
from onlinegp.models.affine.growing_window import RecentLearner, recent_rule
from onlinegp.models.affine.window import Window, solve_positive
from onlinegp.models.facts import Facts
from onlinegp.models.lms.base import ExpansionRegressor
from onlinegp.models.recipe import parameters
from onlinegp.models.rowwise import StepLearner


@dataclass(frozen=True)
class Gradient:
    """The gradient step Z = step E for the errors E of the window or, with epsilon, (K + epsilon I)^-1 Z (Newton)."""

    step: float
    epsilon: float | None = None

    @property
    def kind(self) -> str:
        return "lkapa" if self.epsilon is None else "nlkapa"

    @property
    def constants(self) -> Mapping[str, float]:
        return {"step": self.step} if self.epsilon is None else {"step": self.step, "epsilon": self.epsilon}

    def weights(self, window: Window) -> Array:
        Z, K = self.step * (window.Y - window.F), window.K
        return Z if self.epsilon is None else solve_positive(K + self.epsilon * np.eye(len(K)), Z)


def kept(step: float, leak: float) -> float:
    """Return 1 - step leak, the factor by which weights shrink per sample. Raise an error if leak is invalid."""
    positive(step=step)
    if non_negative("Use 0.0 for none.", leak=leak) * step >= 1.0:
        raise ValueError(f"leak must be less than 1 / step = {1.0 / step:g}, got {leak}. Lower leak or step.")
    return 1.0 - step * leak


@parameters
class LKAPA(ExpansionRegressor):
    """Leaky kernel affine projection: correct the weights of the last rows, and shrink all weights.

        alpha <- (1 - step leak) alpha,   alpha_i <- alpha_i + step (y_i - f(x_i)) for the last `window` rows

    This is KAPA-3 of the paper, and KAPA-1 with leak=0. Every sample becomes a center; when the budget is full, the
    oldest center is removed.

    Use it instead of KLMS if inputs are correlated. Without a budget, the cost per row grows along the stream;
    :class:`~onlinegp.kafbox.KAP` bounds it by coherence.

    Differs from KAFBOX: KAFBOX stops learning when its budget M is full. This class removes the oldest center.

    Cost: O(m + w^2) per sample with w the window; m is at most the budget
    Memory: O(M d + w^2) with M the budget and w the window
    Equation: alpha <- (1 - step leak) alpha; alpha_i <- alpha_i + step e_i for the last w rows
    Variance of y: the mean squared error of about the last 100 rows, the same everywhere

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    step : float
        The learning rate, stable below 2 / (window k(x, x)), or more if the inputs in the window differ.
    leak : float
        The ridge penalty: weights shrink by the factor 1 - step leak per sample. At least zero, and less than 1 / step.
    window : int
        The number of rows whose weights are corrected; 1 is KLMS with a leak.
    budget : int, optional
        The largest number of centers, at least `window`; None keeps all samples.
    engine : str
        See :class:`~onlinegp.models.lms.base.ExpansionRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.kafbox.LKAPA(ogp.kernels.RBF(1.0), step=0.05, leak=1e-3).fit(X, y)
    >>> model.score(X, y) > 0.99
    True

    References
    ----------
    Liu and Principe, "Kernel affine projection algorithms", EURASIP J. Advances in Signal Processing, 2008.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    step: float = 0.05
    leak: float = 1e-2
    window: int = 10
    budget: int | None = 1000

    facts: ClassVar[Facts] = Facts(std_from_errors=True, remedy=REMEDY)

    readable: ClassVar[type[StepLearner]] = RecentLearner

    def rule(self) -> dict[str, Any]:
        keep = kept(self.step, self.leak)
        return recent_rule(self.window, self.budget) | {"correction": Gradient(self.step), "keep": keep}


@parameters
class NLKAPA(ExpansionRegressor):
    """Normalized leaky kernel affine projection: a Newton step on the last rows. All weights shrink.

        alpha <- (1 - step leak) alpha,   alpha_w <- alpha_w + step (K_w + epsilon I)^-1 (y_w - f(X_w))

    over the last `window` rows w. This is KAPA-4 of the paper, and KAPA-2 with leak=0. Every sample becomes a center;
    when a budget is full, the oldest center is removed.

    For inputs close to each other, the Newton step makes large weights of opposite signs, about step / epsilon times
    the errors. These weights cancel until one of the centers is removed. So with a budget, use an epsilon of about half
    the window.

    Use it instead of :class:`~onlinegp.kafbox.LKAPA` if strong correlation of the inputs makes LKAPA slow. A large
    window is expensive, O(w^3). Without a budget, the cost per row grows along the stream.

    Differs from KAFBOX: KAFBOX stops learning when it has reached its largest number of centers. This class grows, or
    removes the oldest center if there is a budget. KAFBOX also leaves out the Newton matrix at the first sample.

    Cost: O(m + w^3) per sample with w the window; m grows by one per sample, up to a budget
    Memory: O(m d + w^2) with w the window; m grows, up to a budget
    Equation: alpha <- (1 - step leak) alpha; alpha_w <- alpha_w + step (K_w + epsilon I)^-1 e_w for the last w rows
    Variance of y: the mean squared error of about the last 100 rows, the same everywhere

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    step : float
        The learning rate, stable below 2.
    leak : float
        The ridge penalty: weights shrink by the factor 1 - step leak per sample. At least zero, and less than 1 / step.
    epsilon : float
        Regularizes the Newton step; with a budget, use half the window or more.
    window : int
        The number of rows whose weights are corrected.
    budget : int, optional
        The largest number of centers, at least `window`; None keeps all samples.
    engine : str
        See :class:`~onlinegp.models.lms.base.ExpansionRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.kafbox.NLKAPA(ogp.kernels.RBF(1.0), step=0.1, leak=1e-3, epsilon=1e-2).fit(X, y)
    >>> model.score(X, y) > 0.99
    True

    References
    ----------
    Liu and Principe, "Kernel affine projection algorithms", EURASIP J. Advances in Signal Processing, 2008.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    step: float = 0.05
    leak: float = 1e-2
    epsilon: float = 1e-4
    window: int = 20
    budget: int | None = None

    facts: ClassVar[Facts] = Facts(bounded=False, bounded_by="budget", std_from_errors=True, remedy=REMEDY)

    readable: ClassVar[type[StepLearner]] = RecentLearner

    def rule(self) -> dict[str, Any]:
        keep, newton = kept(self.step, self.leak), Gradient(self.step, positive(epsilon=self.epsilon))
        return recent_rule(self.window, self.budget) | {"correction": newton, "keep": keep}
