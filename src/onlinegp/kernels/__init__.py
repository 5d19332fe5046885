"""Kernels: k(x, z), the prior covariance of the function that a filter learns.

>>> from onlinegp.kernels import RBF, Linear
>>> kernel = 2.0 * RBF(length_scale=0.7) + Linear()
"""

from __future__ import annotations

from typing import Any

from onlinegp.kernels.algebra import Constant, Product, Scaled, Sum
from onlinegp.kernels.base import Kernel
from onlinegp.kernels.dot_product import Linear, Polynomial
from onlinegp.kernels.periodic import Periodic
from onlinegp.kernels.spec import from_spec, to_spec
from onlinegp.kernels.stationary import (
    RBF,
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic,
    Stationary,
)
from onlinegp.kernels.temporal import LocalTrend, RandomWalk, Season

__all__ = [
    "RBF",
    "Constant",
    "Kernel",
    "Linear",
    "LocalTrend",
    "Matern12",
    "Matern32",
    "Matern52",
    "Periodic",
    "Polynomial",
    "Product",
    "RandomWalk",
    "RationalQuadratic",
    "Scaled",
    "Season",
    "Stationary",
    "Sum",
    "from_spec",
    "kernel_or_default",
    "to_spec",
]


OTHER_NAMES = {  # of kernels elsewhere, by their letters in lower case
    "gauss": "RBF(length_scale)",
    "gaussian": "RBF(length_scale)",
    "laplace": "Matern12(length_scale)",
    "laplacian": "Matern12(length_scale)",
    "matern": "Matern12, Matern32 or Matern52",
    "poly": "Polynomial(degree, offset)",
    "squaredexponential": "RBF(length_scale)",
}


def other_name(name: str) -> str:
    """Return a sentence for error messages with our name of a kernel, or "" if the name is unknown."""
    plain = name.replace("_", "").lower()
    here = OTHER_NAMES.get(plain) or next((own for own in __all__ if own.lower() == plain), "")
    return f" Use onlinegp.kernels.{here}." if here else ""


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'onlinegp.kernels' has no attribute {name!r}.{other_name(name)}")


def kernel_or_default(kernel: Any) -> Kernel:
    """Return the kernel, or ``RBF()`` for None. Raise a TypeError for anything else."""
    if kernel is None:
        return RBF()
    if not isinstance(kernel, Kernel):
        foreign = type(kernel).__module__.startswith("sklearn.")
        hint = " Convert it: onlinegp.kernels.sklearn.from_sklearn(kernel)." if foreign else ""
        hint = other_name(kernel) if isinstance(kernel, str) else hint
        hint = f" Make one: {kernel.__name__}()." if isinstance(kernel, type) and issubclass(kernel, Kernel) else hint
        raise TypeError(f"kernel must be a kernel such as onlinegp.kernels.RBF(1.0), or None, got {kernel!r}.{hint}")
    return kernel
