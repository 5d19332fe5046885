"""Forecasts with nothing to set: what they say, gaps, inputs, streams, and series of odd kinds."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.models.temporal.combination import LEVELS, SCORES, combine, past_origins
from onlinegp.models.temporal.forecast import Forecast
from onlinegp.models.temporal.members import SHIFTS, shifts
from onlinegp.models.temporal.rolling import highest
from onlinegp.models.temporal.structure import Structure


def monthly(n=120, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    return 10 + 0.1 * t + 3 * np.sin(2 * np.pi * t / 12) + rng.normal(size=n)


def test_a_trend_and_a_season_are_continued():
    y = monthly(132)
    ahead = ogp.Forecaster().fit(y[:120]).forecast(12)
    assert ahead.seasons == (12.0,)
    assert np.abs(ahead.median - y[120:]).mean() < 1.5
    lower, upper = ahead.interval(0.95)
    assert np.mean((y[120:] > lower) & (y[120:] < upper)) > 0.8
    assert abs(sum(ahead.weights.values()) - 1) < 1e-5


def test_intervals_cover_on_new_series():
    """95% intervals of 20 series of three kinds: 12 values each."""
    rng = np.random.default_rng(1)
    inside = []
    for i in range(20):
        y = [monthly(112, i), rng.normal(size=112).cumsum(), rng.normal(size=112)][i % 3]
        lower, upper = ogp.Forecaster().fit(y[:100]).forecast(12).interval(0.95)
        inside += ((y[100:] > lower) & (y[100:] < upper)).tolist()
    assert 0.88 <= np.mean(inside) <= 0.995


def test_a_stream_is_the_same_as_a_batch():
    y = monthly(60)
    one_by_one = ogp.Forecaster()
    for value in y:
        one_by_one.learn_one(value)
    batch = ogp.Forecaster().fit(y)
    assert np.array_equal(one_by_one.forecast(6).quantiles, batch.forecast(6).quantiles)
    halves = ogp.Forecaster().fit(y[:25]).partial_fit(y[25:])
    assert np.array_equal(halves.forecast(6, refit=False).quantiles, batch.forecast(6, refit=False).quantiles)


def test_forecasts_roll_on_and_fits_are_adopted_at_the_same_row_in_the_background():
    y = monthly(230)
    model, step = ogp.Forecaster(), np.empty((1, 0))
    predicted = []
    for i, value in enumerate(y):
        predicted.append(model.predict(step)[0])
        model.learn_one(value)
        if i > 150 and i % 4 == 0:
            ahead = model.forecast(6, refit=False)
    assert i % 4 == 1  # the last forecast was before the last row
    batch = ogp.Forecaster()
    trace = batch.run(y)
    np.testing.assert_allclose(predicted, trace.mean, rtol=1e-12)
    assert np.array_equal(ogp.Forecaster().fit(y[:229]).forecast(6, refit=False).quantiles, ahead.quantiles)
    assert np.array_equal(model.forecast(6, refit=False).quantiles, batch.forecast(6, refit=False).quantiles)


def test_a_forecast_without_new_parameters_takes_little():
    y = monthly(190)
    model = ogp.Forecaster().fit(y[:180])
    model.forecast(6, refit=False)
    took = []
    for value in y[180:]:
        model.learn_one(value)
        began = process_time()
        model.forecast(6, refit=False)
        took.append(process_time() - began)
    began = process_time()
    model.forecast(6)
    assert min(took) < 0.25 * (process_time() - began)


def test_a_file_goes_on_where_it_was():
    y = monthly(60)
    model = ogp.Forecaster().fit(y[:40])
    copy = ogp.from_bytes(model.to_bytes())
    for one in (model, copy):
        one.partial_fit(y[40:])
    assert np.array_equal(model.forecast(6).quantiles, copy.forecast(6).quantiles)
    assert copy.predict(np.empty((1, 0)))[0] == model.predict(np.empty((1, 0)))[0]


def test_missing_values_are_gaps():
    y = monthly(240)
    gaps = y.copy()
    gaps[np.random.default_rng(2).random(240) < 0.3] = np.nan
    gaps[:3] = np.nan
    model = ogp.Forecaster().fit(gaps[:228])
    ahead = model.forecast(12)
    assert ahead.seasons == (12.0,)
    assert np.abs(ahead.median - y[228:]).mean() < 1.6
    streamed = ogp.Forecaster()
    for i, value in enumerate(gaps[:228]):
        streamed.learn_one(None if np.isnan(value) and i % 2 else value)
    assert np.array_equal(streamed.forecast(12).quantiles, ahead.quantiles)
    with pytest.raises(ValueError, match="all of them are missing"):
        ogp.Forecaster().fit([np.nan, np.nan])


def test_series_with_zeros_have_members_in_logarithms_too():
    rng = np.random.default_rng(5)
    t = np.arange(150)
    y = np.where(rng.random(150) < 0.05, 0.0, np.exp(1 + 0.02 * t + 0.2 * rng.normal(size=150)))
    none, shift = shifts(y, ())
    assert none is None
    assert shift in [share * np.median(y[y > 0]) for share in SHIFTS]
    assert shifts(y + 1e-3, ()) == [None, 0.0]
    assert shifts(y - 1.0, ()) == [None]
    ahead = ogp.Forecaster().fit(y).forecast(12)
    assert ahead.quantiles.min() >= 0.0
    widths = np.diff(ahead.interval(0.95), axis=0)[0]
    assert widths[-1] > 1.1 * widths[0]  # they grow with the level
    assert ahead.median[-1] > 0.6 * np.exp(1 + 0.02 * 162)


@pytest.mark.parametrize("n", [8, 13, 21])
def test_short_counts_have_no_quantiles_of_thousands(n):
    for seed in range(10):
        y = np.random.default_rng([n, seed]).poisson(0.4, n).astype(float)
        quantiles = ogp.Forecaster().fit(y).forecast(13).quantiles
        assert quantiles.max() <= 20 * max(y.max(), 1.0)


def test_growth_may_go_on_as_before():
    y = 1.2 ** np.arange(40.0)
    assert highest(y, np.array([30, 40]), 10) == pytest.approx(y[[29, 39]] * 1.2**15)
    y[::3] = np.nan
    assert highest(y, np.array([40]), 10)[0] >= y[38] * 1.2**12
    assert highest(np.array([0.0, 2.0, 0.0, 2.0, 4.0]), np.array([1, 5]), 3) == pytest.approx([0.0, 4 * 2**1.5])
    assert np.allclose(ogp.Forecaster().fit(1.2 ** np.arange(40.0)).forecast(10).median[-1], 1.2**49, rtol=0.2)


def test_intervals_of_short_series_cover():
    """95% intervals of 100 series of 12 values, 6 steps ahead."""
    inside = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        y = [rng.normal(size=18).cumsum(), rng.normal(size=18), np.exp(rng.normal(size=18))][seed % 3]
        lower, upper = ogp.Forecaster().fit(y[:12]).forecast(6).interval(0.95)
        inside += ((y[12:] >= lower) & (y[12:] <= upper)).tolist()
    assert 0.92 <= np.mean(inside) <= 0.99


def test_inputs_known_ahead_help():
    rng = np.random.default_rng(3)
    x = (rng.random(150) < 0.15).astype(float)[:, None]  # holidays
    y = 20 + 0.5 * rng.normal(size=150).cumsum() + 8 * x[:, 0] + rng.normal(size=150)
    x[140:, 0] = [0, 1, 0, 0, 1, 0, 0, 0, 1, 0]
    model = ogp.Forecaster().fit(x[:140], y[:140])
    ahead = model.forecast(10, x[140:])
    assert ahead.median[[1, 4, 8]].mean() - ahead.median[[0, 2, 3]].mean() > 5
    with pytest.raises(ValueError, match="X must be given"):
        model.forecast(10)
    with pytest.raises(ValueError, match="one row for each of the 10 steps"):
        model.forecast(10, x[:3])


def test_paths_have_the_quantiles_of_the_forecast_and_hang_together():
    y = np.random.default_rng(4).normal(size=150).cumsum()
    ahead = ogp.Forecaster().fit(y).forecast(10)
    paths = ahead.paths(4000, seed=1).values
    assert paths.shape == (10, 4000)
    lower, upper = ahead.interval(0.8)
    assert np.allclose(np.mean((paths > lower[:, None]) & (paths < upper[:, None]), axis=1), 0.8, atol=0.05)
    independent = np.sqrt((ahead.std**2).sum())
    assert 1.5 * independent < paths.sum(axis=0).std() < 1.05 * ahead.std.sum()
    assert np.array_equal(paths, ahead.paths(4000, seed=1).values)


def test_frames_and_pictures():
    pytest.importorskip("pandas")
    ahead = ogp.Forecaster().fit(monthly()).forecast(6)
    frame = ahead.to_frame(0.9)
    assert list(frame.columns) == ["mean", "median", "std", "lower", "upper"]
    assert frame.index.tolist() == [1, 2, 3, 4, 5, 6]
    with pytest.raises(ValueError, match="kind must be one of"):
        ahead.to_frame(kind="excel")
    pytest.importorskip("matplotlib")
    ahead.plot(monthly()[-30:])


@pytest.mark.parametrize("dates", [None, np.array([f"2024-0{i}" for i in range(1, 7)], dtype=object)])
def test_frames_of_polars_hold_dates_or_steps_in_a_column(dates):
    pytest.importorskip("polars")
    ahead = replace(ogp.Forecaster().fit(monthly()).forecast(6), dates=dates)
    frame = ahead.to_frame(0.9, kind="polars")
    first = "step" if dates is None else "date"
    assert frame.columns == [first, "mean", "median", "std", "lower", "upper"]
    assert frame[first].to_list() == ([1, 2, 3, 4, 5, 6] if dates is None else dates.tolist())
    assert np.array_equal(frame["lower"].to_numpy(), ahead.interval(0.9)[0])


def test_backtests_say_how_good_forecasts_were():
    test = ogp.Forecaster().fit(monthly(150)).backtest(12, origins=3)
    assert [one["row"] for one in test.results] == [114, 126, 138]
    assert 0 < test.mean["mase"] < 1.2
    assert "in 95% interval" in str(test)
    with pytest.raises(ValueError, match="needs 132 rows"):
        ogp.Forecaster().fit(monthly(100)).backtest(60, origins=2)


@pytest.mark.parametrize(
    "y",
    [
        [3.0],
        [5.0, 7.0],
        np.full(40, 3.0),
        [1.0] * 60 + [2.0],
        np.arange(40.0),
        np.exp(np.arange(60.0) / 4),
        np.tile([3.0, 1.0, 4.0, 1.5], 20),
        np.random.default_rng(0).poisson(0.3, 80).astype(float),
        1e-9 * np.random.default_rng(0).normal(size=50),
        1e-200 * np.random.default_rng(0).normal(size=50),
        1e140 * np.random.default_rng(0).normal(size=50),
        np.random.default_rng(0).normal(size=11),
        np.random.default_rng(0).normal(size=12),
        1e12 + np.random.default_rng(0).normal(size=50),
        np.random.default_rng(0).normal(size=25),
        np.concatenate([np.zeros(60), np.full(60, 100.0)]) + np.random.default_rng(0).normal(size=120),
        np.random.default_rng(0).standard_cauchy(200),
    ],
    ids=[
        "one",
        "two",
        "constant",
        "one other",
        "line",
        "growth",
        "clockwork",
        "counts",
        "tiny",
        "tinier",
        "huge",
        "11",
        "12",
        "far",
        "25",
        "shift",
        "wild",
    ],
)
def test_odd_series_have_finite_forecasts(y):
    y = np.asarray(y)
    ahead = ogp.Forecaster().fit(y).forecast(10)
    assert np.isfinite(ahead.quantiles).all()
    assert np.all(np.diff(ahead.quantiles, axis=1) >= 0)
    spread = max(np.ptp(y), abs(y[-1]), 1e-300)
    assert np.all(np.abs(ahead.median - y[-1]) < 20 * spread)
    if y.min() >= 0:
        assert ahead.quantiles.min() >= 0


def test_next_rows_are_predicted_before_they_are_learned():
    y = monthly(200)
    trace = ogp.run(ogp.Forecaster(), None, y)
    late = slice(60, None)
    assert np.sqrt(np.mean((trace.mean[late] - y[late]) ** 2)) < 1.4
    lower, upper = trace.interval(0.95)
    assert 0.88 < np.mean((y > lower)[late] & (y < upper)[late]) <= 1.0


@pytest.mark.parametrize("jump", [50.0, 1000.0])
def test_predictions_follow_a_large_change_of_the_level(jump):
    y = np.random.default_rng(0).normal(size=260)
    y[200:] += jump
    trace = ogp.run(ogp.Forecaster(), None, y)
    assert np.abs(trace.mean - y)[203:].mean() < 2.0
    lower, upper = trace.interval(0.95)
    assert np.mean((y > lower)[203:] & (y < upper)[203:]) > 0.85


@pytest.mark.parametrize(
    "y",
    [
        [5.0] * 60 + [9.0] * 30,
        [0.0, 0.0, 0.0, 1.0] + [0.0] * 36,
        1e6 + 1e3 * np.random.default_rng(0).normal(size=40),
        1e-200 * np.random.default_rng(0).normal(size=40),
    ],
    ids=["a jump", "zeros", "large", "tiniest"],
)
def test_densities_of_odd_series_are_finite_and_intervals_follow(y):
    y = np.asarray(y)
    trace = ogp.run(ogp.Forecaster(), None, y)
    assert np.isfinite(trace.log_density).all()
    lower, upper = trace.interval(0.95)
    assert np.mean((y >= lower)[25:] & (y <= upper)[25:]) > 0.85


def test_a_model_of_ones_own_is_iterated():
    series = np.sin(0.3 * np.arange(300))
    model = ogp.Forecaster(model=ogp.Lagged(ogp.Scaled(ogp.KRLST(noise=1e-4)), lags=4), steps=5).fit(series)
    assert np.abs(model.forecast(3).mean - np.sin(0.3 * np.arange(300, 303))).max() < 0.02
    with pytest.raises(TypeError, match="model must be a Lagged"):
        ogp.Forecaster(model=ogp.KRLST()).fit(series)
    with pytest.raises(TypeError, match="backtest is for"):
        model.backtest(5)


def test_wrong_parameters_are_refused():
    for seasons in ("weekly", (1,), (12, 4), (2, 4, 8)):
        with pytest.raises(ValueError, match="seasons must be"):
            ogp.Forecaster(seasons=seasons).check()
    with pytest.raises(ValueError, match="one series"):
        ogp.Forecaster().fit(None, np.ones((20, 2)))
    with pytest.raises(ValueError, match="steps must be"):
        ogp.Forecaster().fit(monthly()).forecast(0)


def test_a_forecast_of_normal_quantiles_is_normal():
    ahead = Forecast(np.array([[2.0], [5.0]]) + np.array([[1.0], [3.0]]) * SCORES)
    normal = ogp.predictions.Gaussian(np.array([2.0, 5.0]), np.array([1.0, 3.0]))
    y = np.array([1.3, 11.0])
    assert np.allclose(ahead.log_density(y), normal.log_density(y))
    assert np.allclose(ahead.cdf(y), normal.cdf(y))
    assert np.allclose(ahead.quantile(0.999), normal.quantile(0.999))
    assert np.allclose(ahead.mean, normal.mean)
    assert np.allclose(ahead.std, normal.std, rtol=0.01)


def test_the_better_member_gets_the_weight():
    rng = np.random.default_rng(5)
    y = rng.normal(size=400)
    origins = past_origins(400, 5)
    shape = (len(LEVELS), len(origins), 5)
    right = np.broadcast_to(SCORES[:, None, None], shape)
    quantiles, weights = combine([[right], [right + 1.0]], y, origins, 5)
    assert weights[0] > 0.95
    assert np.allclose(quantiles[5], 0.0, atol=0.1)


def test_parameters_are_those_of_the_blocks():
    structure = Structure((12.0, 36.0), False, 4.0, 1)
    theta = structure.prior[0]
    blocks = structure.learner(theta).blocks
    assert blocks[0].drift == pytest.approx(np.exp(-1.5))
    assert blocks[0].transition(1.0)[1][1, 1] == pytest.approx(np.exp(-7.0))  # q_b
    assert blocks[1].transition(1.0)[0][0, 0] == pytest.approx(1 / (1 + np.exp(-0.5)))  # rho
    assert [block.harmonic for block in blocks if block.period == 36.0] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
    assert blocks[4].drift == pytest.approx(np.exp(-6.0) / 4)


def test_a_frame_with_dates_is_no_series():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=9), "y": np.arange(9.0)})
    with pytest.raises(TypeError, match=r"^y must hold numbers: .*Pass one column .*, such as df\['y'\]\.$"):
        ogp.Forecaster().fit(frame)
    assert ogp.Forecaster().fit(frame["y"]).forecast(1).mean == pytest.approx(9.0, abs=1.0)


def test_a_season_may_be_a_number():
    y = np.tile([1.0, 5.0, 3.0], 20)
    one, many = (ogp.Forecaster(seasons=seasons).fit(y) for seasons in (3, (3.0,)))
    assert one.forecast(3).seasons == (3.0,)
    assert np.array_equal(ogp.from_bytes(one.to_bytes()).forecast(3).mean, many.forecast(3).mean)


def test_predict_with_a_number_of_steps_names_forecast():
    model = ogp.Forecaster().fit(np.arange(20.0))
    with pytest.raises(TypeError, match=r"For the next 7 values use forecast\(7\)"):
        model.predict(7)
    with_inputs = ogp.Forecaster().fit(np.arange(20.0)[:, None] % 3, np.arange(20.0))
    with pytest.raises(ValueError, match=r"X must be given, with shape \(7, 1\)"):
        with_inputs.forecast(7)
