"""Naive online regularized risk minimization, with a window."""

from __future__ import annotations

from onlinegp.checks import count, non_negative, positive
from onlinegp.kernels import Kernel
from onlinegp.models.base import OnlineRegressor
from onlinegp.recipes.beliefs import Prior
from onlinegp.recipes.forgetting import Leak
from onlinegp.recipes.pruning import Oldest
from onlinegp.recipes.update import Recipe


class NORMA(OnlineRegressor):
    """NORMA with squared loss: KLMS whose weights leak, in a sliding window of `budget` centers.

        alpha <- [(1 - step leak) alpha; step e]

    O(m) a sample. The variance of y is that of KLMS, 1 / step everywhere.

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    step : float
        The learning rate.
    leak : float
        The ridge penalty; step times leak must be less than 1.
    budget : int
        The number of centers; the oldest leaves.
    engine : {"auto", "native", "python"}
        What runs the update; see :mod:`onlinegp.engine`.
    dtype : {"float64", "float32"}
        The precision of the compiled engine; float32 takes half the time and memory, and keeps six digits.

    References
    ----------
    Kivinen, Smola and Williamson, "Online learning with kernels", IEEE Trans. Signal Processing, 2004.
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        step: float = 0.5,
        leak: float = 1e-2,
        budget: int = 500,
        engine: str = "auto",
        dtype: str = "float64",
    ) -> None:
        self.kernel = kernel
        self.step = step
        self.leak = leak
        self.budget = budget
        self.engine = engine
        self.dtype = dtype

    def recipe(self) -> Recipe:
        return Recipe(
            self._kernel(),
            Prior(positive(step=self.step)),
            forgetting=Leak(self._rate()),
            pruning=Oldest(count(budget=self.budget)),
        )

    def _rate(self) -> float:
        rate = positive(step=self.step) * non_negative(leak=self.leak)
        if rate >= 1.0:
            raise ValueError(
                f"leak must be less than 1 / step = {1 / self.step:g}, got {self.leak!r}. Lower leak or step."
            )
        return rate
