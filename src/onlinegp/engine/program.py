"""Convert kernels to postfix programs for the compiled engine."""

from __future__ import annotations

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import (
    Constant,
    Kernel,
    Linear,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    Scaled,
    Stationary,
    Sum,
)
from onlinegp.kernels.base import per_dimension
from onlinegp.kernels.spec import BUILT_IN

DEEPEST = 32  # largest number of operands on the stack, as in native/recipe/recipe.hpp

Instruction = tuple[str, list[float], bool, float, float, float]  # operation, values, each, a, b, c, as in native code


class UnsupportedError(TypeError):
    """Raised for a model that only the Python engine can run."""


def program(kernel: Kernel, features: int) -> list[Instruction]:
    """Return a kernel as a postfix program. Raise an UnsupportedError if this is not possible."""
    code: list[Instruction] = []
    if _append(code, kernel, features) > DEEPEST:
        raise UnsupportedError(
            f"engine 'native' supports kernels nested up to {DEEPEST} deep. Use 'python', or nest the sum less."
        )
    return code


def _append(code: list[Instruction], kernel: Kernel, d: int) -> int:
    """Append a kernel to a program. Return the number of operands on its stack."""
    name = type(kernel).__name__
    if BUILT_IN.get(name) is not type(kernel):
        raise UnsupportedError(
            f"engine 'native' supports only kernels made of built-in kernels, got {name}. Use engine='python' or "
            f"'auto', or build the kernel from {', '.join(BUILT_IN)}."
        )

    def add(
        op: str, values: Array | None = None, each: bool = False, a: float = 0.0, b: float = 0.0, c: float = 0.0
    ) -> None:
        code.append((op, [] if values is None else values.tolist(), each, float(a), float(b), float(c)))

    if isinstance(kernel, (Sum, Product)):
        left, right = _append(code, kernel.left, d), _append(code, kernel.right, d)
        add("Add" if isinstance(kernel, Sum) else "Multiply")
        return max(left, 1 + right)
    if isinstance(kernel, Scaled):
        depth = _append(code, kernel.kernel, d)
        add("Scale", a=kernel.variance)
        return depth
    if isinstance(kernel, Stationary):
        scales = per_dimension(d, length_scale=kernel.length_scale)
        alpha = kernel.alpha if isinstance(kernel, RationalQuadratic) else 0.0
        add(name, np.broadcast_to(1.0 / scales, d), bool(scales.ndim), a=alpha)
    elif isinstance(kernel, Periodic):
        rates = 1.0 / per_dimension(d, length_scale=kernel.length_scale)
        frequencies = 1.0 / per_dimension(d, period=kernel.period)
        add(name, np.concatenate([np.broadcast_to(rates, d), np.broadcast_to(frequencies, d)]), True)
    elif isinstance(kernel, Linear):
        add(name, np.broadcast_to(per_dimension(d, variance=kernel.variance), d), True)
    elif isinstance(kernel, Polynomial):
        add(name, a=kernel.scale, b=kernel.offset, c=kernel.degree)
    else:
        assert isinstance(kernel, Constant)
        add(name, a=kernel.variance)
    return 1
