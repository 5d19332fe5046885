"""Convert kernels between scikit-learn and this library. Calling a function imports scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinegp.kernels.algebra import Constant, Product, Scaled, Sum
from onlinegp.kernels.base import Kernel
from onlinegp.kernels.dot_product import Linear, Polynomial
from onlinegp.kernels.periodic import Periodic
from onlinegp.kernels.stationary import RBF, Matern12, Matern32, Matern52, RationalQuadratic

MATERN = {0.5: Matern12, 1.5: Matern32, 2.5: Matern52, np.inf: RBF}


def from_sklearn(kernel: Any, *, features: int | None = None) -> Kernel:
    """Convert a kernel of scikit-learn to a kernel of this library with the same values. Bounds are dropped.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        A WhiteKernel raises an error, because in this library the noise of y is a parameter of the models.
    features : int, optional
        The number of inputs. ExpSineSquared uses the Euclidean distance, so it equals `Periodic` only for one input. It
        raises an error unless `features` is 1.
    """
    from sklearn.gaussian_process import kernels as sk

    def convert(kernel: Any) -> Kernel:
        match kernel:
            case sk.ConstantKernel():
                return Constant(kernel.constant_value)
            case sk.Matern():  # before RBF, because scikit-learn's Matern is a subclass of RBF
                if kernel.nu not in MATERN:
                    raise ValueError(f"Matern has nu={kernel.nu}. Only 0.5, 1.5, 2.5 and infinity have a closed form.")
                return MATERN[kernel.nu](_scales(kernel.length_scale))
            case sk.RBF():
                return RBF(_scales(kernel.length_scale))
            case sk.RationalQuadratic():
                return RationalQuadratic(kernel.length_scale, kernel.alpha)
            case sk.ExpSineSquared():
                _one_input(features)
                return Periodic(kernel.length_scale, kernel.periodicity)
            case sk.DotProduct():
                return Linear() + kernel.sigma_0**2 if kernel.sigma_0 else Linear()
            case sk.Exponentiation(kernel=sk.DotProduct() as inner) if _is_whole(kernel.exponent):
                return Polynomial(int(kernel.exponent), offset=inner.sigma_0**2)
            case sk.Exponentiation() if _is_whole(kernel.exponent):
                power = base = convert(kernel.kernel)
                for _ in range(int(kernel.exponent) - 1):
                    power = power * base
                return power
            case sk.Product(k1=sk.ConstantKernel() as factor, k2=other):
                return convert(other) * factor.constant_value
            case sk.Product(k1=other, k2=sk.ConstantKernel() as factor):
                return convert(other) * factor.constant_value
            case sk.Product():
                return convert(kernel.k1) * convert(kernel.k2)
            case sk.Sum():
                return convert(kernel.k1) + convert(kernel.k2)
            case sk.WhiteKernel():
                raise ValueError(
                    f"{kernel!r} is the noise of y, not a kernel. Leave it out, and pass "
                    f"noise={kernel.noise_level:g} to the model."
                )
        raise ValueError(f"{kernel!r} has no equivalent here. Write your own kernel: a class with k(X, Z).")

    return convert(kernel)


def to_sklearn(kernel: Kernel, *, features: int | None = None) -> Any:
    """Convert a kernel of this library to a kernel of scikit-learn with the same values.

    Parameters
    ----------
    kernel : Kernel
        RationalQuadratic, Periodic and Linear with one value per input raise an error, because scikit-learn has no
        equivalent.
    features : int, optional
        The number of inputs. Periodic has an equivalent only if it is 1.
    """
    from sklearn.gaussian_process import kernels as sk

    nu = {type_: value for value, type_ in MATERN.items() if type_ is not RBF}

    def convert(kernel: Kernel) -> Any:
        match kernel:
            case RBF():
                return sk.RBF(kernel.length_scale)
            case Matern12() | Matern32() | Matern52():
                return sk.Matern(kernel.length_scale, nu=nu[type(kernel)])
            case RationalQuadratic():
                return sk.RationalQuadratic(_single(kernel, "length_scale"), kernel.alpha)
            case Periodic():
                _one_input(features)
                return sk.ExpSineSquared(_single(kernel, "length_scale"), _single(kernel, "period"))
            case Constant():
                return sk.ConstantKernel(kernel.variance)
            case Linear():
                return sk.ConstantKernel(_single(kernel, "variance")) * sk.DotProduct(0.0, "fixed")
            case Polynomial():
                inner = sk.ConstantKernel(kernel.scale) * sk.DotProduct(0.0, "fixed")
                return (inner + sk.ConstantKernel(kernel.offset) if kernel.offset else inner) ** kernel.degree
            case Scaled():
                return sk.ConstantKernel(kernel.variance) * convert(kernel.kernel)
            case Sum():
                return convert(kernel.left) + convert(kernel.right)
            case Product():
                return convert(kernel.left) * convert(kernel.right)
        raise ValueError(f"{kernel!r} has no equivalent in scikit-learn. Only built-in kernels can be converted.")

    return convert(kernel)


def _scales(value: Any) -> Any:
    return tuple(float(v) for v in value) if np.ndim(value) else float(value)


def _single(kernel: Kernel, name: str) -> float:
    value = getattr(kernel, name)
    if np.ndim(value):
        raise ValueError(f"{name} of {kernel!r} has one value per input. scikit-learn takes one value for all inputs.")
    return float(value)


def _one_input(features: int | None) -> None:
    if features != 1:
        raise ValueError(
            f"periodic kernels are equal in scikit-learn only for one input, got features={features}. "
            f"Pass features=1 if your data has one input."
        )


def _is_whole(exponent: float) -> bool:
    return float(exponent).is_integer() and exponent >= 1
