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


def matrix(rows) -> list:
    return [numbers(row) for row in rows]


def root(value) -> Number:
    return Number(math.sqrt(value))


def dot(a, b) -> Number:
    return sum((x * y for x, y in zip(a, b, strict=True)), Number(0.0))


def added(a, factor, b) -> list:
    """a + factor b"""
    return [x + factor * y for x, y in zip(a, b, strict=True)]


def kernel_row(C, x) -> list:
    """exp(-|z - c|^2 / 2) of scaled inputs: d squares and a factor for each center."""
    row = []
    for c in C:
        d = [Number(u - v) for u, v in zip(c, x, strict=True)]
        row.append(Number(math.exp(-(dot(d, d) * 0.5))))
    return row


def solved(A, b) -> list:
    """A^-1 b for a positive definite A: Cholesky's factor, then two triangles."""
    n = len(b)
    L: list = []
    for i in range(n):
        L.append([])
        for j in range(i):
            L[i].append((A[i][j] - dot(L[i][:j], L[j][:j])) / L[j][j])
        L[i].append(root(A[i][i] - dot(L[i][:i], L[i][:i])))
    z: list = []
    for i in range(n):
        z.append((b[i] - dot(L[i][:i], z)) / L[i][i])
    for i in reversed(range(n)):
        z[i] = z[i] / L[i][i]
        for j in range(i):
            z[j] = z[j] - z[i] * L[i][j]
    return z


def largest_coherence(k, kcc) -> Number:
    """That of x, whose k(x, x) is one."""
    return root(max((one * one / own for one, own in zip(k, kcc, strict=True)), default=Number(0.0)) / Number(1.0))


def spread(errors, e) -> Number:
    """The standard deviation by the errors so far; then one more."""
    squares, count = Number(errors.squares[0]), Number(errors.count)
    std = root(squares / count)
    floor = max(0.1 * Number(errors.resolution[0]), 2.0**-50 * Number(errors.last[0]))
    size = max(abs(e), abs(floor))
    squares * errors.keep + size * size, count * errors.keep + 1.0
    return std
