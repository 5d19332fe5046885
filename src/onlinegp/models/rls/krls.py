"""Kernel recursive least squares."""

from __future__ import annotations

from dataclasses import KW_ONLY

from onlinegp.checks import fraction
from onlinegp.kernels import Kernel
from onlinegp.models.recipe import RecipeRegressor, parameters
from onlinegp.recipes.beliefs import LeastSquares
from onlinegp.recipes.dictionaries import ALD
from onlinegp.recipes.update import Recipe


@parameters
class KRLS(RecipeRegressor):
    """Kernel recursive least squares with approximate linear dependence.

    This is least squares over all samples, with functions in the span of the centers. A sample becomes a center if the
    existing centers explain less than 1 - threshold of k(x, x). KRLS does not regularize and does not forget: for noisy
    data use KRLST, or OnlineGP if there are few rows.

    As an online GP, KRLS has a flat prior at the centers. The noise is learned from the innovations and multiplies the
    variance of y, gamma2 + t . S t + 1 (see :class:`~onlinegp.recipes.beliefs.LeastSquares`).

    Differs from KAFBOX: the threshold is relative to k(x, x), so that the centers do not depend on the variance of the
    kernel. For a Gaussian kernel of variance 1 both thresholds are equal.

    Cost: O(m^2) per sample; m is bounded by the threshold on a bounded input domain
    Memory: O(m^2), bounded by the threshold on a bounded input domain
    Equation: least squares over all samples, min |y - K_xc alpha|^2, updated per sample
    Variance of y: as for least squares with a flat prior; the noise is learned from the errors

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    threshold : float
        In (0, 1]. The share of k(x, x) that must be new for x to become a center. Larger values give fewer centers.
    engine : str
        See :class:`~onlinegp.models.recipe.RecipeRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.KRLS(ogp.kernels.RBF(1.0), threshold=0.01).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    >>> model.size_ < 30
    True

    References
    ----------
    Engel, Mannor and Meir, "The kernel recursive least-squares algorithm", IEEE Trans. Signal Processing, 2004.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    threshold: float = 1e-2

    def recipe(self) -> Recipe:
        return Recipe(
            self._kernel(),
            LeastSquares(),
            dictionary=ALD(fraction(threshold=self.threshold)),
            learn_power=True,
        )
