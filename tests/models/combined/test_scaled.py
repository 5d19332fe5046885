"""Scaled: the model inside sees standardized data, and predictions have the units of the data."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest

import onlinegp as ogp
from models import stream
from onlinegp.engine import available
from onlinegp.engine.compiled import compiled
from onlinegp.kernels import RBF
from onlinegp.models.combined import scaled


def model(**params):
    return ogp.Scaled(ogp.KRLST(RBF(0.7), noise=0.01, budget=25), **params)


def test_given_scales_are_the_model_on_standardized_data():
    X, y = stream(80)
    given = {"x_center": (0.5, -1.0), "x_scale": (2.0, 0.5), "y_center": 56.0, "y_scale": 7.0}
    trace = model(**given).run(X, 56.0 + 7.0 * y)
    plain = ogp.KRLST(RBF(0.7), noise=0.01, budget=25).run(
        (X - [0.5, -1.0]) / [2.0, 0.5], (56.0 + 7.0 * y - 56.0) / 7.0
    )
    np.testing.assert_array_equal(trace.mean, 56.0 + 7.0 * plain.mean)
    np.testing.assert_array_equal(trace.std, 7.0 * plain.std)
    np.testing.assert_array_equal(trace.size, plain.size)


def test_learned_scales_are_those_of_the_first_rows():
    X, y = stream(150)
    X, y = X * [1e4, 1e-4] + [5.0, 1.0], 1e6 * y
    mean, std = model(rows=64).fit(X, y).predict(X, return_std=True)
    Z, t = (X - X[:64].mean(axis=0)) / X[:64].std(axis=0), (y - y[:64].mean()) / y[:64].std()
    plain = ogp.KRLST(RBF(0.7), noise=0.01, budget=25).fit(Z, t)
    expected = plain.predict(Z, return_std=True)
    np.testing.assert_allclose(mean, y[:64].mean() + y[:64].std() * expected[0], rtol=1e-6)
    np.testing.assert_allclose(std, y[:64].std() * expected[1], rtol=1e-6)


@pytest.mark.parametrize("n", [5, 9, 10, 11, 40, 79])
def test_before_that_they_are_those_of_the_rows_when_these_last_doubled(n):
    X, y = stream(n)
    last = max(k for k in (5, 10, 20, 40) if k <= n)
    Z, t = (X - X[:last].mean(axis=0)) / X[:last].std(axis=0), (y - y[:last].mean()) / y[:last].std()
    plain = ogp.KRLST(RBF(0.7), noise=0.01, budget=25).fit(Z, t)
    expected = y[:last].mean() + y[:last].std() * plain.predict(Z)
    np.testing.assert_allclose(model(rows=1000).fit(X, y).predict(X), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_first_rows_are_predicted_by_mean_and_spread(n):
    X, y = stream(n)
    mean, std = model().fit(X, y).predict(X, return_std=True)
    np.testing.assert_allclose(mean, y.mean(), rtol=1e-12)
    np.testing.assert_allclose(std, y.std(ddof=1) * np.sqrt(1.0 + 1.0 / n), rtol=1e-9)


def test_units_do_not_matter():
    """The same stream in other units gives the same predictions in other units."""
    X, y = stream(150)
    one, other = model().run(X, y), model().run(X * [1e-3, 1e5] + 7.0, 300.0 + 1e4 * y)
    np.testing.assert_allclose(other.mean[2:], 300.0 + 1e4 * one.mean[2:], rtol=1e-6)
    np.testing.assert_allclose(other.std[2:], 1e4 * one.std[2:], rtol=1e-5)


def test_a_y_that_never_varied_gets_its_scale_when_it_does():
    X, y = stream(200)
    y = np.where(np.arange(200) < 120, 1e6, 1e6 + 3.0 * np.sin(X[:, 0]))
    fitted = model(rows=50).fit(X[:120], y[:120])
    mean, std = fitted.predict(X, return_std=True)
    np.testing.assert_allclose(mean, 1e6, rtol=1e-12)
    assert (std > 0).all()
    fitted.partial_fit(X[120:], y[120:])
    mean, std = fitted.predict(X[120:], return_std=True)
    assert np.abs(mean - y[120:]).mean() < 1.0  # 2.1 for a model that stays at its constant
    assert (std < 10.0).all()


def test_a_constant_output_does_not_hold_up_the_other():
    X, y = stream(150)
    both = model(rows=50).fit(X, np.column_stack([y, np.full(150, 8.0)]))
    mean, std = both.predict(X, return_std=True)
    np.testing.assert_allclose(mean[:, 0], model(rows=50).fit(X, y).predict(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(mean[:, 1], 8.0)
    assert (std > 0.0).all()
    later = model(rows=50).run(X, np.column_stack([y, np.where(np.arange(150) < 100, 8.0, 8.0 + y)]))
    np.testing.assert_array_equal(later.mean[:101, 1], np.r_[0.0, np.full(100, 8.0)])
    assert np.abs(later.mean[110:, 1] - 8.0).max() > 0.1


@pytest.mark.parametrize("value", [0.0, 1e-300, 5.0, -1e149])
def test_constant_data_stay_finite(value):
    X = np.full((130, 2), value)
    trace = model(rows=30).run(X, np.full(130, value))
    assert np.isfinite(trace.mean).all()
    assert np.isfinite(trace.std).all()
    assert (trace.std > 0.0).all()
    np.testing.assert_allclose(trace.mean[1:], value, rtol=1e-9, atol=1e-100)


def test_rounding_is_not_variation():
    """0.1 + 0.2 and 0.3 are one value: a column of both must not be blown up to deviations of size one."""
    X, y = stream(60)
    X[:, 1] = np.where(np.arange(60) % 2, 0.1 + 0.2, 0.3)
    alone, both = ogp.Scaled(ogp.KRLST(RBF(0.7))).fit(X[:, :1], y), ogp.Scaled(ogp.KRLST(RBF(0.7))).fit(X, y)
    np.testing.assert_allclose(both.predict(X), alone.predict(X[:, :1]), rtol=1e-9)


def test_a_jump_of_any_size_stays_finite():
    X, y = stream(60)
    fitted = model(rows=20).fit(1e-130 * X, 1e-130 * y)
    fitted.partial_fit([[1e149, -1e149]], [1e149])
    assert np.isfinite(fitted.predict(np.vstack([X, [[1e149, 0.0]]]), return_std=True)).all()


def test_the_rows_are_let_go():
    X, y = stream(120)
    few, many = model(rows=40).fit(X[:39], y[:39]), model(rows=40).fit(X[:40], y[:40])
    assert len(few.dump()["learned"]["x"]) == 39
    assert len(many.dump()["learned"]["x"]) == 0


INSIDE = {
    "calibrated": ogp.Calibrated(ogp.KRLST(RBF(0.7), noise=0.01, budget=25)),
    "heavy": ogp.HeavyTailed(ogp.KRLST(RBF(0.7), noise=0.01, budget=25)),
    "mixture": ogp.Mixture([ogp.LinearRLS(), ogp.Robust(ogp.KLMS(RBF(0.7))), ogp.LocalGP(RBF(0.7), neighbors=4)]),
    "scaled": ogp.Scaled(ogp.Conformal(ogp.Mixture([ogp.LinearRLS(), ogp.KRLST(RBF(0.7))])), rows=7),
    "features": ogp.RandomFeatureGP(RBF(0.7), pairs=20),
    "lagged": ogp.Lagged(ogp.KRLST(RBF(0.7), budget=25), lags=2),
}
GIVEN = [{}, {"y_center": 56.0, "y_scale": 3.0}, {"x_center": 0.0, "x_scale": 2.0}]


@pytest.mark.skipif(not available(), reason="the compiled engine was not built")
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("rows", [1, 3, 5, 20, 33])
@pytest.mark.parametrize("name", INSIDE)
def test_the_compiled_twin_learns_the_same_scales_to_the_bit(name, rows, outputs):
    """Row by row, in blocks, and after it continued from what the other had learned."""
    X, y = stream(60)
    X[:, 1] = np.where(np.arange(60) < 8, 5.0, X[:, 1])  # constant at first, as the second output
    y = 56.0 + 1e3 * y
    Y = np.column_stack([y, np.where(np.arange(60) < 40, 7.0, y)])[:, :outputs]
    # readable logarithms have other last bits
    same = partial(np.testing.assert_allclose, rtol=0.0 if name in ("calibrated", "features", "lagged") else 1e-9)
    for given in GIVEN:
        outer = ogp.Scaled(INSIDE[name], rows=rows, **given)
        slow, rowwise, blocks, loaded = outer.start(2, outputs), *(compiled(outer.start(2, outputs)) for _ in range(3))
        for start, end in pairwise([0, 1, 2, 3, 4, 5, 6, 9, 14, 23, 40, 60]):
            part = slice(start, end)
            expected, size = slow.run(X[part], Y[part])
            found, sizes = blocks.run(X[part], Y[part])
            again, _ = loaded.run(X[part], Y[part])
            each = [rowwise.run(X[[i]], Y[[i]]) for i in range(start, end)]
            for read in (lambda one: one.mean, lambda one: one.std, lambda one: one.quantile(0.9)):
                same(read(found), read(expected))
                same(read(again), read(expected))
                np.testing.assert_array_equal(np.concatenate([read(one) for one, _ in each]), read(found))
            np.testing.assert_array_equal(sizes, size)
            np.testing.assert_array_equal([size for _, (size,) in each], size)
            same(blocks.predict(X).mean, slow.predict(X).mean)
            contents = slow.dump()
            assert blocks.dump().keys() == contents.keys()
            for field, value in blocks.dump().items():
                same(value, contents[field], err_msg=field)
                np.testing.assert_array_equal(value, rowwise.dump()[field], err_msg=field)
            loaded.load(contents)


@pytest.mark.skipif(not available(), reason="the compiled engine was not built")
def test_the_readable_learner_learns_the_scales_from_many_rows(monkeypatch):
    """The twin cannot be interrupted while it learns the first rows again."""
    X, y = stream(60)
    outer = ogp.Scaled(INSIDE["mixture"], rows=20)
    twin = compiled(outer.start(2, 1))
    expected, _ = twin.run(X, y[:, None])
    monkeypatch.setattr(scaled, "MAX_TWIN_ROWS", 19)
    learner = compiled(outer.start(2, 1))
    assert twin.atomic
    assert not learner.atomic
    found = [learner.run(X[i : i + 15], y[i : i + 15, None])[0] for i in range(0, 60, 15)]
    np.testing.assert_allclose(np.concatenate([one.mean for one in found]), expected.mean, rtol=1e-9)
    assert learner.atomic
    assert learner.dump()["model.seen"] == twin.dump()["model.seen"] == 60


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"rows": 0}, "rows must be at least 1"),
        ({"x_center": 0.0}, "x_center and x_scale must be given together"),
        ({"y_center": 0.0, "y_scale": 0.0}, "y_scale must be positive"),
        ({"y_center": 0.0, "y_scale": (1.0, 2.0)}, r"one for each output \(1\)"),
        ({"x_center": np.nan, "x_scale": 1.0}, "x_center must be one finite number"),
        ({"x_center": "a", "x_scale": 1.0}, "x_center must be"),
        ({"x_center": 0.0, "x_scale": (1.0, -2.0)}, "x_scale must be positive"),
    ],
)
def test_bad_parameters_are_named(params, message):
    with pytest.raises((ValueError, TypeError), match=message):
        model(**params).fit(*stream(10))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"x_scale": np.array([0.0, 1.0])}, "x_scale must be at least 1e-140"),
        ({"y_center": np.array([np.nan])}, "y_center holds a value that is not finite"),
        ({"y_scale": np.ones(2)}, r"y_scale must be float64 of shape \(1,\)"),
        ({"varies": np.ones(1)}, "varies must be bool"),
        ({"x": np.ones((3, 2))}, r"y must be float64 of shape \(3, 1\)"),
        ({"seen": -1}, "seen must be"),
        ({"seen": 8}, "x must have 8 rows after 8 were learned, got 7"),
        ({"more": 1}, "unknown entry 'more'"),
        ({"model.more": 1}, r"unknown entry 'model\.more'"),
    ],
)
def test_contents_that_do_not_fit_are_refused(wrong, message):
    contents = model().fit(*stream(7)).dump()
    contents["learned"] |= wrong
    with pytest.raises(ValueError, match=message):
        model().load(contents)


@pytest.mark.parametrize("engine", ["auto", "python"])
def test_a_masked_sample_is_refused_by_a_model_with_scales(engine: str) -> None:
    X, y = np.random.default_rng(0).normal(size=(21, 2)), np.arange(21.0)
    model = ogp.Scaled(ogp.KRLST(engine=engine), rows=10).fit(X[:20], y[:20])
    with pytest.raises(ValueError, match="masked"):
        model.learn_one(np.ma.array(X[20], mask=[True, False]), 0.5)
    assert model.n_samples_seen_ == 20
