"""Lagged(lags="auto"): lags of the seasons that are found."""

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.kernels import RBF
from onlinegp.models.combined.automatic_lags import INPUTS, LAST_LOOK, lags_of_seasons

MODEL = ogp.Scaled(ogp.KRLST(RBF(3.0), noise=0.05, budget=30))


def day_and_week(rows):
    t, rng = np.arange(rows), np.random.default_rng(1)
    day = rng.normal(size=24)[t % 24]
    return day + 0.7 * np.sin(2 * np.pi * t / 168) + 0.2 * rng.normal(size=rows)


@pytest.mark.parametrize("seasons", [(), (2,), (3,), (4,), (12,), (24,), (4, 8), (7, 364), (24, 168)])
def test_every_series_has_as_many_inputs(seasons):
    groups = lags_of_seasons(seasons)
    assert len(groups) == len(set(groups)) == INPUTS
    assert all((s,) in groups and (s + 1,) in groups for s in seasons)
    assert min(map(min, groups)) == 1


def test_seasons_are_found_and_used():
    y = day_and_week(1000)
    model = ogp.Lagged(MODEL, lags="auto")
    trace = model.run(None, y)
    assert model.seasons_ == (24, 168)
    assert (168, 336) in model.lags_
    plain = ogp.Lagged(MODEL, lags=10).run(None, y)
    assert np.abs(trace.mean - y)[500:].mean() < 0.9 * np.abs(plain.mean - y)[500:].mean()


def test_a_look_changes_no_prediction_before_it():
    y = day_and_week(120)
    whole = ogp.Lagged(MODEL, lags="auto").run(None, y)
    other = ogp.Lagged(MODEL, lags="auto").run(None, np.append(y[:100], -y[100:]))
    np.testing.assert_array_equal(whole.mean[:101], other.mean[:101])


def test_after_a_look_the_model_is_one_with_these_lags():
    y = day_and_week(LAST_LOOK + 50)
    model = ogp.Lagged(MODEL, lags="auto").fit(None, y[:200])
    season = model.seasons_[0]
    assert len(model.seasons_) == 1  # the week is not there yet
    same = ogp.Lagged(MODEL, lags=[1, 2, 3]).fit(None, y[:200])
    assert model.predict(np.empty((1, 0))) != same.predict(np.empty((1, 0)))
    model.partial_fit(None, y[200:])
    assert model.seasons_ == (season, 168)


@pytest.mark.parametrize("splits", [(1, 49, 50, 51, 99, 100, 101, 130), (3199, 3200, 3201)])
def test_pieces_and_files_give_the_bits_of_one_block(splits):
    y = day_and_week(splits[-1] + 30)
    y[:: len(y) // 7] += 1.0
    whole = ogp.Lagged(MODEL, lags="auto").run(None, y)
    model, means = ogp.Lagged(MODEL, lags="auto"), []
    for a, b in zip((0, *splits), (*splits, len(y)), strict=True):
        means.append(model.run(None, y[a:b]).mean)
        model = ogp.from_bytes(model.to_bytes())
    np.testing.assert_array_equal(np.concatenate(means), whole.mean)


def test_missing_rows_keep_the_season():
    y = day_and_week(300)
    model = ogp.Lagged(MODEL, lags="auto").fit(None, y[:90])
    model.skip(np.empty((7, 0)))  # out of phase by 7 rows, if they did not count
    model.partial_fit(None, y[97:])
    assert model.seasons_[0] == 24


def test_another_series_begins_with_the_lags_of_the_first():
    y = day_and_week(400)
    model = ogp.Lagged(MODEL, lags="auto").fit(None, y)
    model.begin_series()
    assert model.seasons_[0] == 24
    assert np.isfinite(model.run(None, y[:200]).mean).all()


def test_inputs_and_horizon():
    y, rng = day_and_week(500), np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    model = ogp.Lagged(MODEL, lags="auto", horizon=3)
    model.run(X, y + 0.1 * X[:, 0])
    assert model.seasons_[0] == 24
    assert np.isfinite(model.forecast(5, X[:5]).mean).all()


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="lags must be a number, a list of numbers or \"auto\", got 'all'"):
        ogp.Lagged(MODEL, lags="all").fit(None, [1.0, 2.0])
    with pytest.raises(ValueError, match="one series"):
        ogp.Lagged(MODEL, lags="auto").fit(None, np.ones((5, 2)))
    with pytest.raises(ValueError, match="a number or a list"):
        ogp.Forecaster(model=ogp.Lagged(MODEL, lags="auto")).fit([1.0, 2.0, 3.0])
    with pytest.raises(AttributeError, match="seasons_"):
        _ = ogp.Lagged(MODEL, lags=2).fit(None, np.arange(9.0)).seasons_
