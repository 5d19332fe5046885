"""Hyperparameters of a tracker: the gradient, and streams whose forgetting factor is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, chi2

import onlinegp as ogp
from onlinegp.batch.likely_kernels import MATERN, ROUGH, SMOOTH, quickly_likely_kernels
from onlinegp.batch.tuning import Tracked, estimate_hyperparameters, log_likelihood
from onlinegp.kernels import RBF, Matern12, Matern32
from onlinegp.metrics import log_density

KERNEL, NOISE = 1.5 * RBF((0.8,)), 0.02
SEEDS = 10


def draw(forgetting: float, n: int, seed: int):
    """Draw a stream from the spatio-temporal GP whose time part is AR(1) with the coefficient sqrt(forgetting)."""
    rng = np.random.default_rng(seed)
    X, t = rng.uniform(-2.0, 2.0, (n, 1)), np.arange(n)
    K = KERNEL(X) * np.sqrt(forgetting) ** np.abs(t[:, None] - t)
    return X, np.linalg.cholesky(K + NOISE * np.eye(n)) @ rng.standard_normal(n)


def check_forgetting(forgetting: float, n: int, seeds: int) -> None:
    """The truth lies in the 95% region of the likelihood as often as it should, and estimates gather around it."""
    found, unlikely = [], 0
    for seed in range(seeds):
        X, y = draw(forgetting, n, seed)
        best = estimate_hyperparameters(X, y, restarts=0)
        # twice the gap to the truth is chi-square, one degree for each of the four parameters
        gap = 2.0 * (best.log_likelihood - log_likelihood(KERNEL, NOISE, forgetting, X, y))
        assert gap > -1e-2
        unlikely += gap > chi2.ppf(0.95, 4)
        found.append(best.forgetting)
    assert unlikely <= binom.ppf(0.999, seeds, 0.05)
    assert all(0.0 < factor <= 1.0 for factor in found)
    memory = np.median(1.0 - np.array(found)) / (1.0 - forgetting)
    assert 0.5 < memory < 2.0


@pytest.mark.parametrize("forgetting", [0.95, 0.99, 0.999])
def test_forgetting_is_found_within_what_the_data_allow(forgetting):
    check_forgetting(forgetting, n=150, seeds=SEEDS)


@pytest.mark.slow
@pytest.mark.parametrize("forgetting", [0.95, 0.99, 0.999])
def test_forgetting_is_found_within_what_the_data_allow_on_longer_streams(forgetting):
    check_forgetting(forgetting, n=500, seeds=SEEDS)


def test_a_function_that_does_not_change_is_not_forgotten():
    X, y = draw(1.0, 200, seed=3)
    best = estimate_hyperparameters(X, y)
    assert 0.9999 < best.forgetting <= 1.0
    assert best.log_likelihood >= log_likelihood(KERNEL, NOISE, 1.0, X, y)


def test_krlst_is_the_exact_filter_of_this_model():
    # with a budget that is never reached, the one-step-ahead densities multiply to the likelihood of the stream
    X, y = draw(0.98, 80, seed=1)
    trace = ogp.run(ogp.KRLST(KERNEL, noise=NOISE, budget=200, forgetting=0.98), X, y)
    # a trace holds the prediction before forgetting; one step of it later the mean has shrunk, the variance grown
    prior = 1.5 + NOISE
    mean, variance = np.sqrt(0.98) * trace.mean, prior - 0.98 * (prior - trace.std**2)
    total = log_density(y, mean, np.sqrt(variance)).sum()
    # but for samples within a thousandth of the noise of the span of the centers, which are projected
    assert total == pytest.approx(log_likelihood(KERNEL, NOISE, 0.98, X, y), abs=1e-2)


def test_gradient_of_the_product_with_time():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(12, 2)), np.arange(12.0)])
    kernel = Tracked(1.3 * Matern32((0.7, 1.2)), Matern12(9.0))
    W = rng.normal(size=(12, 12))
    W = W + W.T
    exact = kernel.gradient(X)
    for i, e in enumerate(np.eye(kernel.theta.size)):
        h = 1e-6
        difference = (kernel.with_theta(kernel.theta + h * e)(X) - kernel.with_theta(kernel.theta - h * e)(X)) / (2 * h)
        np.testing.assert_allclose(exact[i], difference, atol=1e-7)
    np.testing.assert_allclose(kernel.pullback(X, W), np.einsum("ij,pij->p", W, exact), rtol=1e-9)
    np.testing.assert_allclose(kernel.diag(X), np.diagonal(kernel(X)))
    np.testing.assert_allclose(kernel.row(X[:4], X[5]), kernel(X[:4], X[5:6])[:, 0])


def test_time_is_the_autoregression():
    X = np.column_stack([np.zeros(5), np.arange(5.0)])
    forgetting = 0.81
    K = Tracked(RBF(), Matern12(-2.0 / np.log(forgetting)))(X)
    np.testing.assert_allclose(K[0], 0.9 ** np.arange(5))  # a = sqrt(forgetting)


def test_the_result_makes_a_tracker():
    X, y = draw(0.97, 120, seed=0)
    best = estimate_hyperparameters(X, y, restarts=0)
    model = best.krlst(budget=40)
    assert (model.budget, model.noise, model.forgetting) == (40, best.noise, best.forgetting)
    trace = ogp.run(model, X, y)
    still = ogp.run(ogp.KRLST(best.kernel, noise=best.noise, budget=40), X, y)
    assert trace.log_density.mean() > still.log_density.mean()


def test_every_column_gets_a_length_scale_and_long_streams_are_cut():
    rng = np.random.default_rng(2)
    X = rng.uniform(-2.0, 2.0, (400, 3))
    y = np.sin(2.0 * X[:, 0]) + 0.05 * rng.standard_normal(400)
    best = estimate_hyperparameters(X, y, rows=120, restarts=0)
    scales = best.kernel.kernel.length_scale
    assert len(scales) == 3
    assert scales[0] < min(scales[1:]) / 3.0
    again = estimate_hyperparameters(X[140:260], y[140:260], restarts=0)
    assert again == best


def test_a_kernel_of_your_own_keeps_its_form():
    X, y = draw(0.97, 100, seed=0)
    best = estimate_hyperparameters(X, y, kernel=2.0 * Matern32(0.5), noise=0.1, restarts=0)
    assert isinstance(best.kernel.kernel, Matern32)


def test_several_outputs_share_the_hyperparameters():
    X, y = draw(0.97, 100, seed=0)
    one = estimate_hyperparameters(X, y, restarts=0)
    two = estimate_hyperparameters(X, np.column_stack([y, y]), restarts=0)
    assert two.log_likelihood == pytest.approx(2.0 * one.log_likelihood, rel=1e-3)
    assert two.forgetting == pytest.approx(one.forgetting, abs=1e-2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"forgetting": 1.0}, "forgetting must start below 1, got 1.0"),
        ({"forgetting": 0.0}, "forgetting must be greater than 0"),
        ({"noise": 0.0}, "noise must be positive"),
        ({"rows": 0}, "rows must be at least 1, got 0"),
        ({"y": np.zeros(50)}, "y must not be zero everywhere"),
        ({"y": np.full(50, np.nan)}, "y contains NaN"),
    ],
)
def test_what_cannot_be_tuned_is_refused(change, message):
    X, y = draw(0.97, 50, seed=0)
    arguments = {"X": X, "y": y} | change
    with pytest.raises(ValueError, match=message):
        estimate_hyperparameters(arguments.pop("X"), arguments.pop("y"), **arguments)


@pytest.mark.parametrize(("features", "length_scale", "noise"), [(2, 1.0, 1e-4), (3, 1.5, 1e-5)])
def test_a_quick_search_finds_the_shape_of_a_smooth_function(features, length_scale, noise):
    # a smooth kernel with the length scales of a rougher one fits so badly that few steps do not repair it
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.7, 1.7, (300, features))
    y = np.linalg.cholesky(RBF(length_scale)(X) + noise * np.eye(300)) @ rng.standard_normal(300)
    best, *_ = quickly_likely_kernels(X, (y - y.mean()) / y.std(), families=(MATERN, SMOOTH, ROUGH))
    assert isinstance(best.kernel.kernel, RBF)


def test_a_column_with_numbers_of_things_is_not_taken_for_noise():
    """The likelihood has a maximum where each thing has its own values, and one where they are noise."""
    rng = np.random.default_rng(3)
    thing, time = np.tile(np.arange(40), 8), np.repeat(np.arange(8), 40)
    y = rng.normal(size=40)[thing] * (1.0 + 0.3 * time) + 0.05 * rng.normal(size=320)
    X, y = (one / one.std(axis=0) for one in (np.column_stack([time - 3.5, thing - 19.5]), y - y.mean()))
    assert quickly_likely_kernels(X, y, families=(MATERN,))[0].noise < 0.01  # 0.19 for the noisy maximum
