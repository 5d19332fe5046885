"""RandomFeatureGP is Bayesian regression on its basis, its basis is the kernel, and what it learned adds up."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import onlinegp as ogp
from models import stream
from onlinegp.datasets import kin40k
from onlinegp.engine import available
from onlinegp.kernels import RBF, Linear, Matern12, Matern32, Matern52
from onlinegp.models.features.basis_learner import WORTH
from onlinegp.models.features.random_basis import basis, frequencies


@pytest.mark.parametrize("kernel", [RBF(0.7), RBF([0.5, 1.0, 2.0]), Matern12(1.0), Matern32(0.7), Matern52([1.0] * 3)])
def test_the_basis_makes_up_the_kernel(kernel):
    X = np.random.default_rng(0).uniform(-1, 1, (40, 3))
    phi = basis(frequencies(kernel, 3, 30_000, np.random.default_rng(1)), X)
    np.testing.assert_allclose(phi @ phi.T, kernel(X), atol=0.03)
    np.testing.assert_allclose((phi**2).sum(axis=1), 1.0, rtol=1e-12)


def test_frequencies_are_orthogonal_in_blocks_and_better_for_it():
    W = frequencies(RBF(1.0), 4, 10, np.random.default_rng(0))
    assert W.shape == (10, 4)
    for block in (W[:4], W[4:8], W[8:]):
        products = block @ block.T
        np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-12)
    X, errors = np.random.default_rng(0).normal(size=(30, 8)) / 2, {"orthogonal": 0.0, "independent": 0.0}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        draws = {"orthogonal": frequencies(RBF(1.0), 8, 64, rng), "independent": rng.standard_normal((64, 8))}
        for name, W in draws.items():
            errors[name] += float(((basis(W, X) @ basis(W, X).T - RBF(1.0)(X)) ** 2).mean())
    assert errors["orthogonal"] < 0.8 * errors["independent"]


@pytest.mark.parametrize("engine", ["python", "auto"])
def test_it_is_the_batch_posterior_with_its_scale(engine):
    X, y = stream(150)
    kernel, noise = 2.0 * RBF(0.8), 0.03
    model = ogp.RandomFeatureGP(kernel, noise=noise, pairs=25, engine=engine).fit(X, y)
    phi = basis(frequencies(RBF(0.8), 2, 25, np.random.default_rng(0)), X)
    new, _ = stream(30, seed=5)
    psi = basis(frequencies(RBF(0.8), 2, 25, np.random.default_rng(0)), new)
    K = 2.0 * phi @ phi.T + noise * np.eye(150)
    k = 2.0 * psi @ phi.T
    variance = noise + 2.0 - np.einsum("ij,ji->i", k, np.linalg.solve(K, k.T))
    scale = (WORTH * noise + noise * y @ np.linalg.solve(K, y)) / (WORTH + 150) / noise
    mean, std = model.predict(new, return_std=True)
    np.testing.assert_allclose(mean, k @ np.linalg.solve(K, y), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(std, np.sqrt(scale * variance), rtol=1e-8)
    assert model.noise_ == pytest.approx(scale * noise)


def test_the_noise_is_fitted_to_a_basis_that_is_too_small():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (6000, 4))
    y = np.sin(2 * X).sum(axis=1) + 0.01 * rng.standard_normal(6000)
    model = ogp.RandomFeatureGP(4.0 * RBF(0.8), noise=1e-4, pairs=40).fit(X[:5000], y[:5000])
    lower, upper = model.predict_interval(X[5000:], 0.9)
    assert 0.87 < np.mean((lower <= y[5000:]) & (y[5000:] <= upper)) < 0.93
    assert model.noise_ > 100 * 1e-4


def test_merging_is_learning_both_and_can_be_taken_back():
    X, y = stream(400)
    Y = np.stack([y, 2.0 - y], axis=1)
    one, other, both = (ogp.RandomFeatureGP(RBF(0.8), pairs=20) for _ in range(3))
    one.fit(X[:150], Y[:150])
    other.fit(X[150:], Y[150:])
    both.fit(X, Y)
    before = one.predict(X, return_std=True)
    one.merge(other)
    assert one.n_samples_seen_ == 400
    np.testing.assert_allclose(one.predict(X, True), both.predict(X, True), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one.noise_, both.noise_, rtol=1e-9)
    np.testing.assert_allclose(one.without(other).predict(X, True), before, rtol=1e-9, atol=1e-9)


def test_taking_back_keeps_six_digits_of_the_noise_or_is_refused():
    refused = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = stream(200, seed=seed)
        y[60:] *= 10.0 ** rng.uniform(-3, 8)
        options = {"kernel": RBF(0.8), "pairs": 8, "noise": 10.0 ** rng.uniform(-4, 0)}
        one, other, both = (
            ogp.RandomFeatureGP(**options).fit(X[i:j], y[i:j]) for i, j in ((0, 60), (60, 200), (0, 200))
        )
        before = both.to_bytes()
        try:
            both.without(other)
        except ValueError:
            assert both.to_bytes() == before
            refused += 1
        else:
            np.testing.assert_allclose(both.noise_, one.noise_, rtol=1e-6)
    assert 5 < refused < 15


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (ogp.RandomFeatureGP(), "has learned data"),
        (ogp.LinearRLS().fit(*stream(20)), "must be a RandomFeatureGP"),
        (ogp.RandomFeatureGP(RBF(0.5), pairs=5).fit(*stream(20)), "the same kernel"),
        (ogp.RandomFeatureGP(pairs=5, seed=1).fit(*stream(20)), "the same seed"),
        (ogp.RandomFeatureGP(pairs=5).fit(*stream(20, features=3)), "2 features and 1 outputs"),
        (ogp.RandomFeatureGP(pairs=5).fit(*stream(90, seed=1)), "contains more information"),
    ],
)
def test_what_cannot_be_taken_back_is_refused_and_changes_nothing(other, message):
    model = ogp.RandomFeatureGP(pairs=5).fit(*stream(20))
    before = model.to_bytes()
    with pytest.raises((TypeError, ValueError), match=message):
        model.without(other)
    assert model.to_bytes() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": Linear()}, "kernel must be RBF"),
        ({"kernel": RBF(1.0) + RBF(2.0)}, "kernel must be RBF"),
        ({"noise": 0.0}, "noise must be positive"),
        ({"pairs": 0}, "pairs must be at least 1"),
        ({"pairs": 10**9}, "pairs must be at most"),
        ({"seed": -1}, "seed must be"),
        ({"engine": "steam"}, "engine must be one of"),
    ],
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ogp.RandomFeatureGP(**options).fit(*stream(5))


@pytest.mark.parametrize("without_joblib", [False, True])
@pytest.mark.parametrize("model", [ogp.LinearRLS(noise=0.1), ogp.RandomFeatureGP(RBF(0.8), pairs=10)])
def test_parts_in_parallel_equal_one_pass(model, without_joblib, monkeypatch):
    if without_joblib:
        monkeypatch.setitem(sys.modules, "joblib", None)
    X, y = stream(3000)
    whole, parts = model.unfitted().fit(X, y), ogp.parallel.fit_parallel(model, X, y, n_jobs=2, parts=8)
    assert parts.n_samples_seen_ == 3000
    np.testing.assert_allclose(parts.predict(X, True), whole.predict(X, True), rtol=1e-9, atol=1e-9)


def test_models_that_have_no_sum_are_refused():
    with pytest.raises(TypeError, match="must have a method merge"):
        ogp.parallel.fit_parallel(ogp.KRLST(), *stream(20))


@pytest.mark.slow
def test_a_million_rows_over_eight_parts_equal_one_pass():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (1_000_000, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(len(X))
    model = ogp.RandomFeatureGP(RBF(1.0), noise=0.01, pairs=30)
    whole, parts = model.unfitted().fit(X, y), ogp.parallel.fit_parallel(model, X, y, n_jobs=2, parts=8)
    assert parts.n_samples_seen_ == len(X)
    np.testing.assert_allclose(parts.predict(X[:1000], True), whole.predict(X[:1000], True), rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_intervals_on_kin40k(data):
    X, y = kin40k(data / "kin40k.csv.gz")
    center, scale = y[:10_000].mean(), y[:10_000].std()
    t = (y - center) / scale
    model = ogp.RandomFeatureGP(RBF(2.0), noise=0.01, pairs=200).fit(X[:10_000], t[:10_000])
    lower, upper = model.predict_interval(X[10_000:], 0.95)
    assert 0.935 <= np.mean((lower <= t[10_000:]) & (t[10_000:] <= upper)) <= 0.965


@pytest.mark.skipif(not available(), reason="the compiled engine was not built")
@pytest.mark.parametrize("outputs", [1, 2])
def test_the_compiled_learner_is_the_readable_one(outputs):
    """Two outputs have scales of their own; 13 pairs do not fill a vector of the machine."""
    X, y = stream(120)
    Y = np.column_stack([y, 5.0 - 20.0 * y])[:, :outputs]
    model = ogp.RandomFeatureGP(2.0 * RBF(0.8), noise=0.01, pairs=13)
    compiled, slow = (model.set_params(engine=engine).start(2, outputs) for engine in ("native", "python"))
    for learner in (compiled, slow):
        learner.learn(X[:40], Y[:40])
    fast, slowly = compiled.run(X[40:80], Y[40:80])[0], slow.run(X[40:80], Y[40:80])[0]
    np.testing.assert_allclose(fast.mean, slowly.mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(fast.std, slowly.std, rtol=1e-8)
    slow.load(compiled.dump())
    np.testing.assert_allclose(slow.predict(X[80:]).std, compiled.predict(X[80:]).std, rtol=1e-9)
    assert compiled.plan() is not None


@pytest.mark.skipif(not available(), reason="the compiled engine was not built")
def test_a_row_that_was_predicted_is_learned_as_any_other():
    """What predicting x found is used when x is learned next, and only then: not after a merge, nor for another x."""
    X, y = stream(60)
    plain, asked = (ogp.RandomFeatureGP(RBF(0.8), pairs=13, engine="native").fit(X[:20], y[:20]) for _ in range(2))
    other = ogp.RandomFeatureGP(RBF(0.8), pairs=13).fit(X, -y)
    for i in range(20, 60):
        asked.predict_one(X[i], True)
        if i % 3 == 0:
            asked.predict_one(X[i - 1], True)
        if i == 31:
            asked.merge(other)
            plain.merge(other)
        asked.learn_one(X[i], float(y[i]))
        plain.learn_one(X[i], float(y[i]))
    np.testing.assert_array_equal(asked.predict(X, True), plain.predict(X, True))
