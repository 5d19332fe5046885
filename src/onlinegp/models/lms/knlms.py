"""Kernel normalized least mean squares."""

from __future__ import annotations

from onlinegp.checks import fraction, positive
from onlinegp.kernels import Kernel
from onlinegp.models.base import OnlineRegressor
from onlinegp.recipes.beliefs import Isotropic
from onlinegp.recipes.dictionaries import Coherence
from onlinegp.recipes.update import Recipe


class KNLMS(OnlineRegressor):
    """Kernel normalized LMS: every weight moves along the kernel row; coherent samples do not become centers.

        alpha <- alpha + step e k / (epsilon + |k|^2)                              (paper, eq. knlms_update)

    O(m) a sample; m is bounded on a bounded input domain. As an online GP it believes in Sigma = K K: its variance
    exceeds the prior's and grows with the data (the paper's beta = 1). The variance of y is the one that the step
    implies, (epsilon + |k|^2 + k(x, x)^2) / step. Do not read it as confidence.

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    step : float
        The learning rate, stable below 2.
    coherence : float
        In (0, 1]. A sample becomes a center if its coherence with every center is at most this.
    epsilon : float
        Regularizes the normalization.
    engine : {"auto", "native", "python"}
        What runs the update; see :mod:`onlinegp.engine`.
    dtype : {"float64", "float32"}
        The precision of the compiled engine; float32 takes half the time and memory, and keeps six digits.

    References
    ----------
    Richard, Bermudez and Honeine, "Online prediction of time series data with kernels", IEEE Trans. Signal
    Processing, 2009.
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        step: float = 0.5,
        coherence: float = 0.95,
        epsilon: float = 1e-2,
        engine: str = "auto",
        dtype: str = "float64",
    ) -> None:
        self.kernel = kernel
        self.step = step
        self.coherence = coherence
        self.epsilon = epsilon
        self.engine = engine
        self.dtype = dtype

    def recipe(self) -> Recipe:
        return Recipe(
            self._kernel(),
            Isotropic(positive(step=self.step), positive(epsilon=self.epsilon)),
            dictionary=Coherence(fraction(coherence=self.coherence)),
        )
