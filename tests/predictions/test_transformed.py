"""Predictions on another scale of y: densities, quantiles and moments in the units of y."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import lognorm

from onlinegp.predictions import Components, Gaussian, Predictions, TransformedPredictions
from onlinegp.predictions.transformed import restored, transformed


@pytest.mark.parametrize("power", [0.0, 0.3, 1.0])
def test_the_scale_is_monotone_and_inverted(power):
    y = np.concatenate([-np.logspace(3, -6, 40), [0.0], np.logspace(-6, 3, 40)])
    z = transformed(y, power, 0.2)
    assert (np.diff(z) > 0.0).all()
    np.testing.assert_allclose(restored(z, power, 0.2), y, rtol=1e-12)
    assert np.isfinite(restored(np.array([1e4, -1e4]), power, 0.2)).all()


def test_a_log_normal_distribution():
    one = TransformedPredictions(Gaussian(np.array([8.0]), np.array([0.4])), 0.0, 1e-3)
    exact = lognorm(0.4, scale=1e-3 * np.exp(8.0))  # of 1e-3 + y
    y = np.array([2.5])
    np.testing.assert_allclose(one.log_density(y), exact.logpdf(y + 1e-3), rtol=1e-12)
    np.testing.assert_allclose(one.cdf(y), exact.cdf(y + 1e-3), rtol=1e-12)
    np.testing.assert_allclose(one.interval(), np.array([exact.interval(0.95)]).T - 1e-3, rtol=1e-12)
    ends = exact.ppf([0.01, 0.99])
    mean = quad(lambda v: v * exact.pdf(v), *ends)[0] / 0.98
    square = quad(lambda v: (v - mean) ** 2 * exact.pdf(v), *ends)[0] / 0.98
    np.testing.assert_allclose(one.mean, mean - 1e-3, rtol=1e-4)  # 16 nodes
    np.testing.assert_allclose(one.std, np.sqrt(square), rtol=1e-3)


def test_rows_on_different_scales_are_joined_and_moved():
    plain = Gaussian(np.array([1.0, -2.0]), np.array([0.5, 3.0]))
    mixed = Components(np.full((1, 2), 0.5), np.array([[0.0, 1.0]]), np.ones((1, 2)), (np.inf, 4.0), 1.2)
    skewed = TransformedPredictions(mixed, 0.5, 2.0)
    whole = Predictions.joined([plain, skewed])
    y = np.array([0.3, 1.0, 2.0])
    for name in ("log_density", "cdf", "survival", "pit", "tail", "z"):
        expected = np.concatenate([getattr(plain, name)(y[:2]), getattr(skewed, name)(y[2:])])
        np.testing.assert_allclose(getattr(whole, name)(y), expected, rtol=1e-12)
    np.testing.assert_allclose(whole.mean, np.append(plain.mean, skewed.mean))
    (low, high), (lower, higher) = plain.interval(), skewed.interval()
    np.testing.assert_allclose(whole.interval(), [np.append(low, lower), np.append(high, higher)])
    moved = whole.affine(3.0, 2.0)
    np.testing.assert_allclose(moved.mean, 3.0 + 2.0 * whole.mean)
    np.testing.assert_allclose(moved.log_density(3.0 + 2.0 * y), whole.log_density(y) - np.log(2.0))
    np.testing.assert_allclose(moved.quantile(0.2), 3.0 + 2.0 * whole.quantile(0.2))
