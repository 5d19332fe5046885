"""Mixtures of a normal and of Student's t distributions around one mean."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import Array
from onlinegp.predictions.base import Predictions
from onlinegp.predictions.kinds import HALF_LOG_2PI, Gaussian, StudentT, student_constant
from onlinegp.predictions.mixture import MixtureOf, log_of_sum


@dataclass(frozen=True, eq=False)
class ScaleMixture(Predictions):
    """Mixtures of a normal distribution and of Student's t, which have one mean and several scales.

    It is the :class:`MixtureOf` its `members`, computed for all of them at once: what `HeavyTailed` predicts.

    Attributes
    ----------
    weights : (n, 1 + k) or (n, outputs, 1 + k), which sum to one: of the normal, then of each t distribution
    mean : (n,) or (n, outputs)
    scales : of the shape of the weights; positive
    degrees : k numbers greater than two, the degrees of freedom of the t distributions
    """

    weights: Array
    mean: Array
    scales: Array
    degrees: tuple[float, ...]

    @cached_property
    def members(self) -> tuple[Predictions, ...]:
        """The distributions that are mixed."""
        students = enumerate(self.degrees, start=1)
        normal = Gaussian(self.mean, self.scales[..., 0])
        return normal, *(StudentT(self.mean, self.scales[..., k], nu) for k, nu in students)

    @cached_property
    def std(self) -> Array:  # type: ignore[override]
        # var = sum of w_k s_k^2 nu_k / (nu_k - 2)
        factors = np.array([1.0, *(nu / (nu - 2.0) for nu in self.degrees)])
        return np.sqrt((self.weights * self.scales**2 * factors).sum(axis=-1))

    def log_densities(self, y: ArrayLike) -> Array:
        """Return the log density that each member gives to y, of the shape of the weights."""
        e = (self._values(y) - self.mean)[..., None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            r2 = np.where(e == 0.0, 0.0, e / self.scales) ** 2
            density = np.empty(r2.shape)
            density[..., 0] = -0.5 * r2[..., 0] - HALF_LOG_2PI
            for k, nu in enumerate(self.degrees, start=1):
                density[..., k] = student_constant(nu) - 0.5 * (nu + 1.0) * np.log1p(r2[..., k] / nu)
            density -= np.log(self.scales)
        return np.where(np.isinf(r2), -np.inf, density)

    def log_density(self, y: ArrayLike) -> Array:
        return log_of_sum(self.weights, self.log_densities(y))

    def cdf(self, y: ArrayLike) -> Array:
        return self._mixture.cdf(y)

    def survival(self, y: ArrayLike) -> Array:
        return self._mixture.survival(y)

    def quantile(self, p: float) -> Array:
        return self._mixture.quantile(p)

    def affine(self, center: Array | float, scale: Array | float) -> ScaleMixture:
        return ScaleMixture(
            self.weights, center + scale * self.mean, np.asarray(scale)[..., None] * self.scales, self.degrees
        )

    def kind(self) -> Any:
        return type(self), self.degrees

    @cached_property
    def _mixture(self) -> MixtureOf:
        return MixtureOf(self.weights, self.members)
