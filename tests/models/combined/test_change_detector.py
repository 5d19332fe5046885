"""Mixtures that notice a change: when, on which rows they start again, and the same bits however the rows come."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.engine.compiled_leaf import Compiled
from onlinegp.kernels import RBF
from onlinegp.models.combined.change_detector import LOG, kind_of_change

AT = 300


def changing(n: int = 500, *, at: int = AT, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A function that is replaced by its negative."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, 2))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1]
    return X, np.where(np.arange(n) < at, y, -y) + 0.1 * rng.normal(size=n)


def mixture(engine: str = "auto", **options) -> ogp.Mixture:
    members = [
        ("line", ogp.LinearRLS(noise=0.1, engine=engine)),
        ("window", ogp.HeavyTailed(ogp.LocalGP(RBF(1.0), noise=0.01, neighbors=15, store=60, engine=engine))),
        ("fresh", ogp.HeavyTailed(ogp.ResidualGP(RBF(1.0), noise=0.01, neighbors=15, linear=True, engine=engine))),
    ]
    return ogp.Mixture(members, gate=2.0, **{"restarting": ["fresh"], "against": "window"} | options)


def learned(model: ogp.Mixture) -> bytes:
    """All that was learned, as bytes."""
    return repr({name: np.asarray(value).tobytes() for name, value in model.dump()["learned"].items()}).encode()


def fresh_size(model: ogp.Mixture) -> int:
    return model.learner.members["fresh"].size


def test_a_change_is_found_and_the_fresh_member_starts_with_the_rows_since_then():
    X, y = changing()
    model = mixture().fit(X, y)
    ((row, kind),) = model.changes_
    assert AT - 5 <= row <= AT + 60  # the window must have learned some of the new rows first
    assert kind == "relation"
    assert fresh_size(model) == len(y) - row
    assert model.weights_["fresh"] > 0.9
    without = mixture(restarting=(), against=None)
    after = slice(AT + 40, None)
    found, not_found = (one.run(X, y).mean[after] - y[after] for one in (mixture(), without))
    assert np.mean(found**2) < 0.7 * np.mean(not_found**2)


@pytest.mark.parametrize("seed", range(3))
def test_there_is_none_in_a_stream_that_stays_as_it_is(seed):
    X, y = changing(1500, at=1500, seed=seed)
    assert mixture().fit(X, y).changes_ == []


def test_rows_one_by_one_are_those_of_a_block():
    X, y = changing()
    blocks, rows = mixture(), mixture()
    trace = blocks.run(X, y)
    for i, (x, target) in enumerate(zip(X, y, strict=True)):
        if i:
            assert rows.predict_one(x, return_std=True) == (trace.mean[i], trace.std[i])
        rows.learn_one(x.tolist(), float(target))
    assert learned(rows) == learned(blocks)
    pieces = mixture()
    for part in np.split(np.arange(len(y)), [7, 130, 305, 311, 400]):
        pieces.partial_fit(X[part], y[part])
    assert learned(pieces) == learned(blocks)


def test_the_compiled_one_agrees_with_its_definition():
    X, y = changing()
    compiled, readable = mixture(), mixture("python")
    one, other = compiled.run(X, y), readable.run(X, y)
    assert isinstance(compiled._learner, Compiled) or isinstance(compiled._learner.learner, Compiled)
    assert compiled.changes_ == readable.changes_
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-9)
    np.testing.assert_allclose(one.log_density, other.log_density, atol=1e-7)
    mine, definition = compiled.learner.detector, readable.learner.detector
    np.testing.assert_allclose(mine.state, definition.state, atol=1e-7)
    np.testing.assert_array_equal(mine.log_x, definition.log_x)
    np.testing.assert_array_equal(mine.log_y, definition.log_y)


def test_saved_at_any_row_it_goes_on_with_the_same_bits():
    X, y = changing(400)
    whole = mixture().fit(X, y)
    assert len(whole.changes_) == 1
    model = mixture()
    for i, (x, target) in enumerate(zip(X[:390], y[:390], strict=True)):
        model.learn_one(x, target)
        if i >= AT and i % 5 == 0:
            loaded = ogp.from_bytes(model.to_bytes())
            assert learned(loaded.partial_fit(X[i + 1 :], y[i + 1 :])) == learned(whole)
            assert learned(copy.deepcopy(model).partial_fit(X[i + 1 :], y[i + 1 :])) == learned(whole)


def test_a_change_that_no_member_can_follow_is_found_by_the_drop_of_density():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (500, 2))
    y = np.where(np.arange(500) < AT, np.sin(2.0 * X[:, 0]), np.cos(9.0 * X[:, 1])) + 0.05 * rng.normal(size=500)
    blind = ogp.Mixture(
        [
            ("window", ogp.HeavyTailed(ogp.LocalGP(RBF([1.0, 100.0]), noise=0.01, neighbors=15, store=60))),
            ("fresh", ogp.HeavyTailed(ogp.ResidualGP(RBF([1.0, 100.0]), noise=0.01, neighbors=15))),
        ],
        restarting=["fresh"],
        against="window",
    )
    rows = [row for row, _ in blind.fit(X, y).changes_]
    assert abs(rows[0] - AT) <= 5


def test_the_log_holds_the_latest_rows():
    X, y = changing(LOG + 200, at=10**6)
    detector = mixture().fit(X, y).learner.detector
    rows, targets = detector.latest(LOG + 50)
    np.testing.assert_array_equal(rows, X[-LOG:])
    np.testing.assert_array_equal(targets[:, 0], y[-LOG:])
    rows, targets = detector.latest(3)
    np.testing.assert_array_equal(rows, X[-3:])


def test_the_kind_of_a_change_is_what_moved():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(600, 3)), rng.normal(size=(600, 1))
    before = X[:300], Y[:300]
    assert kind_of_change(before, (X[300:], Y[300:])) == "relation"
    assert kind_of_change(before, (X[300:], 3.0 * Y[300:])) == "target"
    assert kind_of_change(before, (X[300:], 3.0 + Y[300:])) == "target"
    assert kind_of_change(before, (X[300:] * (1.0, 9.0, 1.0), Y[300:])) == "inputs"
    constant = np.ones((300, 3))
    assert kind_of_change((constant, Y[:300]), (constant, Y[300:])) == "relation"


@pytest.mark.parametrize(
    "options", [{"restarting": ["nobody"]}, {"against": None}, {"against": "fresh"}, {"restarting": ()}]
)
def test_names_must_be_those_of_members(options):
    with pytest.raises(ValueError, match=r"restarting and against must be names.*line, window, fresh"):
        mixture(**options).fit(*changing(10))
