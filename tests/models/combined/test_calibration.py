"""Calibrated, HeavyTailed, Conformal: what they promise of densities and intervals, on data whose law is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import onlinegp as ogp

N = 20_000
X = np.zeros((N, 1))
NOISE = {
    "normal": (stats.norm(), np.random.default_rng(0).normal(size=N)),
    "t3": (stats.t(3), np.random.default_rng(1).standard_t(3, N)),
    "t5": (stats.t(5), np.random.default_rng(2).standard_t(5, N)),
}


def line(noise=1.0):
    """A model that predicts zero with a variance of its own."""
    return ogp.LinearRLS(noise=noise, prior=1e-8)


def coverage(trace, level=0.95):
    lower, upper = trace.interval(level)
    return float(np.mean((lower <= trace.y) & (trace.y <= upper)))


def loss(model, name):
    """How many nats per row the model loses to the truth."""
    law, y = NOISE[name]
    return float(np.mean(law.logpdf(y) - ogp.run(model, X, y).log_density))


def uneven(trace):
    """Kolmogorov's distance of the probabilities of what came from the uniform distribution."""
    return stats.kstest(trace.predictions.pit(trace.y), "uniform").statistic


def test_on_normal_data_they_cost_little():
    assert loss(ogp.Calibrated(line()), "normal") < 0.005  # in theory 0.0018: 1 / 4 of the variance of a mean of z^2
    assert loss(ogp.HeavyTailed(line()), "normal") < 0.01


@pytest.mark.parametrize("inside", [line(0.01), ogp.HeavyTailed(line(4.0)), ogp.Mixture([line(), line(0.1)])], ids=repr)
def test_conformal_leaves_the_density_alone(inside):
    y = NOISE["t3"][1][:3000]
    plain, trace = ogp.run(inside, X[:3000], y), ogp.run(ogp.Conformal(inside, level=0.8), X[:3000], y)
    np.testing.assert_array_equal(trace.mean, plain.mean)
    np.testing.assert_array_equal(trace.std, plain.std)
    np.testing.assert_array_equal(trace.log_density, plain.log_density)
    np.testing.assert_array_equal(trace.predictions.cdf(y), plain.predictions.cdf(y))
    assert coverage(trace, 0.8) == pytest.approx(0.8, abs=0.03)
    assert np.abs(trace.predictions.stretch - 1.0).max() > 0.02


def test_conformal_stretches_multiply():
    """Around another one, and unchanged by units."""
    y = NOISE["normal"][1][:600]
    inner = ogp.run(ogp.Conformal(line(0.04)), X[:600], y).predictions
    both = ogp.run(ogp.Conformal(ogp.Conformal(line(0.04)), level=0.5), X[:600], y)
    lower, upper = both.interval(0.5)
    assert np.mean((lower <= y) & (y <= upper)) == pytest.approx(0.5, abs=0.05)
    more = both.predictions.stretch / inner.stretch  # of the outer one
    missed = (y < lower) | (y > upper)
    np.testing.assert_array_equal(np.diff(more) > 0.0, missed[:-1])
    scaled = ogp.Scaled(ogp.Conformal(line(0.04)), x_center=0.0, x_scale=1.0, y_center=5.0, y_scale=10.0)
    other = ogp.run(scaled, X[:600], 5.0 + 10.0 * y).predictions
    np.testing.assert_allclose(other.stretch, inner.stretch, rtol=1e-13)
    np.testing.assert_allclose(other.quantile(0.9), 5.0 + 10.0 * inner.quantile(0.9), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("wrapper", [ogp.Calibrated, ogp.HeavyTailed])
def test_a_spread_that_is_learned_again_replaces_the_stretch(wrapper):
    """Else intervals would be widened twice."""
    y = NOISE["normal"][1][:3000]
    trace = ogp.run(wrapper(ogp.Conformal(line(1e-4))), X[:3000], y)
    alone = ogp.run(wrapper(line(1e-4)), X[:3000], y)
    np.testing.assert_allclose(trace.interval(0.95), alone.interval(0.95), rtol=1e-12)


def test_flags_are_raised_outside_of_the_intervals():
    y = NOISE["t3"][1][:3000]
    trace = ogp.run(ogp.Conformal(line(0.01), level=0.99), X[:3000], y)
    lower, upper = trace.interval(0.99)
    np.testing.assert_array_equal(trace.flags(0.01), (y < lower) | (upper < y))


@pytest.mark.parametrize("name", ["t3", "t5"])
def test_heavy_tails_gain_what_theory_says(name):
    """The best normal distribution loses its divergence; HeavyTailed nearly nothing."""
    law, y = NOISE[name]
    normal = stats.norm(0.0, law.std())
    divergence = float(np.mean(law.logpdf(y) - normal.logpdf(y)))
    gain = loss(ogp.Calibrated(line()), name) - loss(ogp.HeavyTailed(line()), name)
    assert gain > 0.8 * divergence
    assert loss(ogp.HeavyTailed(line()), name) < 0.01
    weights = ogp.HeavyTailed(line()).fit(X, y).weights_
    assert weights[0] < 0.01
    assert weights[1:3].sum() > 0.8


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("wrapper", [ogp.Calibrated, ogp.HeavyTailed, ogp.Conformal])
def test_probabilities_of_what_comes_are_uniform(wrapper, scale):
    """Whatever the model inside takes the noise for."""
    trace = ogp.run(wrapper(line(scale**2)), X, NOISE["normal"][1])
    assert uneven(trace) < 0.03
    assert uneven(ogp.run(line(9.0), X, NOISE["normal"][1])) > 0.15


def test_probabilities_are_uniform_under_heavy_tails_too():
    assert uneven(ogp.run(ogp.HeavyTailed(line()), X, NOISE["t3"][1])) < 0.02
    assert uneven(ogp.run(ogp.Calibrated(line()), X, NOISE["t3"][1])) > 0.05


def test_a_mixture_of_calibrated_members_is_calibrated():
    x = np.random.default_rng(3).uniform(-2.0, 2.0, (N, 1))
    y = x[:, 0] + NOISE["normal"][1]
    trace = ogp.run(ogp.Mixture([ogp.HeavyTailed(ogp.LinearRLS(noise=9.0)), line(0.01)]), x, y)
    assert uneven(trace) < 0.02


DRIFTS = {
    "none": np.ones(N),
    "a jump": np.where(np.arange(N) < N // 2, 1.0, 20.0),
    "growth": np.geomspace(1e-2, 1e2, N),
    "waves": np.exp(np.sin(np.arange(N) / 500.0)),
}


@pytest.mark.parametrize("drift", DRIFTS)
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_conformal_intervals_hold_whatever_the_scale_does(drift, level):
    y = DRIFTS[drift] * NOISE["t3"][1]
    trace = ogp.run(ogp.Conformal(line(0.01), level=level), X, y)
    # A stretch that settles is a little behind a scale that grows for ever, here by a factor of e in 2,000 rows
    behind = 0.1 * np.sqrt(level * (1.0 - level)) if drift == "growth" else 0.0
    assert coverage(trace, level) == pytest.approx(level, abs=0.01 + behind)


def test_conformal_intervals_hold_around_other_distributions():
    trace = ogp.run(ogp.Conformal(ogp.HeavyTailed(line(4.0)), level=0.9), X[:4000], NOISE["t3"][1][:4000])
    assert coverage(trace, 0.9) == pytest.approx(0.9, abs=0.014)  # three standard deviations of 4,000 rows


def test_the_interval_at_the_level_is_the_tracked_one():
    y = NOISE["normal"][1][:500]
    trace = ogp.run(ogp.Conformal(line(), level=0.8), X[:500], y)
    lower, upper = trace.interval(0.8)
    width, before = (upper - lower)[1:] / (upper - lower)[:-1], (lower > y) | (y > upper)
    np.testing.assert_array_equal(width > 1.0, before[:-1])  # wider after a miss, narrower after a hit


def test_outputs_are_calibrated_each_on_its_own():
    Y = np.column_stack([NOISE["normal"][1], 5.0 * NOISE["t3"][1]])
    for wrapper in (ogp.Calibrated, ogp.HeavyTailed, ogp.Conformal):
        both = ogp.run(wrapper(line()), X, Y)
        for j in range(2):
            np.testing.assert_array_equal(both.output(j).log_density, ogp.run(wrapper(line()), X, Y[:, j]).log_density)
    model = ogp.Calibrated(line()).fit(X[:5000], Y[:5000])
    assert model.factor_[0] == pytest.approx(1.0, rel=0.5)
    assert model.factor_[1] > 10.0


def test_one_outlier_widens_by_a_bounded_factor():
    y = NOISE["normal"][1][:300].copy()
    y[200] = 1e30
    std = ogp.run(ogp.Calibrated(line()), X[:300], y).std
    assert std[201] < 1.5 * std[200]


def test_perfect_predictions_do_not_end_in_nothing():
    for wrapper in (ogp.Calibrated, ogp.HeavyTailed, ogp.Conformal):
        trace = ogp.run(wrapper(line()), X, np.zeros(N))
        assert (trace.std > 0.0).all()
        assert np.isfinite(trace.log_density).all()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ogp.Calibrated(line(), half_life=0.0), "half_life must be positive"),
        (ogp.HeavyTailed(line(), degrees=()), "degrees must be numbers greater than 2"),
        (ogp.HeavyTailed(line(), degrees=(2.0, 5.0)), "degrees must be numbers greater than 2"),
        (ogp.HeavyTailed(line(), degrees=3.0), "degrees must be a list"),
        (ogp.HeavyTailed(line(), degrees=("three",)), "degrees must be a number"),
        (ogp.HeavyTailed(line(), fade=2.0), "fade must be greater than 0"),
        (ogp.Conformal(line(), level=1.0), "level must be greater than 0 and less than 1"),
        (ogp.Conformal(line(), level=0.0), "level must be greater than 0"),
        (ogp.Conformal("line"), "model must be an estimator"),
    ],
)
def test_bad_parameters_are_named(model, message):
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X[:5], NOISE["normal"][1][:5])


@pytest.mark.parametrize("wrapper", [ogp.Calibrated, ogp.HeavyTailed, ogp.Conformal])
def test_forged_contents_are_refused(wrapper):
    model = wrapper(line()).fit(X[:50], NOISE["normal"][1][:50])
    for name in set(model.dump()["learned"]) & {"total", "count", "log_weights", "log_scale", "rows", "more", "fewer"}:
        contents = model.dump()
        contents["learned"][name] = contents["learned"][name] - 1e4
        with pytest.raises(ValueError, match=name):
            wrapper(line()).load(contents)
