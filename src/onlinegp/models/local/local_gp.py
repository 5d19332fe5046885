"""Gaussian process on the nearest rows."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import ClassVar

from onlinegp.kernels import Kernel
from onlinegp.models.local.estimator import NeighborsRegressor
from onlinegp.models.recipe import parameters


@parameters
class LocalGP(NeighborsRegressor):
    """GP on the nearest rows: it keeps the data, and answers each question with the exact GP on the rows nearest to it.

    O(n d + k^3) per prediction with n the rows kept and k the neighbors; learning costs next to nothing. Equal to the
    exact GP as long as there are no more rows than neighbors. The model to take for many data of few inputs, where no
    budget of centers is enough. Its function jumps a little where the neighbors change. Not for data that must not be
    kept.

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    noise : float
        The variance of the noise in y.
    neighbors : int
        The number of rows that a question is answered from.
    store : int, optional
        The number of rows that are kept, the latest; all if None.
    forgetting : float
        A factor lambda in (0, 1], one for none: rows that are n apart in time have the covariance k(x, z)
        lambda^(n / 2), the model of :func:`~onlinegp.estimate_hyperparameters`. A question is asked of the row that
        comes next.
    engine : {"auto", "native", "python"}
        See :class:`~onlinegp.models.recipe.RecipeRegressor`.

    Notes
    -----
    Near is what has a small r2 + n log(1 / lambda), where r2 is the kernel's own scaled squared distance and n the age
    in rows; of equals the newer. For an RBF that is a large covariance, and the rule is the same for all kernels. In a
    sum or product the r2 of all stationary parts are added; that of a periodic part is measured on its circles. Linear,
    polynomial and constant parts do not count, and a kernel made of these alone, or one of your own, has the plain
    Euclidean distance.

    A neighbor that adds nothing to those before it, such as a copy of another where there is hardly any noise, is left
    out.

    Examples
    --------
    >>> import numpy as np
    >>> import onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (2000, 2))
    >>> model = ogp.LocalGP(ogp.kernels.Matern52(1.0), noise=1e-3).fit(X, np.sin(X[:, 0]) * X[:, 1])
    >>> mean, std = model.predict([[1.0, 2.0]], return_std=True)
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    noise: float = 1e-2
    neighbors: int = 64
    store: int | None = None
    forgetting: float = 1.0
    engine: str = "auto"

    cost: ClassVar[str] = "O(n d + k^3) per prediction with n the rows kept and k the neighbors, O(n d) memory"
    equation: ClassVar[str] = "mean = k' (K + noise I)^-1 y over the k stored rows nearest to x"
    memory: ClassVar[str] = "O(n d), grows, or O(N d) with store=N"
    variance: ClassVar[str] = "exact for the k nearest rows"
    citation: ClassVar[str] = (
        'Vecchia, "Estimation and model identification for continuous spatial processes", J. Royal Statistical '
        'Society B, 1988; Datta, Banerjee, Finley and Gelfand, "Hierarchical nearest-neighbor Gaussian process models '
        'for large geostatistical datasets", J. American Statistical Association, 2016.'
    )
