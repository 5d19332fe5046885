"""Sliding-window kernel recursive least squares."""

from __future__ import annotations

from dataclasses import KW_ONLY

from onlinegp.checks import count, positive
from onlinegp.kernels import Kernel
from onlinegp.models.recipe import RecipeRegressor, parameters
from onlinegp.recipes.beliefs import Exact
from onlinegp.recipes.pruning import Oldest
from onlinegp.recipes.update import Recipe


@parameters
class SWKRLS(RecipeRegressor):
    """Sliding-window KRLS: exact GP regression on the last `budget` samples.

    Samples outside the window have no influence. The variance is exact for the window.

    Cost: O(M^2) per sample with M the budget, O(M^2) memory
    Memory: O(M^2) with M the budget
    Equation: mean = k' (K + noise I)^-1 y over the last M samples
    Variance of y: exact for the last M samples

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    noise : float
        The variance of the noise in y; the ridge penalty of kernel least squares.
    budget : int
        The length of the window.
    engine : str
        See :class:`~onlinegp.models.recipe.RecipeRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.kafbox.SWKRLS(ogp.kernels.RBF(1.0), noise=1e-3, budget=50).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    >>> model.size_
    50

    References
    ----------
    Van Vaerenbergh, Via and Santamaria, "A sliding-window kernel RLS algorithm and its application to nonlinear channel
    identification", ICASSP 2006.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    noise: float = 1e-2
    budget: int = 100

    def recipe(self) -> Recipe:
        return Recipe(
            self._kernel(),
            Exact(positive(noise=self.noise)),
            pruning=Oldest(count(budget=self.budget)),
        )
