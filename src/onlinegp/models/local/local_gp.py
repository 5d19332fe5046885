"""Gaussian process on the nearest rows."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import ClassVar

from onlinegp.kernels import Kernel
from onlinegp.models.facts import Facts
from onlinegp.models.local.estimator import NeighborsRegressor
from onlinegp.models.recipe import parameters


@parameters
class LocalGP(NeighborsRegressor):
    """Gaussian process on the nearest rows: store all data, and predict y at x from the rows nearest to x.

    O(n d + k^3) per prediction with n the stored rows and k the neighbors; learning is almost free. While there are no
    more rows than neighbors, this is the exact GP. Use it for large data with few inputs, where models with a budget of
    centers are not accurate enough. Predictions jump slightly where the neighbors change. Do not use it if the data
    must not be stored.

    Cost: O(n d + k^3) per prediction with n the stored rows and k the neighbors, O(n d) memory
    Memory: O(n d), grows, or O(N d) with store=N
    Equation: mean = k' (K + noise I)^-1 y over the k stored rows nearest to x
    Variance of y: exact for the k nearest rows

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    noise : float
        The variance of the noise in y.
    neighbors : int
        The number of nearest rows that a prediction uses.
    store : int, optional
        The number of most recent rows to keep; all if None.
    forgetting : float
        A factor lambda in (0, 1]; 1 forgets nothing. Rows that are n apart in time have the covariance k(x, z)
        lambda^(n / 2), the model of :func:`~onlinegp.estimate_hyperparameters`. A prediction is for the next row.
    engine : {"auto", "native", "python"}
        See :class:`~onlinegp.models.recipe.RecipeRegressor`.

    Notes
    -----
    The nearest rows have the smallest r2 + n log(1 / lambda), where r2 is the kernel's scaled squared distance and n
    the age in rows. Ties go to the newer row. For an RBF these rows have the largest covariance; the rule is the same
    for all kernels. In a sum or product, the r2 of all stationary and periodic parts are added; linear, polynomial and
    constant parts do not count. A kernel with only such parts, or your own kernel, has the Euclidean distance (see
    :mod:`onlinegp.models.local.distance`).

    Redundant neighbors are left out, such as duplicates when there is hardly any noise.

    Examples
    --------
    >>> import numpy as np
    >>> import onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (2000, 2))
    >>> model = ogp.LocalGP(ogp.kernels.Matern52(1.0), noise=1e-3).fit(X, np.sin(X[:, 0]) * X[:, 1])
    >>> mean, std = model.predict([[1.0, 2.0]], return_std=True)

    References
    ----------
    Vecchia, "Estimation and model identification for continuous spatial processes", J. Royal Statistical Society B,
    1988; Datta, Banerjee, Finley and Gelfand, "Hierarchical nearest-neighbor Gaussian process models for large
    geostatistical datasets", J. American Statistical Association, 2016.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    noise: float = 1e-2
    neighbors: int = 64
    store: int | None = None
    forgetting: float = 1.0
    engine: str = "auto"

    facts: ClassVar[Facts] = Facts(bounded=False, bounded_by="store")
