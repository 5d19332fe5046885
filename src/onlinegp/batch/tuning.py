"""Tune kernel, noise and forgetting for a function that changes.

A filter that forgets assumes that the function changes. Its model is a Gaussian process over inputs and time,

    cov(y_t, y_u) = k(x_t, x_u) a^|t - u| + noise [t = u],      0 < a <= 1

where the second factor is an AR(1) process in time. KRLS-T with back-to-prior forgetting and lambda = a^2 is the exact
filter of this model: with each sample the mean shrinks by sqrt(lambda) = a.

Van Vaerenbergh, Santamaria and Lazaro-Gredilla, "Estimation of the forgetting factor in kernel recursive least
squares", MLSP 2012.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.batch.changing_kernel import Tracked
from onlinegp.batch.likelihood import factored, log_marginal_likelihood
from onlinegp.batch.likely_kernels import Hyperparameters, refuse_zero
from onlinegp.batch.maximum_posterior import Clock, Prior, Progress, planned, search, spreads
from onlinegp.checks import check_Xy, count, fraction, positive
from onlinegp.kernels import RBF, Kernel, Matern12
from onlinegp.processes import Jobs, single_threaded_blas
from onlinegp.progress import ShareBar

SMALLEST_FORGETTING = 1e-6  # smaller factors forget everything immediately
MEMORIES = (1e5, 3e4, 1e4, 3e3, 1e3, 300.0, 100.0)  # numbers of rows after which the correlation is 1 / e
MARGIN = 3.0  # nats by which forgetting must be better than no forgetting
LATEST = 1000  # number of last rows for estimating forgetting
NOTHING = 0.98  # a model explains nothing if squared errors exceed this share of the variance


@single_threaded_blas
def likely_forgetting(found: Hyperparameters, X: ArrayLike, y: ArrayLike) -> Hyperparameters:
    """Return hyperparameters with the best forgetting factor for the rows, which must be in order.

    Candidates are memories from a hundred to a hundred thousand rows. The factor is 1 (no forgetting) unless another
    factor is more likely by 3 nats.
    """
    from scipy.linalg import toeplitz

    X, y = check_Xy(X, y)
    X, y = X[-LATEST:], y[-LATEST:]
    K, age = found.kernel(X), np.arange(len(y), dtype=np.float64)

    def trial(memory: float) -> Hyperparameters:
        """Return the result with a memory in rows."""
        value = factored(K * toeplitz(np.exp(-age / memory)), found.noise, y)[0]
        return replace(found, forgetting=float(np.exp(-2.0 / memory)), log_likelihood=value, rows=len(y))

    still, best = trial(np.inf), max(map(trial, MEMORIES), key=lambda one: one.log_likelihood)
    return best if best.log_likelihood > still.log_likelihood + MARGIN else still


@single_threaded_blas
def estimate_hyperparameters(
    X: ArrayLike,
    y: ArrayLike,
    *,
    kernel: Kernel | None = None,
    noise: float | None = None,
    forgetting: float = 0.99,
    rows: int = 500,
    restarts: int = 1,
    seconds: float = np.inf,
    jobs: Jobs = 1,
    progress: Progress | None = None,
    seed: int | np.random.Generator | None = 0,
) -> Hyperparameters:
    """Return the best kernel, noise and forgetting factor for a stream.

    The result maximizes the posterior density under weak priors that depend on the spread of the data. Rows must be in
    order, one per time step. The prior mean is zero, as in the filters: center y first if its mean is not zero.

    Parameters
    ----------
    X : array-like of shape (n, d)
    y : array-like of shape (n,) or (n, outputs)
    kernel : Kernel, optional
        The starting value; an RBF with one length scale per column and an amplitude if None.
    noise : float, optional
        The starting value; a tenth of the mean square of y if None.
    forgetting : float
        The starting value, less than one.
    rows : int
        The largest number of rows to use, from the middle of the stream. A step of the search costs rows^3.
    restarts : int
        The number of starts from the prior, in addition to the given start.
    seconds : float
        The search ends after about this time, with the best result so far.
    jobs : int or Executor, optional
        The number of parallel searches, with joblib; None for one per core. It does not change the result.
    progress : callable, optional
        Called from time to time with the share of finished work, in (0, 1]. If None, a bar is shown on a terminal.
    seed : int, numpy Generator or None
        The seed for the starts, and for the rows of the first stage.

    Returns
    -------
    Hyperparameters

    Examples
    --------
    >>> found = estimate_hyperparameters(X, y)
    >>> model = found.krlst(budget=100)
    """
    X, y, progress = *check_Xy(X, y), progress or ShareBar("hyperparameters")
    n = min(len(X), count("A few hundred are enough.", rows=rows))
    restarts = 0 if restarts == 0 else count("Use 0 for none.", restarts=restarts)
    first = (len(X) - n) // 2
    X, y = X[first : first + n], y[first : first + n]
    refuse_zero(y)
    power = float(np.mean(y**2))
    if kernel is None:
        # about a third of the root mean square distance of two rows, which is sqrt(2 d) std
        kernel = power * RBF(tuple((0.5 * np.sqrt(X.shape[1]) * spreads(X)).tolist()))
    noise = 0.1 * power if noise is None else positive("Use None for a default.", noise=noise)
    tracked = Tracked(kernel, Matern12(_memory(forgetting)))
    tracked(np.ones((1, X.shape[1] + 1)))  # raises an error for a kernel of the wrong width before the search begins

    rows_in_time = np.column_stack([X, np.arange(n, dtype=np.float64)])
    rng = np.random.default_rng(seed)
    clock = Clock(seconds, progress, total=planned(1 + restarts, n) + planned(1, n))
    prior = Prior.of(tracked, rows_in_time, y)
    starts = [np.append(tracked.theta, np.log(noise)), *(prior.draw(rng) for _ in range(restarts))]
    moving, noise = search(tracked, starts, rows_in_time, y, order=rng.permutation(n), clock=clock, jobs=jobs)
    assert isinstance(moving, Tracked)
    start = np.append(moving.kernel.theta, np.log(noise))
    still = search(moving.kernel, [start], X, y, order=rng.permutation(n), clock=clock)
    progress(1.0)
    factor = float(np.exp(-2.0 / np.asarray(moving.time.length_scale)))
    candidates = [(*still, 1.0), (moving.kernel, noise, min(max(factor, SMALLEST_FORGETTING), 1.0))]
    found = [Hyperparameters(*one, log_likelihood(*one, X, y), n) for one in candidates]
    return max(found, key=lambda one: one.log_likelihood)


def log_likelihood(kernel: Kernel, noise: float, forgetting: float, X: ArrayLike, y: ArrayLike) -> float:
    """Return the log likelihood of a stream, one row per time step, for a kernel, a noise and a forgetting factor."""
    X, y = check_Xy(X, y)
    noise = positive(noise=noise)
    if fraction(forgetting=forgetting) == 1.0:
        return log_marginal_likelihood(kernel, noise, X, y)
    rows_in_time = np.column_stack([X, np.arange(len(X), dtype=np.float64)])
    return log_marginal_likelihood(Tracked(kernel, Matern12(_memory(forgetting))), noise, rows_in_time, y)


def _memory(forgetting: float) -> float:
    """Return the length scale of time in samples for a forgetting factor: lambda = exp(-2 / length_scale)."""
    forgetting = fraction(forgetting=forgetting)
    if forgetting == 1.0:
        raise ValueError("forgetting must start below 1, got 1.0. Use 0.99: the result can still be 1.")
    return -2.0 / float(np.log(forgetting))
