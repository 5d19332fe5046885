"""Sliding-window kernel recursive least squares."""

from __future__ import annotations

from onlinegp.checks import count, positive
from onlinegp.kernels import Kernel
from onlinegp.models.base import OnlineRegressor
from onlinegp.recipes.beliefs import Exact
from onlinegp.recipes.pruning import Oldest
from onlinegp.recipes.update import Recipe


class SWKRLS(OnlineRegressor):
    """Sliding-window KRLS: exact GP regression on the last `budget` samples.

    O(M^2) a sample with M the budget, O(M^2) memory. What leaves the window is forgotten at once, data and all; the
    variance is the exact one for the window.

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    noise : float
        The variance of the noise in y; the ridge penalty of kernel least squares.
    budget : int
        The length of the window.
    engine : {"auto", "native", "python"}
        What runs the update; see :mod:`onlinegp.engine`.
    dtype : {"float64"}
        float32 keeps too few digits for a tracked covariance, and is refused.

    References
    ----------
    Van Vaerenbergh, Via and Santamaria, "A sliding-window kernel RLS algorithm and its application to nonlinear
    channel identification", ICASSP 2006.
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
            pruning=Oldest(count(budget=self.budget)),
        )
