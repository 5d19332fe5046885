"""Kernels as plain data, for files that anybody may open: names and numbers, never code."""

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

DEEPEST = 64  # sums within products within sums ...; a file that nests deeper means harm


def to_spec(kernel: Kernel) -> dict[str, Any]:
    """Return a built-in kernel as a dictionary that JSON can hold; floats survive exactly.

    >>> to_spec(2.0 * RBF([0.5, 1.0]))
    {'kernel': 'Scaled', 'of': {'kernel': 'RBF', 'length_scale': [0.5, 1.0]}, 'variance': 2.0}
    """
    name = type(kernel).__name__
    if BUILT_IN.get(name) is not type(kernel):
        raise TypeError(
            f"kernel must be built in to be written to a file, got {name}. Files hold no code: "
            f"build a kernel from {', '.join(BUILT_IN)}, or keep this model in memory."
        )
    fields = [f.name for f in dataclasses.fields(kernel)]
    return {"kernel": name} | {_key(field): _plain(getattr(kernel, field)) for field in fields}


def from_spec(spec: Any, *, _depth: int = 0) -> Kernel:
    """Return the kernel that `to_spec` described; anything else is refused with a ValueError."""
    if not isinstance(spec, Mapping) or not isinstance(spec.get("kernel"), str):
        raise ValueError(
            f"a kernel must be an object with a name, got {reprlib.repr(spec)}. "
            f'The simplest one is {{"kernel": "RBF"}}.'
        )
    if _depth > DEEPEST:
        raise ValueError(f"kernels are nested more than {DEEPEST} deep. Write the sum or product flatter.")
    name = spec["kernel"]
    if name not in BUILT_IN:
        raise ValueError(f"unknown kernel {reprlib.repr(name)}. Built in are: {', '.join(BUILT_IN)}.")
    fields = {_key(f.name): f for f in dataclasses.fields(BUILT_IN[name])}
    params: dict[str, Any] = {}
    for key, value in spec.items():
        if key == "kernel":
            continue
        if key not in fields:
            raise ValueError(f"kernel {name} has no field {reprlib.repr(key)}. Its fields: {', '.join(fields)}.")
        params[fields[key].name] = from_spec(value, _depth=_depth + 1) if isinstance(value, Mapping) else value
    missing = [k for k, f in fields.items() if f.default is dataclasses.MISSING and f.name not in params]
    if missing:
        raise ValueError(f"kernel {name} lacks the field {missing[0]}. Its fields: {', '.join(fields)}.")
    try:
        return BUILT_IN[name](**params)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"kernel {name} is not valid: {error}") from error


def _key(field: str) -> str:
    return "of" if field == "kernel" else field  # "kernel" is taken: it holds the name


def _plain(value: Any) -> Any:
    if isinstance(value, Kernel):
        return to_spec(value)
    return np.asarray(value).tolist()
