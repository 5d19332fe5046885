"""Naive online regularized risk minimization, with a window."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import ClassVar

from onlinegp.checks import count, non_negative, positive
from onlinegp.kernels import Kernel
from onlinegp.models.facts import Facts
from onlinegp.models.lms.base import REMEDY
from onlinegp.models.recipe import RecipeRegressor, parameters
from onlinegp.recipes.beliefs import Prior
from onlinegp.recipes.forgetting import Leak
from onlinegp.recipes.pruning import Oldest
from onlinegp.recipes.update import Recipe


@parameters
class NORMA(RecipeRegressor):
    """NORMA with squared loss: KLMS with shrinking weights and a sliding window of `budget` centers.

        alpha <- [(1 - step leak) alpha; step e],   e the error of the shrunken weights

    The paper uses the error before shrinking, which differs by step leak times the mean. The variance of y is 1 / step
    everywhere, as for KLMS.

    Use it if only the last `budget` samples may count, at a cost of O(m). Choose leak and budget such that (1 - step
    leak)^budget is small: otherwise centers are removed while their weights are still large, which causes errors.

    Differs from KAFBOX: KAFBOX has a parameter `tcoeff` for a decaying step, but never uses it. Here the step is
    constant, so that the model can follow changes.

    Cost: O(M) per sample with M the budget
    Memory: O(M d) with M the budget
    Equation: alpha <- [(1 - step leak) alpha; step e], e the error after shrinking
    Variance of y: 1 / step everywhere, as for KLMS; it never shrinks

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    step : float
        The learning rate.
    leak : float
        The ridge penalty. Step times leak must be less than 1.
    budget : int
        The largest number of centers. Beyond it, the oldest center is removed.
    engine, dtype : str
        See :class:`~onlinegp.models.recipe.RecipeRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.kafbox.NORMA(ogp.kernels.RBF(1.0), step=0.5, leak=1e-3, budget=200).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    >>> model.size_
    200

    References
    ----------
    Kivinen, Smola and Williamson, "Online learning with kernels", IEEE Trans. Signal Processing, 2004.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    step: float = 0.5
    leak: float = 1e-2
    budget: int = 500

    shared: ClassVar[dict[str, str]] = {"engine": "auto", "dtype": "float64"}
    facts: ClassVar[Facts] = Facts(remedy=REMEDY)

    def recipe(self) -> Recipe:
        return Recipe(
            self._kernel(),
            Prior(positive(step=self.step)),
            forgetting=Leak(self._rate()),
            pruning=Oldest(count(budget=self.budget)),
        )

    def _rate(self) -> float:
        rate = positive(step=self.step) * non_negative(leak=self.leak)
        if rate >= 1.0:
            raise ValueError(
                f"leak must be less than 1 / step = {1 / self.step:g}, got {self.leak!r}. Lower leak or step."
            )
        return rate
