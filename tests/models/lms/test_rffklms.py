"""RFFKLMS compiled: the readable learner says what it must give."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import onlinegp as ogp
from forging import forged_file
from models import stream
from onlinegp.engine import available
from onlinegp.kernels import RBF, Matern12, Matern52

pytestmark = pytest.mark.skipif(not available(), reason="not built")
ENGINES = ("native", "python")


def learners(kernel, outputs, basis):
    return [ogp.kafbox.RFFKLMS(kernel, step=0.4, basis=basis, engine=engine).start(2, outputs) for engine in ENGINES]


@pytest.mark.parametrize("basis", [1, 8, 30, 101])  # less than a vector, whole ones, and a rest
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("kernel", [RBF(0.7), 3.0 * Matern52([0.7, 2.0]), Matern12(1.3)], ids=["rbf", "times", "rough"])
def test_both_engines_say_the_same_and_go_on_from_each_other(kernel, outputs, basis):
    X, y = stream(120)
    Y = np.column_stack([y, y**2, -y])[:, :outputs]
    compiled, readable = learners(0.2 * kernel, outputs, basis)
    (one, sizes), (other, same) = compiled.run(X[:70], Y[:70]), readable.run(X[:70], Y[:70])
    np.testing.assert_array_equal(sizes, same)
    np.testing.assert_allclose(one.mean, other.mean, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(one.std, other.std)
    np.testing.assert_allclose(compiled.dump()["w.w"], readable.dump()["w.w"], rtol=0, atol=1e-12)
    compiled.load(readable.dump())
    for learner in (compiled, readable):
        learner.learn(X[70:], Y[70:])
    assert compiled.seen == readable.seen == 120
    np.testing.assert_allclose(compiled.predict(X).mean, readable.predict(X).mean, rtol=0, atol=1e-12)


def test_blocks_and_single_rows_have_the_same_bits():
    X, y = stream(90)
    Y = np.column_stack([y, y**2])
    whole, pieces = learners(RBF(0.7), 2, 101)[0], learners(RBF(0.7), 2, 101)[0]
    expected = whole.run(X, Y)[0].mean
    for rows in (slice(0, 1), slice(1, 50), slice(50, 90)):
        predicted = pieces.predict(X[rows])
        np.testing.assert_array_equal(predicted.mean[0], expected[rows][0])
        np.testing.assert_array_equal(pieces.run(X[rows], Y[rows])[0].mean, expected[rows])
    np.testing.assert_array_equal(pieces.dump()["w.w"], whole.dump()["w.w"])


def test_a_file_that_only_says_that_it_has_many_features_takes_no_memory():
    X, y = stream(20)
    good = ogp.kafbox.RFFKLMS(basis=1000).fit(X, y).to_bytes()
    data = forged_file(good, lambda header, contents: contents.update(features=9_999))
    tracemalloc.start()
    assert ogp.from_bytes(data).n_samples_seen_ == 20
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6


@pytest.mark.parametrize("engine", ENGINES)
def test_an_angle_that_no_number_can_hold_is_reported(engine):
    X, y = stream(20)
    X[10] = 1e149
    with pytest.raises(ogp.BreakdownError, match="row 10"):
        ogp.run(ogp.kafbox.RFFKLMS(RBF(1e-200), basis=20, engine=engine), X, y)


def test_sin_pi():
    """Within 4e-16, signs included; beyond 2^51, where fractions end, it is zero."""
    from onlinegp.engine import _native

    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-4, 4, 50_000), rng.uniform(-1e5, 1e5, 50_000), rng.uniform(-1, 1, 1000) * 2.0**45])
    whole, pi = np.round(x), np.longdouble("3.14159265358979323846")
    exact = np.sin(pi * (x - whole)) * np.where(whole % 2 == 0, 1, -1)
    assert np.abs(_native.sin_pi(x) - exact).max() < 4e-16
    edges = np.array([0.0, 0.5, 1.0, 1.5, -0.5, 2.0**52 + 1.0, 1e300, np.inf])
    np.testing.assert_allclose(_native.sin_pi(edges), [0.0, 1.0, 0.0, -1.0, -1.0, 0.0, 0.0, 0.0], rtol=0, atol=4e-16)
