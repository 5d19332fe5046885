"""Regression on smoothed lags: both engines, forecasts, gaps, and what it learns."""

from __future__ import annotations

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.engine import available

needs_compiled = pytest.mark.skipif(not available(), reason="the compiled engine was not built")


def series(n=400, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    return np.sin(2 * np.pi * t / 12) + 0.3 * np.sin(2 * np.pi * t / 36) + 0.2 * rng.normal(size=n)


@needs_compiled
@pytest.mark.parametrize("seasons", [(), (12,), (12, 36)])
@pytest.mark.parametrize("forgetting", [0.99, 1.0])
def test_engines_agree_also_ahead_and_over_gaps(seasons, forgetting):
    y = series()
    y[200] = 30.0
    t = np.delete(np.arange(400.0), [150, 151, 260])[:, None]
    models = [
        ogp.SmoothedLags(seasons, forgetting=forgetting, time=0, engine=engine).fit(t, y[t[:, 0].astype(int)])
        for engine in ("python", "native")
    ]
    ahead = np.arange(400.0, 450.0)[:, None]
    one, other = (model.predict(ahead, return_std=True) for model in models)
    assert np.allclose(one, other, rtol=0, atol=1e-9)
    assert np.all(np.diff(one[1]) > -1e-12)  # the farther ahead, the less is known


def test_a_season_is_continued():
    y = series()
    model = ogp.SmoothedLags((12, 36), time=0).fit(np.arange(364.0)[:, None], y[:364])
    mean, std = model.predict(np.arange(364.0, 400.0)[:, None], return_std=True)
    assert np.abs(mean - y[364:]).mean() < 0.25
    assert np.mean(np.abs(mean - y[364:]) < 2 * std) > 0.8


def test_a_gap_is_passed_with_its_phase():
    y = np.sin(2 * np.pi * np.arange(500) / 12)
    t = np.concatenate([np.arange(300.0), np.arange(325.0, 400.0)])[:, None]
    model = ogp.SmoothedLags((12,), time=0).fit(t, y[t[:, 0].astype(int)])
    assert np.allclose(model.predict(np.arange(400.0, 424.0)[:, None]), y[400:424], atol=0.1)


def test_one_outlier_is_clipped_and_a_new_level_is_believed():
    y = 0.1 * np.random.default_rng(0).normal(size=300)
    y[200] += 10
    spike = ogp.SmoothedLags(()).fit(None, y[:201])
    assert abs(spike.predict(np.empty((1, 0)))[0]) < 1
    y[201:] += 10
    change = ogp.SmoothedLags(()).fit(None, y)
    assert abs(change.predict(np.empty((1, 0)))[0] - 10) < 1


def test_inputs_act_linearly():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 1))
    y = 0.5 * x[:, 0] + 0.1 * rng.normal(size=300)
    model = ogp.SmoothedLags(()).fit(x, y)
    assert abs(np.diff(model.predict([[0.0], [1.0]]))[0] - 0.5) < 0.1


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"seasons": (4, 8, 16)}, "at most two"),
        ({"seasons": (12, 4)}, "longer than the first"),
        ({"seasons": (1,)}, "from 2 to"),
        ({"forgetting": 1.1}, "at most 1"),
    ],
)
def test_wrong_parameters_are_refused(parameters, reason):
    with pytest.raises(ValueError, match=reason):
        ogp.SmoothedLags(**parameters).check()


@needs_compiled
def test_targets_whose_sums_are_not_positive_definite():
    """Squares of such values are all that a sum of squares holds; both engines then keep what they shrink to."""
    y = series(100)
    y[40] = 1e140
    runs = [ogp.SmoothedLags((12,), engine=engine).run(None, y) for engine in ("python", "native")]
    assert np.isfinite(runs[0].mean).all()
    np.testing.assert_allclose(runs[0].mean, runs[1].mean, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("engine", ["python", pytest.param("native", marks=needs_compiled)])
def test_a_late_row_does_not_turn_time_back(engine):
    t = np.r_[np.arange(100.0), 3.0, 100.0]
    model = ogp.SmoothedLags((12,), time=0, engine=engine).fit(t[:, None], series(102))
    assert model.learner.dump()["position"] == 102  # no row was missing


@pytest.mark.parametrize("engine", ["python", pytest.param("native", marks=needs_compiled)])
@pytest.mark.parametrize("position", [2**62 + 1, 2**63 - 1])
def test_a_position_beyond_all_rows_is_refused(engine, position):
    """Compiled, it was once written before the beginning of the values that are kept."""
    model = ogp.SmoothedLags((12,), engine=engine).fit(None, series(50))
    contents = model.dump()
    contents["learned"]["position"] = position
    with pytest.raises(ValueError, match="position must be at most"):
        model.load(contents)
    contents["learned"]["position"] = 2**62
    model.load(contents).run(None, series(50))
