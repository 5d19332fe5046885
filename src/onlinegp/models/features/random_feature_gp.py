"""A Gaussian process on a fixed random basis. Models of parts of the data can be merged."""

from __future__ import annotations

from dataclasses import KW_ONLY

import numpy as np

from onlinegp.checks import choice, count, positive, seed_of
from onlinegp.engine import ENGINES
from onlinegp.engine.compiled import leaf, readable
from onlinegp.kernels import Kernel, kernel_or_default
from onlinegp.learner import Learner
from onlinegp.models.features.basis_learner import FeatureLearner
from onlinegp.models.features.random_basis import check_width, frequencies, parts_of
from onlinegp.models.linear.additive import AdditiveRegressor
from onlinegp.models.recipe import parameters

MOST_PAIRS = 10_000


@parameters
class RandomFeatureGP(AdditiveRegressor):
    """Bayesian linear regression on random cosines and sines, which approximate a stationary kernel.

    Its posterior is a sum over rows, so models of parts of the data can be merged (`merge`, `fit_parallel`), and a
    part can be subtracted (`without`). The noise is learned, because a small basis cannot represent all functions of
    the kernel; :mod:`onlinegp.models.features.basis_learner` has the equations.

    Use it for a large data set on several processes or machines. On one machine, models that choose centers from the
    data are better than a fixed basis. With many inputs, random functions seldom fit the data.

    Cost: O(D^2) per sample with D pairs, O(D^2) memory
    Memory: O(D^2)
    Equation: y = w'phi(x) + e with phi(x) = [cos(W x); sin(W x)] / sqrt(D), W drawn once; the posterior of w
    Variance of y: as for Bayesian linear regression on phi, scaled by the errors so far

    Parameters
    ----------
    kernel : Kernel, optional
        RBF, Matern12, Matern32 or Matern52, or a multiple of one; ``RBF()`` if None.
    noise : float
        The initial variance of the noise in y.
    pairs : int
        The number of frequencies, each with a cosine and a sine.
    seed : int
        The seed of the frequencies. Models can be merged only if they have the same seed.
    engine : {"auto", "native", "python"}
        The engine: compiled, pure Python, or the best available.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.linspace(-3, 3, 400)[:, None]
    >>> y = np.sin(2 * X[:, 0])
    >>> one, other = (ogp.RandomFeatureGP(noise=1e-4, pairs=30).fit(X[i::2], y[i::2]) for i in (0, 1))
    >>> both = one.merge(other)
    >>> both.n_samples_seen_, bool(np.abs(both.predict(X) - y).max() < 0.05)
    (400, True)

    References
    ----------
    Rahimi and Recht, "Random features for large-scale kernel machines", NIPS, 2007; orthogonal: Yu, Suresh,
    Choromanski, Holtmann-Rice and Kumar, "Orthogonal random features", NIPS, 2016.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    noise: float = 1e-2
    pairs: int = 200
    seed: int = 0
    engine: str = "auto"

    def check(self) -> None:
        parts_of(kernel_or_default(self.kernel))
        positive(noise=self.noise)
        if count("200 is a usual choice.", pairs=self.pairs) > MOST_PAIRS:
            raise ValueError(f"pairs must be at most {MOST_PAIRS}, got {self.pairs}: memory grows with the square.")
        seed_of(seed=self.seed)
        choice(ENGINES, engine=self.engine)

    def start(self, features: int, outputs: int) -> Learner:
        self.check()
        variance, shape = parts_of(kernel_or_default(self.kernel))
        check_width(shape, features)
        pairs, seed = int(self.pairs), int(self.seed)
        learner = FeatureLearner(
            lambda: frequencies(shape, features, pairs, np.random.default_rng(seed)),
            features,
            outputs,
            pairs=pairs,
            noise=float(self.noise),
            variance=variance,
        )
        return leaf(self.engine, learner)

    @property
    def noise_(self) -> float | np.ndarray:
        """The learned variance of the noise: a number, or (outputs,)."""
        learner = readable(self._working)
        assert isinstance(learner, FeatureLearner)
        return float(learner.scale[0]) if self._single else learner.scale
