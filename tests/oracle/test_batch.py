"""Everything online against its batch answer, and against the paper's equations, computed literally."""

from __future__ import annotations

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.kernels import RBF

NOISE = 1e-2


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (300, 3))
    y = np.sin(X[:, 0]) * np.cos(X[:, 1]) + 0.5 * X[:, 2] + 0.1 * rng.standard_normal(300)
    return X, y


@pytest.fixture(scope="module")
def batch(data):
    return ogp.GPRegression(RBF(1.2), noise=NOISE).fit(*data)


@pytest.mark.parametrize("order", ["as it came", "reversed", "shuffled", "sorted"])
def test_online_equals_batch_in_any_order(data, batch, order):
    X, y = data
    index = {
        "as it came": np.arange(300),
        "reversed": np.arange(300)[::-1],
        "shuffled": np.random.default_rng(1).permutation(300),
        "sorted": np.argsort(X[:, 0]),
    }[order]
    model = ogp.OnlineGP(RBF(1.2), noise=NOISE).fit(X[index], y[index])
    new = np.random.default_rng(2).uniform(-3, 3, (200, 3))
    mean, std = model.predict(new, return_std=True)
    expected_mean, expected_std = batch.predict(new, return_std=True)
    np.testing.assert_allclose(mean, expected_mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(std**2, expected_std**2, rtol=0, atol=1e-8)


def test_the_weights_are_those_of_kernel_ridge_regression(data):
    X, y = data
    model = ogp.OnlineGP(RBF(1.2), noise=NOISE).fit(X, y)
    expected = np.linalg.solve(RBF(1.2)(X) + NOISE * np.eye(300), y)
    np.testing.assert_allclose(model.alpha_, expected, rtol=0, atol=1e-8)


def test_duplicates_do_no_harm_to_the_exact_one():
    X = np.repeat([[0.0], [1.0], [2.0]], 20, axis=0)
    y = np.tile([0.0, 1.0], 30)
    model = ogp.OnlineGP(RBF(1.0), noise=NOISE).fit(X, y)
    expected = ogp.GPRegression(RBF(1.0), noise=NOISE).fit(X, y)
    new = np.linspace(-1, 3, 9)[:, None]
    np.testing.assert_allclose(model.predict(new, True), expected.predict(new, True), rtol=0, atol=1e-8)


def literal_recursion(kernel, X, y, noise):
    """The paper's eqs. 3 and 4, one for one."""
    mu, Sigma = np.zeros(0), np.zeros((0, 0))
    Q = np.zeros((0, 0))
    for t, (x, target) in enumerate(zip(X, y, strict=True)):
        k = kernel(X[:t], x[None])[:, 0]
        kxx = kernel(x[None])[0, 0]
        q = Q @ k
        h = Sigma @ q
        gamma2 = kxx - k @ q
        sf2 = gamma2 + q @ h
        sy2 = noise + sf2
        y_hat = q @ mu
        hs = np.append(h, sf2)
        mu = np.append(mu, y_hat) + (target - y_hat) / sy2 * hs
        Sigma = np.block([[Sigma, h[:, None]], [h[None], np.array([[sf2]])]]) - np.outer(hs, hs) / sy2
        p = np.append(q, -1.0)
        Q = np.pad(Q, (0, 1)) + np.outer(p, p) / gamma2
    return mu, Sigma, Q


def test_the_seeds_recursions_give_the_same_posterior(data):
    X, y = data[0][:80], data[1][:80]
    kernel = RBF(0.5)
    mu, Sigma, _ = literal_recursion(kernel, X, y, NOISE)
    exact = ogp.OnlineGP(kernel, noise=NOISE).fit(X, y)
    np.testing.assert_allclose(exact.posterior_mean_, mu, rtol=0, atol=1e-9)
    np.testing.assert_allclose(exact.posterior_cov_, Sigma, rtol=0, atol=1e-9)


def test_the_tracked_posterior_follows_the_seeds_recursions(data):
    """With a budget that is never reached; its K carries the jitter on the diagonal."""
    X, y = data[0][:80], data[1][:80]
    jitter = 1e-12
    model = ogp.KRLST(RBF(0.5), noise=NOISE, budget=200, jitter=jitter).fit(X, y)

    def kernel(A, B=None):
        K = RBF(0.5)(A, A if B is None else B)
        return K + jitter * np.eye(len(A)) if B is None else K

    mu, Sigma, Q = literal_recursion(kernel, X, y, NOISE)
    np.testing.assert_allclose(model.posterior_mean_, mu, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.posterior_cov_, Sigma, rtol=0, atol=1e-9)
    L = model._state.square("L")
    np.testing.assert_allclose(L @ L.T @ Q, np.eye(80), rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.alpha_, Q @ mu, rtol=1e-7, atol=1e-7)


def test_a_window_is_batch_regression_on_the_last_samples(data):
    X, y = data
    model = ogp.kafbox.SWKRLS(RBF(1.2), noise=NOISE, budget=40).fit(X, y)
    window = ogp.GPRegression(RBF(1.2), noise=NOISE).fit(X[-40:], y[-40:])
    new = np.random.default_rng(2).uniform(-3, 3, (50, 3))
    np.testing.assert_allclose(model.predict(new, True), window.predict(new, True), rtol=0, atol=1e-8)


def test_a_fixed_budget_is_batch_regression_on_what_was_kept(data):
    X, y = data
    model = ogp.kafbox.FBKRLS(RBF(1.2), noise=NOISE, budget=40).fit(X, y)
    kept = model._state.born[:40]
    batch = ogp.GPRegression(RBF(1.2), noise=NOISE).fit(X[kept], y[kept])
    new = np.random.default_rng(2).uniform(-3, 3, (50, 3))
    np.testing.assert_allclose(model.predict(new, True), batch.predict(new, True), rtol=0, atol=1e-8)


def test_krls_is_least_squares_in_the_span_of_its_centers(data):
    """With every sample projected onto the final dictionary, found first, the weights solve the normal equations."""
    X, y = data
    first = ogp.KRLS(RBF(1.2), threshold=0.05).fit(X, y)
    C = first.centers_
    # the centers first: each is interpolated; then the others, in their projections
    others = np.array([x for x in X if not (x == C).all(axis=1).any()])
    targets = np.array([t for x, t in zip(X, y, strict=True) if not (x == C).all(axis=1).any()])
    own = np.array([y[(c == X).all(axis=1)][0] for c in C])
    model = ogp.KRLS(RBF(1.2), threshold=0.05).fit(np.vstack([C, others]), np.append(own, targets))
    assert model.size_ == len(C)
    K = RBF(1.2)(C)
    P = np.vstack([np.eye(len(C)), np.linalg.solve(K, RBF(1.2)(C, others)).T])  # f(x) ~ P f(C)
    mu = np.linalg.lstsq(P, np.append(own, targets), rcond=None)[0]
    np.testing.assert_allclose(model.posterior_mean_, mu, rtol=0, atol=1e-7)


def test_back_to_prior_forgetting_literally(data):
    """Sigma <- lambda Sigma + (1 - lambda) K, mu <- sqrt(lambda) mu, then the paper's step; no budget is reached."""
    X, y = data[0][:40], data[1][:40]
    kernel, jitter, factor = RBF(0.5), 1e-12, 0.95
    model = ogp.KRLST(kernel, noise=NOISE, budget=100, forgetting=factor, jitter=jitter).fit(X, y)
    mu, Sigma = np.zeros(0), np.zeros((0, 0))
    for t, (x, target) in enumerate(zip(X, y, strict=True)):
        K = kernel(X[:t]) + jitter * np.eye(t)
        Sigma, mu = factor * Sigma + (1 - factor) * K, np.sqrt(factor) * mu
        q = np.linalg.solve(K, kernel(X[:t], x[None])[:, 0])
        h = Sigma @ q
        sf2 = 1 + jitter - q @ K @ q + q @ h
        hs = np.append(h, sf2)
        e = target - q @ mu
        mu = np.append(mu, q @ mu) + e / (NOISE + sf2) * hs
        Sigma = np.block([[Sigma, h[:, None]], [h[None], np.array([[sf2]])]]) - np.outer(hs, hs) / (NOISE + sf2)
    np.testing.assert_allclose(model.posterior_mean_, mu, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.posterior_cov_, Sigma, rtol=0, atol=1e-9)


def test_uncertainty_injection_literally(data):
    """Sigma <- Sigma / lambda, mu stays; then the paper's step."""
    X, y = data[0][:40], data[1][:40]
    kernel, jitter, factor = RBF(0.5), 1e-12, 0.99
    rule = ogp.recipes.forgetting.UncertaintyInjection(factor)
    model = ogp.KRLST(kernel, noise=NOISE, budget=100, forgetting=rule, jitter=jitter).fit(X, y)
    mu, Sigma = np.zeros(0), np.zeros((0, 0))
    for t, (x, target) in enumerate(zip(X, y, strict=True)):
        K = kernel(X[:t]) + jitter * np.eye(t)
        Sigma = Sigma / factor
        q = np.linalg.solve(K, kernel(X[:t], x[None])[:, 0])
        h = Sigma @ q
        sf2 = 1 + jitter - q @ K @ q + q @ h
        hs = np.append(h, sf2)
        mu, Sigma = (
            np.append(mu, q @ mu) + (target - q @ mu) / (NOISE + sf2) * hs,
            np.block([[Sigma, h[:, None]], [h[None], np.array([[sf2]])]]) - np.outer(hs, hs) / (NOISE + sf2),
        )
    np.testing.assert_allclose(model.posterior_mean_, mu, rtol=0, atol=1e-8)
    np.testing.assert_allclose(model.posterior_cov_, Sigma, rtol=0, atol=1e-8)


@pytest.mark.parametrize("j", [0, 7, 48, 49])
def test_a_dropped_center_leaves_the_posterior_of_the_others_as_it_was(data, j):
    X, y = data
    model = ogp.KRLST(RBF(0.5), noise=NOISE, budget=50, engine="python").fit(X[:50], y[:50])
    mu, Sigma = model.posterior_mean_, model.posterior_cov_
    model._recipe.belief.drop(model._state, j, model._recipe.kernel)
    np.testing.assert_allclose(model.posterior_mean_, np.delete(mu, j), rtol=0, atol=1e-11)
    kept = np.delete(np.arange(50), j)
    np.testing.assert_allclose(model.posterior_cov_, Sigma[np.ix_(kept, kept)], rtol=0, atol=1e-12)
    state = model._state
    L = state.square("L")
    np.testing.assert_allclose(L @ L.T, RBF(0.5)(X[kept]) + 1e-12 * np.eye(49), rtol=0, atol=1e-14)
    np.testing.assert_allclose(state.dQ[:49], np.diag(np.linalg.inv(L @ L.T)), rtol=1e-9)
