"""Kernel least mean squares."""

from __future__ import annotations

from onlinegp.checks import positive
from onlinegp.kernels import Kernel
from onlinegp.models.base import OnlineRegressor
from onlinegp.recipes.beliefs import Prior
from onlinegp.recipes.update import Recipe


class KLMS(OnlineRegressor):
    """Kernel least mean squares: every sample becomes a center, with the weight step times its error.

        alpha <- [alpha; step e]                                                    (paper, eq. klms_update)

    O(m) a sample, and m grows by one with each. As an online GP it believes that the posterior covariance stays the
    prior's, with noise = 1 / step - k(x, x); the variance of y is 1 / step everywhere, and does not shrink.

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    step : float
        The learning rate. Stable below 2 / k(x, x).
    engine : {"auto", "native", "python"}
        What runs the update; see :mod:`onlinegp.engine`.
    dtype : {"float64", "float32"}
        The precision of the compiled engine; float32 takes half the time and memory, and keeps six digits.

    References
    ----------
    Liu, Pokharel and Principe, "The kernel least-mean-square algorithm", IEEE Trans. Signal Processing, 2008.
    """

    def __init__(
        self, kernel: Kernel | None = None, *, step: float = 0.5, engine: str = "auto", dtype: str = "float64"
    ) -> None:
        self.kernel = kernel
        self.step = step
        self.engine = engine
        self.dtype = dtype

    def recipe(self) -> Recipe:
        return Recipe(self._kernel(), Prior(positive(step=self.step)))
