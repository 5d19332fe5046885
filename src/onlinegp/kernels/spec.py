"""Convert kernels to plain data for files and back, without code, so that files are safe to open."""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from onlinegp.kernels.algebra import Constant, Product, Scaled, Sum
from onlinegp.kernels.base import Kernel
from onlinegp.kernels.dot_product import Linear, Polynomial
from onlinegp.kernels.periodic import Periodic
from onlinegp.kernels.stationary import RBF, Matern12, Matern32, Matern52, RationalQuadratic
from onlinegp.kernels.temporal import LocalTrend, RandomWalk, Season

BUILT_IN: dict[str, type[Kernel]] = {
    kernel.__name__: kernel
    for kernel in (
        RBF,
        Matern12,
        Matern32,
        Matern52,
        RationalQuadratic,
        Periodic,
        Linear,
        Polynomial,
        Constant,
        Scaled,
        Sum,
        Product,
    )
}


OVER_TIME: dict[str, type[Kernel]] = {kernel.__name__: kernel for kernel in (RandomWalk, LocalTrend, Season)}
KNOWN = BUILT_IN | OVER_TIME  # kernels in files


def to_spec(kernel: Kernel) -> list[dict[str, Any]]:
    """Return a built-in kernel as a JSON-compatible list, with each part after its operands. Floats stay exact.

    The result is a list, not a tree, so that deeply nested kernels can be written and read.

    >>> to_spec(2.0 * RBF([0.5, 1.0]))
    [{'kernel': 'RBF', 'length_scale': [0.5, 1.0]}, {'kernel': 'Scaled', 'variance': 2.0}]
    """
    return [_object(part) for part in postfix(kernel)]


def from_spec(spec: Any) -> Kernel:
    """Return the kernel from the result of `to_spec`. Raise a ValueError for anything else."""
    waiting: list[Kernel] = []  # kernels that a later part takes as operands
    for part in spec if isinstance(spec, list) else [spec]:
        waiting.append(_kernel(part, waiting))
    if len(waiting) != 1:
        raise ValueError(
            f"the parts of a kernel must combine into one kernel, got {len(waiting)}. "
            f"Sum and Product combine the two kernels before them, Scaled scales the kernel before it."
        )
    return waiting[0]


def postfix(kernel: Kernel) -> list[Kernel]:
    """Return all kernels inside a kernel, each after its operands. The kernel itself is last."""
    found, waiting = [], [kernel]
    while waiting:
        found.append(waiting.pop())
        values = [getattr(found[-1], f.name) for f in dataclasses.fields(found[-1])]
        waiting += [value for value in values if isinstance(value, Kernel)]
    return found[::-1]


def columns(kernel: Kernel) -> int:
    """Return the number of columns for which a kernel has parameters, or 1 if it accepts any number of columns."""
    values = (getattr(part, field.name) for part in postfix(kernel) for field in dataclasses.fields(part))
    return next((np.size(value) for value in values if isinstance(value, list | tuple | np.ndarray)), 1)


def _object(kernel: Kernel) -> dict[str, Any]:
    """Return the name of a kernel and its numbers."""
    name = type(kernel).__name__
    if KNOWN.get(name) is not type(kernel):
        raise TypeError(
            f"kernel must be built in to be saved, got {name}, because files contain no code. Use a kernel of "
            f"{', '.join(KNOWN)}, or do not save this model."
        )
    _, numbers = _fields(type(kernel))
    return {"kernel": name} | {field.name: np.asarray(getattr(kernel, field.name)).tolist() for field in numbers}


def _kernel(part: Any, waiting: list[Kernel]) -> Kernel:
    """Build a kernel from its name and numbers. Its operands are popped from the end of `waiting`."""
    if not isinstance(part, Mapping) or not isinstance(part.get("kernel"), str):
        raise ValueError(
            f"a kernel must be an object with a name, got {reprlib.repr(part)}. "
            f'The simplest kernel is {{"kernel": "RBF"}}.'
        )
    name = part["kernel"]
    if name not in KNOWN:
        raise ValueError(f"unknown kernel {reprlib.repr(name)}. The built-in kernels are: {', '.join(KNOWN)}.")
    operands, numbers = _fields(KNOWN[name])
    names = [field.name for field in numbers]
    params = {key: value for key, value in part.items() if key != "kernel"}
    for key in params:
        if key not in names:
            raise ValueError(f"kernel {name} has no field {reprlib.repr(key)}. Its fields: {', '.join(names)}.")
    if len(waiting) < len(operands):
        raise ValueError(f"kernel {name} takes {len(operands)} kernels, but there are only {len(waiting)} before it.")
    for field in reversed(operands):
        params[field.name] = waiting.pop()
    try:
        return KNOWN[name](**params)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"kernel {name} is not valid: {error}") from error


def _fields(kind: type[Kernel]) -> tuple[list[Any], list[Any]]:
    """Return the names of the fields that hold inner kernels, and of the fields that hold numbers."""
    fields = dataclasses.fields(kind)
    return [f for f in fields if f.type == "Kernel"], [f for f in fields if f.type != "Kernel"]
