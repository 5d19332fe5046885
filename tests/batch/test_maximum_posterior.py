"""Tuned hyperparameters: nearly as good as the true ones, on few rows and many, and never a failure."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.batch import maximum_posterior
from onlinegp.batch.changing_kernel import Tracked
from onlinegp.batch.gp import GPRegression
from onlinegp.batch.likelihood import log_marginal_likelihood, one_step_ahead
from onlinegp.batch.likely_kernels import (
    MATERN,
    MATERN_LINEAR,
    SMOOTH,
    SMOOTH_LINEAR,
    STARTS,
    likely_kernels,
    likely_noise,
)
from onlinegp.batch.maximum_posterior import OTHER_WORK, WIDE, Clock, Prior, planned, posterior_loss, work
from onlinegp.batch.search_space import suggested
from onlinegp.kernels import RBF, Kernel, Linear, Matern12, Matern52

FAMILIES = (MATERN, SMOOTH, MATERN_LINEAR, SMOOTH_LINEAR)


def simulated(rows: int, d: int, noise: float, seed: int, *, linear: float = 0.0, held_out: int = 200):
    """Draw rows of a function of three of d inputs, or of all if fewer, and the model that they were drawn from."""
    rng = np.random.default_rng(seed)
    scales = np.full(d, 1e6)
    scales[:3] = (1.0, 2.0, 4.0)[:d]
    kernel: Kernel = 1.0 * Matern52(tuple(scales))
    if linear:
        kernel = kernel + (Linear(linear) + 0.1)
    X = rng.standard_normal((rows + held_out, d))
    L = np.linalg.cholesky(kernel(X) + noise * np.eye(len(X)))
    return X, L @ rng.standard_normal(len(X)), kernel


def held_out_nlpd(kernel: Kernel, noise: float, X, y, rows: int) -> float:
    """Return minus the mean log density of what comes after the first rows, which are learned at once."""
    model = GPRegression(kernel, noise=noise).fit(X[:rows], y[:rows])
    return -float(model.predict_distribution(X[rows:]).log_density(y[rows:]).mean())


def excess(rows: int, d: int, noise: float, seed: int) -> float:
    X, y, kernel = simulated(rows, d, noise, seed)
    found = likely_kernels(X[:rows], y[:rows], families=(MATERN,))[0]
    assert 0.0 < found.noise < np.inf
    return held_out_nlpd(found.kernel, found.noise, X, y, rows) - held_out_nlpd(kernel, noise, X, y, rows)


@pytest.mark.parametrize("noise", [1e-6, 1e-3, 0.1, 1.0])
@pytest.mark.parametrize(("rows", "d", "bound"), [(20, 2, 1.0), (60, 2, 0.5), (200, 2, 0.15), (200, 8, 0.3)])
def test_nearly_as_good_as_the_truth(rows, d, bound, noise):
    assert np.mean([excess(rows, d, noise, seed) for seed in range(2)]) < bound


@pytest.mark.slow
@pytest.mark.parametrize("noise", [1e-6, 1e-3, 0.1, 1.0])
@pytest.mark.parametrize(("d", "bound"), [(2, 0.05), (8, 0.1), (18, 0.15)])
def test_nearly_as_good_as_the_truth_on_a_thousand_rows(d, bound, noise):
    assert excess(1000, d, noise, seed=0) < bound


@pytest.mark.parametrize("seed", range(5))
def test_few_rows_do_not_lose_their_noise(seed):
    # the most likely noise of twenty rows is often zero, and the densities of new rows then have no bottom
    X, y, _ = simulated(20, 2, 0.3, seed)
    for found in likely_kernels(X[:20], y[:20], families=FAMILIES):
        assert 1e-3 < found.noise < 2.0
        assert held_out_nlpd(found.kernel, found.noise, X, y, 20) < 3.0


def test_a_linear_term_is_found_and_pays():
    X, y, _ = simulated(100, 4, 0.01, seed=1, linear=4.0)
    plain, linear = (likely_kernels(X[:100], y[:100], families=(family,))[0] for family in (MATERN, MATERN_LINEAR))
    assert linear.log_evidence > plain.log_evidence + 0.1
    nlpd = [held_out_nlpd(one.kernel, one.noise, X, y, 100) for one in (plain, linear)]
    assert nlpd[1] < nlpd[0] - 0.05


def test_with_a_linear_term_it_is_never_much_less_likely():
    X, y, _ = simulated(80, 2, 0.05, seed=2, held_out=1)
    found = likely_kernels(X, y, families=(MATERN, MATERN_LINEAR))
    plain, linear = sorted(found, key=lambda one: len(one.kernel.theta))
    assert linear.log_likelihood > plain.log_likelihood - 3.0  # what the prior of the linear term may cost


@pytest.mark.parametrize("columns", [4, 400])
def test_the_work_of_a_search_is_bounded(columns, monkeypatch):
    """Evaluations are counted, weighted by their cost, which grows with rows and columns."""
    done = []

    def counted(kernel, theta, prior, X, y):
        done.append(work(len(y), 1) * (OTHER_WORK + X.shape[1]))
        return posterior_loss(kernel, theta, prior, X, y)

    monkeypatch.setattr(maximum_posterior, "posterior_loss", counted)
    X, y, _ = simulated(300, columns, 0.05, seed=4, held_out=1)
    likely_kernels(X, y, families=(MATERN, MATERN_LINEAR))
    evaluations = 2.2 * (planned(len(STARTS), len(y)) + planned(0, len(y), later=1))  # two for an iteration, some more
    assert len(done) > 50
    assert sum(done) < evaluations * (OTHER_WORK + WIDE)


def awkward() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    f = np.sin(2.0 * X[:, 0])
    tails = f + 0.1 * rng.standard_t(1.5, 80)
    outlier = f.copy()
    outlier[40] = 1e4
    return {
        "constant columns": (np.column_stack([X, np.ones((80, 2))]), f),
        "only constant columns": (np.ones((80, 2)), f),
        "duplicates": (np.repeat(X[:8], 10, axis=0), np.repeat(f[:8], 10)),
        "contradicting duplicates": (np.repeat(X[:8], 10, axis=0), f),
        "integers": (np.round(X), np.round(2.0 * f)),
        "heavy tails": (X, tails),
        "an outlier": (X, outlier),
        "noise only": (X, rng.standard_normal(80)),
        "a line": (X, X[:, 0]),
        "a constant target": (X, np.ones(80)),
        "tiny": (1e-100 * X, 1e-100 * f),
        "huge": (1e100 * X, 1e100 * f),
        "one row": (X[:1], f[:1]),
        "two rows": (X[:2], f[:2]),
        "more inputs than rows": (rng.standard_normal((10, 30)), f[:10]),
    }


@pytest.mark.parametrize("name", awkward())
@pytest.mark.filterwarnings("error")
def test_never_fails(name):
    X, y = awkward()[name]
    for found in likely_kernels(X, y, families=FAMILIES):
        assert np.isfinite(found.log_likelihood)
        assert np.isfinite(found.log_evidence)
        assert np.isfinite(found.kernel.theta).all()
        assert 0.0 < found.noise < np.inf
        prediction = GPRegression(found.kernel, noise=found.noise).fit(X, y).predict_distribution(X + 0.1)
        assert np.isfinite(prediction.mean).all()
        assert np.isfinite(prediction.std).all()


def test_the_same_seed_gives_the_same_bytes():
    X, y, _ = simulated(60, 2, 0.1, seed=0)  # 260 rows with those held out: more than those of the first stage
    first, second = (likely_kernels(X, y, families=(MATERN, MATERN_LINEAR), seed=3) for _ in range(2))
    assert [(one.kernel, one.noise) for one in first] == [(one.kernel, one.noise) for one in second]


def test_jobs_on_the_users_backend_find_the_same():
    joblib = pytest.importorskip("joblib")
    X, y, _ = simulated(60, 2, 0.1, seed=0, held_out=0)
    families = (MATERN, SMOOTH, MATERN_LINEAR)
    with joblib.parallel_config(backend="threading"):
        found = likely_kernels(X, y, families=families, jobs=2)
        moving = ogp.estimate_hyperparameters(X, y, rows=40, restarts=2, jobs=3)
    alone = likely_kernels(X, y, families=families)
    assert [(one.kernel, one.noise) for one in found] == [(one.kernel, one.noise) for one in alone]
    assert moving == ogp.estimate_hyperparameters(X, y, rows=40, restarts=2)


def test_progress_goes_up_to_one_and_time_is_kept():
    X, y, _ = simulated(60, 3, 0.1, seed=0)
    shares: list[float] = []
    found = likely_kernels(X, y, families=(SMOOTH,), seconds=0.0, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) > 4
    assert all(np.isfinite(one.log_likelihood) for one in found)
    assert found[0].log_likelihood < likely_kernels(X, y, families=(SMOOTH,))[0].log_likelihood


def test_a_clock_that_has_no_end_is_never_over():
    assert not Clock().over
    assert Clock(seconds=0.0).over
    with pytest.raises(ValueError, match="seconds must not be negative, got -1"):
        likely_kernels(np.ones((5, 1)), np.arange(5.0), seconds=-1.0)


@pytest.mark.parametrize(
    "kernel",
    [
        1.3 * Matern52((0.7, 1.9)),
        RBF(1.2) + (Linear((0.3, 0.8)) + 0.4),
        Tracked(0.8 * RBF((0.7, 1.9)) + Linear(0.5), Matern12(30.0)),
    ],
    ids=["matern", "linear", "tracked"],
)
def test_gradient_of_the_posterior(kernel):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((25, 2))
    if isinstance(kernel, Tracked):
        X = np.column_stack([X, np.arange(25.0)])
    y = rng.standard_normal(25)
    theta, prior, h = np.append(kernel.theta, np.log(0.2)), Prior.of(kernel, X, y), 1e-5
    _, gradient = posterior_loss(kernel, theta, prior, X, y)
    for i, e in enumerate(h * np.eye(theta.size)):
        ahead, behind = (posterior_loss(kernel, theta + step, prior, X, y)[0] for step in (e, -e))
        assert gradient[i] == pytest.approx((ahead - behind) / (2 * h), rel=1e-5, abs=1e-8)


def test_the_prior_follows_the_units():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    kernel = 1.0 * Matern52((1.0, 1.0)) + (Linear(1.0) + 1.0)
    here, there = Prior.of(kernel, X, y), Prior.of(kernel, 10.0 * X, 100.0 * y)
    np.testing.assert_allclose(np.exp(there.mean - here.mean), [10, 10, 1e4, 100, 1e4, 1e4], rtol=1e-9)


def test_one_step_ahead_is_the_exact_filter():
    X, y, kernel = simulated(30, 2, 0.1, seed=0, held_out=1)
    y = np.column_stack([y, -2.0 * y])
    ahead = one_step_ahead(kernel, 0.1, X, y)
    for i in range(1, len(y)):
        mean, std = GPRegression(kernel, noise=0.1).fit(X[:i], y[:i]).predict(X[i : i + 1], return_std=True)
        np.testing.assert_allclose(ahead.mean[i], mean[0], rtol=1e-9)
        np.testing.assert_allclose(ahead.std[i], std[0], rtol=1e-9)
    total = ahead.log_density(y).sum()
    assert total == pytest.approx(log_marginal_likelihood(kernel, 0.1, X, y))


@pytest.mark.parametrize("noise", [1e-4, 0.05, 0.8])
def test_the_noise_of_a_given_kernel(noise):
    rng = np.random.default_rng(1)
    kernel = 1.0 * RBF(1.0)
    X = rng.uniform(-3.0, 3.0, (300, 2))
    y = np.linalg.cholesky(kernel(X) + noise * np.eye(300)) @ rng.standard_normal(300)
    found = likely_noise(kernel, X, y)
    assert found.kernel == kernel
    assert 0.7 < found.noise / noise < 1.4
    for factor in (0.8, 1.25):
        assert found.log_likelihood > log_marginal_likelihood(kernel, factor * found.noise, X, y)


def test_kin40k_is_not_its_mean(data):
    with gzip.open(data / "kin40k.csv.gz", "rt") as file:
        data = np.loadtxt(file, delimiter=",", skiprows=1, max_rows=2000)
    data = (data - data[:1000].mean(axis=0)) / data[:1000].std(axis=0)
    X, y = data[:, :-1], data[:, -1]
    found = likely_kernels(X[:1000], y[:1000], families=(MATERN,))[0]
    errors = y[1000:] - GPRegression(found.kernel, noise=found.noise).fit(X[:1000], y[:1000]).predict(X[1000:])
    assert np.mean(errors**2) / np.var(y[1000:]) <= 0.13


def test_length_scales_that_do_not_matter_do_not_widen_the_radius():
    few, more = Matern52((0.5, 0.7)), Matern52((0.5, 0.7, 1e5, 1e5))
    radius = [suggested(ogp.QKLMS, 1.0 * kernel, 0.1, None)["radius"] for kernel in (few, more)]
    assert radius[1] == pytest.approx(np.sqrt(2.0) * radius[0])
    assert suggested(ogp.QKLMS, RBF(0.8), 0.1, None)["radius"] == pytest.approx(0.4)
    X = np.random.default_rng(0).standard_normal((300, 4))
    trace = ogp.run(ogp.QKLMS(more, radius=radius[1], step=0.5, engine="python"), X, X[:, 0])
    assert trace.size[-1] > 100
