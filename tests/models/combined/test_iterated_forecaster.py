"""Forecaster: forecasts along a series are compared with the values that followed, and later ones corrected."""

from __future__ import annotations

import numpy as np
import pytest

import onlinegp as ogp
from models import stream
from onlinegp.kernels import RBF
from onlinegp.models.combined import IteratedForecaster
from onlinegp.models.combined.iterated_forecaster import EXPECTED, KEEP, OPEN, PATHS, SHARE

SERIES = np.sin(0.3 * np.arange(260)) + 0.1 * np.random.default_rng(0).standard_normal(260)
STEPS = 7


def inner():
    return ogp.Scaled(ogp.KRLST(RBF(2.0), noise=0.02, budget=20), rows=50)


def fresh(**given):
    return IteratedForecaster(inner(), **{"lags": 3, "steps": STEPS} | given)


def same(one, other):
    return one.to_bytes() == other.to_bytes()


def test_the_factors_are_those_of_forecasts_made_one_by_one():
    """The slow twin: forecasts of a model with lags, kept in a list, whose errors are counted when they come."""
    lagged, waiting, due, after = ogp.Lagged(inner(), lags=3), [], 20, 20
    total, counted = np.full(STEPS, 20.0), np.full(STEPS, 20.0)
    for i, y in enumerate(SERIES):
        if i >= due:
            ahead = lagged.forecast(STEPS, paths=PATHS, seed=i)
            waiting.append((i, ahead.mean, ahead.std))
            due = i + max(i // SHARE, -(-STEPS // OPEN))
        for begun, mean, std in waiting:
            h = i - begun
            if h < STEPS:
                z2 = ((y - mean[h]) / std[h]) ** 2 / EXPECTED
                total[h] = KEEP * total[h] + min(z2, 100.0 * total[h] / counted[h])
                counted[h] = KEEP * counted[h] + 1.0
        lagged.partial_fit(None, [y])
    model = fresh(after=after).fit(None, SERIES)
    np.testing.assert_allclose(model.factors_, total / counted, rtol=1e-9)
    assert counted.min() > 60.0


@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize("outputs", [1, 2])
def test_in_parts_saved_and_loaded_is_at_once(horizon, outputs):
    y = SERIES if outputs == 1 else np.column_stack([SERIES, -SERIES])
    whole = fresh(horizon=horizon).fit(None, y)
    parts, start = fresh(horizon=horizon), 0
    for n in (1, 2, 3, 40, 1, 1, 60, 5, 148):  # less, and more, than from one forecast to the next
        if n % 2:
            parts.run(None, y[start : start + n])
        else:
            parts.partial_fit(None, y[start : start + n])
        parts, start = ogp.from_bytes(parts.to_bytes()), start + n
    assert start > 260
    assert same(parts, whole)
    assert whole.factors_.shape == ((STEPS,) if outputs == 1 else (STEPS, 2))
    assert (whole.factors_ != 1.0).all()


def test_it_predicts_and_learns_as_lagged_does():
    trace, lagged = fresh().run(None, SERIES), ogp.Lagged(inner(), lags=3).run(None, SERIES)
    np.testing.assert_array_equal(trace.mean, lagged.mean)
    np.testing.assert_array_equal(trace.std, lagged.std)
    np.testing.assert_array_equal(trace.size, lagged.size)


def test_a_forecast_is_stretched_around_its_mean_step_by_step():
    model, lagged = fresh().fit(None, SERIES), ogp.Lagged(inner(), lags=3).fit(None, SERIES)
    ahead, plain = model.forecast(STEPS + 3), lagged.forecast(STEPS + 3)
    factors = np.r_[model.factors_, model.factors_[[-1] * 3]]  # beyond what is checked, those of the last step
    np.testing.assert_allclose(ahead.mean, plain.mean, rtol=1e-9)
    np.testing.assert_allclose(ahead.std, np.sqrt(factors) * plain.std, rtol=1e-9)
    stretched = plain.mean[:, None] + np.sqrt(factors)[:, None] * (plain.values - plain.mean[:, None])
    np.testing.assert_allclose(ahead.values, stretched, rtol=1e-9)


@pytest.mark.parametrize("noise", [0.25, 1.0, 2.0])
def test_a_wrong_noise_is_found(noise):
    """y[t] = 0.8 y[t-1] + N(0, 1): with a model that knows it, the factor of all steps is 1 / noise."""
    rng, y = np.random.default_rng(1), np.zeros(3000)
    for t in range(1, 3000):
        y[t] = 0.8 * y[t - 1] + rng.standard_normal()
    model = IteratedForecaster(ogp.LinearRLS(noise=noise, intercept=False), lags=1, steps=5).fit(None, y)
    assert model.factors_ == pytest.approx(np.full(5, 1.0 / noise), rel=0.35)
    assert model.factors_.mean() == pytest.approx(1.0 / noise, rel=0.2)


def test_with_features_nothing_is_corrected():
    X, y = stream(100)
    model, lagged = fresh().fit(X, y), ogp.Lagged(inner(), lags=3).fit(X, y)
    assert (model.factors_ == 1.0).all()
    np.testing.assert_allclose(model.forecast(2, X[:2]).values, lagged.forecast(2, X[:2]).values, rtol=1e-12)


@pytest.mark.parametrize("leave", [lambda model: model.begin_series(), lambda model: model.skip(np.empty((2, 0)))])
def test_what_does_not_follow_is_not_counted(leave):
    """A row of another size follows: no forecast from before meets it."""
    model = fresh().fit(None, SERIES)
    before = model.factors_
    leave(model)
    model.partial_fit(None, [1e6])
    np.testing.assert_array_equal(model.factors_, before)


def test_a_forecast_that_explodes_is_left_out():
    model = IteratedForecaster(ogp.LinearRLS(noise=1.0, intercept=False), lags=1, steps=2000, after=10)
    model.fit(None, 1.5 ** np.arange(20))
    with pytest.raises(ValueError, match="grows without bound"):
        model.forecast(2000)
    assert (model.factors_ == 1.0).all()
    assert same(ogp.from_bytes(model.to_bytes()), model)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"steps": 0}, "steps must be at least 1"),
        ({"lags": 0}, "lags must be at least 1, got 0. A forecast needs past"),
        ({"after": -1}, "after must be at least 1, got -1. Use 0 to check forecasts from the start"),
    ],
)
def test_bad_parameters_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        fresh(**given).check()
    with pytest.raises(ValueError, match=message):
        fresh(**given).start(0, 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ages", np.array([0, 1])),
        ("ages", np.array([STEPS])),
        ("ages", np.arange(9, -1, -1)),
        ("std", -1.0),
        ("mean", np.nan),
        ("total", 0.0),
        ("due", -3),
        ("count", None),
    ],
)
def test_stored_contents_that_do_not_fit_are_refused(name, value):
    model = fresh().fit(None, SERIES)
    contents = model.dump()
    old = contents["learned"][name]
    contents["learned"][name] = np.full_like(old, value) if isinstance(value, float) else value
    with pytest.raises(ValueError, match=f"({name}|mean) (must|holds)"):
        fresh().load(contents)
