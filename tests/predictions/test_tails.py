"""How far out a value is: z and the two-sided tail probability, of every kind of distribution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from onlinegp import Gaussian, MixtureOf, StudentT

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
