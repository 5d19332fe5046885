"""Quantized kernel least mean squares."""

from __future__ import annotations

from onlinegp.checks import non_negative, positive
from onlinegp.kernels import Kernel
from onlinegp.models.base import OnlineRegressor
from onlinegp.recipes.beliefs import Prior
from onlinegp.recipes.dictionaries import Quantized
from onlinegp.recipes.update import Recipe


class QKLMS(OnlineRegressor):
    """Quantized KLMS: a sample within `radius` of a center corrects that center's weight instead of becoming one.

    O(m) a sample; m is bounded by the number of balls of that radius that cover the inputs. The variance of y is that
    of KLMS, 1 / step everywhere.

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    step : float
        The learning rate. Stable below 2 / k(x, x).
    radius : float
        The quantization radius, a Euclidean distance in the units of the inputs; zero merges only duplicates.
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
            dictionary=Quantized(non_negative(radius=self.radius)),
        )
