"""Find the most likely kernels and noise for a function that does not change over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinegp.batch.likelihood import at, log_marginal_likelihood
from onlinegp.batch.maximum_posterior import (
    NOISE,
    NOISE_SHARE,
    REACH,
    Clock,
    Prior,
    Progress,
    effort,
    planned,
    posterior_loss,
    search,
)
from onlinegp.checks import Array, check_Xy, count
from onlinegp.kernels import RBF, Kernel, Linear, Matern32, Matern52, Scaled, Sum
from onlinegp.kernels.stationary import Stationary
from onlinegp.models.rls.krlst import KRLST
from onlinegp.processes import Jobs, in_parallel, single_threaded_blas

# The smallest noise, as a share of k(x, x). Chosen on Lorenz: solves for 64 neighbors are accurate far below it, and
# 1e-7 would cost four nats per row, because the amplitude is a thousand times the power. On Mackey-Glass and Santa Fe
# the noise is larger anyway.
NOISE_FLOOR = 1e-10
STARTS = (  # length scales / sqrt(d), and noise
    (0.5, 1e-1),  # short
    (2.0, 1e-2),  # long
    (1.0, 0.5),  # noisy
    (4.0, 1e-4),  # smooth
)
# Length scales relative to a Matern 5/2 kernel on the same data, for searches that start from a kernel of another
# shape. Chosen on KIN40K and cadata, checked on Santa Fe and a random function.
RELATIVE_LENGTH: dict[Any, float] = {Matern32: 1.5, Matern52: 1.0, RBF: 0.6}
MORE_NOISE = (1.0, 10.0, 100.0)  # noise relative to the noise of the other shape
MAX_ISOTROPIC_ROWS = 24  # for more rows, decompositions would start threads
ISOTROPIC = (1.0, 2.5, 6.0)  # length scales / sqrt(d), if there are few rows


@dataclass(frozen=True)
class Hyperparameters:
    """A tuned kernel and noise, the result of `estimate_hyperparameters` and `likely_kernels`.

    Attributes
    ----------
    kernel : Kernel
        The prior covariance of f, amplitude included.
    noise : float
        The variance of the noise in y.
    forgetting : float
        The forgetting factor lambda of KRLS-T, in (0, 1]; 1 means that the function does not change.
    log_likelihood : float
        The log likelihood of the rows that were used, summed over outputs.
    rows : int
        The number of rows that were used.
    """

    kernel: Kernel
    noise: float
    forgetting: float
    log_likelihood: float
    rows: int = 1

    @property
    def log_evidence(self) -> float:
        """The log likelihood per row: the mean log density of a row given all earlier rows."""
        return self.log_likelihood / self.rows

    def krlst(self, budget: int = 100) -> KRLST:
        """Return a KRLS-T with these hyperparameters."""
        return KRLST(self.kernel, noise=self.noise, budget=budget, forgetting=self.forgetting)


@dataclass(frozen=True)
class Family:
    """Covariances c k(x, z), where k has a given shape and a length scale per column. With `linear`, add v x.z + b."""

    shape: Callable[[tuple[float, ...]], Kernel]
    linear: bool = False

    def kernel(self, scales: tuple[float, ...]) -> Kernel:
        """Return the covariance of the family with these length scales."""
        kernel = 1.0 * self.shape(scales)
        return kernel + (Linear(0.1) + 0.1) if self.linear else kernel


ROUGH, MATERN, SMOOTH = Family(Matern32), Family(Matern52), Family(RBF)
MATERN_LINEAR, SMOOTH_LINEAR = (Family(one.shape, linear=True) for one in (MATERN, SMOOTH))


@single_threaded_blas
def likely_kernels(
    X: ArrayLike,
    y: ArrayLike,
    *,
    families: Sequence[Family] = (MATERN, SMOOTH),
    rows: int = 1000,
    seconds: float = np.inf,
    jobs: Jobs = 1,
    progress: Progress = lambda share: None,
    seed: int | np.random.Generator | None = 0,
) -> list[Hyperparameters]:
    """Return the best kernel and noise of each family for the data, the most likely first.

    The search maximizes the posterior density under weak priors. It starts from several points: short and long length
    scales, noisy and smooth. The function is assumed not to change over time.

    Parameters
    ----------
    X, y : array-likes of shape (n, d) and (n,)
        In standard units: each column and the target centered and scaled.
    families : sequence of Family
        If a family with a linear term comes after the same family without it, its search starts from the result of the
        family without it.
    rows : int
        More rows are thinned evenly, because a step of the search costs rows^3.
    seconds : float
        The search ends after about this time, with the best result so far. Without a limit, the result is the same
        in every run, to the last bit.
    jobs : int or Executor, optional
        The number of families to search in parallel, with joblib; None for one per core. It does not affect the result.
    progress : callable
        Called from time to time with the share of finished work, in (0, 1]. With several jobs, called only at the end.
    seed : int, numpy Generator or None
        The seed for the rows of the first stage.

    Examples
    --------
    >>> best, *others = likely_kernels(X, y, families=(MATERN, MATERN_LINEAR))
    """
    X, y = _thinned(X, y, rows)
    alone = [family.linear and Family(family.shape) in families[:i] for i, family in enumerate(families)]
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(y)) for _ in families]
    shapes = list(dict.fromkeys(family.shape for family in families))
    groups = [[(f, order) for f, order in zip(families, orders, strict=True) if f.shape is shape] for shape in shapes]
    if jobs == 1 or len(groups) == 1:
        total = sum(planned(0 if one else len(STARTS), len(y), int(one)) for one in alone)
        clock = Clock(seconds, progress, total=effort(X.shape[1]) * total, effort=effort(X.shape[1]))
        found = [_of_one_shape(group, X, y, clock) for group in groups]
    else:
        found = in_parallel(_within, ((group, X, y, seconds) for group in groups), jobs)
    progress(1.0)
    every = {family: one for group in found for family, one in group.items()}
    return sorted((every[family] for family in dict.fromkeys(families)), key=lambda one: -one.log_likelihood)


Group = list[tuple[Family, NDArray[np.int64]]]  # families of one shape, each with an order of the rows


def _within(group: Group, X: Array, y: Array, seconds: float) -> dict[Family, Hyperparameters]:
    return _of_one_shape(group, X, y, Clock(seconds, effort=effort(X.shape[1])))


def _of_one_shape(group: Group, X: Array, y: Array, clock: Clock) -> dict[Family, Hyperparameters]:
    """Return the best result of each family. A family with a linear term starts from the result without it."""
    found: dict[Family, Hyperparameters] = {}
    for family, order in group:
        plain = found.get(Family(family.shape)) if family.linear else None
        found[family] = _most_likely(family, plain, X, y, order, clock)
    return found


def _most_likely(
    family: Family,
    plain: Hyperparameters | None,
    X: Array,
    y: Array,
    order: NDArray[np.int64],
    clock: Clock,
    quick: bool = False,
) -> Hyperparameters:
    """Return the result of the search, or the center of the prior if no kernel matrix can be factored.

    `plain` is a result for the same family, or for it without the linear term. If given, the search starts only there.
    """
    d = X.shape[1]
    template = family.kernel((1.0,) * d)
    starts = [np.append(family.kernel((scale * np.sqrt(d),) * d).theta, np.log(noise)) for scale, noise in STARTS]
    if (gaps := _gaps(X)).any():  # perhaps numbers of things, which have little in common
        scales = np.where(gaps > 0.0, 0.5 * gaps, np.sqrt(d))
        starts.append(np.append(family.kernel(tuple(scales)).theta, np.log(1e-2)))
    later = []
    if plain is not None:
        linear = template.theta[plain.kernel.theta.size :]
        later = [np.concatenate([plain.kernel.theta, linear, [np.log(plain.noise)]])]
        if isinstance(plain.kernel, Scaled) and type(plain.kernel.kernel) is not family.shape:
            ratio = RELATIVE_LENGTH[family.shape] / RELATIVE_LENGTH[type(plain.kernel.kernel)]
            later = [_converted(later[0], ratio, template, X, y)]
        starts = []
    try:
        kernel, noise = search(template, starts, X, y, later=later, order=order, clock=clock, quick=quick)
    except np.linalg.LinAlgError:
        kernel, noise = at(template, Prior.of(template, X, y).mean)
    noise = max(noise, NOISE_FLOOR * float(np.mean(kernel.diag(X))))
    return Hyperparameters(kernel, noise, 1.0, log_marginal_likelihood(kernel, noise, X, y), len(y))


def _gaps(X: Array) -> Array:
    """Return the median difference of neighboring values of each column, or zero if few values repeat."""
    found = np.zeros(X.shape[1])
    for j, column in enumerate(X.T):
        values = np.unique(column)
        if 2 < len(values) <= len(column) // 2:
            found[j] = np.median(np.diff(values))
    return found


def _converted(theta: Array, ratio: float, template: Kernel, X: Array, y: Array) -> Array:
    """Return a start for another shape: all length scales times `ratio`, and more noise if that is more likely."""
    d, prior = X.shape[1], Prior.of(template, X, y)
    theta[:d] += np.log(ratio)
    starts = [np.append(theta[:-1], theta[-1] + np.log(more)) for more in MORE_NOISE]
    return min(starts, key=lambda start: posterior_loss(template, start, prior, X, y)[0])


@single_threaded_blas
def quickly_likely_kernels(
    X: ArrayLike,
    y: ArrayLike,
    *,
    families: Sequence[Family] = (MATERN, SMOOTH),
    start: Hyperparameters | None = None,
    progress: Progress = lambda share: None,
) -> list[Hyperparameters]:
    """Return a likely kernel and noise of each family, the most likely first, much faster than `likely_kernels`.

    The search of the first family starts from `start`, or from several points if `start` is None. Other families start
    from the best result so far without a linear term.
    """
    X, y = _thinned(X, y, 500)
    order = np.random.default_rng(0).permutation(len(y))
    found: dict[Family, Hyperparameters] = {}
    for i, family in enumerate(families):
        plain = [one for earlier, one in found.items() if not earlier.linear]
        best = max(plain, key=lambda one: one.log_likelihood, default=start)
        clock = Clock(effort=effort(X.shape[1]))
        found[family] = _most_likely(family, best, X, y, order, clock, quick=True)
        progress((i + 1) / len(families))
    return sorted(found.values(), key=lambda one: -one.log_likelihood)


def likely_isotropic(X: Array, y: Array, *, family: Family) -> Hyperparameters:
    """Return the most likely of a few kernels with a common length scale for all columns. Fast, for few rows."""
    pick = np.unique(np.linspace(0, len(X) - 1, min(len(X), MAX_ISOTROPIC_ROWS)).astype(int))
    X, y, d = X[pick], y[pick], X.shape[1]
    r2 = ((X[:, None, :] - X) ** 2).sum(axis=2) / d
    trials = []
    for scale in ISOTROPIC:
        kernel, stationary = family.kernel((scale * np.sqrt(d),) * d), family.shape((1.0,))
        assert isinstance(stationary, Stationary)
        K = stationary.of(r2 / scale**2)
        if isinstance(kernel, Sum):
            K = K + kernel.right(X)
        trials.append(_likely_noise(kernel, K, X, y, trials=50))
    return max(trials, key=lambda one: one.log_likelihood)


@single_threaded_blas
def likely_noise(kernel: Kernel, X: ArrayLike, y: ArrayLike) -> Hyperparameters:
    """Return the given kernel with the best noise for the data, from a fine grid.

    A single decomposition serves all noises: with K = U diag(s) U' and z = U' y, up to a constant,

        log N(y | 0, K + noise I) = -1/2 sum_i [z_i^2 / (s_i + noise) + log(s_i + noise)]
    """
    X, y = _thinned(X, y, 1000)
    return _likely_noise(kernel, kernel(X), X, y, trials=1000)


def _likely_noise(kernel: Kernel, K: Array, X: Array, y: Array, *, trials: int) -> Hyperparameters:
    s, U = np.linalg.eigh(K)
    z2 = ((U.T @ y.reshape(len(y), -1)) ** 2).sum(axis=1)
    floor = NOISE_FLOOR * float(np.mean(kernel.diag(X)))
    u = np.linspace(-REACH, REACH, trials)  # log noise, in standard deviations of its prior
    noises = np.maximum(NOISE_SHARE * float(np.mean(y**2)) * np.exp(NOISE * u), floor)
    variances = np.maximum(s, 0.0) + noises[:, None]  # (trials, n)
    likelihood = -0.5 * (z2 / variances + y[0].size * np.log(2.0 * np.pi * variances)).sum(axis=1)
    best = np.argmax(likelihood - 0.5 * u**2)
    return Hyperparameters(kernel, float(noises[best]), 1.0, float(likelihood[best]), len(y))


def linear_noise(Z: Array, T: Array) -> float:
    """Return the variance of the residuals of linear regression."""
    A = np.column_stack([Z, np.ones(len(Z))])
    w = np.linalg.solve(A.T @ A + np.eye(A.shape[1]), A.T @ T)
    return max(float(np.mean((T - A @ w) ** 2)), NOISE_FLOOR)


def _thinned(X: ArrayLike, y: ArrayLike, rows: int) -> tuple[Array, Array]:
    """Return at most `rows` rows, evenly spaced."""
    X, y = check_Xy(X, y)
    refuse_zero(y)
    n = min(count("A thousand is plenty.", rows=rows), len(X))
    pick = np.unique(np.linspace(0, len(X) - 1, n).astype(int))
    return X[pick], y[pick]


def refuse_zero(y: Array) -> None:
    if not np.any(y):
        raise ValueError(
            "y must not be zero everywhere: hyperparameters cannot be estimated from it. Pass more of the stream."
        )
