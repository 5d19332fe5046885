"""Batch GP regression: the paper's equations, the likelihood, and what happens when numbers fail."""

from __future__ import annotations

import numpy as np
import pytest

from onlinegp.batch.gp import GPRegression, MaximumLikelihood, maximum_likelihood
from onlinegp.batch.likelihood import cholesky, log_marginal_likelihood
from onlinegp.kernels import RBF, Kernel, Linear, Matern32, Polynomial


def draw(kernel: Kernel, noise: float, n: int, d: int, seed: int, outputs: int | None = None):
    """Draw inputs and noisy values of a function from the GP."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, d))
    L = np.linalg.cholesky(kernel(X) + (noise + 1e-10) * np.eye(n))
    return X, L @ rng.normal(size=n if outputs is None else (n, outputs))


KERNEL, NOISE = 1.5 * RBF((0.8, 1.6)), 0.05


@pytest.fixture
def data():
    return draw(KERNEL, NOISE, 60, 2, seed=0)


@pytest.fixture
def new():
    return np.random.default_rng(1).uniform(-2.5, 2.5, (15, 2))


# The paper's equations


def test_mean_and_variance_are_the_papers(data, new):
    X, y = data
    model = GPRegression(KERNEL, noise=NOISE).fit(X, y)
    inverse = np.linalg.inv(KERNEL(X) + NOISE * np.eye(60))
    mean, std = model.predict(new, return_std=True)
    latent = model.predict(new, return_std=True, noise_free=True)[1]
    for i, x in enumerate(new):
        k, kxx = KERNEL.row(X, x), KERNEL(x[None]).item()
        assert mean[i] == pytest.approx(k @ inverse @ y, rel=1e-10)
        assert latent[i] ** 2 == pytest.approx(kxx - k @ inverse @ k, rel=1e-10)
        assert std[i] ** 2 == pytest.approx(NOISE + kxx - k @ inverse @ k, rel=1e-10)
    np.testing.assert_allclose(model.alpha_, inverse @ y, rtol=1e-9)
    assert (model.jitter_, model.noise_, model.kernel_) == (0.0, NOISE, KERNEL)
    assert model.n_features_in_ == 2


def test_covariance(data, new):
    X, y = data
    model = GPRegression(KERNEL, noise=NOISE).fit(X, y)
    k = KERNEL(X, new)
    expected = KERNEL(new) - k.T @ np.linalg.solve(KERNEL(X) + NOISE * np.eye(60), k)
    latent = model.predict(new, return_cov=True, noise_free=True)[1]
    mean, cov = model.predict(new, return_cov=True)
    np.testing.assert_allclose(latent, expected, atol=1e-12)
    np.testing.assert_allclose(cov, expected + NOISE * np.eye(15), atol=1e-12)
    np.testing.assert_array_equal(cov, cov.T)
    np.testing.assert_array_equal(mean, model.predict(new))
    np.testing.assert_allclose(np.sqrt(np.diag(cov)), model.predict(new, return_std=True)[1])


def test_before_fit_predictions_are_those_of_the_prior(new):
    mean, std = GPRegression(KERNEL, noise=NOISE).predict(new, return_std=True)
    np.testing.assert_array_equal(mean, np.zeros(15))
    np.testing.assert_allclose(std, np.sqrt(1.5 + NOISE))
    np.testing.assert_allclose(GPRegression(KERNEL).predict(new, return_cov=True, noise_free=True)[1], KERNEL(new))


def test_order_of_the_data_does_not_matter(data, new):
    X, y = data
    model, shuffle = GPRegression(KERNEL, noise=NOISE), np.random.default_rng(2).permutation(60)
    here = model.fit(X, y).predict(new, return_std=True)
    there = model.fit(X[shuffle], y[shuffle]).predict(new, return_std=True)
    np.testing.assert_allclose(here, there, rtol=1e-9)


def test_outputs_share_the_variance(new):
    X, Y = draw(KERNEL, NOISE, 40, 2, seed=3, outputs=3)
    mean, std = GPRegression(KERNEL, noise=NOISE).fit(X, Y).predict(new, return_std=True)
    assert mean.shape == std.shape == (15, 3)
    for j in range(3):
        model = GPRegression(KERNEL, noise=NOISE).fit(X, Y[:, j])
        one = model.predict(new, return_std=True)
        np.testing.assert_allclose((mean[:, j], std[:, j]), one, rtol=1e-10)
    value, gradient = log_marginal_likelihood(KERNEL, NOISE, X, Y, gradient=True)
    each = [log_marginal_likelihood(KERNEL, NOISE, X, y, gradient=True) for y in Y.T]
    assert value == pytest.approx(sum(v for v, _ in each))
    np.testing.assert_allclose(gradient, sum(g for _, g in each), rtol=1e-9)


def test_the_model_keeps_its_own_copy_of_the_data(data, new):
    X, y = data
    model = GPRegression(KERNEL, noise=NOISE).fit(X, y)
    before = model.predict(new)
    X[:], y[:] = 0.0, 0.0
    np.testing.assert_array_equal(model.predict(new), before)


# The likelihood


def test_likelihood_is_the_density_of_y(data):
    X, y = data
    C = KERNEL(X) + NOISE * np.eye(60)
    log_det = np.linalg.slogdet(C)[1]
    expected = -0.5 * (y @ np.linalg.solve(C, y) + log_det + 60 * np.log(2 * np.pi))
    model = GPRegression(KERNEL, noise=NOISE).fit(X, y)
    assert model.log_marginal_likelihood() == pytest.approx(expected, rel=1e-12)
    theta = np.append(KERNEL.theta, np.log(NOISE))
    assert model.log_marginal_likelihood(theta) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(0.9),
        1.5 * RBF((0.8, 1.6)),
        0.7 * Matern32((0.8, 1.6)) + Linear(),
        Polynomial(offset=0.3),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
def test_gradient_of_the_likelihood(kernel, data):
    X, y = data
    model = GPRegression(kernel, noise=0.1).fit(X, y)
    theta, h = np.append(kernel.theta, np.log(0.1)), 1e-5
    value, gradient = model.log_marginal_likelihood(theta, gradient=True)
    assert value == pytest.approx(model.log_marginal_likelihood())
    for i, e in enumerate(h * np.eye(theta.size)):
        ahead, behind = (model.log_marginal_likelihood(theta + s * e) for s in (1, -1))
        assert gradient[i] == pytest.approx((ahead - behind) / (2 * h), rel=1e-6, abs=1e-6)


def test_maximum_likelihood_recovers_what_the_data_were_drawn_from():
    truth = 1.5 * RBF((0.5, 1.6))
    X, y = draw(truth, 0.05, 400, 2, seed=5)
    found = maximum_likelihood(1.0 * RBF((1.0, 1.0)), 1e-2, X, y)
    assert isinstance(found, MaximumLikelihood)
    assert found.converged
    np.testing.assert_allclose(found.kernel.kernel.length_scale, (0.5, 1.6), rtol=0.25)
    assert found.kernel.variance == pytest.approx(1.5, rel=0.6)
    assert found.noise == pytest.approx(0.05, rel=0.25)
    assert found.log_marginal_likelihood >= log_marginal_likelihood(truth, 0.05, X, y)
    value, gradient = log_marginal_likelihood(found.kernel, found.noise, X, y, gradient=True)
    assert value == pytest.approx(found.log_marginal_likelihood)
    assert np.abs(gradient).max() < 0.1  # at a maximum


def test_restarts_leave_a_bad_start_behind():
    rng = np.random.default_rng(6)
    X = rng.uniform(-2.0, 2.0, (150, 1))
    y = np.sin(10.0 * X[:, 0]) + 0.1 * rng.normal(size=150)
    stuck = maximum_likelihood(RBF(10.0), 1.0, X, y, restarts=0)
    found = maximum_likelihood(RBF(10.0), 1.0, X, y, restarts=8)
    assert stuck.noise == pytest.approx(0.5, rel=0.1)  # the sine taken for noise
    assert found.noise == pytest.approx(0.01, rel=0.3)
    assert found.log_marginal_likelihood > stuck.log_marginal_likelihood + 100


def test_starts_are_compared_on_a_subset():
    X, y = draw(KERNEL, NOISE, 300, 2, seed=7)
    start = (1.0 * RBF((1.0, 1.0)), 1e-2, X, y)
    small, whole = maximum_likelihood(*start, subset=100), maximum_likelihood(*start)
    assert small.log_marginal_likelihood == pytest.approx(whole.log_marginal_likelihood, abs=1e-2)


@pytest.mark.parametrize("seed", range(4))
def test_restarts_never_make_it_worse(seed):
    # few points in many dimensions: to take them for free of noise is a maximum too, a lower one
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 6))
    y = np.sin(X @ np.ones(6)) + 0.1 * rng.normal(size=200)
    start = (1.0 * RBF((1.0,) * 6), 1e-2, X, y)
    alone, more = (maximum_likelihood(*start, subset=100, restarts=r) for r in (0, 3))
    assert more.log_marginal_likelihood >= alone.log_marginal_likelihood


def test_the_same_seed_gives_the_same_bytes(data):
    X, y = data
    runs = [GPRegression(KERNEL, optimize=True, seed=3).fit(X, y) for _ in range(2)]
    assert runs[0].kernel_ == runs[1].kernel_
    assert runs[0].noise_ == runs[1].noise_
    assert runs[0].alpha_.tobytes() == runs[1].alpha_.tobytes()
    other = GPRegression(KERNEL, optimize=True, seed=np.random.default_rng(3)).fit(X, y)
    assert other.noise_ == runs[0].noise_


def test_what_is_zero_stays_zero(data):
    X, _ = data
    y = np.sin(X[:, 0]) + X[:, 1] ** 2
    found = maximum_likelihood(RBF((1.0, 1.0)) + Polynomial(offset=0.0), 0.0, X, y, restarts=0)
    assert found.noise == 0.0
    assert found.kernel.right.offset == 0.0
    assert found.kernel.left.length_scale != (1.0, 1.0)


def test_nothing_to_tune(data):
    class Delta(Kernel):
        def __call__(self, X, Z=None):
            return (X[:, None, 0] == (X if Z is None else Z)[None, :, 0]).astype(float)

    found = maximum_likelihood(Delta(), 0.0, *data)
    assert found.noise == 0.0
    assert found.log_marginal_likelihood == pytest.approx(-0.5 * (data[1] @ data[1] + 60 * np.log(2 * np.pi)))


def test_optimize_sets_kernel_and_noise(data):
    X, y = data
    model = GPRegression(1.0 * RBF((1.0, 1.0)), optimize=True).fit(X, y)
    fixed = GPRegression(1.0 * RBF((1.0, 1.0))).fit(X, y)
    assert model.log_marginal_likelihood() > fixed.log_marginal_likelihood() + 10
    assert model.kernel == fixed.kernel_ == 1.0 * RBF((1.0, 1.0))
    assert (model.noise, fixed.noise_) == (1e-2, 1e-2)


def test_two_thousand_points():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(2000, 8))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=2000)
    kernel = 1.0 * RBF((2.0,) + (10.0,) * 7)
    model = GPRegression(kernel, noise=0.01).fit(X[:1900], y[:1900])
    assert model.score(X[1900:], y[1900:]) > 0.95
    assert np.isfinite(log_marginal_likelihood(kernel, 0.01, X, y, gradient=True)[1]).all()


# When numbers fail


def test_jitter_grows_until_duplicates_can_be_factored():
    X = np.repeat(np.linspace(0.0, 1.0, 30), 2)[:, None]
    y = np.sin(X[:, 0])
    model = GPRegression(RBF(0.5), noise=0.0).fit(X, y)
    assert 0.0 < model.jitter_ <= 1e-4
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, y, atol=1e-4)
    assert np.isfinite(std).all()
    assert (std >= 0.0).all()


def test_jitter_is_the_least_that_will_do():
    L, jitter = cholesky(np.diag([4.0, 2.0]))
    np.testing.assert_allclose(L, np.diag([2.0, np.sqrt(2.0)]))
    assert jitter == 0.0
    for tiny, expected in [(1e-13, 1e-12), (1e-9, 1e-8), (1e-5, 1e-4)]:
        K = np.diag([1.0, 1.0, 1.0, 1.0 + tiny, -tiny])
        assert cholesky(K)[1] == pytest.approx(expected * np.diag(K).mean())


class Negative(Kernel):
    """Not a kernel: k(x, x) = -1."""

    def __call__(self, X, Z=None):
        return -np.exp(-((X[:, None, 0] - (X if Z is None else Z)[None, :, 0]) ** 2))


def test_what_no_jitter_cures_is_a_clear_error(data):
    X, y = data
    with pytest.raises(np.linalg.LinAlgError, match=r"not positive definite.*Use a larger noise"):
        GPRegression(Negative(), noise=0.0).fit(X, y)
    with pytest.raises(np.linalg.LinAlgError, match="no start gave a positive definite"):
        maximum_likelihood(Negative(), 1e-9, X, y, restarts=1)
    with (
        np.errstate(over="ignore"),
        pytest.raises(np.linalg.LinAlgError, match=r"not finite.*Standardize"),
    ):
        GPRegression(Polynomial(degree=9)).fit(1e100 * X, y)


def test_a_failed_fit_changes_nothing(data, new):
    X, y = data
    model = GPRegression(KERNEL, noise=NOISE).fit(X, y)
    before = model.predict(new)
    for bad in (np.nan, np.inf, 1e200):
        worse = X.copy()
        worse[3, 1] = bad
        with pytest.raises(ValueError, match="X contains"):
            model.fit(worse, y)
    model.set_params(kernel=Negative(), noise=0.0)
    with pytest.raises(np.linalg.LinAlgError):
        model.fit(X, y)
    np.testing.assert_array_equal(model.predict(new), before)


def test_bad_input_is_refused(data):
    X, y = data
    model = GPRegression(KERNEL, noise=NOISE)
    for bad_X, bad_y, message in [
        (X[:0], y[:0], "at least one sample"),
        (X, y[:-1], "same number of rows"),
        (X[:, 0], y, "two dimensions"),
        ([["a", "b"]] * 60, y, "must hold numbers"),
        (X, np.full(60, np.nan), "y contains NaN"),
        (X, None, "y must be given"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(bad_X, bad_y)
    with pytest.raises(ValueError, match=r"length_scale has 2 value\(s\), but the inputs have 3"):
        model.fit(np.ones((5, 3)), np.ones(5))
    with pytest.raises(ValueError, match=r"length_scale has 2 value\(s\)"):
        GPRegression(KERNEL, optimize=True).fit(np.ones((5, 3)), np.ones(5))
    with pytest.raises(ValueError, match=r"no data yet. Call fit"):
        model.log_marginal_likelihood()
    model.fit(X, y)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(np.ones((4, 3)))
    with pytest.raises(ValueError, match="at least one sample"):
        model.predict(X[:0])
    with pytest.raises(ValueError, match="must not both be True"):
        model.predict(X, return_std=True, return_cov=True)
    with pytest.raises(ValueError, match=r"theta must have shape \(4,\), got \(3,\).*noise"):
        model.log_marginal_likelihood(np.zeros(3))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"noise": -1.0}, "noise must be zero or more"),
        ({"noise": "big"}, "noise must be a number"),
        ({"kernel": "rbf"}, "kernel must be a kernel"),
        ({"kernel": RBF}, "kernel must be a kernel"),
        ({"restarts": -1, "optimize": True}, "restarts must be at least 1, got -1. Use 0 for none"),
        ({"restarts": 1.5, "optimize": True}, "restarts must be a whole number"),
    ],
)
def test_bad_parameters_are_refused(params, message, data):
    with pytest.raises((ValueError, TypeError), match=message):
        GPRegression(**params).fit(*data)


# scikit-learn's protocol


def test_parameters_by_name():
    model = GPRegression(1.5 * RBF(0.8), noise=NOISE)
    assert set(model.get_params(deep=False)) == {"kernel", "noise", "optimize", "restarts", "seed"}
    assert model.get_params()["kernel__kernel__length_scale"] == 0.8
    model.set_params(kernel__kernel__length_scale=0.3, noise=0.2)
    assert (model.kernel, model.noise) == (1.5 * RBF(0.3), 0.2)
    model.set_params(kernel__length_scale=2.0, kernel=RBF(0.1))
    assert model.kernel == RBF(2.0)
    assert eval(repr(model)).kernel == RBF(2.0)
    for wrong in ({"nois": 1.0}, {"kernel__scale": 1.0}, {"kernel__length_scale__x": 1.0}):
        with pytest.raises(ValueError, match="Invalid parameter"):
            model.set_params(**wrong)
    same = GPRegression(**model.get_params(deep=False))
    assert same.get_params() == model.get_params()


def test_score(data):
    X, y = data
    model = GPRegression(KERNEL, noise=NOISE).fit(X, y)
    residual = y - model.predict(X)
    assert model.score(X, y) == pytest.approx(1 - residual @ residual / np.var(y) / 60)
    assert model.score(X, np.ones(60)) == 0.0
    assert GPRegression(KERNEL).score(X, np.zeros(60)) == 1.0


def test_against_scikit_learn(data, new):
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    sk = gaussian_process.kernels
    X, y = data
    theirs = gaussian_process.GaussianProcessRegressor(
        sk.ConstantKernel(1.5) * sk.RBF((0.8, 1.6)) + sk.WhiteKernel(NOISE),
        optimizer=None,
        alpha=0.0,
    ).fit(X, y)
    ours = GPRegression(KERNEL, noise=NOISE).fit(X, y)
    np.testing.assert_allclose(ours.predict(new, return_std=True), theirs.predict(new, return_std=True), rtol=1e-9)
    value, gradient = theirs.log_marginal_likelihood(theirs.kernel_.theta, eval_gradient=True)
    mine, slope = ours.log_marginal_likelihood(gradient=True)
    assert mine == pytest.approx(value, rel=1e-11)
    np.testing.assert_allclose(slope[[2, 0, 1, 3]], gradient, rtol=1e-8)  # theirs: variance first
