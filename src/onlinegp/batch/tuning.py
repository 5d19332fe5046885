"""Hyperparameters by maximum likelihood: `estimate_hyperparameters` of a function that changes, `likely_kernels` else.

A filter that forgets expects the function itself to change. Its model is a Gaussian process over inputs and time,

    cov(y_t, y_u) = k(x_t, x_u) a^|t - u| + noise [t = u],      0 < a <= 1

whose time part is an AR(1) process. Going back to the prior, as KRLS-T does, is the exact filter of this model when
the forgetting factor is lambda = a^2: from one sample to the next the mean shrinks by sqrt(lambda) = a.

Van Vaerenbergh, Santamaria and Lazaro-Gredilla, "Estimation of the forgetting factor in kernel recursive least
squares", MLSP 2012.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.batch.gp import MaximumLikelihood, log_marginal_likelihood, maximum_likelihood
from onlinegp.checks import Array, check_Xy, count, fraction, positive
from onlinegp.kernels import RBF, Kernel, Matern12, Matern52
from onlinegp.models.rls.krlst import KRLST

FAMILIES: tuple[Callable[..., Kernel], ...] = (RBF, Matern52)
NOISE_FLOOR = 1e-7  # a share of k(x, x): on noise-free data the likelihood asks for ever less
LARGEST_AMPLITUDE = 10.0  # of f, in variances of the target
SMALLEST_FORGETTING = 1e-6  # a KRLS-T below it forgets everything at once


@dataclass(frozen=True)
class Hyperparameters:
    """What `estimate_hyperparameters` found.

    Attributes
    ----------
    kernel : Kernel
        The prior covariance of f, amplitude included.
    noise : float
        The variance of the noise in y.
    forgetting : float
        The KRLS-T forgetting factor lambda, in (0, 1]; one means that the function does not change.
    log_likelihood : float
        Of the rows that were used, summed over outputs.
    """

    kernel: Kernel
    noise: float
    forgetting: float
    log_likelihood: float

    def krlst(self, budget: int = 100) -> KRLST:
        """Return a KRLS-T with these hyperparameters."""
        return KRLST(self.kernel, noise=self.noise, budget=budget, forgetting=self.forgetting)


@dataclass(frozen=True, eq=False)
class Tracked(Kernel):
    """k(x, z) a^|t - u| over rows [x, t]: the last column is time, and a = exp(-1 / time.length_scale)."""

    kernel: Kernel
    time: Matern12

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        Z = X if Z is None else Z
        return self.kernel(X[:, :-1], Z[:, :-1]) * self.time(X[:, -1:], Z[:, -1:])

    def diag(self, X: Array) -> Array:
        return self.kernel.diag(X[:, :-1])

    def derivatives(self, X: Array) -> Iterator[Array]:
        x, t = X[:, :-1], X[:, -1:]
        T = self.time(t)
        yield from (D * T for D in self.kernel.derivatives(x))
        K = self.kernel(x)
        yield from (K * D for D in self.time.derivatives(t))

    def pullback(self, X: Array, W: Array) -> Array:
        # sum_ij W_ij (dK T + K dT)_ij = <W o T, dK> + <W o K, dT>
        x, t = X[:, :-1], X[:, -1:]
        return np.append(self.kernel.pullback(x, W * self.time(t)), self.time.pullback(t, W * self.kernel(x)))


def estimate_hyperparameters(
    X: ArrayLike,
    y: ArrayLike,
    *,
    kernel: Kernel | None = None,
    noise: float | None = None,
    forgetting: float = 0.99,
    rows: int = 500,
    restarts: int = 1,
    seed: int | np.random.Generator | None = 0,
) -> Hyperparameters:
    """Return the kernel, the noise and the forgetting factor under which a stream is most likely.

    The rows must be in the order in which they came, one per time step. The prior mean is zero, as that of the filters:
    center y if it is not.

    Parameters
    ----------
    X : array-like of shape (n, d)
    y : array-like of shape (n,) or (n, outputs)
    kernel : Kernel, optional
        Where to start; an RBF with one length scale per column and an amplitude if None.
    noise : float, optional
        Where to start; a tenth of the mean square of y if None.
    forgetting : float
        Where to start, less than one.
    rows : int
        At most so many are used, without gaps, from the middle of the stream: a step of the search costs rows^3.
    restarts : int
        Random starts in addition to the given one.
    seed : int, numpy Generator or None
        For the random starts.

    Returns
    -------
    Hyperparameters

    Examples
    --------
    >>> found = estimate_hyperparameters(X, y)
    >>> model = found.krlst(budget=100)
    """
    X, y = check_Xy(X, y)
    n = min(len(X), count("Some hundreds are enough.", rows=rows))
    first = (len(X) - n) // 2
    X, y = X[first : first + n], y[first : first + n]
    power = float(np.mean(y**2))
    if power == 0.0:
        raise ValueError(
            "y must not be zero throughout: it says nothing about hyperparameters. Pass more of the stream."
        )
    if kernel is None:
        kernel = power * RBF(_spread(X))
    noise = 0.1 * power if noise is None else positive("Leave it out for a guess.", noise=noise)
    start = Tracked(kernel, Matern12(_memory(forgetting)))

    rows_in_time = np.column_stack([X, np.arange(n, dtype=np.float64)])
    moving = maximum_likelihood(start, noise, rows_in_time, y, restarts=restarts, seed=seed, subset=n)
    return _better(moving, _at_rest(moving, X, y))


def likely_kernels(X: Array, y: Array, *, rows: int = 500) -> list[Hyperparameters]:
    """Return the most likely kernel of each family, with one length scale for each column, and its noise; best first.

    X (n, d) and y (n,) are standardized. More than `rows` rows are thinned evenly: a step of the search costs rows^3.
    The function is taken to stay as it is.
    """
    pick = np.unique(np.linspace(0, len(X) - 1, min(rows, len(X))).astype(int))
    X, y = X[pick], y[pick]
    start = tuple([2.0 * float(np.sqrt(X.shape[1]))] * X.shape[1])
    found = []
    for family in FAMILIES:
        try:
            found.append(_most_likely(family(start), X, y))
        except np.linalg.LinAlgError:
            continue
    if not found:
        found = [Hyperparameters(RBF(start), 0.1, 1.0, np.nan)]
    return sorted(found, key=lambda one: -one.log_likelihood)


def _most_likely(shape: Kernel, X: Array, y: Array) -> Hyperparameters:
    """Return the most likely amplitude, length scales and noise, the amplitude at most LARGEST_AMPLITUDE.

    On data without noise the likelihood has no end: ever smoother, ever larger. The noise floor goes with it.
    """
    best = maximum_likelihood(1.0 * shape, 1e-2, X, y, restarts=0)
    kernel, noise = best.kernel, best.noise
    if kernel.diag(X[:1])[0] > (v := LARGEST_AMPLITUDE):
        best = maximum_likelihood(shape, 1e-2 / v, X, y / np.sqrt(v), restarts=0)
        kernel, noise = v * best.kernel, v * best.noise
    noise = max(noise, NOISE_FLOOR * float(kernel.diag(X[:1])[0]))
    return Hyperparameters(kernel, noise, 1.0, log_marginal_likelihood(kernel, noise, X, y))


def _spread(X: Array) -> tuple[float, ...]:
    """Length scales to start from, a third of the distance of two rows: from longer ones the search can miss."""
    std = X.std(axis=0)  # of two rows, sqrt(2 d) std apart in the mean square
    return tuple((0.5 * np.sqrt(X.shape[1]) * np.where(std > 0.0, std, 1.0)).tolist())


def _memory(forgetting: float) -> float:
    """Return the length scale of time, in samples, of a forgetting factor: lambda = exp(-2 / length_scale)."""
    forgetting = fraction(forgetting=forgetting)
    if forgetting == 1.0:
        raise ValueError("forgetting must be less than 1 to start from, got 1.0. Use 0.99; 1 can still be the result.")
    return -2.0 / float(np.log(forgetting))


def _at_rest(moving: MaximumLikelihood, X: Array, y: Array) -> MaximumLikelihood:
    """Return the most likely model that does not change, from where the moving one ended: lambda = 1, the boundary."""
    assert isinstance(moving.kernel, Tracked)
    return maximum_likelihood(moving.kernel.kernel, moving.noise, X, y, restarts=0, subset=len(X))


def _better(moving: MaximumLikelihood, still: MaximumLikelihood) -> Hyperparameters:
    if still.log_marginal_likelihood >= moving.log_marginal_likelihood:
        return Hyperparameters(still.kernel, still.noise, 1.0, still.log_marginal_likelihood)
    assert isinstance(moving.kernel, Tracked)
    factor = float(np.exp(-2.0 / np.asarray(moving.kernel.time.length_scale)))
    factor = min(max(factor, SMALLEST_FORGETTING), 1.0)
    return Hyperparameters(moving.kernel.kernel, moving.noise, factor, moving.log_marginal_likelihood)


def log_likelihood(kernel: Kernel, noise: float, forgetting: float, X: ArrayLike, y: ArrayLike) -> float:
    """Return the log likelihood of a stream, one row a time step, under a kernel, a noise and a forgetting factor."""
    X, y = check_Xy(X, y)
    noise = positive(noise=noise)
    if fraction(forgetting=forgetting) == 1.0:
        return log_marginal_likelihood(kernel, noise, X, y)
    rows_in_time = np.column_stack([X, np.arange(len(X), dtype=np.float64)])
    return log_marginal_likelihood(Tracked(kernel, Matern12(_memory(forgetting))), noise, rows_in_time, y)
