"""The compiled learner of neighbors against the readable one: first which neighbors, then the numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.engine.compiled_leaf import Compiled
from onlinegp.kernels import (
    RBF,
    Constant,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
)
from onlinegp.learner import Outcome
from onlinegp.models.local.learner import LocalLearner, LocalPrior, whitened
from onlinegp.models.local.residual import ResidualLearner, ResidualPrior

KERNELS: dict[str, Kernel] = {
    "RBF": RBF(0.9),
    "RBF-ARD": 1.7 * RBF([0.9, 1.1, 1.6, 1.3]),
    "Matern12": Matern12(1.5),
    "Matern32": Matern32([0.9, 1.1, 1.6, 1.3]),
    "Matern52": 0.3 * Matern52(1.2),
    "RationalQuadratic": RationalQuadratic(0.8, 1.3),
    "Periodic": Periodic([0.9, 1.0, 1.5, 2.0], 3.0),
    "Linear": Linear([0.5, 1.0, 0.1, 0.2]) + Constant(1.0),
    "Polynomial": Polynomial(2, offset=0.5, scale=0.3),
    "with a linear part": Matern52(1.2) + 0.1 * Linear(),
    "product": RBF(2.0) * Periodic(1.5, 3.0) + 0.1 * Linear() + Matern12(3.0),
}
SETTINGS = {
    "plain": {},
    "forgetting": {"forgetting": 0.97},
    "store": {"store": 75},
    "store and forgetting": {"store": 33, "forgetting": 0.9},
    "more neighbors than rows": {"neighbors": 1000},
    "one neighbor": {"neighbors": 1},
}
FEATURES = 4


def pair(kernel, outputs=1, features=FEATURES, **settings):
    settings = {"noise": 0.01, "neighbors": 21, "store": None, "forgetting": 1.0, **settings}
    prior = LocalPrior(kernel, **settings)
    return LocalLearner(prior, features, outputs), Compiled(LocalLearner(prior, features, outputs))


def rows(n, outputs=1, features=FEATURES, seed=0):
    """Every third row is a copy of one before, so that there are ties."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, features))
    X[2::3] = X[rng.integers(0, max(1, n // 2), len(X[2::3]))]
    return X, np.sin(1.5 * X[:, :1] + np.arange(outputs)) + 0.1 * rng.standard_normal((n, outputs))


def neighbors(compiled, x):
    """The places in the store of the rows nearest to x (1, d)."""
    return compiled._working().nearest(x)[0] - (compiled.seen - compiled.size)


def assert_same_neighbors(readable, compiled, X):
    for i in range(len(X)):
        np.testing.assert_array_equal(neighbors(compiled, X[i : i + 1]), readable.neighbors(X[i : i + 1]))


def assert_same(predicted, expected, rtol=1e-8):
    np.testing.assert_allclose(predicted.mean, expected.mean, rtol=rtol, atol=rtol * np.abs(expected.mean).max())
    np.testing.assert_allclose(predicted.std, expected.std, rtol=rtol)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_same_neighbors_and_the_same_numbers(kernel, settings):
    readable, compiled = pair(KERNELS[kernel], outputs=2, **SETTINGS[settings])
    X, Y = rows(160, outputs=2)
    predicted, size = compiled.run(X, Y)
    expected, expected_size = readable.run(X, Y)
    assert_same(predicted, expected)
    np.testing.assert_array_equal(size, expected_size)
    asked = np.vstack([rows(20, seed=1)[0], X[:10]])
    assert_same_neighbors(readable, compiled, asked)
    assert_same(compiled.predict(asked), readable.predict(asked))


@pytest.mark.parametrize("features", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("outputs", [1, 5, 20])
def test_any_number_of_inputs_and_outputs(features, outputs):
    readable, compiled = pair(Matern32(np.sqrt(features)), outputs, features, forgetting=0.99)
    X, Y = rows(90, outputs, features)
    for learner in (readable, compiled):
        learner.learn(X, Y)
    asked = rows(10, features=features, seed=1)[0]
    assert_same_neighbors(readable, compiled, asked)
    assert_same(compiled.predict(asked), readable.predict(asked))


@pytest.mark.parametrize("neighbors", [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 130])
def test_any_number_of_neighbors(neighbors):
    readable, compiled = pair(RBF(1.0), neighbors=neighbors)
    X, Y = rows(200)
    for learner in (readable, compiled):
        learner.learn(X, Y)
    asked = rows(5, seed=1)[0]
    assert_same_neighbors(readable, compiled, asked)
    assert_same(compiled.predict(asked), readable.predict(asked))


@pytest.mark.parametrize("forgetting", [1.0, 0.9999])
@pytest.mark.parametrize("store", [None, 9000])
def test_stores_of_many_rows(forgetting, store):
    """More than are looked at at first; in the second half the nearest are ever newer, and then ever older."""
    readable, compiled = pair(RBF(1.0), features=1, forgetting=forgetting, store=store, neighbors=40)
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.uniform(-9, 9, 6000), np.linspace(9, 0, 3000), np.linspace(0, 9, 3000)])[:, None]
    for learner in (readable, compiled):
        learner.learn(X, np.sin(X))
    asked = np.array([[0.0], [9.0], [-9.0], [3.3], [1e6]])
    assert_same_neighbors(readable, compiled, asked)
    assert_same(compiled.predict(asked), readable.predict(asked))


def test_all_rows_are_equally_far():
    readable, compiled = pair(RBF(1.0), neighbors=10, features=1)
    X = np.where(np.arange(7000) % 2, 1.0, -1.0)[:, None]
    for learner in (readable, compiled):
        learner.learn(X, X)
    near = neighbors(compiled, np.zeros((1, 1)))
    np.testing.assert_array_equal(near, np.arange(6999, 6989, -1))
    np.testing.assert_array_equal(near, readable.neighbors(np.zeros((1, 1))))


@pytest.mark.parametrize("neighbors", [1, 7, 64, 300])
@pytest.mark.parametrize("store", [None, 5003])
def test_many_rows_are_equally_far(neighbors, store):
    """On a grid: of the last ones that are taken, there are more than are wanted."""
    readable, compiled = pair(RBF(1.0), neighbors=neighbors, features=2, store=store)
    X = np.random.default_rng(0).integers(0, 9, (7000, 2)).astype(np.float64)
    for learner in (readable, compiled):
        learner.learn(X, X[:, :1])
    assert_same_neighbors(readable, compiled, np.array([[0.0, 0.0], [4.0, 4.0], [2.5, 6.5], [3.1, 20.0]]))


@pytest.mark.parametrize("noise", [1e-14, 1e-9])
def test_both_leave_out_the_same_neighbors(noise):
    """Copies in exact arithmetic: 1e-14 is below what a neighbor must add, 1e-9 is not."""
    readable, compiled = pair(Matern12(1.0), noise=noise, neighbors=30)
    X, Y = rows(20)
    for learner in (readable, compiled):
        learner.learn(np.vstack([X, X]), np.vstack([Y, Y + 1.0]))
    asked = rows(10, seed=1)[0]
    assert_same_neighbors(readable, compiled, asked)
    assert_same(compiled.predict(asked), readable.predict(asked), rtol=1e-5)


def test_a_row_that_adds_nothing_is_as_if_it_were_not_there():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((5, 5))
    A, R = F @ F.T, rng.standard_normal((5, 2))
    order = [0, 1, 2, 1, 3, 4, 0]
    T = whitened(A[np.ix_(order, order)], R[order])
    left = [0, 1, 2, 4, 5]
    np.testing.assert_allclose(T[left], np.linalg.solve(np.linalg.cholesky(A), R), rtol=1e-8)
    np.testing.assert_array_equal(T[[3, 6]], 0.0)


def test_chunks_give_the_bits_of_one_call():
    X, Y = rows(300, outputs=2)
    whole = pair(KERNELS["product"], outputs=2, store=110, forgetting=0.99)[1]
    parts = pair(KERNELS["product"], outputs=2, store=110, forgetting=0.99)[1]
    predicted, _ = whole.run(X, Y)
    cuts = [0, 1, 2, 50, 170, 171, 300]
    for begin, end in itertools.pairwise(cuts):
        part, _ = parts.run(X[begin:end], Y[begin:end])
        np.testing.assert_array_equal(part.mean, predicted.mean[begin:end])
        np.testing.assert_array_equal(part.std, predicted.std[begin:end])
        fresh = pair(KERNELS["product"], outputs=2, store=110, forgetting=0.99)[1]
        fresh.load(parts.dump())  # the rows are in other slots now
        parts = fresh


def test_one_call_and_one_row_at_a_time_give_the_same_bits():
    X, Y = rows(200)
    learner = pair(KERNELS["Matern52"], forgetting=0.999)[1]
    learner.learn(X, Y)
    predicted = learner.predict(X[:40])
    for i in range(40):
        assert learner.predict_one(X[i]) == (predicted.mean[i, 0], predicted.std[i, 0])
        assert learner.predict_one(X[i].tolist()) == (predicted.mean[i, 0], predicted.std[i, 0])


def test_threads_do_not_change_a_bit():
    X, Y = rows(3000)
    learner = pair(RBF(1.0), neighbors=64)[1]
    learner.learn(X, Y)
    asked = rows(501, seed=1)[0]
    one = learner._working().predict(asked, 1)
    for threads in (2, 3, 8):
        several = learner._working().predict(asked, threads)
        np.testing.assert_array_equal(several[1], one[1])
        np.testing.assert_array_equal(several[2], one[2])


def test_a_kernel_of_your_own_runs_on_the_python_engine():
    class Own(RBF):
        pass

    X, Y = rows(50)
    auto = ogp.LocalGP(Own(0.9), neighbors=12).fit(X, Y[:, 0])
    built_in = ogp.LocalGP(RBF(0.9), neighbors=12, engine="python").fit(X, Y[:, 0])
    np.testing.assert_array_equal(auto.predict(X), built_in.predict(X))
    with pytest.raises(TypeError, match="built-in"):
        ogp.LocalGP(Own(0.9), engine="native").fit(X, Y[:, 0])


def test_a_model_changes_engines_through_its_contents():
    X, Y = rows(120)
    readable, compiled = pair(KERNELS["RBF-ARD"], store=50, forgetting=0.98)
    compiled.learn(X, Y)
    readable.load(compiled.dump())
    assert (readable.seen, readable.size) == (120, 50)
    again = pair(KERNELS["RBF-ARD"], store=50, forgetting=0.98)[1]
    again.load(readable.dump())
    np.testing.assert_array_equal(again.predict(X).mean, compiled.predict(X).mean)
    assert_same(readable.predict(X[:20]), compiled.predict(X[:20]))


RESIDUAL = SETTINGS | {
    "no neighbors": {"neighbors": 0, "refits": 0},
    "no refits": {"refits": 0, "learn_power": False},
    "refits": {"refits": 3, "store": 33, "forgetting": 0.9},
    "many refits": {"refits": 40, "store": 60},
    "linear": {"linear": True, "refits": 2},
    "linear, forgets": {"linear": True, "store": 33, "forgetting": 0.95},
}


@pytest.mark.parametrize("settings", RESIDUAL)
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_same_weights_on_residuals(kernel, settings):
    options = {"noise": 0.01, "neighbors": 21, "store": None, "forgetting": 1.0, **RESIDUAL[settings]}
    prior = ResidualPrior(KERNELS[kernel], **options)
    readable, compiled = ResidualLearner(prior, FEATURES, 2), Compiled(ResidualLearner(prior, FEATURES, 2))
    X, Y = rows(160, outputs=2)
    found, expected = compiled.run_both(X, Y), readable.run_both(X, Y)
    for mine, its in zip(found[:2], expected[:2], strict=True):
        assert_same(mine, its, rtol=1e-7)
    np.testing.assert_array_equal(found[2], expected[2])
    scale = np.abs(readable.alpha).max()
    np.testing.assert_allclose(compiled.dump()["alpha"], readable.alpha, atol=1e-7 * scale)
    np.testing.assert_allclose(compiled.dump()["r"], readable.residuals, atol=1e-7)
    asked = np.vstack([rows(20, seed=1)[0], X[:10]])
    for mine, its in zip(compiled.predict_both(asked), readable.predict_both(asked), strict=True):
        assert_same(mine, its, rtol=1e-7)
    assert compiled.dump().keys() == readable.dump().keys()
    readable.load(compiled.dump())  # each takes what the other wrote
    assert_same(compiled.predict(asked), readable.predict(asked), rtol=1e-7)


def test_residuals_in_blocks_are_those_of_single_rows_bit_for_bit():
    prior = ResidualPrior(RBF(0.9), 0.01, 21, 50, 0.99, refits=2, linear=True)
    X, Y = rows(200)
    block, single = Compiled(ResidualLearner(prior, FEATURES, 1)), Compiled(ResidualLearner(prior, FEATURES, 1))
    predicted, _ = block.run(X, Y)
    one_by_one = [single.run(X[i : i + 1], Y[i : i + 1])[0] for i in range(len(X))]
    np.testing.assert_array_equal(predicted.mean, np.vstack([one.mean for one in one_by_one]))
    np.testing.assert_array_equal(predicted.std, np.vstack([one.std for one in one_by_one]))
    for threads in (1, 3):
        np.testing.assert_array_equal(block._working().predict(X, threads)[1], single._working().predict(X, 1)[1])


@pytest.mark.parametrize("settings", RESIDUAL)
@pytest.mark.parametrize("kernel", ["RBF-ARD", "product"])
def test_a_row_that_is_predicted_and_then_learned_gives_the_bits_of_a_run(kernel, settings):
    """A prediction is kept for the row that is learned next, and for that row alone."""
    options = {"noise": 0.01, "neighbors": 21, "store": None, "forgetting": 1.0, **RESIDUAL[settings]}
    prior = ResidualPrior(KERNELS[kernel], **options)
    run, single = Compiled(ResidualLearner(prior, FEATURES, 1)), Compiled(ResidualLearner(prior, FEATURES, 1))
    X, Y = rows(160)
    own, _ = run.run(X, Y)
    single.predict(X[:1])  # then it is there
    for i in range(len(X)):
        assert single.predict_one(X[i]) == (own.mean[i, 0], own.std[i, 0])
        if i % 5 == 1:
            single.predict_one(X[i - 1])  # another row than the one that is learned
        if i % 7 == 3:
            single.load(single.dump())
            single.predict(X[:1])
        if i % 2:
            assert single.learn_one(X[i], Y[i, 0]) != Outcome.UNSUPPORTED
        else:
            single.learn(X[i : i + 1], Y[i : i + 1])
    for name, value in run.dump().items():
        np.testing.assert_array_equal(single.dump()[name], value)
