"""Samples: a distribution known by equally likely values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from onlinegp.predictions import Gaussian, MixtureOf, Predictions, StudentT
from onlinegp.predictions.samples import Samples, draw

NORMAL = Samples(3.0 + 2.0 * np.random.default_rng(0).standard_normal((4, 20_000)))


def test_moments_quantiles_and_probabilities_of_a_normal():
    np.testing.assert_allclose(NORMAL.mean, 3.0, atol=0.06)
    np.testing.assert_allclose(NORMAL.std, 2.0, rtol=0.03)
    for p in (0.025, 0.3, 0.975):
        np.testing.assert_allclose(NORMAL.quantile(p), stats.norm(3.0, 2.0).ppf(p), atol=0.12)
        np.testing.assert_allclose(NORMAL.cdf(NORMAL.quantile(p)), p, atol=1e-9)
    y = np.array([-1.0, 3.0, 4.0, 8.0])
    np.testing.assert_allclose(NORMAL.cdf(y), stats.norm(3.0, 2.0).cdf(y), atol=0.015)
    np.testing.assert_allclose(NORMAL.log_density(y), stats.norm(3.0, 2.0).logpdf(y), atol=0.1)


def test_the_interval_of_few_samples_covers_what_it_says():
    """The k-th of S samples has the probability k / (S + 1) below it, on average over samples of any distribution."""
    rng = np.random.default_rng(1)
    samples, y = Samples(rng.exponential(size=(20_000, 39))), rng.exponential(size=20_000)
    lower, upper = samples.interval(0.9)
    assert np.mean((lower <= y) & (y <= upper)) == pytest.approx(0.9, abs=0.007)


def test_far_away_the_density_is_finite_and_equal_samples_are_no_error():
    assert np.isfinite(NORMAL.log_density(np.full(4, 1e6))).all()
    same = Samples(np.full((2, 10), 7.0))
    assert same.std.tolist() == [0.0, 0.0]
    assert same.interval(0.95)[1].tolist() == [7.0, 7.0]
    at, beside = same.log_density([7.0, 8.0])
    assert at > 100.0
    assert -np.inf < beside < -1e100


def test_rows_outputs_units_and_parts():
    values = np.random.default_rng(2).standard_normal((3, 2, 50))
    samples = Samples(values)
    assert (len(samples), samples.mean.shape) == (3, (3, 2))
    np.testing.assert_array_equal(samples.output(1).values, values[:, 1])
    np.testing.assert_array_equal(samples.rows(slice(1, 2)).values, values[1:2])
    moved = samples.affine(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    np.testing.assert_allclose(moved.mean, [1.0, 2.0] + samples.mean * [3.0, 4.0])
    np.testing.assert_allclose(moved.cdf(np.zeros((3, 2))), samples.cdf(np.array([-1 / 3, -0.5]) * np.ones((3, 2))))
    joined = Predictions.joined([samples, samples])
    assert joined.mean.shape == (6, 2)


class Other(Gaussian):
    """A kind that `draw` does not know."""


@pytest.mark.parametrize("kind", [Gaussian, Other])
def test_draws_have_the_distribution(kind):
    n = 20_000
    drawn = draw(kind(np.full(n, -2.0), np.full(n, 0.5)), np.random.default_rng(0))
    assert stats.kstest(drawn, stats.norm(-2.0, 0.5).cdf).pvalue > 0.01


def test_draws_of_mixtures_choose_a_member_first():
    """Of all that they know at once, against the cdf; a member without weight is never drawn, whatever it says."""
    n = 20_000
    student = StudentT(np.ones(n), np.full(n, 2.0), np.full(n, 3.0))
    far = Gaussian(np.full(n, -6.0), np.ones(n))
    nested = MixtureOf(np.tile([0.3, 0.7], (n, 1)), (far, StudentT(np.ones(n), np.full(n, 2.0), 3.0)))
    mixture = MixtureOf(np.tile([0.5, 0.0, 0.5], (n, 1)), (student, Gaussian(np.full(n, np.nan), np.ones(n)), nested))

    def cdf(y):
        return 0.85 * stats.t(3.0, 1.0, 2.0).cdf(y) + 0.15 * stats.norm(-6.0, 1.0).cdf(y)

    drawn = draw(mixture, np.random.default_rng(0))
    assert stats.kstest(drawn, cdf).pvalue > 0.01


def test_draws_invert_the_cdf_of_any_kind():
    samples = Samples(np.sort(np.random.default_rng(0).exponential(size=(1, 5000))).repeat(3000, axis=0))
    drawn = draw(samples, np.random.default_rng(0))
    assert stats.kstest(drawn, stats.expon().cdf).pvalue > 0.01


def test_draws_of_many_members():
    members = tuple(Gaussian(np.full(5, float(k)), np.full(5, 1e-9)) for k in range(80))
    weights = np.zeros((5, 80))
    weights[np.arange(5), [0, 20, 40, 60, 79]] = 1.0
    drawn = draw(MixtureOf(weights, members), np.random.default_rng(0))
    np.testing.assert_allclose(drawn, [0, 20, 40, 60, 79], atol=1e-7)
