"""How far out a value is: z and the two-sided tail probability, of every kind of distribution."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import stats

from onlinegp.predictions import Gaussian, MixtureOf, StudentT

Y = np.array([-6.0, -2.0, 0.5, 1.0, 3.0, 6.0])
MEAN, SCALE = np.full(6, 0.5), np.full(6, 1.5)
GAUSSIAN, STUDENT = Gaussian(MEAN, SCALE), StudentT(MEAN, SCALE, 4.0)


def test_of_a_normal():
    assert GAUSSIAN.z(Y) == pytest.approx((Y - 0.5) / 1.5)
    assert GAUSSIAN.tail(Y) == pytest.approx(2 * stats.norm.sf(np.abs(Y - 0.5) / 1.5))
    far = Gaussian(np.zeros(1), np.ones(1))
    assert far.tail([20.0])[0] == pytest.approx(2 * stats.norm.sf(20.0))


def test_of_students_t():
    tail = 2 * stats.t.sf(np.abs(Y - 0.5) / 1.5, 4.0)
    assert STUDENT.tail(Y) == pytest.approx(tail)
    assert STUDENT.z(Y) == pytest.approx(np.sign(Y - 0.5) * stats.norm.isf(tail / 2), abs=1e-12)


def test_of_a_mixture():
    """A mixture of one is that one, and a skewed one has its own tails."""
    alone = MixtureOf(np.tile([1.0, 0.0], (6, 1)), (GAUSSIAN, STUDENT))
    assert alone.z(Y) == pytest.approx(GAUSSIAN.z(Y))
    assert alone.tail(Y) == pytest.approx(GAUSSIAN.tail(Y))
    both = MixtureOf(np.tile([0.3, 0.7], (6, 1)), (GAUSSIAN, Gaussian(MEAN + 5.0, SCALE)))
    p = 0.3 * stats.norm.cdf(Y, 0.5, 1.5) + 0.7 * stats.norm.cdf(Y, 5.5, 1.5)
    assert both.tail(Y) == pytest.approx(2 * np.minimum(p, 1 - p))
    assert stats.norm.cdf(both.z(Y)) == pytest.approx(p)


def test_where_nothing_is_left_it_stays_finite():
    for kind in (STUDENT, MixtureOf(np.ones((6, 1)), (GAUSSIAN,))):
        z = kind.z(np.array([-1e9, 1e9, 1e99, -1e99, 1e120, 0.5]))
        assert np.all(np.isfinite(z))
        assert np.sign(z[:5]).tolist() == [-1, 1, 1, -1, 1]


def normal_tail(z):
    """P(N(0, 1) > z) to 40 digits, by Laplace's continued fraction: phi(z) / (z + 1 / (z + 2 / (z + 3 / ...)))."""
    with localcontext(prec=50):
        z, rest = Decimal(z), Decimal(0)
        for k in range(2000, 0, -1):
            rest = k / (z + rest)
        pi = Decimal("3.14159265358979323846264338327950288419716939937511")
        return float((-z * z / 2).exp() / (2 * pi).sqrt() / (z + rest))


def student_tail(t):
    """P(T > t) of Student's t with 4 degrees: (2 - 3 s + s^3) / 4, s = t / sqrt(4 + t^2)."""
    with localcontext(prec=800):
        s = Decimal(t) / (4 + Decimal(t) ** 2).sqrt()
        return float((2 - 3 * s + s**3) / 4)


@pytest.mark.parametrize("z", [3, 9, 20, 37])  # 1.3e-3 to 5.7e-300
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_small_tail_has_all_its_digits_on_both_sides(z, sign):
    t = sign * 10.0 ** (2 * z)
    normal, student = Gaussian(np.ones(1), np.full(1, 2.0)), StudentT(np.ones(1), np.full(1, 2.0), 4.0)
    nested = MixtureOf(np.array([[0.25, 0.75]]), (normal, MixtureOf(np.array([[0.5, 0.5]]), (normal, normal))))
    for kind in (normal, nested):
        assert kind.tail([1.0 + 2.0 * sign * z])[0] == pytest.approx(2.0 * normal_tail(z), rel=1e-12, abs=0.0)
        assert kind.z([1.0 + 2.0 * sign * z])[0] == pytest.approx(sign * z, rel=1e-12, abs=0.0)
    mixed = MixtureOf(np.array([[0.25, 0.75]]), (normal, student))
    assert mixed.tail([1.0 + 2.0 * t])[0] == pytest.approx(1.5 * student_tail(abs(t)), rel=1e-12, abs=0.0)
    assert student.tail([1.0 + 2.0 * t])[0] == pytest.approx(2.0 * student_tail(abs(t)), rel=1e-12, abs=0.0)


@pytest.mark.parametrize("degrees", [1.0, 4.0, 4.5, 60.0, np.full(6, 3.0)])
def test_what_is_above_and_what_is_below_are_one(degrees):
    student = StudentT(MEAN, SCALE, degrees)
    for kind in (GAUSSIAN, student, MixtureOf(np.tile([0.3, 0.7], (6, 1)), (GAUSSIAN, student))):
        assert kind.cdf(Y) + kind.survival(Y) == pytest.approx(np.ones(6), abs=1e-15)


@pytest.mark.filterwarnings("error")
def test_distances_beyond_all_numbers():
    for scale in (1e-150, 1e-300):
        for kind in (Gaussian(np.zeros(1), np.full(1, scale)), StudentT(np.zeros(1), np.full(1, scale), 4.0)):
            assert kind.log_density([-1e149]) == -np.inf
            assert kind.cdf([-1e149]) < 1e-300
            assert kind.survival([1e149]) < 1e-300
            assert kind.tail([1e149]) < 1e-300
