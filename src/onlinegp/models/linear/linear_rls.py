"""Bayesian linear regression, one sample at a time."""

from __future__ import annotations

from dataclasses import KW_ONLY

from onlinegp.checks import fraction, positive
from onlinegp.engine.compiled import leaf
from onlinegp.learner import Learner
from onlinegp.models.linear.additive import AdditiveRegressor
from onlinegp.models.linear.base import LinearRegressor, with_intercept
from onlinegp.models.linear.information_form import LinearLearner
from onlinegp.models.recipe import parameters


@parameters
class LinearRLS(AdditiveRegressor, LinearRegressor):
    """Recursive least squares: Bayesian linear regression with forgetting.

    y = w'x + e, with w ~ N(0, prior I) and e ~ N(0, noise). Without forgetting this is the batch posterior of all rows.
    With forgetting, each row multiplies the information of earlier rows by lambda, and w returns to its prior without
    new data; :mod:`onlinegp.models.linear.information_form` has the equations. Collinear and badly scaled inputs do no
    harm, but all weights have the same prior: standardize inputs with :class:`~onlinegp.Scaled`. The variance of y
    ignores effects that are not linear in x.

    Use it if the function is linear, as a baseline, and as a member of a mixture. Do not use it with many irrelevant
    inputs and few rows.

    Differs from KAFBOX: KAFBOX's `rls` also forgets the prior, so the covariance of a weight grows without bound while
    its input is zero.

    Cost: O(d^2) per sample with d features, O(d^2) memory
    Memory: O(d^2)
    Equation: y = w'x + e with w ~ N(0, prior I); the posterior of w, updated per sample
    Variance of y: as for Bayesian linear regression; it ignores effects that are not linear in x

    Parameters
    ----------
    noise : float
        The variance of the noise in y.
    prior : float
        The prior variance of the weights and of the intercept.
    forgetting : float
        The factor lambda in (0, 1] by which the information of earlier rows shrinks per sample; 1 forgets nothing.
    intercept : bool
        Whether to add a constant term.
    engine : str
        See :class:`~onlinegp.models.linear.base.LinearRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> model = ogp.LinearRLS(noise=0.01, prior=10.0).fit(X, 3.0 + X @ [1.0, 0.0, -2.0])
    >>> model.coef_.round(1).tolist(), round(model.intercept_, 1)
    ([1.0, 0.0, -2.0], 3.0)

    References
    ----------
    Bierman, Factorization Methods for Discrete Sequential Estimation, 1977; forgetting: Kulhavy and Zarrop, "On a
    general concept of forgetting", International Journal of Control, 1993.
    """

    _: KW_ONLY
    noise: float = 1e-2
    prior: float = 1.0
    forgetting: float = 1.0
    intercept: bool = True

    def start(self, features: int, outputs: int) -> Learner:
        learner = LinearLearner(
            features,
            outputs,
            noise=positive(noise=self.noise),
            prior=positive(prior=self.prior),
            forgetting=fraction("Use 1.0 to forget nothing.", forgetting=self.forgetting),
            intercept=with_intercept(self.intercept),
        )
        return leaf(self.engine, learner)
