"""Long, smooth, ill-conditioned streams: finite, and positive definite to the end."""

from __future__ import annotations

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.datasets import embed, lorenz
from onlinegp.kernels import RBF


def smooth_stream(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Embedded sinusoids, with duplicates: neighboring inputs are almost the same."""
    t = np.arange(n + 5)
    series = np.sin(0.05 * t) + 0.5 * np.sin(0.0311 * t)
    X = np.lib.stride_tricks.sliding_window_view(series, 5)[:n].copy()
    X[1::7] = X[0::7][: len(X[1::7])]
    y = np.sin(2 * X[:, 0]) + 0.05 * np.random.default_rng(0).standard_normal(n)
    return X, y


def run_and_check(forgetting, n, budget=50):
    X, y = smooth_stream(n)
    model = ogp.KRLST(RBF(3.0), noise=1e-2, budget=budget, forgetting=forgetting)
    trace = ogp.run(model, X, y)
    assert np.isfinite(trace.mean).all()
    assert np.isfinite(trace.std).all()
    assert (trace.std > 0).all()
    assert np.linalg.eigvalsh(model.posterior_cov_)[0] > -1e-15
    assert ((y - trace.mean)[n // 2 :] ** 2).mean() < 0.02


@pytest.mark.parametrize("forgetting", [1.0, 0.999, 0.99])
def test_ten_thousand_steps(forgetting):
    run_and_check(forgetting, 10_000, budget=30)


@pytest.mark.parametrize("forgetting", [1.0, 0.999, 0.99])
@pytest.mark.slow
def test_hundred_thousand_steps(forgetting):
    run_and_check(forgetting, 100_000)


def test_uncertainty_injection_stays_finite_where_nothing_comes():
    """A center that no data confirm would have its variance grow like lambda^-t."""
    model = ogp.KRLST(RBF(0.5), noise=1e-2, budget=20, forgetting=ogp.recipes.forgetting.UncertaintyInjection(0.9))
    rng = np.random.default_rng(0)
    X = np.vstack([rng.uniform(-1, 1, (20, 1)), np.full((5000, 1), 5.0)])
    trace = ogp.run(model, X, np.sin(X[:, 0]))
    assert np.isfinite(trace.std).all()
    mean, std = model.predict(X[:20], return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()


@pytest.mark.parametrize("engine", ["auto", "python"])
@pytest.mark.parametrize("factor", [0.9, 1e-3, 1e-9, 1e-300])
def test_uncertainty_injection_keeps_its_digits_where_little_comes(engine, factor):
    """A slow walk confirms few of the centers; what the others gain must not cost the digits of these."""
    t = 0.01 * np.arange(3000)
    X = np.column_stack([np.sin(t), np.cos(1.618 * t)])
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 3e-3 * np.random.default_rng(0).standard_normal(3000)
    forgetting = ogp.recipes.forgetting.UncertaintyInjection(factor)
    trace = ogp.run(ogp.KRLST(RBF(1.0), noise=1e-5, budget=30, forgetting=forgetting, engine=engine), X, y)
    assert np.sqrt(((y - trace.mean)[1000:] ** 2).mean()) < 1e-2
    assert np.mean(np.abs(y - trace.mean)[1000:] < 1.96 * trace.std[1000:]) > 0.9


@pytest.mark.parametrize("noise", [1e-6, 1e-8, 1e-10])
def test_data_without_noise(noise):
    """Nothing forgotten, nothing to smooth: the posterior becomes surer than rounding can express."""
    series = lorenz(6006)[:, 0]
    X, y = embed((series - series.mean()) / series.std(), 6)
    model = ogp.KRLST(RBF(3.0), noise=noise, budget=50)
    trace = ogp.run(model, X, y)
    assert np.isfinite(trace.mean).all()
    assert np.isfinite(trace.std).all()
    assert ((y - trace.mean)[3000:] ** 2).mean() < 1e-5
