"""Kernel normalized least mean squares."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import ClassVar

from onlinegp.checks import fraction, positive
from onlinegp.kernels import Kernel
from onlinegp.models.facts import Facts
from onlinegp.models.lms.base import REMEDY
from onlinegp.models.recipe import RecipeRegressor, parameters
from onlinegp.recipes.beliefs import Isotropic
from onlinegp.recipes.dictionaries import Coherence
from onlinegp.recipes.update import Recipe


@parameters
class KNLMS(RecipeRegressor):
    """Kernel normalized LMS: each sample changes all weights. Samples coherent with a center do not become centers.

        alpha <- alpha + step e k / (epsilon + |k|^2)                              (paper, eq. 10)

    As an online GP, KNLMS has the posterior covariance Sigma = K K + K (beta = 1 in the paper): the variance exceeds
    the prior variance and grows with the data. The variance of y is (epsilon + |k|^2 + k(x, x)^2) / step. Do not use it
    as a measure of uncertainty.

    Cost: O(m) per sample; m is bounded by the coherence on a bounded input domain
    Memory: O(m d), bounded by the coherence on a bounded input domain
    Equation: alpha <- alpha + step e k / (epsilon + |k|^2)
    Variance of y: larger than the prior's, and it grows with the data: do not read it as confidence

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    step : float
        The learning rate, stable below 2.
    coherence : float
        In (0, 1]. A sample becomes a center if its coherence with every center is at most this value.
    epsilon : float
        Regularizes the normalization.
    engine, dtype : str
        See :class:`~onlinegp.models.recipe.RecipeRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.KNLMS(ogp.kernels.RBF(1.0), coherence=0.95).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    >>> model.size_ < 30
    True

    References
    ----------
    Richard, Bermudez and Honeine, "Online prediction of time series data with kernels", IEEE Trans. Signal Processing,
    2009.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    step: float = 0.5
    coherence: float = 0.95
    epsilon: float = 1e-2

    shared: ClassVar[dict[str, str]] = {"engine": "auto", "dtype": "float64"}
    facts: ClassVar[Facts] = Facts(remedy=REMEDY)

    def recipe(self) -> Recipe:
        return Recipe(
            self._kernel(),
            Isotropic(positive(step=self.step), positive(epsilon=self.epsilon)),
            dictionary=Coherence(fraction(coherence=self.coherence)),
        )
