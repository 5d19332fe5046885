"""Quantized kernel least mean squares."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import ClassVar

from onlinegp.checks import non_negative, positive
from onlinegp.kernels import Kernel
from onlinegp.models.facts import Facts
from onlinegp.models.lms.base import REMEDY
from onlinegp.models.recipe import RecipeRegressor, parameters
from onlinegp.recipes.beliefs import Prior
from onlinegp.recipes.dictionaries import Quantized
from onlinegp.recipes.update import Recipe


@parameters
class QKLMS(RecipeRegressor):
    """Quantized KLMS: a sample within `radius` of a center corrects the weight of that center.

    O(m) per sample; m is bounded by the number of balls of this radius that cover the inputs. The variance of y is 1 /
    step everywhere, as for KLMS.

    Use it if you need only the mean and have about a microsecond per row. For intervals use :class:`~onlinegp.KRLST`.

    Cost: O(m) per sample; m is bounded by the radius on a bounded input domain
    Memory: O(m d), bounded by the radius on a bounded input domain
    Equation: alpha_i <- alpha_i + step e at the nearest center i, or a new center as in KLMS
    Variance of y: 1 / step everywhere, as for KLMS; it never shrinks

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    step : float
        The learning rate. Stable below 2 / k(x, x).
    radius : float
        The quantization radius, a Euclidean distance in the units of the inputs. Zero merges only equal inputs.
    engine, dtype : str
        See :class:`~onlinegp.models.recipe.RecipeRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.QKLMS(ogp.kernels.RBF(1.0), step=0.5, radius=0.2).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    >>> model.size_ < 30
    True

    References
    ----------
    Chen, Zhao, Zhu and Principe, "Quantized kernel least mean square algorithm", IEEE Trans. Neural Networks and
    Learning Systems, 2012.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    step: float = 0.5
    radius: float = 0.3

    shared: ClassVar[dict[str, str]] = {"engine": "auto", "dtype": "float64"}
    facts: ClassVar[Facts] = Facts(remedy=REMEDY)

    def recipe(self) -> Recipe:
        return Recipe(
            self._kernel(),
            Prior(positive(step=self.step)),
            dictionary=Quantized(non_negative(radius=self.radius)),
        )
