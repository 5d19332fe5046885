"""Numbers that count the multiplications they take part in, for plain loops beside the formulas of the models."""

from __future__ import annotations

import math


class Number(float):
    """A number that counts the products and quotients it takes part in."""

    count = 0

    def _counted(self, value: float) -> Number:
        Number.count += 1
        return Number(value)

    def __mul__(self, other):
        return self._counted(float(self) * float(other))

    def __truediv__(self, other):
        return self._counted(float(self) / float(other))

    def __rtruediv__(self, other):
        return self._counted(float(other) / float(self))

    def __add__(self, other):
        return Number(float(self) + float(other))

    def __sub__(self, other):
        return Number(float(self) - float(other))

    def __rsub__(self, other):
        return Number(float(other) - float(self))

    def __abs__(self):
        return Number(abs(float(self)))

    __radd__, __rmul__ = __add__, __mul__


def numbers(values) -> list:
    return [Number(value) for value in values]


def dot(a, b) -> Number:
    return sum((x * y for x, y in zip(a, b, strict=True)), Number(0.0))


def kernel_row(C, x) -> list:
    """exp(-|z - c|^2 / 2) of scaled inputs: d squares and a factor for each center."""
    row = []
    for c in C:
        d = [Number(u - v) for u, v in zip(c, x, strict=True)]
        row.append(Number(math.exp(-(dot(d, d) * 0.5))))
    return row
