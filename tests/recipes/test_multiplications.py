"""Formulas for multiplications, against plain loops over numbers that count."""

from __future__ import annotations

import math

import numpy as np
import pytest

import onlinegp as ogp
from counting import Number, dot, kernel_row, numbers
from models import EVERY
from onlinegp.kernels import RBF


def klms(C, x, alpha, y):
    e = y - dot(kernel_row(C, x), alpha)
    return e * 0.5


def knlms(C, x, alpha, y):
    k = kernel_row(C, x)
    e = y - dot(k, alpha)
    [Number(abs(value)) / (Number(1.0) * 1.0) for value in k]  # coherence
    factor = Number(0.5) * e / (dot(k, k) + 0.01)
    return [a + factor * value for a, value in zip(alpha, k, strict=True)]


def lms(x, w, y):
    factor = (y - dot(x, w)) * 0.05
    return [a + factor * value for a, value in zip(w, x, strict=True)]


def nlms(x, w, y):
    factor = Number(0.5) * (y - dot(x, w)) / (dot(x, x) + 1e-6)
    return [a + factor * value for a, value in zip(w, x, strict=True)]


def rffklms(x, w, y):
    """As many cosines as weights; what they are multiplied with goes into the step."""
    z = [Number(math.cos(dot(numbers(np.ones(len(x))), x))) for _ in w]
    factor = (y - dot(z, w)) * 0.5 * 0.04
    return [a + factor * value for a, value in zip(w, z, strict=True)]


@pytest.mark.parametrize(
    ("model", "loop", "weights"),
    [
        (ogp.LMS(intercept=False), lms, 6),
        (ogp.NLMS(intercept=False), nlms, 6),
        (ogp.kafbox.RFFKLMS(basis=50), rffklms, 50),
    ],
    ids=["LMS", "NLMS", "RFFKLMS"],
)
def test_those_without_centers(model, loop, weights):
    rng = np.random.default_rng(0)
    x, w = numbers(rng.standard_normal(6)), numbers(rng.standard_normal(weights))
    Number.count = 0
    loop(x, w, Number(1.0))
    assert model.multiplications(0, 6) == Number.count


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
    assert model.multiplications(m, 3) == pytest.approx(Number.count, rel=0.02, abs=12)


@pytest.mark.parametrize("name", EVERY)
def test_every_model_has_a_count_that_grows_with_its_size_or_none(name):
    few, many = (EVERY[name].multiplications(size, 2) for size in (5, 500))
    assert (few is None) == (many is None)
    assert few is None or 0 < few <= many


WITHOUT = ("Local", "Mixture", "Auto", "TemporalGP", "SmoothedLags", "Forecaster", "Detector")


def test_all_have_one_but_those_of_neighbors_mixtures_and_time():
    without = {name for name, model in EVERY.items() if model.multiplications(5, 2) is None}
    assert without == {name for name in EVERY if any(part in name for part in WITHOUT)}


def test_a_full_budget_and_forgetting_add_to_it():
    free, full = (ogp.KRLST(RBF(1.0), budget=budget).multiplications(50, 4) for budget in (51, 50))
    assert full - free == 7 * 50**2
    assert ogp.kafbox.NORMA(leak=0.01, budget=60).multiplications(50, 4) == ogp.KLMS().multiplications(50, 4) + 50
    assert ogp.QKLMS().multiplications(50, 4) == ogp.KLMS().multiplications(50, 4) + 200
    assert ogp.LinearRLS(forgetting=0.9).multiplications(0, 4) > ogp.LinearRLS().multiplications(0, 4)
    assert ogp.Scaled(ogp.KLMS()).multiplications(50, 4) == ogp.KLMS().multiplications(50, 4)
    assert ogp.LocalGP().multiplications(50, 4) is None


def test_linear_regression_and_random_features():
    """A triangle of 5 weights: solved, and rotated by one row."""
    solved, rotated = 15 + 2 * 5, 2 * 5 * 4 + 9 * 5
    assert ogp.LinearRLS(intercept=True).multiplications(0, 4) == solved + rotated + 5 + 1
    features = ogp.RandomFeatureGP(pairs=10)
    assert features.multiplications(0, 4) == 10 * 6 + ogp.LinearRLS(intercept=False).multiplications(0, 20)
