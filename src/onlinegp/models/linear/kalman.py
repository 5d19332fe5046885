"""The Kalman filter of the weights of a linear model."""

from __future__ import annotations

from dataclasses import KW_ONLY

from onlinegp.checks import non_negative, positive
from onlinegp.engine.compiled import leaf
from onlinegp.learner import Learner
from onlinegp.models.linear.base import LinearRegressor, with_intercept
from onlinegp.models.linear.kalman_filter import KalmanLearner
from onlinegp.models.recipe import parameters


@parameters
class Kalman(LinearRegressor):
    """The Kalman filter of the weights: linear regression whose weights follow a random walk.

        w_t = w_(t-1) + d_t,   y_t = w_t'x_t + e_t,   d ~ N(0, drift I),   e ~ N(0, noise)

    Predictions follow from the exact posterior of w, stored as a Cholesky factor:
    :mod:`onlinegp.models.linear.kalman_filter` has the equations. Without drift this is :class:`~onlinegp.LinearRLS`
    without forgetting.

    Use it if the relation is linear and its weights change. With many inputs the drift is expensive, O(d^3);
    :class:`~onlinegp.LinearRLS` forgets at O(d^2).

    Differs from KAFBOX: KAFBOX overwrites the noise and drift that you set, unless you also set the transition matrix.
    Here the variance of y includes drift and noise.

    Cost: O(d^3) per sample with d features; O(d^2) without drift
    Memory: O(d^2)
    Equation: y = w'x + e with w <- w + N(0, drift I) per sample; the posterior of w
    Variance of y: exact for weights that follow a random walk; it ignores effects that are not linear in x

    Parameters
    ----------
    noise : float
        The variance of the noise in y.
    drift : float
        The variance of the change of each weight per sample; zero for constant weights.
    prior : float
        The prior variance of the weights and of the intercept.
    intercept : bool
        Whether to add a constant term.
    engine : str
        See :class:`~onlinegp.models.linear.base.LinearRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> w = np.where(np.arange(400) < 200, 1.0, -1.0)  # the first weight changes
    >>> model = ogp.Kalman(noise=0.01, drift=0.01).fit(X, w * X[:, 0] + 2.0 * X[:, 1])
    >>> model.coef_.round(1).tolist()
    [-1.0, 2.0]

    References
    ----------
    Kalman, "A new approach to linear filtering and prediction problems", Journal of Basic Engineering, 1960;
    square-root form: Kailath, Sayed and Hassibi, Linear Estimation, 2000, ch. 12.
    """

    _: KW_ONLY
    noise: float = 1e-2
    drift: float = 1e-4
    prior: float = 1.0
    intercept: bool = True

    def start(self, features: int, outputs: int) -> Learner:
        learner = KalmanLearner(
            features,
            outputs,
            noise=positive(noise=self.noise),
            drift=non_negative("Use 0.0 for weights that do not change.", drift=self.drift),
            prior=positive(prior=self.prior),
            intercept=with_intercept(self.intercept),
        )
        return leaf(self.engine, learner)
