"""Formulas for multiplications, against plain loops over numbers that count."""

from __future__ import annotations

import math

import numpy as np
import pytest

import onlinegp as ogp
from counting import Number, dot, kernel_row, numbers
from onlinegp.kernels import RBF
from onlinegp.recipes.costs import multiplications


def klms(C, x, alpha, y):
    e = y - dot(kernel_row(C, x), alpha)
    return e * 0.5


def knlms(C, x, alpha, y):
    k = kernel_row(C, x)
    e = y - dot(k, alpha)
    [Number(abs(value)) / (Number(1.0) * 1.0) for value in k]  # coherence
    factor = Number(0.5) * e / (dot(k, k) + 0.01)
    return [a + factor * value for a, value in zip(alpha, k, strict=True)]


def online_gp(C, x, alpha, y):
    """One row of the exact GP: t = L^-1 k by substitution, and the new row of the triangle."""
    k, m = kernel_row(C, x), len(C)
    L = np.linalg.cholesky(np.exp(-0.5 * ((C[:, None] - C) ** 2).sum(axis=2)) + 0.01 * np.eye(m))
    t: list = []
    for i in range(m):
        t.append((k[i] - dot(numbers(L[i, :i]), t)) / Number(L[i, i]))
    s = Number(1.01) - dot(t, t)
    return (y - dot(t, alpha)) / math.sqrt(s)


def posterior(C, x, alpha, y):
    """One row of the online GP over centers: t, h = S t, and the corrections of b and of a triangle of S."""
    k, m = kernel_row(C, x), len(C)
    L = np.linalg.cholesky(np.exp(-0.5 * ((C[:, None] - C) ** 2).sum(axis=2)) + 1e-3 * np.eye(m))
    t: list = []
    for i in range(m):
        t.append((k[i] - dot(numbers(L[i, :i]), t)) / Number(L[i, i]))
    h = [dot(numbers(row), t) for row in np.eye(m)]
    s = dot(t, h) - dot(t, t) + 1.0
    gain = (y - dot(t, alpha)) / s
    b = [a + gain * value for a, value in zip(alpha, h, strict=True)]
    u = [value / s for value in h]
    return b, [[u[i] * h[j] for j in range(i + 1)] for i in range(m)]


@pytest.mark.parametrize(
    ("model", "loop"),
    [
        (ogp.KLMS(RBF(1.0)), klms),
        (ogp.KNLMS(RBF(1.0)), knlms),
        (ogp.OnlineGP(RBF(1.0), noise=0.01), online_gp),
        (ogp.KRLST(RBF(1.0), noise=1.0, budget=100), posterior),
    ],
    ids=lambda one: getattr(one, "__name__", type(one).__name__),
)
@pytest.mark.parametrize("m", [5, 40])
def test_formulas_count_what_a_plain_loop_multiplies(model, loop, m):
    rng = np.random.default_rng(0)
    C, x, alpha = rng.standard_normal((m, 3)), rng.standard_normal(3), numbers(rng.standard_normal(m))
    Number.count = 0
    loop(C, x, alpha, Number(1.0))
    assert multiplications(model.recipe(), m, 3) == pytest.approx(Number.count, rel=0.02, abs=12)


def test_a_full_budget_and_forgetting_add_to_it():
    def count(model):
        return multiplications(model.recipe(), 50, 4)

    assert count(ogp.KRLST(RBF(1.0), budget=50)) - count(ogp.KRLST(RBF(1.0), budget=51)) == 7 * 50**2
    assert count(ogp.kafbox.NORMA(leak=0.01, budget=60)) == count(ogp.KLMS()) + 50
    assert count(ogp.QKLMS()) == count(ogp.KLMS()) + 200
