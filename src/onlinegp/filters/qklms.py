"""Quantised kernel least mean squares."""

from __future__ import annotations

from onlinegp.beliefs import Prior
from onlinegp.checks import non_negative, positive
from onlinegp.dictionaries import Quantised
from onlinegp.filters.base import OnlineRegressor
from onlinegp.kernels import Kernel
from onlinegp.learn import Recipe


class QKLMS(OnlineRegressor):
    """Quantised KLMS: a sample within `radius` of a centre corrects that centre's weight instead of becoming one.

    O(m) a sample; m is bounded by the number of balls of that radius that cover the inputs. The variance of y is that
    of KLMS, 1 / step everywhere.

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    step : float
        The learning rate. Stable below 2 / k(x, x).
    radius : float
        The quantisation radius, a Euclidean distance in the units of the inputs; zero merges only duplicates.
    engine : {"auto", "native", "python"}
        What runs the update; see :mod:`onlinegp.engine`.
    dtype : {"float64", "float32"}
        The precision of the compiled engine; float32 takes half the time and memory, and keeps six digits.

    References
    ----------
    Chen, Zhao, Zhu and Principe, "Quantized kernel least mean square algorithm", IEEE Trans. Neural Networks and
    Learning Systems, 2012.
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        step: float = 0.5,
        radius: float = 0.3,
        engine: str = "auto",
        dtype: str = "float64",
    ) -> None:
        self.kernel = kernel
        self.step = step
        self.radius = radius
        self.engine = engine
        self.dtype = dtype

    def recipe(self) -> Recipe:
        return Recipe(
            self._kernel(),
            Prior(positive(step=self.step)),
            dictionary=Quantised(non_negative(radius=self.radius)),
        )
