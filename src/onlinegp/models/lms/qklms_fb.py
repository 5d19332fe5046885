"""Quantized kernel least mean squares with a fixed budget."""

from __future__ import annotations

from dataclasses import KW_ONLY
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine.plan import Plan
from onlinegp.kernels import Kernel
from onlinegp.models.expansion import Expansion, ExpansionLearner
from onlinegp.models.facts import Facts
from onlinegp.models.lms.base import REMEDY, ExpansionRegressor, checked
from onlinegp.models.recipe import parameters
from onlinegp.models.rowwise import StepLearner
from onlinegp.recipes.pruning import oldest_of_least


class QKLMSFBLearner(ExpansionLearner):
    """Quantized KLMS that keeps, for each center i, its influence and the density of the samples around it.

    The influence lambda_i is the number of samples that were quantized to i, where older samples count less, and

        density_i = sum_j lambda_j |k(c_i, c_j)|,     significance_i = |alpha_i| density_i

    The significance is, up to a factor, the integral of alpha_i k(c_i, x) over a kernel density estimate of the inputs.
    The paper updates the significance. This code updates the density, which is equivalent and needs no division.
    """

    def __init__(
        self,
        kernel: Kernel,
        features: int,
        outputs: int,
        *,
        step: float,
        radius: float,
        budget: int,
        forgetting: float,
    ) -> None:
        super().__init__(Expansion(kernel, features, outputs, also=("influence", "density"), most=budget))
        self.step, self.radius, self.budget, self.forgetting = step, radius, budget, forgetting

    def leaf_plan(self) -> Plan:
        numbers = {"step": self.step, "radius": self.radius, "budget": self.budget, "forgetting": self.forgetting}
        return Plan("significant centers", self, numbers, kernels=self.kernels)

    def look(self, x: Array) -> tuple[Array, float, tuple[Array, float]]:
        k, mean = self.f.at(x)
        kxx = self.f.diagonal(x)
        return mean, sqrt(max(1.0 / self.step, kxx)), (k, kxx)

    def correct(self, x: Array, y: Array, e: Array, seen: tuple[Array, float]) -> None:
        k, kxx = seen
        if self.f.size:
            j, d2 = self.f.nearest(x)
            if d2 <= self.radius**2:
                self.quantize(j, e)
                return
            if self.f.size == self.budget:
                j = oldest_of_least(self.significance(), np.arange(self.f.size))
                e = e + k[j] * self.f.weights[j]  # the error of the prediction without center j
                k = np.delete(k, j)
                self.discard(j)
        self.admit(x, k, kxx, e)

    def significance(self) -> Array:
        """Return the significance of each center, (m,)."""
        weights = self.f.weights
        size = np.abs(weights[:, 0]) if self.outputs == 1 else np.sqrt((weights * weights).sum(axis=1))
        return size * self.f.numbers("density")

    def quantize(self, j: int, e: Array) -> None:
        """Correct the weight of center j, to which the sample is quantized."""
        self.f.weights[j] += self.step * e
        self.count(np.abs(self.f.at(self.f.center(j))[0]))
        self.f.numbers("influence")[j] += 1.0

    def discard(self, j: int) -> None:
        """Remove center j, and subtract its contribution to the other densities."""
        k = self.f.at(self.f.center(j))[0]
        density = self.f.numbers("density")
        density -= self.f.numbers("influence")[j] * np.abs(k)
        np.maximum(density, 0.0, out=density)  # negative values are rounding errors
        self.f.remove(j)

    def admit(self, x: Array, k: Array, kxx: float, e: Array) -> None:
        """Add x as a center. `k` is its kernel row with the other centers."""
        k = np.abs(k)
        self.count(k)
        self.f.append(x, self.step * e, influence=1.0, density=float(self.f.numbers("influence") @ k) + kxx)

    def count(self, k: Array) -> None:
        """Fade influences and densities, then add |k| (m,), the kernel row of a sample, to the densities."""
        influence, density = self.f.numbers("influence"), self.f.numbers("density")
        influence *= self.forgetting
        density *= self.forgetting
        density += k


@parameters
class QKLMSFB(ExpansionRegressor):
    """Quantized KLMS with a fixed budget: the least significant center is removed.

        significance_i = |alpha_i| sum_j lambda_j |k(c_i, c_j)|

    lambda_j is the number of samples that were quantized to center j; older samples count less.

    O(M) per sample with M the budget. The variance of y is 1 / step everywhere, as for KLMS.

    Use it if QKLMS would have too many centers, or if the inputs move over time. If the radius alone bounds the number
    of centers, use :class:`~onlinegp.QKLMS`: it predicts the same and is simpler.

    Cost: O(M) per sample with M the budget
    Memory: O(M d) with M the budget
    Equation: as QKLMS; the center with the least |alpha_i| sum_j lambda_j |k(c_i, c_j)| is removed
    Variance of y: 1 / step everywhere, as for KLMS; it never shrinks

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    step : float
        The learning rate. Stable below 2 / k(x, x).
    radius : float
        The quantization radius, a Euclidean distance in the units of the inputs. Zero merges only equal inputs.
    budget : int
        The number of centers.
    forgetting : float
        The factor in (0, 1] by which lambda shrinks with each sample.
    engine : str
        See :class:`~onlinegp.models.lms.base.ExpansionRegressor`.

    Notes
    -----
    Differs from KAFBOX: the significance follows its definition. KAFBOX's recursion counts each correction of a weight
    twice, divides by the weight, which may be 0, and gives a new center a different factor.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.kafbox.QKLMSFB(ogp.kernels.RBF(1.0), radius=0.2, budget=20).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    >>> model.size_
    20

    References
    ----------
    Zhao, Chen, Zhu and Principe, "Fixed budget quantized kernel least-mean-square algorithm", Signal Processing, 2013.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    step: float = 0.5
    radius: float = 0.3
    budget: int = 500
    forgetting: float = 0.95

    facts: ClassVar[Facts] = Facts(remedy=REMEDY)

    readable: ClassVar[type[StepLearner]] = QKLMSFBLearner

    def rule(self) -> dict[str, Any]:
        return checked(self, "step", "radius", "budget", "forgetting")
