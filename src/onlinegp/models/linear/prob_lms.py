"""Probabilistic least mean squares."""

from __future__ import annotations

from dataclasses import KW_ONLY

from onlinegp.checks import fraction, non_negative, positive
from onlinegp.engine.compiled import leaf
from onlinegp.learner import Learner
from onlinegp.models.linear.base import LinearRegressor, with_intercept
from onlinegp.models.linear.isotropic_filter import IsotropicLearner, Rule
from onlinegp.models.recipe import parameters


@parameters
class ProbLMS(LinearRegressor):
    """Probabilistic LMS: a Kalman filter with a single variance for all weights, which adapts the step.

        v <- v + drift,   g = v / (v x'x + noise),   w <- w + g e x,   v <- v (1 - g x'x / d)

    The weights drift as in :class:`~onlinegp.Kalman`. After each sample, the covariance of the d weights is
    replaced by the closest multiple v of I. O(d) per sample like LMS, with a step that is large at first. The variance
    of y is v x'x + noise: right on average over all directions of x, but not in each direction.

    Use it instead of :class:`~onlinegp.LMS` if the noise is roughly known: it chooses the step and has a variance. Do
    not use it if inputs are strongly correlated, because it has one variance for all directions.

    Differs from KAFBOX: with forgetting below one, the variance of the weights and the prediction of the next row fade,
    too. The prior is a parameter.

    Cost: O(d) per sample with d features
    Memory: O(d)
    Equation: w <- w + g e x with g = v / (v x'x + noise); v <- v (1 - g x'x / d) + drift
    Variance of y: v x'x + noise, where v is the mean variance of the weights

    Parameters
    ----------
    noise : float
        The variance of the noise in y.
    drift : float
        The variance of the change of each weight per sample; zero for constant weights.
    prior : float
        The prior variance of the weights and of the intercept.
    forgetting : float
        The factor in (0, 1] by which the weights shrink per sample; 1 forgets nothing.
    intercept : bool
        Whether to add a constant term.
    engine : str
        See :class:`~onlinegp.models.linear.base.LinearRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).normal(size=(2000, 3))
    >>> model = ogp.kafbox.ProbLMS(noise=1e-4, drift=0.0).fit(X, 3.0 + X @ [1.0, 0.5, -2.0])
    >>> model.coef_.round(2).tolist(), round(model.intercept_, 2)
    ([1.0, 0.5, -2.0], 3.0)

    References
    ----------
    Fernandez-Bes, Elvira and Van Vaerenbergh, "A probabilistic least-mean-squares filter", ICASSP, 2015.
    """

    _: KW_ONLY
    noise: float = 1e-2
    drift: float = 1e-4
    prior: float = 1.0
    forgetting: float = 1.0
    intercept: bool = True

    def start(self, features: int, outputs: int) -> Learner:
        intercept = with_intercept(self.intercept)
        rule = Rule(
            floor=positive(noise=self.noise),
            slope=1.0,
            share=1.0 / max(1, features + intercept),
            keep=fraction("Use 1.0 to forget nothing.", forgetting=self.forgetting),
            drift=non_negative(drift=self.drift),
            start=positive(prior=self.prior),
        )
        return leaf(self.engine, IsotropicLearner(features, outputs, rule=rule, intercept=intercept))
