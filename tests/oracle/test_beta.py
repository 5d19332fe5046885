"""beta-KLMS against the paper's equations, computed literally, and its automatic beta against the theory."""

from __future__ import annotations

import numpy as np
import pytest

import onlinegp as ogp
from models import stream
from onlinegp.kernels import RBF, Linear
from onlinegp.recipes.pruning import LeastWeight, Oldest


def test_beta_zero_is_klms():
    X, y = stream(300)
    for noise in (0.01, 0.3):
        klms = ogp.run(ogp.KLMS(RBF(0.7), step=1 / (noise + 1.0)), X, y)
        beta = ogp.run(ogp.BetaKLMS(RBF(0.7), beta=0, noise=noise), X, y)
        np.testing.assert_allclose(beta.mean, klms.mean, rtol=0, atol=1e-12)
        np.testing.assert_allclose(beta.std, klms.std, rtol=0, atol=1e-12)


@pytest.mark.parametrize("beta", [1.0, 0.1, 0.0, -0.001])
def test_weights_and_variances_follow_the_seed(beta):
    X, y = stream(150)
    kernel, noise = RBF(0.7), 0.05
    model = ogp.BetaKLMS(kernel, beta=beta, noise=noise)
    alpha = np.zeros(0)
    for t, (x, target) in enumerate(zip(X, y, strict=True)):
        k = kernel(X[:t], x[None])[:, 0]
        mean, std = model.predict_one(x, return_std=True)
        assert mean == pytest.approx(k @ alpha, abs=1e-12)
        assert std**2 == pytest.approx(noise + 1.0 + beta * k @ k, abs=1e-12)  # eq. 14
        e = target - k @ alpha
        gain = np.append(beta * k, 1.0)
        alpha = np.append(alpha, 0.0) + e / (noise + 1.0 + beta * k @ k) * gain  # eq. 15
        model.learn_one(x, target)
        np.testing.assert_allclose(model.alpha_, alpha, rtol=0, atol=1e-12)
    K = kernel(X)
    np.testing.assert_allclose(model.posterior_cov_, K @ (beta * K + np.eye(150)), rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_auto_is_a_covariance_at_every_step():
    X, y = stream(500)
    model = ogp.BetaKLMS(RBF(0.7), beta="auto", noise=0.05)
    for x, target in zip(X, y, strict=True):
        model.learn_one(x, target)
        K = RBF(0.7)(model.centers_)
        assert model.beta_ >= -1.0 / np.linalg.eigvalsh(K)[-1]
        assert np.linalg.eigvalsh(model.posterior_cov_)[0] >= -1e-12 * len(K)
    rows = np.abs(RBF(0.7)(X)).sum(axis=1)
    assert model.beta_ == pytest.approx(-1.0 / (rows.max() + 0.05), rel=1e-12)


def test_auto_beats_zero_in_log_density():
    X, y = stream(500)
    zero = ogp.run(ogp.BetaKLMS(RBF(0.7), beta=0, noise=0.05), X, y)
    auto = ogp.run(ogp.BetaKLMS(RBF(0.7), beta="auto", noise=0.05), X, y)
    assert auto.log_density.mean() > zero.log_density.mean()


def test_auto_bounds_kernels_that_take_both_signs():
    X, y = stream(100)
    model = ogp.BetaKLMS(Linear() + RBF(0.5), beta="auto", noise=0.05).fit(X, y)
    assert model.beta_ >= -1.0 / np.linalg.eigvalsh((Linear() + RBF(0.5))(X))[-1]
    assert np.linalg.eigvalsh(model.posterior_cov_)[0] > -1e-9
    assert (model.predict(X, True)[1] > 0).all()


def test_a_beta_below_the_bound_is_no_covariance_and_its_variance_is_cut_at_zero():
    X, y = stream(40)
    model = ogp.BetaKLMS(RBF(0.7), beta=-0.5, noise=0.05).fit(X, y)
    assert np.linalg.eigvalsh(model.posterior_cov_)[0] < 0
    std = model.predict(X, return_std=True)[1]
    assert std.min() == pytest.approx(np.sqrt(0.05))


@pytest.mark.parametrize("pruning", [Oldest(100), LeastWeight(100)], ids=lambda part: type(part).__name__)
def test_with_pruning_it_is_klms_and_stays_stable(pruning):
    """The largest beta that is a covariance grew without bound here, a thousandfold in 3,000 rows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (3000, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1]
    model = ogp.BetaKLMS(RBF(0.8), noise=0.05, pruning=pruning)
    trace = ogp.run(model, X, y)
    assert model.beta_ == 0.0
    assert ((y - trace.mean)[2000:] ** 2).mean() < 0.5 * y.var()
    np.testing.assert_array_equal(trace.mean, ogp.run(ogp.KLMS(RBF(0.8), step=1 / 1.05, pruning=pruning), X, y).mean)
