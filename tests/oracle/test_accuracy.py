"""How accurate the tracked beliefs are where there is little noise: beside batch Cholesky, and in long double."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlinegp as ogp
from onlinegp.datasets import embed, lorenz, mackey_glass
from onlinegp.engine import available
from onlinegp.engine.compiled import readable
from onlinegp.kernels import RBF, Linear, Matern12, Matern32, Matern52

needs_native = pytest.mark.skipif(not available(), reason="the compiled engine was not built")
ENGINES = [pytest.param("native", marks=needs_native), "python"]
engines = pytest.mark.parametrize("engine", ENGINES)
NOISES = [1e-2, 1e-4, 1e-6, 1e-8, 1e-10]


def decibels(e) -> float:
    return 10.0 * np.log10(np.mean(np.asarray(e, dtype=float) ** 2))


def factor(K):
    """Return L with L L' = K, in the precision of K."""
    L = np.zeros_like(K)
    for j in range(len(K)):
        c = K[j:, j] - L[j:, :j] @ L[j, :j]
        L[j:, j] = c / np.sqrt(c[0])
    return L


def substitute(L, x):
    """Return L^-1 x, in the precision of L."""
    x = np.array(x, dtype=L.dtype)
    for i in range(len(L)):
        x[i] = (x[i] - L[i, :i] @ x[:i]) / L[i, i]
    return x


def batch(kernel, noise, C, y, X) -> tuple[np.ndarray, np.ndarray]:
    """Return means and variances of y at X for the GP on C and y, in long double."""
    K = kernel(C).astype(np.longdouble) + np.longdouble(noise) * np.eye(len(C))
    L = factor(K)
    T = substitute(L, kernel(C, X))
    return T.T @ substitute(L, y), kernel.diag(X) - (T**2).sum(axis=0) + np.longdouble(noise)


def foretold(kernel, noise, X, y) -> np.ndarray:
    """Return what batch regression on all rows before predicts for each, in long double."""
    L = factor(kernel(X).astype(np.longdouble) + np.longdouble(noise) * np.eye(len(X)))
    b = substitute(L, y)
    return (L * b).sum(axis=1) - L.diagonal() * b  # L_i . b, of the rows before i


@pytest.fixture(scope="module")
def chaos():
    """Lorenz without noise, six lags, and what batch regression predicts."""
    X, y = embed(lorenz(396)[:, 0], 6)
    return X, y, {noise: foretold(RBF(32.0), noise, X, y) for noise in NOISES}


@engines
@pytest.mark.parametrize("noise", NOISES)
def test_the_exact_posterior_is_as_good_as_batch_cholesky(chaos, engine, noise):
    X, y, exact = chaos
    trace = ogp.run(ogp.OnlineGP(RBF(32.0), noise=noise, engine=engine), X, y)
    expected = decibels((y - exact[noise])[195:])
    assert decibels((y - trace.mean)[195:]) == pytest.approx(expected, abs=0.05)
    assert (trace.std**2 >= noise).all()


@engines
@pytest.mark.parametrize(("noise", "allowed"), [(1e-4, 0.2), (1e-6, 0.2), (1e-8, 0.4), (1e-10, 4.0)])
def test_a_budget_costs_next_to_nothing(chaos, engine, noise, allowed):
    """A hundred centers instead of all, with nothing to tune."""
    X, y, exact = chaos
    trace = ogp.run(ogp.KRLST(RBF(32.0), noise=noise, budget=100, engine=engine), X, y)
    assert decibels((y - trace.mean)[195:]) < decibels((y - exact[noise])[195:]) + allowed


@engines
@pytest.mark.parametrize("noise", [1e-4, 1e-6, 1e-8])
def test_what_is_not_worth_a_center_costs_nothing(engine, noise):
    """Mackey-Glass, with room for all rows: what differs by a thousandth of the noise from the others is left out."""
    X, y = embed(mackey_glass(396), 6)
    exact = decibels((y - foretold(RBF(1.0), noise, X, y))[195:])
    for model in (
        ogp.OnlineGP(RBF(1.0), noise=noise, engine=engine),
        ogp.KRLST(RBF(1.0), noise=noise, budget=390, engine=engine),
    ):
        trace = ogp.run(model, X, y)
        assert decibels((y - trace.mean)[195:]) == pytest.approx(exact, abs=0.05)
    assert noise < 1e-4 or trace.size[-1] < 390


@needs_native
@pytest.mark.slow
@pytest.mark.parametrize(("noise", "allowed"), [(1e-4, 0.2), (1e-6, 0.2), (1e-8, 0.4), (1e-10, 4.0)])
def test_fifteen_hundred_rows_of_lorenz(noise, allowed):
    """The benchmark of the field, at its length: all rows as centers, and a hundred."""
    X, y = embed(lorenz(1506)[:, 0], 6)
    exact = decibels((y - foretold(RBF(32.0), noise, X, y))[750:])
    gp = ogp.run(ogp.OnlineGP(RBF(32.0), noise=noise), X, y)
    assert decibels((y - gp.mean)[750:]) == pytest.approx(exact, abs=0.05)
    trace = ogp.run(ogp.KRLST(RBF(32.0), noise=noise, budget=100), X, y)
    assert decibels((y - trace.mean)[750:]) < exact + allowed


@engines
@pytest.mark.parametrize("noise", [1e-2, 1e-8])
@pytest.mark.parametrize("model", [ogp.kafbox.SWKRLS, ogp.kafbox.FBKRLS])
def test_a_set_of_data_is_the_batch_posterior_on_it(chaos, engine, noise, model):
    X, y, _ = chaos
    filter = model(RBF(32.0), noise=noise, budget=50, engine=engine).fit(X[:300], y[:300])
    kept = filter._state.born[:50]
    mean, std = filter.predict(X[300:], return_std=True)
    expected, variance = batch(RBF(32.0), noise, X[kept], y[kept], X[300:])
    np.testing.assert_allclose(mean, expected.astype(float), rtol=0, atol=1e-6 * np.abs(y).max())
    np.testing.assert_allclose(std**2, variance.astype(float), rtol=1e-6)


@engines
@pytest.mark.parametrize("noise", [1e-2, 1e-6, 1e-10])
@pytest.mark.parametrize("model", [ogp.OnlineGP, ogp.kafbox.SWKRLS, ogp.kafbox.FBKRLS, ogp.KRLST])
def test_a_posterior_covariance_has_no_negative_variance(chaos, engine, noise, model):
    X, y, _ = chaos
    size = {} if model is ogp.OnlineGP else {"budget": 50}
    Sigma = model(RBF(32.0), noise=noise, engine=engine, **size).fit(X[:120], y[:120]).posterior_cov_
    np.testing.assert_array_equal(Sigma, Sigma.T)
    assert np.linalg.eigvalsh(Sigma)[0] >= -1e-14 * Sigma.max()
    if model is not ogp.KRLST:
        assert Sigma.diagonal().max() < noise


@engines
def test_the_variance_of_a_tracker_covers(engine):
    """y drawn from the model itself: 95 of 100 within the interval."""
    inside = []
    for seed in range(4 if engine == "python" else 40):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1.0, 1.0, (400, 1))
        L = np.linalg.cholesky(RBF(0.2)(X) + 1e-10 * np.eye(400))
        y = L @ rng.standard_normal(400) + np.sqrt(1e-3) * rng.standard_normal(400)
        trace = ogp.run(ogp.KRLST(RBF(0.2), noise=1e-3, budget=60, engine=engine), X, y)
        inside.append(np.abs(y - trace.mean) < 1.959964 * trace.std)
    assert np.mean(inside) == pytest.approx(0.95, abs=0.02 if engine == "python" else 0.01)


@engines
def test_least_squares_gain_from_more_centers(engine):
    """A lower threshold of the dictionary means more centers and a smaller error, down to the last digits of K."""
    X, y = embed(lorenz(606)[:, 0], 6)
    size, error = [], []
    for threshold in (1e-4, 1e-6, 1e-8, 1e-10):
        trace = ogp.run(ogp.KRLS(RBF(32.0), threshold=threshold, engine=engine), X, y)
        size.append(trace.size[-1])
        error.append(decibels((y - trace.mean)[300:]))
    assert (np.diff(size) > 10).all()
    assert (np.diff(error) < -6.0).all()


KERNELS = [RBF(1.0), 7.0 * Matern12(0.5), Matern32(2.0), Matern52(1.0) + Linear(), RBF(0.3) * Matern32(3.0)]


@st.composite
def streams(draw):
    """A kernel, up to sixty samples with duplicates and near duplicates, on any scale, and a noise."""
    kernel = draw(st.sampled_from(KERNELS))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 60))
    X = 10.0 ** draw(st.integers(-6, 6)) * rng.standard_normal((n, 2))
    again = rng.integers(0, n, n)
    near = rng.choice([0.0, 1e-12, 1e-8, 1e-4], n)[:, None]
    repeat = rng.random(n) < draw(st.floats(0.0, 0.9))
    X[repeat] = (X[again] * (1.0 + near * rng.standard_normal((n, 2))))[repeat]
    y = 10.0 ** draw(st.integers(-6, 6)) * rng.standard_normal(n)
    return kernel, kernel.diag(X).max() * 10.0 ** draw(st.floats(-12.0, 0.0)), X, y


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=150, deadline=None)
@given(streams(), st.integers(1, 60))
def test_windows_agree_with_long_double(engine, stream, budget):
    """Within what rounding K by some m units in its last place costs: that much, times k(x, x) over the noise."""
    kernel, noise, X, y = stream
    model = ogp.kafbox.SWKRLS(kernel, noise=noise, budget=budget, engine=engine).start(X.shape[1], 1)
    model.learn(X, y[:, None])
    predicted = model.predict(X).output(0)
    mean, std = predicted.mean, predicted.std
    C, targets = X[-budget:], y[-budget:]
    expected, variance = batch(kernel, noise, C, targets, X)
    m, kxx = len(C), kernel.diag(X).max()
    rounding = 1e-15 * m * (1.0 + kxx / noise)
    scale = np.sqrt(m * (1.0 + kxx / noise)) * np.abs(y).max()  # of k . alpha before anything cancels
    assert np.abs(mean - expected.astype(float)).max() <= rounding * scale
    assert np.abs(std**2 - variance.astype(float)).max() <= rounding * (kxx + noise)


def retold(kernel, noise, jitter, X, y, kept, keep=1.0, inject=1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return what a tracker says of y, before each sample, if `kept` lists its centers after each; in long double.

    f(x_i) = R_i . u, with a coordinate of u for every sample that ever was a center, so that nothing need be removed.
    """
    n = len(X)
    K = kernel(X).astype(np.longdouble)
    K[np.diag_indices(n)] *= 1.0 + np.longdouble(jitter)
    R, b, S = np.zeros_like(K), np.zeros_like(K[0]), np.eye(n, dtype=np.longdouble)
    means, variances, C = np.zeros_like(b), np.zeros_like(b), np.zeros(0, dtype=int)
    for i in range(n):
        L = factor(K[np.ix_(C, C)])
        t = substitute(L, K[C, i])
        w, gamma2 = substitute(L, R[C]).T @ t, K[i, i] - t @ t
        means[i], variances[i] = w @ b, gamma2 + w @ S @ w + noise
        b, S = np.sqrt(np.longdouble(keep)) * b, keep * S + (1.0 - np.longdouble(keep)) * np.eye(n)
        S[:i, :i] /= np.longdouble(inject)
        e, s = y[i] - w @ b, gamma2 + w @ S @ w + noise
        if i in kept[i]:
            R[i] = w
            R[i, i] = w[i] = np.sqrt(gamma2)
        h = S @ w
        b, S, C = b + h * (e / s), S - np.multiply.outer(h, h) / s, kept[i]
    return means, variances


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", [{}, {"keep": 0.9}, {"inject": 0.9}], ids=["keep", "back to prior", "injection"])
@settings(max_examples=60, deadline=None)
@given(stream=streams(), budget=st.integers(1, 60))
def test_trackers_agree_with_long_double(engine, how, stream, budget):
    """With the same centers; the bound of the windows, times sqrt(1000): pivots may be a thousandth of the noise."""
    kernel, noise, X, y = stream
    forgetting = ogp.recipes.forgetting.UncertaintyInjection(0.9) if "inject" in how else how.get("keep", 1.0)
    model = ogp.KRLST(kernel, noise=noise, budget=budget, forgetting=forgetting, engine=engine).start(X.shape[1], 1)
    predicted, kept = [], []
    for x, value in zip(X, y, strict=True):
        predicted.append(model.run(x[None], np.array([[value]]))[0])
        kept.append(model.dump()["born"])
    mean, variance = (np.array([getattr(one, name).item() for one in predicted]) for name in ("mean", "std"))
    variance **= 2
    expected, exact = retold(kernel, noise, readable(model).recipe.belief.jitter, X, y, kept, **how)
    m, kxx = min(len(X), budget), kernel.diag(X).max()
    rounding = 32.0 * 1e-15 * m * (1.0 + kxx / noise)
    scale = np.sqrt(m * (1.0 + kxx / noise)) * np.abs(y).max()
    assert np.abs(mean - expected.astype(float)).max() <= rounding * scale
    assert np.abs(variance - exact.astype(float)).max() <= rounding * exact.max()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "model",
    [
        lambda **all: ogp.KRLST(**all),
        lambda **all: ogp.KRLST(forgetting=0.9, **all),
        lambda **all: ogp.KRLST(forgetting=ogp.recipes.forgetting.UncertaintyInjection(0.9), **all),
        lambda **all: ogp.kafbox.FBKRLS(**all),
    ],
    ids=["keep", "back to prior", "injection", "data"],
)
@settings(max_examples=60, deadline=None)
@given(stream=streams(), budget=st.integers(1, 60))
def test_never_non_finite(engine, model, stream, budget):
    kernel, noise, X, y = stream
    # the learner itself: with targets that contradict each other a model would say that so little noise is absurd
    tracker = model(kernel=kernel, noise=noise, budget=budget, engine=engine).start(X.shape[1], 1)
    for _ in range(3):  # and all of it again
        predicted, _ = tracker.run(X, y[:, None])
        assert np.isfinite(predicted.mean).all()
        assert np.isfinite(predicted.std).all()
        assert (predicted.std**2 >= noise * (1.0 - 1e-12)).all()
    readable_tracker = readable(tracker)
    state, belief = readable_tracker.state, readable_tracker.recipe.belief
    K, L = kernel(state.C), state.square("L")
    extra = belief.jitter * K.diagonal() if hasattr(belief, "jitter") else np.full(len(K), noise)
    assert np.abs(L @ L.T - K - np.diag(extra)).max(initial=0.0) <= 1e-13 * K.diagonal().max(initial=1.0)
