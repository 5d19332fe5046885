"""Lagged: past values of y are inputs, the newest first; a longer horizon predicts and learns later."""

from __future__ import annotations

import numpy as np
import pytest

import onlinegp as ogp
from models import stream
from onlinegp.datasets import embed
from onlinegp.kernels import RBF
from onlinegp.models.combined.base import stretched
from onlinegp.predictions import Gaussian

SERIES = np.sin(0.3 * np.arange(200)) + 0.02 * np.random.default_rng(0).standard_normal(200)


def inner():
    return ogp.KRLST(RBF(1.5), noise=0.01, budget=30)


@pytest.mark.parametrize("lags", [1, 4])
def test_a_series_is_the_model_on_the_embedded_series(lags):
    trace = ogp.Lagged(inner(), lags=lags).run(None, SERIES)
    plain = inner().run(*embed(SERIES, lags))
    np.testing.assert_array_equal(trace.mean[lags + 1 :], plain.mean[1:])
    np.testing.assert_array_equal(trace.std[lags + 1 :], plain.std[1:])
    np.testing.assert_array_equal(trace.size[lags:], plain.size)


def test_features_come_before_the_lags():
    X, y = stream(100)
    mean = ogp.Lagged(inner(), lags=2).run(X, y).mean
    plain = inner().run(np.column_stack([X[2:], y[1:-1], y[:-2]]), y[2:])
    np.testing.assert_array_equal(mean[3:], plain.mean[1:])


def test_several_outputs_each_have_their_lags():
    X, y = stream(100)
    Y = np.column_stack([y, -2.0 * y**2])
    mean = ogp.Lagged(inner(), lags=2).run(X, Y).mean
    inputs = np.column_stack([X[2:], Y[1:-1, 0], Y[:-2, 0], Y[1:-1, 1], Y[:-2, 1]])
    np.testing.assert_array_equal(mean[3:], inner().run(inputs, Y[2:]).mean[1:])


def factor(z2, horizon):
    """Return the factor of the spread after these squared errors at the horizon, or NaN where there was none."""
    total = count = 20.0
    for one in z2[~np.isnan(z2)]:
        keep = 1.0 - 1.0 / (500.0 + 10.0 * horizon)
        total, count = keep * total + min(one, 100.0 * total / count), keep * count + 1.0
    return np.sqrt(total / count)


@pytest.mark.parametrize(("lags", "horizon"), [(3, 2), (2, 5), (0, 3)])
def test_a_horizon_predicts_from_older_values_and_learns_later(lags, horizon):
    X, y = stream(90)
    trace = ogp.Lagged(inner(), lags=lags, horizon=horizon).run(X, y)
    first = lags + horizon - 1 if lags else 0
    plain, z2 = inner(), np.full(90, np.nan)
    rows = [np.r_[X[i], y[i - horizon - np.arange(lags)]] for i in range(first, 90)]
    for i in range(first, 90):
        if i - horizon >= first:  # row i - horizon was learned just before row i is predicted
            plain.learn_one(rows[i - horizon - first], y[i - horizon])
            mean, std = plain.predict_one(rows[i - first], return_std=True)
            z2[i] = ((y[i] - mean) / std) ** 2
            assert trace.mean[i] == pytest.approx(mean, rel=1e-9, abs=1e-12)
            assert trace.std[i] == pytest.approx(std * factor(z2[: i - horizon + 1], horizon), rel=1e-8)


@pytest.mark.parametrize("horizon", [1, 3])
def test_rows_without_enough_lags_are_predicted_by_mean_and_spread(horizon):
    trace = ogp.Lagged(inner(), lags=5, horizon=horizon).run(None, 56.0 + SERIES)
    for i in range(2, 5 + horizon - 1):
        known = 56.0 + SERIES[: max(0, i - horizon + 1)]
        if len(known) >= 2:
            assert trace.mean[i] == pytest.approx(known.mean(), rel=1e-12)
            assert trace.std[i] == pytest.approx(known.std(ddof=1) * np.sqrt(1.0 + 1.0 / len(known)), rel=1e-6)
    assert (trace.std > 0.0).all()
    assert ogp.Lagged(inner(), lags=5, horizon=horizon).fit(None, SERIES[: 4 + horizon]).size_ == 0


@pytest.mark.parametrize("horizon", [1, 3])
def test_nothing_is_predicted_from_what_comes_later(horizon):
    X, y = stream(60)
    other = y.copy()
    other[40:] += 100.0
    one, two = (ogp.Lagged(inner(), lags=3, horizon=horizon).run(X, values) for values in (y, other))
    for part in ("mean", "std"):
        before, after = getattr(one, part), getattr(two, part)
        np.testing.assert_array_equal(before[: 40 + horizon], after[: 40 + horizon])
        assert before[40 + horizon] != after[40 + horizon]


@pytest.mark.parametrize("engine", ["auto", "python"])
@pytest.mark.parametrize("wrapped", [ogp.Calibrated, ogp.Conformal, ogp.HeavyTailed])
def test_intervals_far_ahead_have_their_coverage(wrapped, engine):
    """A wrapper inside sees errors of the next row only; those 12 rows ahead are three times as large."""
    noise, y = np.random.default_rng(5).standard_normal(3000), np.zeros(3000)
    for i in range(1, len(y)):
        y[i] = 0.999 * y[i - 1] + noise[i]
    trace = ogp.Lagged(wrapped(ogp.LinearRLS(noise=1.0, engine=engine)), lags=2, horizon=12).run(None, y)
    lower, upper = trace.interval(0.95)
    assert 0.92 <= np.mean(((lower <= y) & (y <= upper))[524:]) <= 0.97


@pytest.mark.parametrize("wrapped", [ogp.Calibrated, ogp.HeavyTailed])
def test_every_prediction_has_the_spread_of_errors_at_the_horizon(wrapped):
    model = ogp.Lagged(wrapped(inner()), lags=3, horizon=6).fit(None, np.cumsum(SERIES))
    learned, plain = model.dump()["learned"], model.learner.inner
    widened = float(np.sqrt(learned["z2_total"] / learned["z2_count"])[0])
    assert abs(widened - 1.0) > 0.05
    (mean,), (std,) = model.predict(None, return_std=True)
    own = plain.predict(learned["past"][:3][::-1].T)  # lag 1 is six rows ago
    assert (mean, std) == pytest.approx((own.mean[0, 0], widened * own.std[0, 0]), rel=1e-12)
    assert model.predict_one(None, return_std=True) == (mean, std)
    whole, half = model.predict_distribution(None), Gaussian(mean, std)
    if wrapped is ogp.HeavyTailed:  # half of it is a normal
        heavy = stretched(own, np.array([widened])).output(0)
        assert whole.log_density(mean + std) == pytest.approx(
            np.log(0.5 * np.exp(heavy.log_density(mean + std)) + 0.5 * np.exp(half.log_density(mean + std)))
        )
    else:
        assert whole.log_density(mean + std) == pytest.approx(half.log_density(mean + std))
    np.testing.assert_allclose(model.predict_interval(None), whole.interval(0.95), rtol=1e-9)
    assert model.forecast(1, paths=20_000).std[0] == pytest.approx(std, rel=0.03)
    assert model.skip(None).std[0] == std


def test_predict_takes_each_row_for_the_next():
    X, y = stream(60)
    model = ogp.Lagged(inner(), lags=3).fit(X, y)
    new, _ = stream(5, seed=1)
    plain = inner().fit(np.column_stack([X[3:], y[2:-1], y[1:-2], y[:-3]]), y[3:])
    expected = plain.predict(np.column_stack([new, np.tile(y[:-4:-1], (5, 1))]))
    np.testing.assert_array_equal(model.predict(new), expected)


@pytest.mark.parametrize("horizon", [1, 3])
def test_skipped_rows_are_replaced_by_their_predictions(horizon):
    X, y = stream(70)
    model, other = (ogp.Lagged(inner(), lags=3, horizon=horizon).fit(X[:50], y[:50]) for _ in range(2))
    predicted = model.skip(X[50:60])
    for i in range(50, 60):
        assert other.skip(X[i : i + 1]).mean[0] == predicted.mean[i - 50]
    past = np.r_[y[:50], predicted.mean]
    lags = past[60 - horizon - np.arange(3)]
    learned = np.column_stack(
        [X[2 + horizon : 50 - horizon + 1]] + [y[2 - j : 50 - 2 * horizon + 1 - j] for j in range(3)]
    )
    plain = inner().fit(learned, y[2 + horizon : 50 - horizon + 1])
    assert model.predict_one(X[60]) == pytest.approx(plain.predict_one(np.r_[X[60], lags]), rel=1e-9)
    assert model.n_samples_seen_ == 50


def test_a_series_is_continued_by_skipping():
    model = ogp.Lagged(ogp.Scaled(inner()), lags=8).fit(None, 56.0 + SERIES)
    ahead = model.skip(np.empty((5, 0)))
    np.testing.assert_allclose(ahead.mean, 56.0 + np.sin(0.3 * np.arange(200, 205)), atol=0.15)


def test_rows_may_be_skipped_before_anything_is_known():
    model = ogp.Lagged(inner(), lags=2)
    assert model.skip(None).mean == [0.0]
    model.learn_one(None, 5.0)
    assert model.skip(np.empty((3, 0))).mean.tolist() == [5.0, 5.0, 5.0]


def test_a_series_has_no_features():
    model = ogp.Lagged(inner(), lags=3).fit(None, SERIES)
    assert model.n_features_in_ == 0
    mean, std = model.predict_one(None, return_std=True)
    assert (mean, std) == tuple(float(part[0]) for part in model.predict(None, return_std=True))
    np.testing.assert_array_equal(model.predict(np.empty((2, 0))), [mean, mean])
    one_by_one = ogp.Lagged(inner(), lags=3)
    for value in SERIES:
        one_by_one.learn_one([], value)
    assert one_by_one.predict_one(None) == mean
    for wrong in ([[1.0]], [[1.0], [2.0]]):
        with pytest.raises(ValueError, match="expecting 0 features"):
            model.predict(wrong)
    with pytest.raises(ValueError, match="a minimum of 1 is required"):
        ogp.Lagged(inner()).fit(np.empty((5, 0)), SERIES[:5])
    with pytest.raises(ValueError, match="expecting 2 features"):
        ogp.Lagged(inner()).fit(*stream(5)).predict(None)
    with pytest.raises(TypeError, match="X must be given, got None"):
        ogp.Lagged(inner(), lags=0).fit(None, SERIES)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"lags": -1}, "lags must be at least 1"),
        ({"lags": 2.0}, "lags must be a whole number"),
        ({"lags": 10**15}, "lags must be at most 100000"),
        ({"lags": 99_999}, r"features \+ lags x outputs must be at most 100000, got 100001"),
        ({"horizon": 0}, "horizon must be at least 1"),
    ],
)
def test_bad_parameters_are_named(params, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ogp.Lagged(inner(), **params).fit(*stream(10))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"past": np.ones((9, 1))}, "past must have a length of at most 4, got 9"),
        ({"past": np.ones((4, 2))}, r"past must be float64 of shape \(4, 1\)"),
        ({"past": 3.0}, "past must be"),
        ({"past": np.full((4, 1), np.inf)}, "past holds a value that is not finite"),
        ({"waiting_x": np.ones((2, 5))}, r"waiting_x must be float64 of shape \(2, 4\)"),
        ({"waiting_y": np.ones((9, 1))}, r"waiting_y must be float64 of shape \(2, 1\)"),
        ({"waiting_y": np.ones((1, 1))}, r"waiting_y must be float64 of shape \(2, 1\)"),
        ({"waiting_z2": np.ones((1, 1))}, r"waiting_z2 must be float64 of shape \(2, 1\)"),
        ({"waiting_z2": np.full((2, 1), -2.0)}, "waiting_z2 must be at least -1"),
        ({"z2_total": np.zeros(1)}, "z2_total must be positive"),
        ({"z2_count": np.array([np.inf])}, "z2_count holds a value that is not finite"),
        ({"seen": 1.5}, "seen must be"),
        ({"more": 1}, "unknown entry 'more'"),
    ],
)
def test_contents_that_do_not_fit_are_refused(wrong, message):
    model = ogp.Lagged(inner(), lags=2, horizon=3)
    contents = model.fit(*stream(20)).dump()
    contents["learned"] |= wrong
    with pytest.raises(ValueError, match=message):
        ogp.Lagged(inner(), lags=2, horizon=3).load(contents)


@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize("learned", [0, 3, 50])
def test_rows_with_known_values_can_be_skipped_too(horizon, learned):
    """They are predicted in order from what came before, and not learned; in a block as one by one."""
    X, y = stream(70)
    model, other = (ogp.Lagged(ogp.Scaled(inner()), lags=3, horizon=horizon) for _ in range(2))
    for one in (model, other) if learned else ():
        one.partial_fit(X[:learned], y[:learned])
    if not learned:  # nothing has started, and nothing is remembered
        assert len(model.skip(X, y)) == 70
        assert not model.__sklearn_is_fitted__()
        return
    predicted, size = model.skip(X[learned:], y[learned:]), model.size_
    for i in range(learned, 70):
        assert other.skip(X[i : i + 1], y[i : i + 1]).mean[0] == pytest.approx(predicted.mean[i - learned], rel=1e-9)
    assert (model.n_samples_seen_, model.size_) == (learned, size)
    assert model.predict_one(X[0]) == other.predict_one(X[0])
    if learned == 50:
        after = ogp.Lagged(ogp.Scaled(inner()), lags=3, horizon=horizon).fit(X[:50], y[:50])
        assert predicted.mean[0] == pytest.approx(after.predict_one(X[50]), rel=1e-9)
        assert predicted.mean[5 + horizon] != after.predict_one(X[55 + horizon])


def test_a_new_series_has_no_past():
    model = ogp.Lagged(ogp.Scaled(ogp.Robust(inner())), lags=3).fit(None, 56.0 + SERIES)
    model.begin_series()
    model.skip(np.empty((3, 0)), [20.0, 21.0, 22.0])
    learned = ogp.Lagged(ogp.Scaled(ogp.Robust(inner())), lags=3).fit(None, 56.0 + SERIES)
    learned.skip(np.empty((3, 0)), [20.0, 21.0, 22.0])
    assert model.predict_one(None) == learned.predict_one(None)
    model.begin_series().skip(np.empty((2, 0)), [20.0, 22.0])
    assert model.predict_one(None) == 21.0


def test_a_list_of_lags_is_that_part_of_all_lags():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(60, 2)).cumsum(axis=0)
    chosen = ogp.Lagged(ogp.LinearRLS(), lags=[1, 4]).fit(None, Y)
    inputs = np.array([[Y[t - 1, 0], Y[t - 4, 0], Y[t - 1, 1], Y[t - 4, 1]] for t in range(4, 61)])
    plain = ogp.LinearRLS().fit(inputs[:-1], Y[4:])
    assert np.allclose(chosen.predict(np.empty((1, 0))), plain.predict(inputs[-1:]))


def test_a_list_of_all_lags_is_their_number():
    y = np.sin(0.3 * np.arange(100))
    one, other = (ogp.Lagged(ogp.KRLST(), lags=lags).fit(None, y) for lags in (3, [1, 2, 3]))
    assert np.array_equal(one.forecast(5).values, other.forecast(5).values)


@pytest.mark.parametrize("lags", [[], [0, 1], [2, 1], [1, 1], [-3], "all"])
def test_wrong_lists_of_lags_are_refused(lags):
    with pytest.raises((ValueError, TypeError), match="lags"):
        ogp.Lagged(ogp.KRLST(), lags=lags).check()
