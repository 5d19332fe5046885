"""Fixed-budget kernel recursive least squares."""

from __future__ import annotations

from onlinegp.checks import count, positive
from onlinegp.kernels import Kernel
from onlinegp.models.base import OnlineRegressor
from onlinegp.recipes.beliefs import Exact
from onlinegp.recipes.pruning import LeastError
from onlinegp.recipes.update import Recipe


class FBKRLS(OnlineRegressor):
    """Fixed-budget KRLS: exact GP regression on the `budget` samples that are hardest to predict from the others.

    O(M^2) a sample with M the budget, O(M^2) memory. A datum that leaves is forgotten; the variance is the exact one
    for the data that were kept, which is more than all the data would leave.

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    noise : float
        The variance of the noise in y; the ridge penalty of kernel least squares.
    budget : int
        The number of samples kept; the one with the least leave-one-out error leaves.
    engine : {"auto", "native", "python"}
        What runs the update; see :mod:`onlinegp.engine`.
    dtype : {"float64"}
        float32 keeps too few digits for a tracked covariance, and is refused.

    References
    ----------
    Van Vaerenbergh, Santamaria, Liu and Principe, "Fixed-budget kernel recursive least-squares", ICASSP 2010.
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        noise: float = 1e-2,
        budget: int = 100,
        engine: str = "auto",
        dtype: str = "float64",
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.budget = budget
        self.engine = engine
        self.dtype = dtype

    def recipe(self) -> Recipe:
        return Recipe(
            self._kernel(),
            Exact(positive(noise=self.noise)),
            pruning=LeastError(count(budget=self.budget)),
        )
