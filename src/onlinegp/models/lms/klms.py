"""Kernel least mean squares."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import ClassVar

from onlinegp.checks import positive
from onlinegp.kernels import Kernel
from onlinegp.models.facts import Facts
from onlinegp.models.lms.base import REMEDY
from onlinegp.models.recipe import RecipeRegressor, chosen_dictionary, chosen_pruning, parameters
from onlinegp.recipes.beliefs import Prior
from onlinegp.recipes.dictionaries import Dictionary
from onlinegp.recipes.pruning import Pruning
from onlinegp.recipes.update import Recipe


@parameters
class KLMS(RecipeRegressor):
    """Kernel least mean squares: every sample becomes a center, and its weight is step times its error.

        alpha <- [alpha; step e]                                                    (paper, eq. 9)

    As an online GP, KLMS keeps the prior covariance as the posterior covariance, with noise = 1 / step - k(x, x). The
    variance of y is 1 / step everywhere and does not shrink.

    Use it as the baseline of its family. Do not use it for intervals. On a long stream, use it with a dictionary or
    pruning: otherwise the cost grows with each sample.

    Differs from KAFBOX: KAFBOX stops learning at M centers. Here the dictionary grows, or `pruning` removes a center
    for each new one.

    Cost: O(m) per sample; m grows by one with each, unless a dictionary or pruning bounds it
    Memory: O(m d), grows by one center per sample, or as the dictionary or pruning bounds it
    Equation: alpha <- [alpha; step e]
    Variance of y: 1 / step everywhere: the prior variance plus the noise that the step implies; it never shrinks

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    step : float
        The learning rate. Stable below 2 / k(x, x).
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
    >>> model = ogp.KLMS(ogp.kernels.RBF(1.0), step=0.5).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    >>> model.size_
    500

    References
    ----------
    Liu, Pokharel and Principe, "The kernel least-mean-square algorithm", IEEE Trans. Signal Processing, 2008.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    step: float = 0.5
    dictionary: Dictionary | None = None
    pruning: Pruning | None = None

    shared: ClassVar[dict[str, str]] = {"engine": "auto", "dtype": "float64"}
    facts: ClassVar[Facts] = Facts(bounded=False, remedy=REMEDY)

    def recipe(self) -> Recipe:
        return Recipe(
            self._kernel(),
            Prior(positive(step=self.step)),
            dictionary=chosen_dictionary(self.dictionary),
            pruning=chosen_pruning(self.pruning),
        )
