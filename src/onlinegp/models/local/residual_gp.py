"""Gaussian process on current residuals."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

from onlinegp.checks import Array, choice, count
from onlinegp.kernels import Kernel
from onlinegp.models.facts import Facts
from onlinegp.models.local.estimator import NeighborsRegressor
from onlinegp.models.local.learner import LocalLearner
from onlinegp.models.local.residual import ResidualLearner, ResidualPrior
from onlinegp.models.recipe import parameters
from onlinegp.state import dump


@parameters
class ResidualGP(NeighborsRegressor):
    """Gaussian process on residuals: kernel weights for all rows, and an exact GP on the nearest residuals.

        r = y - (K + noise I) alpha
        mean = k'alpha + w'r_N,   w = (K_N + noise I)^-1 k_N,   N the nearest rows

    Learning a row solves for its weight, together with the weights of the `refits` neighbors with the largest
    residuals. This is an exact step of block coordinate descent on the objective of the GP, so it cannot diverge. O(n d
    + k^3) per row with n the stored rows and k the neighbors. Without neighbors this is KLMS, without weights LocalGP,
    and if all rows are neighbors the exact GP.

    Use it for smooth functions of several inputs with little noise, where the neighbors alone are not enough and the
    exact GP is too slow. If the kernel does not fit the data, :class:`LocalGP` can be better: mix both with
    :class:`Mixture`, which computes both at the cost of one. Do not use it if the data must not be stored.

    Cost: O(n d + k^3) per sample with n the stored rows and k the neighbors, O(n d) memory
    Memory: O(n d), grows, or O(N d) with store=N
    Equation: mean = k' alpha + k_N' (K_N + noise I)^-1 r_N with r = y - (K + noise I) alpha
    Variance of y: from the k nearest rows, never below the exact variance; its scale is learned from errors

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    noise : float
        The variance of the noise in y.
    neighbors : int
        The number of rows whose residuals correct a prediction; zero for no correction.
    refits : int
        The number of neighbors with weights that each new row changes. Each costs an additional kernel row; 1 is a good
        value.
    store : int, optional
        The number of most recent rows to keep; all if None. When a row is removed, the nearest rows are refitted.
    forgetting : float
        A factor lambda in (0, 1]; 1 forgets nothing. Rows that are n apart in time have the covariance k(x, z)
        lambda^(n / 2), as for :class:`LocalGP`. The learned power and the linear part forget by the same factor.
    power : {"learned", "fixed"}
        Whether to learn the scale of the variance from the errors. Without this, the variance is never below the
        variance of the exact GP, and often much larger.
    linear : bool
        Whether to add a linear function of the inputs, learned by least squares over all rows. Its weights have the
        prior variance one: standardize the data with :class:`~onlinegp.Scaled`.
    engine : {"auto", "native", "python"}
        See :class:`~onlinegp.models.recipe.RecipeRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> import onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-2, 2, (1000, 4))
    >>> y = np.sin(X[:, 0] + X[:, 1]) * X[:, 2]
    >>> local = ogp.run(ogp.LocalGP(ogp.kernels.RBF(1.5), noise=1e-3, neighbors=16), X, y)
    >>> residual = ogp.run(ogp.ResidualGP(ogp.kernels.RBF(1.5), noise=1e-3, neighbors=16), X, y)
    >>> bool(np.mean((residual.mean - y) ** 2) < 0.8 * np.mean((local.mean - y) ** 2))
    True

    References
    ----------
    Coordinate descent: Wu, Wenger, Jones, Pleiss and Gardner, "Large-scale Gaussian processes via alternating
    projection", AISTATS 2024; nearest rows: Vecchia, "Estimation and model identification for continuous spatial
    processes", J. Royal Statistical Society B, 1988. Their combination on current residuals is this library's.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    noise: float = 1e-2
    neighbors: int = 64
    refits: int = 1
    store: int | None = None
    forgetting: float = 1.0
    power: str = "learned"
    linear: bool = False
    engine: str = "auto"

    facts: ClassVar[Facts] = Facts(bounded=False, bounded_by="store")
    readable: ClassVar[type[LocalLearner]] = ResidualLearner
    fewest_neighbors: ClassVar[int] = 0
    neighbors_remedy: ClassVar[str] = "64 is a good start; 0 is KLMS."

    @property
    def alpha_(self) -> Array:
        """The weights of the stored rows, the oldest first, (n,) or (n, outputs)."""
        return self._of_rows("alpha")

    @property
    def residuals_(self) -> Array:
        """The residuals y - (K + noise I) alpha at the stored rows, (n,) or (n, outputs)."""
        return self._of_rows("r")

    def _of_rows(self, name: str) -> Any:
        values = dump(self._working)[name]
        return values[:, 0].copy() if self._single else values

    def prior(self) -> ResidualPrior:
        if not isinstance(self.linear, bool):
            raise TypeError(f"linear must be True or False, got {self.linear!r}.")
        return ResidualPrior(
            **vars(super().prior()),
            refits=count("1 is a good start.", 0, refits=self.refits),
            learn_power=choice(("learned", "fixed"), power=self.power) == "learned",
            linear=self.linear,
        )
