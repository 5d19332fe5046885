"""Online Gaussian process regression."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import ClassVar

from onlinegp.checks import count, positive
from onlinegp.kernels import Kernel
from onlinegp.models.facts import Facts
from onlinegp.models.recipe import RecipeRegressor, parameters
from onlinegp.models.rls.krlst import JITTER
from onlinegp.recipes.beliefs import Exact, Posterior
from onlinegp.recipes.pruning import LeastError
from onlinegp.recipes.update import Recipe


@parameters
class OnlineGP(RecipeRegressor):
    """Gaussian process regression, one sample at a time.

    Without a budget it is exact: after every sample, mean and variance equal batch GP regression on all data so far
    (paper, eq. 2), at O(m^2) per sample and O(m^2) memory, where m is the number of samples. With a budget, the
    dictionary keeps the centers that matter most to the mean. Their posterior contains what was learned from all
    samples; this is KRLST without forgetting.

    Cost: O(m^2) per sample and in memory, m the number of samples; O(M^2) with a budget of M
    Memory: O(m^2), grows, or O(M^2) with a budget of M
    Equation: mean = k' (K + noise I)^-1 y, variance of f = k(x, x) - k' (K + noise I)^-1 k, updated per sample
    Variance of y: exact, as for batch GP regression on all samples so far; with a budget, through M centers

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    noise : float
        The variance of the noise in y.
    budget : int or None
        The largest number of centers; None lets it grow without bound. Set a budget for streams of many thousand rows.
    engine : str
        See :class:`~onlinegp.models.recipe.RecipeRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.OnlineGP(ogp.kernels.RBF(1.0), noise=1e-3).fit(X[:100], y[:100])
    >>> batch = ogp.GPRegression(ogp.kernels.RBF(1.0), noise=1e-3).fit(X[:100], y[:100])
    >>> np.allclose(model.predict(X), batch.predict(X))
    True

    References
    ----------
    Csato and Opper, "Sparse on-line Gaussian processes", Neural Computation, 2002; in the form of the paper, eqs. 3 and
    4.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    noise: float = 1e-2
    budget: int | None = None

    facts: ClassVar[Facts] = Facts(bounded=False, bounded_by="budget")

    def recipe(self) -> Recipe:
        noise = positive(noise=self.noise)
        if self.budget is None:
            return Recipe(self._kernel(), Exact(noise))
        unbounded = "Use budget=None for an unlimited number of centers."
        return Recipe(
            self._kernel(),
            Posterior(noise, JITTER),
            pruning=LeastError(count(unbounded, budget=self.budget)),
        )
