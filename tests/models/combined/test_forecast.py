"""Forecasts: the uncertainty of what is fed back is passed on, as brute force says it must be."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import onlinegp as ogp
from models import stream
from onlinegp.kernels import RBF, Linear
from onlinegp.predictions.samples import Samples
from onlinegp.sliding_windows import windows

SINE = np.sin(0.3 * np.arange(200)) + 0.1 * np.random.default_rng(0).standard_normal(200)


def autoregression(n, seed=0, a=1.6, b=-0.8):
    """y[t] = a y[t-1] + b y[t-2] + N(0, 1), at rest."""
    rng = np.random.default_rng(seed)
    y = np.zeros(n + 200)
    for t in range(2, n + 200):
        y[t] = a * y[t - 1] + b * y[t - 2] + rng.standard_normal()
    return y[200:]


def test_a_linear_series_has_the_forecast_of_theory():
    """The error of h steps has the variance noise (1 + psi_1^2 + ... + psi_{h-1}^2), psi the impulse response."""
    y = autoregression(3000)
    model = ogp.Lagged(ogp.OnlineGP(Linear(), noise=1.0, budget=2), lags=2).fit(None, y)
    ahead = model.forecast(30, paths=20_000)
    mean, psi = [y[-2], y[-1]], [0.0, 1.0]
    for _ in range(30):
        mean.append(1.6 * mean[-1] - 0.8 * mean[-2])
        psi.append(1.6 * psi[-1] - 0.8 * psi[-2])
    std = np.sqrt(np.cumsum(np.square(psi[1:-1])))
    np.testing.assert_allclose(ahead.std, std, rtol=0.05)  # of which the coefficients' error from 3000 rows is 0.03
    np.testing.assert_allclose(ahead.mean, mean[2:], atol=0.15 * std.max())
    assert ahead.std[0] == pytest.approx(1.0, rel=0.03)


def joint_forecasts(kernel, noise, X, y, past, steps, paths, rng):
    """Brute force: in each path one function f is drawn, at the inputs that the path visits, given all before."""
    values = np.empty((steps, paths))
    for j in range(paths):
        inputs, f, noises, series = X, y, np.full(len(X), noise), list(past)
        for i in range(steps):
            x = np.array(series[: -len(past) - 1 : -1])[None, :]
            K = kernel(inputs) + np.diag(noises)
            k = kernel(inputs, x)[:, 0]
            w = np.linalg.solve(K, k)
            variance = max(float(kernel.diag(x)[0] - k @ w), 0.0)
            drawn = w @ f + np.sqrt(variance) * rng.standard_normal()
            series.append(drawn + np.sqrt(noise) * rng.standard_normal())
            inputs, f, noises = np.vstack([inputs, x]), np.r_[f, drawn], np.r_[noises, 1e-10]  # f itself, once drawn
            values[i, j] = series[-1]
    return values


def test_errors_of_the_model_may_be_drawn_step_by_step():
    """Against one function for each path: the same means, and deviations within a tenth."""
    series, kernel = SINE[:80], RBF(2.0)
    model = ogp.Lagged(ogp.OnlineGP(kernel, noise=0.01), lags=2).fit(None, series)
    X, y = windows(series[:-1], 2), series[2:]
    exact = joint_forecasts(kernel, 0.01, X, y, series[-2:], 8, 400, np.random.default_rng(1))
    ahead = model.forecast(8, paths=4000)
    np.testing.assert_allclose(ahead.std, exact.std(axis=1), rtol=0.15)  # 400 paths know it to 0.035
    np.testing.assert_allclose(ahead.mean, exact.mean(axis=1), atol=4.0 * float(ahead.std.max()) / 20.0)


@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize("outputs", [1, 2])
def test_all_paths_at_once_are_one_after_the_other(horizon, outputs):
    """The slow twin: each path is a copy of the model that skips rows with the drawn values."""
    X, y = stream(60)
    Y = y if outputs == 1 else np.column_stack([y, -y])
    model = ogp.Lagged(ogp.Scaled(ogp.KRLST(RBF(1.5), noise=0.01)), lags=3, horizon=horizon).fit(X[:50], Y[:50])
    ahead = model.forecast(6, X[50:56], paths=5)
    for j in range(5):
        rng = np.random.default_rng(0)
        copy = ogp.from_bytes(model.to_bytes())
        for i in range(6):
            predicted = copy.predict_distribution(X[50 + i : 51 + i])
            z = rng.standard_normal((5, outputs))[j]
            value = predicted.mean[0] + predicted.std[0] * (z if outputs > 1 else z[0])
            np.testing.assert_allclose(ahead.values[i, ..., j], value, rtol=1e-8)
            copy.skip(X[50 + i : 51 + i], [ahead.values[i, ..., j]])


def test_a_forecast_changes_nothing_and_can_be_repeated():
    model = ogp.Lagged(ogp.KRLST(RBF(1.5), noise=0.01), lags=3).fit(None, SINE)
    before = model.to_bytes()
    one, two = model.forecast(5), model.forecast(5)
    np.testing.assert_array_equal(one.values, two.values)
    assert model.to_bytes() == before
    np.testing.assert_array_equal(model.forecast(3).values, one.values[:3])
    assert (model.forecast(5, seed=1).values != one.values).all()
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(model.forecast(5, seed=rng).values, one.values)
    assert (model.forecast(5, seed=rng).values != one.values).all()
    assert (model.forecast(5, seed=None).values != one.values).all()


def test_the_first_step_is_the_prediction_of_the_next_row():
    model = ogp.Lagged(ogp.KRLST(RBF(1.5), noise=0.01), lags=3).fit(None, SINE)
    mean, std = model.predict_one(None, return_std=True)
    first = model.forecast(1, paths=50_000)
    assert first.mean[0] == pytest.approx(mean, abs=4 * std / 50_000**0.5)
    assert first.std[0] == pytest.approx(std, rel=0.02)


def test_uncertainty_grows():
    model = ogp.Lagged(ogp.KRLST(RBF(2.0), noise=0.01), lags=8).fit(None, SINE)
    ahead = model.forecast(40, paths=2000)
    assert isinstance(ahead, Samples)
    lower, upper = ahead.interval(0.95)
    assert ahead.values.shape == (40, 2000)
    assert upper[30:].mean() - lower[30:].mean() > 1.3 * (upper[0] - lower[0])


def test_rows_up_to_the_horizon_need_no_feedback():
    """With a horizon of h, the row h steps ahead is predicted from what is known: what `skip` says of it."""
    model = ogp.Lagged(ogp.KRLST(RBF(1.5), noise=0.01), lags=3, horizon=4).fit(None, SINE)
    ahead = model.forecast(4, paths=20_000)
    predicted = model.skip(np.empty((4, 0)))
    np.testing.assert_allclose(ahead.mean, predicted.mean, atol=4 * predicted.std.max() / 20_000**0.5)
    np.testing.assert_allclose(ahead.std, predicted.std, rtol=0.03)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, X: m.forecast(0), "steps must be at least 1"),
        (lambda m, X: m.forecast(3), r"with shape \(3, 2\)"),
        (lambda m, X: m.forecast(3, X[:2]), "one row for each of the 3 steps, got 2"),
        (lambda m, X: m.forecast(3, X[:3, :1]), "expecting 2 features"),
        (lambda m, X: m.forecast(3, X[:3] * np.nan), "X contains NaN"),
        (lambda m, X: m.forecast(3, X[:3], paths=1), "paths must be at least 2"),
        (lambda m, X: m.begin_series().forecast(3, X[:3]), "needs the last 3 values of y.*got 0"),
    ],
)
def test_bad_requests_are_refused_with_a_remedy(call, message):
    X, y = stream(60)
    model = ogp.Lagged(ogp.KRLST(RBF(1.5), noise=0.01), lags=3).fit(X, y)
    with pytest.raises((ValueError, TypeError), match=message):
        call(model, X)


def test_nothing_can_be_forecast_before_anything_is_learned():
    with pytest.raises(AttributeError, match="has not learned anything yet"):
        ogp.Lagged(ogp.KRLST(), lags=3).forecast(3)
    with pytest.raises(ValueError, match=r"Learn at least 4 rows"):
        ogp.Lagged(ogp.KRLST(), lags=3).partial_fit(None, [1.0, 2.0]).forecast(3)


def test_a_forecast_that_explodes_is_refused_and_the_model_is_not_blamed():
    y = 1.5 ** np.arange(20)
    model = ogp.Lagged(ogp.OnlineGP(Linear(), noise=1.0, budget=1), lags=1).fit(None, y)
    with pytest.raises(ValueError, match="grows without bound at step"):
        model.forecast(2000, paths=10)
    model.to_bytes()


@pytest.mark.parametrize("model", [ogp.KRLST(), ogp.LMS(), ogp.Scaled(ogp.Lagged(ogp.KRLST(), lags=3))])
def test_models_without_past_values_say_who_forecasts(model):
    """And for everyone who asks first, scikit-learn and River among them, they have no such method."""
    assert not hasattr(model, "forecast")
    with pytest.raises(AttributeError, match=rf"{type(model).__name__} has no forecast.*onlinegp\.Forecaster\("):
        model.forecast(3)
    assert not hasattr(copy.deepcopy(model).fit(np.zeros((3, 1)), np.zeros(3)), "forecast")
