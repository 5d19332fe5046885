"""The marginal likelihood of a Gaussian process, and its maximization."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import Kernel
from onlinegp.predictions import Gaussian

JITTERS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)  # relative to the mean of the diagonal
BLOCK_ROWS = 64
FAILED = 1e25  # the loss if the likelihood cannot be computed; finite because L-BFGS-B requires it


def cholesky(K: Array) -> tuple[Array, float]:
    """Return L with L L' = K + jitter I, and the smallest jitter that works, usually zero.

    Raises
    ------
    numpy.linalg.LinAlgError
        If K is not finite, or not positive definite even with the largest jitter.
    """
    from scipy.linalg.lapack import dpotrf

    if not np.isfinite(K).all():
        raise np.linalg.LinAlgError(
            "the kernel matrix is not finite. Standardize the inputs, or scale the kernel down."
        )
    mean = float(np.mean(np.diagonal(K)))
    for jitter in (mean * relative for relative in JITTERS):
        # K.T is K in Fortran order, so that LAPACK needs no copy
        L, info = dpotrf(K.T + jitter * np.eye(len(K)) if jitter else K.T, lower=1, clean=1)
        if info == 0:
            return L, jitter
    raise np.linalg.LinAlgError(
        f"the kernel matrix ({len(K)} x {len(K)}) is not positive definite, even with {jitter:.1e} "
        f"added to its diagonal. Use a larger noise, drop near-duplicate rows, or check the kernel."
    )


def log_marginal_likelihood(kernel: Kernel, noise: float, X: Array, y: Array, *, gradient: bool = False) -> Any:
    """Return log N(y | 0, K + noise I), a float, summed over the columns of `y`.

    With `gradient`, also its derivative with respect to [kernel.theta, log noise], (p + 1,).
    """
    from scipy.linalg.lapack import dpotri

    if not gradient:
        return factored(kernel(X), noise, y)[0]
    K, pullback = kernel.with_pullback(X)
    value, L, alpha = factored(K, noise, y)
    # d log p(y) / d theta = 1/2 tr(W dK/dtheta),   W = alpha alpha' - (K + noise I)^-1
    inverse, _ = dpotri(L, lower=1, overwrite_c=1)  # lower triangle of the inverse
    W = alpha @ alpha.T
    W -= y[0].size * _symmetric(inverse.T)
    return value, 0.5 * np.append(pullback(W), noise * np.trace(W))


def factored(K: Array, noise: float, y: Array) -> tuple[float, Array, Array]:
    """Return log N(y | 0, K + noise I), L with L L' = K + noise I, and alpha = (K + noise I)^-1 y, (n, outputs)."""
    from scipy.linalg.lapack import dpotrs

    n, outputs = len(y), y[0].size
    A = K.copy()
    A.flat[:: n + 1] += noise
    L, _ = cholesky(A)
    alpha, _ = dpotrs(L, y.reshape(n, -1), lower=1)
    # log p(y) = -1/2 y' alpha - sum_i log L_ii - n/2 log 2 pi
    log_det = 2.0 * np.log(np.diagonal(L)).sum()
    return -0.5 * float(np.vdot(y, alpha) + outputs * (log_det + n * np.log(2.0 * np.pi))), L, alpha


def _symmetric(A: Array) -> Array:
    """Copy the upper triangle of A to the lower one in place, in blocks that fit the cache, and return A."""
    for i in range(0, len(A), BLOCK_ROWS):
        j = min(len(A), i + BLOCK_ROWS)
        A[i:j, i:j] = np.triu(A[i:j, i:j]) + np.triu(A[i:j, i:j], 1).T
        A[j:, i:j] = A[i:j, j:].T
    return A


def one_step_ahead(kernel: Kernel, noise: float, X: Array, y: Array) -> Gaussian:
    """Return the predictive distribution of each y, (n,) or (n, outputs), given all earlier rows.

    With L L' = K + noise I, y_i - mean_i = L_ii (L^-1 y)_i and std_i = L_ii, so one factorization is enough.
    """
    from scipy.linalg import solve_triangular

    L, _ = cholesky(kernel(X) + noise * np.eye(len(y)))
    std = np.broadcast_to(np.diagonal(L), y.T.shape).T
    return Gaussian(y - std * solve_triangular(L, y, lower=True), std.copy())


def at(kernel: Kernel, theta: Array) -> tuple[Kernel, float]:
    """Return the kernel and the noise of theta = [kernel.theta, log noise]."""
    return kernel.with_theta(theta[:-1]), float(np.exp(theta[-1]))


def likelihood_at(kernel: Kernel, theta: Array, X: Array, y: Array) -> tuple[float, Array]:
    """Return the log likelihood at theta and its gradient, or NaN and zeros if it cannot be computed."""
    try:
        with np.errstate(all="ignore"):
            value, gradient = log_marginal_likelihood(*at(kernel, theta), X, y, gradient=True)
    except (np.linalg.LinAlgError, ValueError):  # a kernel raises a ValueError for a hyperparameter that overflowed
        return np.nan, np.zeros_like(theta)
    return value, gradient


def loss_of(value: float, gradient: Array, theta: Array, size: int) -> tuple[float, Array]:
    """Return minus a log density per value of y, and its gradient. FAILED and zeros if one is not finite."""
    loss, slope = -value / size, -gradient / size
    if not (np.isfinite(loss) and np.isfinite(slope[np.isfinite(theta)]).all()):
        return FAILED, np.zeros_like(theta)  # the line search then takes a shorter step
    return loss, slope


@dataclass
class Climb:
    """The result of a climb: the best point [kernel.theta, log noise], its loss, and the effort."""

    theta: Array
    loss: float = np.inf
    converged: bool = False  # whether the climb ended before its limits
    evaluations: int = 0


class _Over(Exception):
    pass


def climb(
    loss: Callable[[Array], tuple[float, Array]],
    start: Array,
    bounds: Array,
    *,
    iterations: int,
    evaluations: int,
    least_gain: float,
    over: Callable[[], bool] = lambda: False,
) -> Climb:
    """Minimize a loss from `start` by L-BFGS-B, and return the best point. Entries of -inf stay fixed.

    The climb ends when the relative gain is less than `least_gain`, or when `over` returns True.
    """
    from scipy.optimize import minimize

    theta = np.where(np.isfinite(start), np.clip(start, *bounds.T), start)
    free = np.isfinite(theta)
    best = Climb(theta.copy())

    def objective(point: Array) -> tuple[float, Array]:
        if over() and np.isfinite(best.loss):
            raise _Over
        theta[free] = point
        value, gradient = loss(theta)
        best.evaluations += 1
        if value < best.loss:
            best.theta, best.loss = theta.copy(), value
        return value, gradient[free]

    options = {"maxiter": iterations, "maxfun": evaluations, "ftol": least_gain}
    with contextlib.suppress(_Over):
        found = minimize(objective, theta[free], jac=True, method="L-BFGS-B", bounds=bounds[free], options=options)
        best.converged = bool(found.success)
    return best
