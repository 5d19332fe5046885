"""Online Gaussian process regression."""

from __future__ import annotations

from onlinegp.checks import count, positive
from onlinegp.kernels import Kernel
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.rls.krlst import JITTER
from onlinegp.recipes.beliefs import Exact, Posterior
from onlinegp.recipes.pruning import LeastError
from onlinegp.recipes.update import Recipe


class OnlineGP(OnlineRegressor):
    """Gaussian process regression, one sample at a time.

    Without a budget it is exact: after every sample, mean and variance are those of batch GP regression on all the
    data so far (paper, eq. pred_distr_gpml), at O(m^2) a sample and O(m^2) memory, where m is the number of samples.
    With a budget, the dictionary keeps the centers that matter most to the mean, and what the others taught stays in
    the posterior of those that remain; this is KRLST without forgetting.

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    noise : float
        The variance of the noise in y.
    budget : int or None
        The largest number of centers; None lets it grow without bound. Give one for streams beyond some thousands.
    engine : {"auto", "native", "python"}
        What runs the update; see :mod:`onlinegp.engine`.
    dtype : {"float64"}
        float32 keeps too few digits for a tracked covariance, and is refused.

    References
    ----------
    Csato and Opper, "Sparse on-line Gaussian processes", Neural Computation, 2002; in the form of the paper, eqs.
    pmean, pcov and q_update.
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        noise: float = 1e-2,
        budget: int | None = None,
        engine: str = "auto",
        dtype: str = "float64",
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.budget = budget
        self.engine = engine
        self.dtype = dtype

    def recipe(self) -> Recipe:
        noise = positive(noise=self.noise)
        if self.budget is None:
            return Recipe(self._kernel(), Exact(noise))
        unbounded = "Use budget=None for a dictionary that may grow without bound."
        return Recipe(
            self._kernel(),
            Posterior(noise, JITTER),
            pruning=LeastError(count(unbounded, budget=self.budget)),
        )
