"""The search space of a model: ways to get from the suggested value of a parameter to other values to try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import Kernel


class Move(Protocol):
    """A value to try for a parameter."""

    def of(self, suggested: Any) -> Any:
        """Return the value to try, given the suggested value."""


@dataclass(frozen=True)
class Times:
    """Multiply the suggested number by a factor."""

    factor: float

    def of(self, suggested: float) -> float:
        return self.factor * suggested


@dataclass(frozen=True)
class Value:
    """A fixed value, independent of the suggested one."""

    value: Any

    def of(self, suggested: Any) -> Any:
        return self.value


@dataclass(frozen=True)
class LengthScales:
    """Multiply all length scales of the suggested kernel by a factor."""

    factor: float

    def of(self, suggested: Kernel) -> Kernel:
        return suggested.with_theta(suggested.theta + np.log(self.factor) * length_scales(suggested))


@dataclass(frozen=True)
class Isotropic:
    """Give the suggested kernel the same length scale for all d columns: a factor times sqrt(d).

    Two rows of d standardized columns have a distance of about sqrt(2 d).
    """

    factor: float

    def of(self, suggested: Kernel) -> Kernel:
        scales = length_scales(suggested)
        same = np.log(self.factor * np.sqrt(max(1, scales.sum())))
        return suggested.with_theta(np.where(scales, same, suggested.theta))


@dataclass(frozen=True)
class Each:
    """Apply a move to each of several suggested values, such as kernels or length scales."""

    move: Move

    def of(self, suggested: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(map(self.move.of, suggested))


FORGETTING: tuple[Move, ...] = tuple(map(Value, (0.9999, 0.999, 0.99)))  # memories of 10,000, 1,000 and 100 rows

# For comparisons, all models search the kernel and the noise too, in addition to what their classes declare.
WIDELY: Mapping[str, tuple[Move, ...]] = {
    "kernel": (*map(LengthScales, (0.25, 0.5, 2.0, 4.0)), *map(Isotropic, (0.25, 0.5, 1.0, 2.0))),
    "noise": tuple(map(Times, (0.01, 0.1, 10.0))),
}


def length_scales(kernel: Kernel) -> Array:
    """Return which entries of `kernel.theta` are logarithms of length scales, a mask."""
    return np.array(["length_scale" in name for name in kernel.names], dtype=bool)


def typical_length_scale(kernel: Kernel) -> float:
    """Return the length scale l with 1 / l^2 the mean of 1 / length_scale^2, or one if the kernel has none.

    On average over all directions, a step of a given length changes the squared scaled distance by the same amount as
    with a single length scale l. Irrelevant inputs, with very large length scales, matter only by their number.
    """
    scales = kernel.theta[length_scales(kernel)]
    return float(np.mean(np.exp(-2.0 * scales)) ** -0.5) if scales.size else 1.0
