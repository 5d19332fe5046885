"""Metrics against their definitions, on samples whose distribution is known."""

import numpy as np
import pytest

from onlinegp.metrics import coverage, interval, log_density, mse, nmse, pit, rmse, to_db

Y = np.array([1.0, 2.0, 3.0, 4.0])
MEAN = np.array([1.0, 2.0, 3.0, 2.0])


def gaussian_sample(n=20_000):
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=n), rng.uniform(0.2, 3.0, size=n)
    return mean + std * rng.standard_normal(n), mean, std


def test_errors_of_the_mean_by_hand():
    assert mse(Y, MEAN) == 1.0
    assert rmse(3 * Y, 3 * MEAN) == 3.0
    assert nmse(Y, MEAN) == 1.0 / np.var(Y)


def test_nmse_is_one_for_the_average_and_knows_no_scale():
    assert nmse(Y, np.full(4, Y.mean())) == pytest.approx(1.0)
    assert nmse(7 * Y + 5, 7 * MEAN + 5) == pytest.approx(nmse(Y, MEAN))


def test_nmse_of_a_constant_is_refused():
    with pytest.raises(ValueError, match=r"y must vary.*Use mse"):
        nmse(np.ones(3), np.zeros(3))


def test_decibels():
    assert to_db(0.1) == pytest.approx(-10.0)
    np.testing.assert_allclose(to_db([1.0, 100.0]), [0.0, 20.0])
    assert to_db(0.0) == -np.inf
    with pytest.raises(ValueError, match=r"ratio must be zero or more, got -1.0"):
        to_db([1.0, -1.0])


def test_log_density_is_that_of_scipy():
    from scipy.stats import norm

    y, mean, std = gaussian_sample(500)
    np.testing.assert_allclose(log_density(y, mean, std), norm.logpdf(y, mean, std), rtol=1e-12)
    np.testing.assert_allclose(log_density(y, mean, 2.0), norm.logpdf(y, mean, 2.0), rtol=1e-12)


def test_log_density_is_best_at_the_true_std():
    y, mean, std = gaussian_sample()
    scores = [log_density(y, mean, factor * std).mean() for factor in (0.5, 0.8, 1.0, 1.25, 2.0)]
    assert np.argmax(scores) == 2


def test_a_zero_std_is_a_point_mass():
    y, mean = np.array([1.0, 2.0]), np.array([1.0, 1.0])
    np.testing.assert_array_equal(log_density(y, mean, 0.0), [np.inf, -np.inf])
    np.testing.assert_array_equal(pit(y, mean, 0.0), [0.5, 1.0])
    assert coverage(y, mean, np.zeros(2)) == 0.5


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_coverage_of_a_calibrated_model_is_its_level(level):
    y, mean, std = gaussian_sample()
    lower, upper = interval(mean, std, level)
    inside = np.mean((lower <= y) & (y <= upper))
    spread = np.sqrt(level * (1 - level) / len(y))
    assert coverage(y, mean, std, level) == inside
    assert abs(inside - level) < 4 * spread


def test_the_95_percent_interval_is_1_96_std_either_way():
    lower, upper = interval(1.0, 2.0)
    assert (lower, upper) == pytest.approx((1.0 - 3.919928, 1.0 + 3.919928), abs=1e-6)


def test_pit_is_uniform_when_calibrated_and_not_otherwise():
    from scipy.stats import kstest

    y, mean, std = gaussian_sample()
    assert kstest(pit(y, mean, std), "uniform").pvalue > 0.01
    assert kstest(pit(y, mean, 2 * std), "uniform").pvalue < 1e-6


@pytest.mark.parametrize("level", [0.0, 1.0, 1.5, np.nan])
def test_level_outside_the_open_unit_interval_is_refused(level):
    with pytest.raises(ValueError, match="level must be"):
        coverage(Y, MEAN, 1.0, level)
    with pytest.raises(ValueError, match="level must be"):
        interval(MEAN, 1.0, level)


@pytest.mark.parametrize("metric", [mse, rmse, nmse])
def test_shapes_that_would_broadcast_are_refused(metric):
    with pytest.raises(ValueError, match=r"same shape, got \(4,\) and \(4, 1\)"):
        metric(Y, MEAN[:, None])
    with pytest.raises(ValueError, match="at least one sample"):
        metric([], [])


@pytest.mark.parametrize("metric", [log_density, coverage, pit])
def test_bad_std_is_refused(metric):
    with pytest.raises(ValueError, match=r"std must be zero or more, got -1.0"):
        metric(Y, MEAN, [1.0, -1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="std must be zero or more, got nan"):
        metric(Y, MEAN, np.nan)
    with pytest.raises(ValueError, match="std must be a number or have the shape of y"):
        metric(Y, MEAN, np.ones((4, 1)))
