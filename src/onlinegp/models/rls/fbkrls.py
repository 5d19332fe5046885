"""Fixed-budget kernel recursive least squares."""

from __future__ import annotations

from dataclasses import KW_ONLY

from onlinegp.checks import count, positive
from onlinegp.kernels import Kernel
from onlinegp.models.recipe import RecipeRegressor, parameters
from onlinegp.recipes.beliefs import Exact
from onlinegp.recipes.pruning import LeastError
from onlinegp.recipes.update import Recipe


@parameters
class FBKRLS(RecipeRegressor):
    """Fixed-budget KRLS: exact GP regression on a set of `budget` samples that are hard to predict from each other.

    Removed samples are forgotten. The variance is exact for the kept samples, so it is larger than with all data.

    Cost: O(M^2) per sample with M the budget, O(M^2) memory
    Memory: O(M^2) with M the budget
    Equation: mean = k' (K + noise I)^-1 y over the M samples that are kept
    Variance of y: exact for the M samples that are kept, so larger than with all samples

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    noise : float
        The variance of the noise in y; the ridge penalty of kernel least squares.
    budget : int
        The number of samples to keep; the sample with the smallest leave-one-out error is removed.
    engine : str
        See :class:`~onlinegp.models.recipe.RecipeRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.kafbox.FBKRLS(ogp.kernels.RBF(1.0), noise=1e-3, budget=20).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    >>> model.size_
    20

    References
    ----------
    Van Vaerenbergh, Santamaria, Liu and Principe, "Fixed-budget kernel recursive least-squares", ICASSP 2010.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    noise: float = 1e-2
    budget: int = 100

    def recipe(self) -> Recipe:
        return Recipe(
            self._kernel(),
            Exact(positive(noise=self.noise)),
            pruning=LeastError(count(budget=self.budget)),
        )
