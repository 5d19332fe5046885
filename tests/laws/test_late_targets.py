"""Targets that come late: predict now, learn some rows later, for every model without past values."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import onlinegp as ogp
from models import EVERY, stream

WITHOUT_PAST = [name for name, model in EVERY.items() if not model.features_optional]
WITH_PAST = [name for name, model in EVERY.items() if model.features_optional]


@pytest.mark.parametrize("name", WITHOUT_PAST)
def test_a_row_is_predicted_from_the_rows_that_are_known(name):
    X, y = stream(30)
    late, plain = copy.deepcopy(EVERY[name]), copy.deepcopy(EVERY[name])
    trace = late.run(X, y, delay=4)
    for i in range(30):
        if i >= 4:
            plain.learn_one(X[i - 4], y[i - 4])
        if i >= 4 or i == 0:
            mean, std = plain.predict_one(X[i], return_std=True)
            assert trace.mean[i] == pytest.approx(mean, rel=1e-9, abs=1e-12)
            if i < 8:  # no error is known yet that could correct the spread
                assert trace.std[i] == pytest.approx(std, rel=1e-9, abs=1e-12)
    assert trace.scored.tolist() == [False] * 4 + [True] * 26
    assert late.n_samples_seen_ == 30
    for i in range(26, 30):
        plain.learn_one(X[i], y[i])
    np.testing.assert_allclose(late.predict(X), plain.predict(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("model", [ogp.KRLST(budget=20), ogp.Scaled(ogp.HeavyTailed(ogp.LinearRLS()))], ids=repr)
def test_a_run_corrects_intervals_as_a_horizon_without_lags_does(model):
    X, y = stream(90)
    late, horizon = ogp.run(model.unfitted(), X, y, delay=5), ogp.run(ogp.Lagged(model, lags=0, horizon=5), X, y)
    assert np.array_equal(late.scored, horizon.scored)
    np.testing.assert_allclose(late.mean, horizon.mean, rtol=1e-12)
    np.testing.assert_allclose(late.std, horizon.std, rtol=1e-12)


@pytest.mark.parametrize("delay", [0, 1])
def test_no_delay_changes_nothing(delay):
    X, y = stream(30)
    assert np.array_equal(ogp.KRLST().run(X, y, delay=delay).mean, ogp.KRLST().run(X, y).mean)


@pytest.mark.parametrize("name", WITH_PAST)
def test_models_with_past_values_refuse_a_delay(name):
    with pytest.raises(ValueError, match=r"delay must be 0 for .* horizon=4\)"):
        copy.deepcopy(EVERY[name]).run(*stream(30), delay=4)


@pytest.mark.parametrize(("delay", "error"), [(-1, ValueError), (1.5, TypeError), (True, TypeError)])
def test_a_wrong_delay_is_refused(delay, error):
    model = ogp.KRLST()
    with pytest.raises(error, match="delay must be"):
        ogp.run(model, *stream(30), delay=delay)
    assert not model.__sklearn_is_fitted__()


def test_a_delay_longer_than_the_stream():
    model = ogp.KRLST()
    trace = ogp.run(model, *stream(10), delay=20)
    assert model.n_samples_seen_ == 10
    assert not trace.scored.any()
    assert ogp.run(model, *stream(10, seed=1), delay=20).scored.all()


def test_river_waits_as_long():
    pytest.importorskip("river")
    from river import evaluate, metrics

    from onlinegp.river import RiverRegressor

    X, y = stream(60)
    rows = [({"a": a, "b": b}, target) for (a, b), target in zip(X.tolist(), y.tolist(), strict=True)]
    for delay in (1, 5):
        ours = ogp.run(ogp.KRLST(), X, y, delay=delay).mean
        metric = metrics.MAE()
        evaluate.progressive_val_score(rows, RiverRegressor(ogp.KRLST()), metric, delay=delay)
        np.testing.assert_allclose(metric.get(), np.abs(ours - y).mean(), rtol=1e-12)
