"""The paper's beta-KLMS."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import ClassVar

from onlinegp.checks import choice, finite, positive
from onlinegp.kernels import Kernel
from onlinegp.models.facts import Facts
from onlinegp.models.lms.base import REMEDY
from onlinegp.models.recipe import RecipeRegressor, chosen_dictionary, chosen_pruning, parameters
from onlinegp.recipes.beliefs import Beta
from onlinegp.recipes.dictionaries import Dictionary
from onlinegp.recipes.pruning import Pruning
from onlinegp.recipes.update import Recipe


@parameters
class BetaKLMS(RecipeRegressor):
    """KLMS as an online GP with the posterior covariance Sigma = K (beta K + I). There is no step to choose.

        alpha <- [alpha; 0] + e / (noise + k(x, x) + beta |k|^2) [beta k; 1]        (paper, eq. 15)

    beta = 0 is KLMS with step 1 / (noise + k(x, x)). beta = 1 is close to KNLMS, and its variance grows with the data.
    With a negative beta the variance shrinks near data, as it should. Sigma is a valid covariance if and only if beta
    >= -1 / lambda_max(K). "auto" sets beta = -1 / (largest kernel row sum + noise), which is provably safe and costs
    O(m) per sample. With pruning, "auto" sets beta = 0: pruning removes the weight of a center, but not the corrections
    that the center made to other weights. With a negative beta these corrections have the opposite sign and accumulate.

    Cost: O(m) per sample; m grows by one with each, unless a dictionary or pruning bounds it
    Memory: O(m d), grows, or as the dictionary or pruning bounds it
    Equation: alpha <- [alpha; 0] + e / (noise + k(x, x) + beta |k|^2) [beta k; 1]
    Variance of y: noise + k(x, x) + beta |k|^2: with beta="auto" it shrinks near data as far as is provably safe, but
        is still too large

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    beta : float or "auto"
        The parameter of the posterior covariance. Below -1 / lambda_max(K), Sigma is not a covariance, and negative
        variances of f are replaced by zero. With pruning, use a value of at least zero.
    noise : float
        The variance of the noise in y.
    dictionary : Dictionary, optional
        Which samples become centers, from :mod:`onlinegp.recipes.dictionaries`; every sample if None.
    pruning : Pruning, optional
        Which center to remove from a full dictionary, from :mod:`onlinegp.recipes.pruning`: ``Oldest(100)`` is a
        sliding window, ``LeastWeight(100)`` a fixed budget. None removes no center.
    engine, dtype : str
        See :class:`~onlinegp.models.recipe.RecipeRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.BetaKLMS(dictionary=ogp.recipes.dictionaries.Quantized(0.2)).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    >>> model.size_ < 30
    True

    References
    ----------
    Van Vaerenbergh, Fernandez-Bes and Elvira, "On the relationship between online Gaussian process regression and
    kernel least mean squares algorithms", MLSP 2016 (the paper). The automatic choice of beta is this library's.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    beta: float | str = "auto"
    noise: float = 1e-2
    dictionary: Dictionary | None = None
    pruning: Pruning | None = None

    shared: ClassVar[dict[str, str]] = {"engine": "auto", "dtype": "float64"}
    facts: ClassVar[Facts] = Facts(bounded=False, remedy=REMEDY)

    def recipe(self) -> Recipe:
        return Recipe(
            self._kernel(),
            Beta(self._beta(), positive(noise=self.noise)),
            dictionary=chosen_dictionary(self.dictionary),
            pruning=chosen_pruning(self.pruning),
        )

    def _beta(self) -> float | str:
        if not isinstance(self.beta, str):
            return finite(beta=self.beta)
        choice(("auto",), beta=self.beta)
        return "auto" if self.pruning is None else 0.0

    @property
    def beta_(self) -> float:
        """The current value of beta; with "auto" it moves towards zero as centers are added."""
        state, belief = self._state, self._recipe.belief
        assert isinstance(belief, Beta)
        return belief.value(state.bound)
