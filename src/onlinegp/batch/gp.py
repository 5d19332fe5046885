"""Batch Gaussian process regression, and hyperparameters by maximum likelihood.

The model is y = f(x) + e, where f is a zero-mean Gaussian process with covariance k, and e is independent
noise with variance `noise`. Center y first if its mean is not zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.batch.likelihood import (
    FAILED,
    Climb,
    at,
    cholesky,
    climb,
    likelihood_at,
    log_marginal_likelihood,
    loss_of,
)
from onlinegp.checks import Array, check_Xy, count, non_negative, positive
from onlinegp.kernels import Kernel, kernel_or_default
from onlinegp.kernels.importance import importance
from onlinegp.models.estimator import Estimator
from onlinegp.predictions import Gaussian
from onlinegp.processes import single_threaded_blas

LEAST_GAIN = 1e-7  # smaller improvements of a likelihood do not matter
EVALUATIONS = 15_000  # limit per climb


@dataclass(frozen=True)
class MaximumLikelihood:
    """The result of `maximum_likelihood`: kernel and noise, the likelihood on all rows, and the effort."""

    kernel: Kernel
    noise: float
    log_marginal_likelihood: float
    converged: bool  # whether the last search ended before its limit of iterations
    evaluations: int  # number of evaluations of the likelihood, also on subsets


@single_threaded_blas
def maximum_likelihood(
    kernel: Kernel,
    noise: float,
    X: Array,
    y: Array,
    *,
    restarts: int = 2,
    seed: int | np.random.Generator | None = 0,
    span: float = 1e5,
    subset: int = 500,
    iterations: int = 200,
) -> MaximumLikelihood:
    """Return the hyperparameters and the noise that maximize the marginal likelihood (L-BFGS-B).

    The search starts from the given values, and `restarts` more times from random values within a factor of 100 of the
    given values. With more than `subset` rows, each search first runs on a random subset of this size. Then the
    searches from the given start and from the best start continue on all rows.

    Parameters
    ----------
    kernel, noise : Kernel, float
        The starting values. A value of zero stays zero (`noise=0` means noise-free data).
    X, y : arrays, (n, d) and (n,) or (n, outputs)
        The data, finite.
    restarts, seed : int, and int, numpy Generator or None
        The number of random starts in addition to the given start, and the seed of random starts and the subset.
    span : float
        Every hyperparameter stays within this factor of its given value.
    subset : int
        The number of rows for the first part of the search.
    iterations : int
        The largest number of steps per search.
    """
    X, y = check_Xy(X, y)
    noise = non_negative("Use 0.0 for data without noise.", noise=noise)
    restarts = 0 if restarts == 0 else count("Use 0 for none.", restarts=restarts)
    subset = count("A few hundred rows are enough to find good starts.", subset=subset)
    iterations = count("200 is plenty.", iterations=iterations)
    room = abs(np.log(positive("1e5 is a wide search.", span=span)))
    rng = np.random.default_rng(seed)
    kernel(X[:1])  # raises an error for a kernel of the wrong width before the search begins
    with np.errstate(divide="ignore"):
        given = np.append(kernel.theta, np.log(noise))  # values of zero have the logarithm -inf and stay zero
    if np.isneginf(given).all():  # nothing to search
        value = log_marginal_likelihood(kernel, noise, X, y)
        return MaximumLikelihood(kernel, noise, value, converged=True, evaluations=1)
    bounds = np.stack([given - room, given + room], axis=1)
    rows = np.sort(rng.permutation(len(X))[:subset])
    steps = np.log(100.0) * rng.uniform(-1.0, 1.0, (restarts, given.size))
    steps[:, -1] = np.abs(steps[:, -1])  # a search that starts with too little noise may never find the right level
    starts = [given, *(given + steps)]

    def climbed(theta: Array, X: Array, y: Array) -> Climb:
        return climb(
            lambda point: _loss(kernel, point, X, y),
            theta,
            bounds,
            iterations=iterations,
            evaluations=EVALUATIONS,
            least_gain=LEAST_GAIN,
        )

    climbs = [climbed(theta, X[rows], y[rows]) for theta in starts]
    best = min(climbs, key=lambda one: one.loss)
    if len(rows) < len(X):
        # on all rows, from the given start and from the best start
        best = min(climbs, key=lambda one: round(_loss(kernel, one.theta, X, y)[0], 3))
        finalists = [climbs[0]] if best is climbs[0] else [climbs[0], best]
        finals = [climbed(one.theta, X, y) for one in finalists]
        best = min(finals, key=lambda one: one.loss)
        climbs += finals
    if best.loss >= FAILED:
        raise np.linalg.LinAlgError(
            "no start gave a positive definite kernel matrix. Use a larger noise or another kernel."
        )
    evaluations = sum(one.evaluations for one in climbs)
    return MaximumLikelihood(*at(kernel, best.theta), -best.loss * y.size, best.converged, evaluations)


def _loss(kernel: Kernel, theta: Array, X: Array, y: Array) -> tuple[float, Array]:
    """Return minus the log likelihood per value of y, and its gradient."""
    return loss_of(*likelihood_at(kernel, theta, X, y), theta, y.size)


class GPRegression(Estimator):
    """Gaussian process regression on all the data at once: O(n^3) to fit, O(n^2) memory.

    With K the kernel matrix of the data and k* the kernel row of a new point x*, f(x*) has

        mean      k*' (K + noise I)^-1 y                     (paper, eq. 2a)
        variance  k(x*, x*) - k*' (K + noise I)^-1 k*        (paper, eq. 2b)

    y has the same mean, and `noise` is added to the variance.

    Parameters
    ----------
    kernel : Kernel, optional
        Prior covariance of f; RBF(1.0) if not given.
    noise : float
        Variance of the noise on y. Zero is allowed: the mean then passes through the data.
    optimize : bool
        Whether `fit` tunes kernel and noise by maximum likelihood, starting at the given values.
    restarts, seed : int, and int, numpy Generator or None
        The number of random starts of this search in addition to the given start, and their seed.

    Attributes
    ----------
    kernel_, noise_ : Kernel, float
        The given kernel and noise, or the tuned kernel and noise with `optimize`.
    alpha_ : array, (n,) or (n, outputs)
        Weights (K + noise I)^-1 y.
    jitter_ : float
        The amount that was added to the diagonal of K + noise I to factor it, usually zero.
    X_train_, y_train_, n_features_in_ : array, array, int
        The data, and the columns of X.

    Notes
    -----
    The prior mean is zero, as in the paper: center y first if its mean is not zero. Several outputs (a `y` with
    columns) share the kernel, the noise and therefore the variance. Before `fit`, predictions come from the prior.

    References
    ----------
    Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, alg. 2.1 and sec. 5.4.1.

    Examples
    --------
    >>> import onlinegp as ogp
    >>> model = ogp.GPRegression(ogp.kernels.RBF(0.5), noise=1e-2).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> mean, std = model.predict([[0.5]], return_std=True)
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        noise: float = 1e-2,
        optimize: bool = False,
        restarts: int = 2,
        seed: int | np.random.Generator | None = 0,
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.optimize = optimize
        self.restarts = restarts
        self.seed = seed

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn `X` (n, d) and `y` (n,) or (n, outputs), and forget any earlier data."""
        from scipy.linalg import cho_solve

        X, y, names = self.checked_Xy(X, y, first=True)
        X, y = X.copy(), y.copy()
        kernel, noise = self._given()
        if self.optimize:
            found = maximum_likelihood(kernel, noise, X, y, restarts=self.restarts, seed=self.seed)
            kernel, noise = found.kernel, found.noise
        L, jitter = cholesky(kernel(X) + noise * np.eye(len(X)))
        self.alpha_ = cho_solve((L, True), y)
        self.kernel_, self.noise_, self.jitter_ = kernel, noise, jitter
        self.X_train_, self.y_train_, self.n_features_in_ = X, y, X.shape[1]
        self._remember(names)
        self._L = L
        return self

    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_cov: bool = False,
        *,
        noise_free: bool = False,
    ) -> Any:
        """Return the mean at `X` (m, d), (m,) or (m, outputs), and optionally the standard deviation or covariance.

        Parameters
        ----------
        X : array, (m, d)
            New inputs.
        return_std : bool
            Also return the standard deviation of y, noise included, in the shape of the mean.
        return_cov : bool
            Also return the covariance of y, noise included, (m, m). Not together with `return_std`.
        noise_free : bool
            Return the standard deviation or covariance of f instead, without the noise.
        """
        from scipy.linalg import solve_triangular

        if return_std and return_cov:
            raise ValueError(
                "return_std and return_cov must not both be True. "
                "Ask for the covariance: its diagonal is the square of std."
            )
        fitted = hasattr(self, "alpha_")
        X = self.checked_X(X)
        kernel, noise = (self.kernel_, self.noise_) if fitted else self._given()
        mean, V = np.zeros(len(X)), np.zeros((1, len(X)))
        if fitted:
            k = kernel(self.X_train_, X)
            mean = k.T @ self.alpha_
            if return_std or return_cov:
                V = solve_triangular(self._L, k, lower=True)  # V' V = k' (K + noise I)^-1 k
        noise = 0.0 if noise_free else noise
        if return_cov:
            return mean, kernel(X) - V.T @ V + noise * np.eye(len(X))
        if return_std:
            variance = kernel.diag(X) - np.einsum("ij,ij->j", V, V)
            std = np.sqrt(np.maximum(variance, 0.0) + noise)
            return mean, np.broadcast_to(std, mean.T.shape).T.copy()  # equal for all outputs
        return mean

    def predict_distribution(self, X: ArrayLike) -> Gaussian:
        """Return the predictive distributions of y at the rows of X, including the noise."""
        return Gaussian(*self.predict(X, return_std=True))

    def predict_interval(self, X: ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
        """Return lower and upper ends of the intervals that contain y with probability `level` at the rows of X."""
        return self.predict_distribution(X).interval(level)

    @property
    def importance_(self) -> Array:
        """How much each input matters, (d,): shares from the length scales; see `OnlineRegressor.importance_`."""
        if not hasattr(self, "X_train_"):
            raise AttributeError("this GPRegression has no importance_ before fit.")
        return importance(self.kernel_, self.X_train_, self.X_train_.std(axis=0))

    def log_marginal_likelihood(self, theta: ArrayLike | None = None, gradient: bool = False) -> Any:
        """Return log p(y_train_) and, with `gradient`, its derivative with respect to `theta`.

        Parameters
        ----------
        theta : array, (p + 1,), optional
            Logarithms of the hyperparameters of the kernel, then of the noise. The current values if None.
        gradient : bool
            Whether to return the pair (value, gradient).
        """
        if not hasattr(self, "alpha_"):
            raise ValueError("this GPRegression has no data yet. Call fit(X, y) first.")
        kernel, noise = self.kernel_, self.noise_
        if theta is not None:
            theta = np.asarray(theta, dtype=np.float64)
            if theta.shape != (kernel.theta.size + 1,):
                raise ValueError(
                    f"theta must have shape ({kernel.theta.size + 1},), got {theta.shape}. "
                    f"Its entries are the logarithms of: {', '.join((*kernel.names, 'noise'))}."
                )
            kernel, noise = at(kernel, theta)
        return log_marginal_likelihood(kernel, noise, self.X_train_, self.y_train_, gradient=gradient)

    def _given(self) -> tuple[Kernel, float]:
        return kernel_or_default(self.kernel), non_negative("Use 0.0 for data without noise.", noise=self.noise)
