"""Least mean squares, plain and normalized."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import ClassVar

from onlinegp.checks import positive
from onlinegp.engine.compiled import leaf
from onlinegp.learner import Learner
from onlinegp.models.facts import Facts
from onlinegp.models.linear.base import LinearRegressor, with_intercept
from onlinegp.models.linear.isotropic_filter import IsotropicLearner, Rule
from onlinegp.models.recipe import parameters


@parameters
class LMS(LinearRegressor):
    """Least mean squares: gradient descent on the squared error of each sample.

        w <- w + step e x,   e = y - w'x

    As Bayesian linear regression, LMS keeps the prior covariance I of the weights, with noise = 1 / step - x'x: it is
    KLMS with the kernel x'z. The variance of y is 1 / step everywhere and does not shrink.

    Use it as a baseline, or if every microsecond counts. It learns slowly if inputs are correlated or have different
    scales; :class:`~onlinegp.LinearRLS` costs little more.

    Cost: O(d) per sample with d features
    Memory: O(d)
    Equation: w <- w + step e x
    Variance of y: 1 / step everywhere: the prior and the noise that the step implies; it never shrinks

    Parameters
    ----------
    step : float
        The learning rate. Stable below 2 / x'x (with an intercept 2 / (1 + x'x)) for the largest x; above, it diverges.
    intercept : bool
        Whether to add a constant term.
    engine : str
        See :class:`~onlinegp.models.linear.base.LinearRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).normal(size=(2000, 3))
    >>> model = ogp.LMS(step=0.05).fit(X, 3.0 + X @ [1.0, 0.5, -2.0])
    >>> model.coef_.round(3).tolist(), round(model.intercept_, 3)
    ([1.0, 0.5, -2.0], 3.0)

    References
    ----------
    Widrow and Hoff, "Adaptive switching circuits", IRE WESCON Convention Record, 1960; Sayed, Fundamentals of Adaptive
    Filtering, Wiley, 2003, ch. 5.
    """

    _: KW_ONLY
    step: float = 0.01
    intercept: bool = True

    facts: ClassVar[Facts] = Facts(
        remedy="Lower the step (LMS is stable below 2 / x'x), scale the inputs, and start again with fit."
    )

    def start(self, features: int, outputs: int) -> Learner:
        rule = Rule(floor=1.0 / positive(step=self.step), slope=0.0)
        intercept = with_intercept(self.intercept)
        return leaf(self.engine, IsotropicLearner(features, outputs, rule=rule, intercept=intercept))


@parameters
class NLMS(LinearRegressor):
    """Normalized least mean squares: LMS with a step divided by the power of the input, stable for any scale.

        w <- w + step e x / (epsilon + x'x),   e = y - w'x

    As Bayesian linear regression with step = 1, NLMS keeps the prior covariance I of the weights, with noise = epsilon.
    The variance of y is (epsilon + x'x) / step, which does not shrink. Do not use it as a measure of uncertainty.

    It learns slowly if inputs are far from zero compared with their spread, such as raw readings around 2000. Then
    standardize them with :class:`~onlinegp.Scaled`.

    Use it instead of :class:`~onlinegp.LMS` if the power of the input changes. If inputs are correlated,
    :class:`~onlinegp.LinearRLS` learns faster.

    Cost: O(d) per sample with d features
    Memory: O(d)
    Equation: w <- w + step e x / (epsilon + x'x)
    Variance of y: (epsilon + x'x) / step; it never shrinks: do not read it as confidence

    Parameters
    ----------
    step : float
        The learning rate, stable below 2; 1 corrects each error completely if epsilon is small.
    epsilon : float
        Regularizes the normalization.
    intercept : bool
        Whether to add a constant term.
    engine : str
        See :class:`~onlinegp.models.linear.base.LinearRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).normal(size=(2000, 3))
    >>> model = ogp.NLMS(step=0.5).fit(X, 3.0 + X @ [1.0, 0.5, -2.0])
    >>> model.coef_.round(3).tolist(), round(model.intercept_, 3)
    ([1.0, 0.5, -2.0], 3.0)

    References
    ----------
    Nagumo and Noda, "A learning method for system identification", IEEE Trans. Automatic Control, 1967; Sayed,
    Fundamentals of Adaptive Filtering, Wiley, 2003, ch. 5.
    """

    _: KW_ONLY
    step: float = 0.5
    epsilon: float = 1e-6
    intercept: bool = True

    facts: ClassVar[Facts] = Facts(remedy="Lower the step (NLMS is stable below 2), and start again with fit.")

    def start(self, features: int, outputs: int) -> Learner:
        step, epsilon = positive(step=self.step), positive(epsilon=self.epsilon)
        rule = Rule(floor=epsilon / step, slope=1.0 / step)
        intercept = with_intercept(self.intercept)
        return leaf(self.engine, IsotropicLearner(features, outputs, rule=rule, intercept=intercept))
