"""Least mean squares, plain and normalized."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import ClassVar, Literal

from onlinegp.checks import positive
from onlinegp.models.linear.isotropic_filter import IsotropicRegressor, Rule
from onlinegp.models.recipe import parameters
from onlinegp.models.search_space import Move, Times

STEPS: tuple[Move, ...] = tuple(map(Times, (0.01, 0.03, 0.1, 0.3, 2.0)))


@parameters
class LMS(IsotropicRegressor):
    """Least mean squares: the weights go a step along the gradient of each squared error.

        w <- w + step e x,   e = y - w'x

    As Bayesian linear regression it assumes that the covariance of the weights stays that of the prior, I, with
    noise = 1 / step - x'x: it is KLMS with the kernel x'z. The variance of y is 1 / step everywhere, and does not
    shrink.

    Use it where nothing but its cost counts, and as the baseline of everything else. Not where inputs are correlated or
    of different scales: it is slow there, and :class:`~onlinegp.LinearRLS` costs little more.

    Parameters
    ----------
    step : float
        The learning rate. Stable below 2 / x'x (with an intercept 2 / (1 + x'x)) for the largest x; beyond, it breaks
        down.
    intercept : bool
        Whether there is one more weight, of a constant.
    engine : str
        See :class:`~onlinegp.models.linear.base.LinearRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).normal(size=(2000, 3))
    >>> model = ogp.LMS(step=0.05).fit(X, 3.0 + X @ [1.0, 0.5, -2.0])
    >>> model.coef_.round(3).tolist(), round(model.intercept_, 3)
    ([1.0, 0.5, -2.0], 3.0)
    """

    _: KW_ONLY
    step: float = 0.01
    intercept: bool = True

    tuned_by: ClassVar[Literal["density", "error"]] = "error"
    searched: ClassVar[Mapping[str, tuple[Move, ...]]] = {"step": STEPS}
    remedy: ClassVar[str] = "Lower the step (LMS is stable below 2 / x'x), scale the inputs, and start again with fit."
    cost: ClassVar[str] = "O(d) per sample with d features"
    equation: ClassVar[str] = "w <- w + step e x"
    memory: ClassVar[str] = "O(d)"
    variance: ClassVar[str] = "1 / step everywhere: prior and noise that the step implies; it never shrinks"
    citation: ClassVar[str] = (
        'Widrow and Hoff, "Adaptive switching circuits", IRE WESCON Convention Record, 1960; Sayed, Fundamentals of '
        "Adaptive Filtering, Wiley, 2003, ch. 5."
    )

    def multiplications(self, size: float, features: int) -> float:
        return 2 * (features + self.intercept) + 1

    def rule(self, weights: int) -> Rule:
        return Rule(floor=1.0 / positive(step=self.step), slope=0.0)


@parameters
class NLMS(IsotropicRegressor):
    """Normalized least mean squares: a step in units of the power of the input, stable whatever its scale.

        w <- w + step e x / (epsilon + x'x),   e = y - w'x

    As Bayesian linear regression with step = 1 it assumes that the covariance of the weights stays that of the prior,
    I, with noise = epsilon. The variance of y is the one that the step implies, (epsilon + x'x) / step; it does not
    shrink. Do not read it as confidence.

    Use it in place of :class:`~onlinegp.LMS` where the power of the input changes. Not where inputs are correlated:
    :class:`~onlinegp.LinearRLS` learns faster.

    Parameters
    ----------
    step : float
        The learning rate, stable below 2; one makes each error zero if epsilon is small.
    epsilon : float
        Regularizes the normalization.
    intercept : bool
        Whether there is one more weight, of a constant.
    engine : str
        See :class:`~onlinegp.models.linear.base.LinearRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).normal(size=(2000, 3))
    >>> model = ogp.NLMS(step=0.5).fit(X, 3.0 + X @ [1.0, 0.5, -2.0])
    >>> model.coef_.round(3).tolist(), round(model.intercept_, 3)
    ([1.0, 0.5, -2.0], 3.0)
    """

    _: KW_ONLY
    step: float = 0.5
    epsilon: float = 1e-6
    intercept: bool = True

    tuned_by: ClassVar[Literal["density", "error"]] = "error"
    searched: ClassVar[Mapping[str, tuple[Move, ...]]] = {"step": STEPS}
    remedy: ClassVar[str] = "Lower the step (NLMS is stable below 2), and start again with fit."
    cost: ClassVar[str] = "O(d) per sample with d features"
    equation: ClassVar[str] = "w <- w + step e x / (epsilon + x'x)"
    memory: ClassVar[str] = "O(d)"
    variance: ClassVar[str] = "(epsilon + x'x) / step; it never shrinks: do not read it as confidence"
    citation: ClassVar[str] = (
        'Nagumo and Noda, "A learning method for system identification", IEEE Trans. Automatic Control, 1967; Sayed, '
        "Fundamentals of Adaptive Filtering, Wiley, 2003, ch. 5."
    )

    def multiplications(self, size: float, features: int) -> float:
        return 3 * (features + self.intercept) + 2

    def rule(self, weights: int) -> Rule:
        step, epsilon = positive(step=self.step), positive(epsilon=self.epsilon)
        return Rule(floor=epsilon / step, slope=1.0 / step)
