"""The members' weights along a stream: averages in bounded memory, against the plain average of all rows."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.predictions import Predictions
from onlinegp.streams.running.member_weights import POINTS, Weights, member_weights
from onlinegp.streams.running.observers import Rows
from onlinegp.streams.running.predict_then_learn import advance


@pytest.fixture(scope="module")
def mixture():
    """A mixture that has learned a stream whose first rows somebody else predicted, and what it said of the others."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (5000, 1))
    y = np.where(np.arange(5000) < 2500, np.sin(2 * x[:, 0]), x[:, 0]) + 0.1 * rng.standard_normal(5000)
    model = ogp.Mixture([("smooth", ogp.KRLST(budget=10)), ("line", ogp.LinearRLS())], fade=0.99)
    return model, y, advance(model, x, y)


@pytest.mark.parametrize("size", [1, 77, 5000])
def test_the_averages_are_those_of_all_rows(mixture, size):
    model, y, predicted = mixture
    weights, before = Weights(), 1003
    rows = Rows.of(y, predicted, level=0.95, weights=member_weights(model, predicted.predictions))
    for i in range(0, 5000, size):
        part = slice(i, i + size)
        cut = {name: value[part] for name, value in vars(rows).items() if isinstance(value, np.ndarray)}
        some = replace(rows, **cut, predictions=predicted.predictions.rows(part), before=before + i)
        weights.add(some)
        if i % 10 == 0:
            entry, weights = weights.to_json(), Weights()
            weights.from_json(json.loads(json.dumps(entry)))
    assert weights.members == ["smooth", "line"]
    assert len(weights.places) < 2 * POINTS
    assert sum(weights.counts) == 5000
    group = (before + np.arange(5000)) // weights.stride
    for place, count, sums in zip(weights.places, weights.counts, weights.sums, strict=True):
        plain = predicted.predictions.weights[group == place]
        assert count == len(plain)
        assert sums == pytest.approx(plain.sum(axis=0))


def test_a_model_that_is_no_mixture_has_none(mixture):
    _, y, _ = mixture
    model = ogp.KRLST(budget=5)
    weights = Weights()
    predicted = advance(model, y[:50, None], y[:50])
    weights.add(Rows.of(y[:50], predicted, level=0.95, weights=member_weights(model, predicted.predictions)))
    assert weights.to_json() == Weights().to_json()


def test_a_model_without_rows_has_none_yet():
    """The first targets of a stream may be missing."""
    model = ogp.Mixture([("smooth", ogp.KRLST(budget=5)), ("line", ogp.LinearRLS())])
    predicted = advance(model, np.zeros((3, 1)), np.full(3, np.nan))
    assert member_weights(model, predicted.predictions) is None


def test_the_components_of_a_member_count_together(mixture):
    """`HeavyTailed` predicts four components, a plain model one."""
    _, y, _ = mixture
    X = np.random.default_rng(1).uniform(-3, 3, (60, 1))
    members = [("heavy", ogp.HeavyTailed(ogp.KRLST(budget=5))), ("line", ogp.LinearRLS()), ("last", ogp.Persistence())]
    model = ogp.Scaled(ogp.Mixture(members), x_center=0.0, x_scale=1.0, y_center=0.0, y_scale=1.0)
    predicted = advance(model, X, y[:60])
    assert predicted.predictions.weights.shape == (60, 6)
    weights = Weights()
    weights.add(Rows.of(y[:60], predicted, level=0.95, weights=member_weights(model, predicted.predictions)))
    assert weights.members == ["heavy", "line", "last"]
    own = predicted.predictions.weights
    expected = np.column_stack([own[:, :4].sum(axis=1), own[:, 4], own[:, 5]])
    np.testing.assert_allclose(weights.sums, expected, rtol=1e-14)


def test_a_member_that_joins_within_a_block_leaves_no_gap(mixture):
    """The report had no weights for the rows of the block in which a retuned member joined."""
    _, y, _ = mixture
    X = np.random.default_rng(2).uniform(-3, 3, (60, 1))
    before, after = ([("heavy", ogp.HeavyTailed(ogp.KRLST(budget=5))), ("line", ogp.LinearRLS())] for _ in range(2))
    after.append(("retuned", ogp.HeavyTailed(ogp.KRLST(budget=9))))
    models = [ogp.Mixture(before), ogp.Mixture(after)]
    first, second = (advance(model, X, y[:60]).predictions for model in models)
    names, weights = member_weights(models[1], Predictions.joined([first, second]))
    assert names == ("heavy", "line", "retuned")
    np.testing.assert_allclose(weights[:60, :2], member_weights(models[0], first)[1].reshape(60, 2), rtol=1e-14)
    np.testing.assert_array_equal(weights[:60, 2], 0.0)
    np.testing.assert_allclose(weights[60:], member_weights(models[1], second)[1].reshape(60, 3), rtol=1e-14)
