"""LMS, NLMS, ProbLMS, Kalman and Persistence against what they approximate or are, and where the numbers are hard."""

from __future__ import annotations

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.learner import run_by_row

engines = pytest.mark.parametrize("engine", ["native", "python"])

FILTERS = {
    "LMS": ogp.LMS(step=0.04),
    "NLMS": ogp.NLMS(step=0.7, epsilon=1e-3),
    "ProbLMS": ogp.kafbox.ProbLMS(noise=0.09, drift=1e-3, prior=2.0, forgetting=0.99),
    "Kalman": ogp.Kalman(noise=0.09, drift=1e-2, prior=2.0),
    "Kalman-still": ogp.Kalman(noise=0.09, drift=0.0, prior=2.0),
}
every = pytest.mark.parametrize("name", FILTERS)


def rows(n=80, d=3, outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, 0.5 + X @ rng.normal(size=(d, outputs)) + 0.3 * rng.normal(size=(n, outputs))


def with_ones(X):
    return np.column_stack([X, np.ones(len(X))])


@every
@pytest.mark.parametrize("intercept", [True, False])
def test_the_compiled_loop_is_the_readable_one(name, intercept):
    X, Y = rows(150, outputs=2)
    X[::7, 1] = 0.0
    X[5] = 0.0
    traces, models = [], []
    for engine in ("native", "python"):
        models.append(FILTERS[name].unfitted().set_params(engine=engine, intercept=intercept))
        traces.append(ogp.run(models[-1], X, Y))
    np.testing.assert_allclose(traces[0].mean, traces[1].mean, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(traces[0].std, traces[1].std, rtol=1e-11)
    np.testing.assert_allclose(
        models[0].predict(X, return_std=True), models[1].predict(X, return_std=True), rtol=1e-11, atol=1e-12
    )


@every
@engines
def test_running_is_predicting_and_learning_row_by_row(name, engine):
    X, Y = rows(40, outputs=2)
    model = FILTERS[name].unfitted().set_params(engine=engine)
    whole, parts = model.start(3, 2), model.start(3, 2)
    predicted, _ = whole.run(X, Y)
    expected, _ = run_by_row(parts, X, Y)
    np.testing.assert_allclose(predicted.mean, expected.mean, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(predicted.std, expected.std, rtol=1e-12)


def test_lms_and_nlms_are_their_equations():
    X, Y = rows()
    for model, gain in (
        (ogp.LMS(step=0.04), lambda x: 0.04),
        (ogp.NLMS(step=0.7, epsilon=0.1), lambda x: 0.7 / (0.1 + x @ x)),
    ):
        trace, w = ogp.run(model, X, Y[:, 0]), np.zeros(4)
        for i, (x, y) in enumerate(zip(with_ones(X), Y[:, 0], strict=True)):
            assert trace.mean[i] == pytest.approx(w @ x, abs=1e-12)
            assert trace.std[i] ** 2 == pytest.approx(1.0 / gain(x), rel=1e-12)
            w = w + gain(x) * (y - w @ x) * x
        np.testing.assert_allclose(np.append(model.coef_, model.intercept_), w, atol=1e-12)


def test_lms_is_klms_with_the_kernel_of_products():
    """The reading that its variance comes from: the covariance stays the prior's, and 1 / step is that of y."""
    X, Y = rows()
    mine = ogp.run(ogp.LMS(step=0.04, intercept=False), X, Y[:, 0])
    klms = ogp.run(ogp.KLMS(ogp.kernels.Linear(1.0), step=0.04, engine="python"), X, Y[:, 0])
    np.testing.assert_allclose(mine.mean, klms.mean, atol=1e-12)
    np.testing.assert_allclose(mine.std, klms.std, rtol=1e-12)


def test_prob_lms_takes_the_mean_variance_of_the_exact_step():
    """From N(w, v I), the exact posterior of one step has the mean that it keeps, and its mean variance."""
    X, Y = rows()
    keep, drift, noise, m = 0.95, 1e-2, 0.09, 4
    learner = ogp.kafbox.ProbLMS(noise=noise, drift=drift, prior=2.0, forgetting=keep).start(3, 1)
    for x, y, row in zip(with_ones(X), Y[:, 0], X, strict=True):
        before = learner.dump()
        w, P = keep * before["w"][:, 0], (keep**2 * before["v"][0] + drift) * np.eye(m)
        predicted, _ = learner.run(row[None, :], np.array([[y]]))
        s = x @ P @ x + noise
        assert predicted.mean[0, 0] == pytest.approx(w @ x, abs=1e-12)
        assert predicted.std[0, 0] ** 2 == pytest.approx(s, rel=1e-12)
        exact = P - np.outer(P @ x, P @ x) / s
        after = learner.dump()
        np.testing.assert_allclose(after["w"][:, 0], w + P @ x * (y - w @ x) / s, rtol=1e-10, atol=1e-12)
        assert after["v"][0] == pytest.approx(np.trace(exact) / m, rel=1e-12)


def test_kalman_is_batch_regression_on_weights_that_walk():
    """cov(y_t, y_u) = x_t'x_u (prior + drift min(t, u)) + noise [t = u], rows counted from one."""
    X, Y = rows(60, outputs=2)
    prior, drift, noise = 2.0, 0.02, 0.09
    trace = ogp.run(ogp.Kalman(noise=noise, drift=drift, prior=prior), X, Y)
    Z, t = with_ones(X), np.arange(1.0, 61.0)
    K = Z @ Z.T * (prior + drift * np.minimum.outer(t, t))
    for i in (0, 1, 2, 5, 59):
        gain = np.linalg.solve(K[:i, :i] + noise * np.eye(i), K[:i, i])
        np.testing.assert_allclose(trace.mean[i], gain @ Y[:i], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(trace.std[i] ** 2, K[i, i] - gain @ K[:i, i] + noise, rtol=1e-10)


def test_kalman_without_drift_is_least_squares():
    X, Y = rows(outputs=2)
    still = ogp.run(ogp.Kalman(noise=0.09, drift=0.0, prior=4.0), X, Y)
    rls = ogp.run(ogp.LinearRLS(noise=0.09, prior=4.0), X, Y)
    np.testing.assert_allclose(still.mean, rls.mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(still.std, rls.std, rtol=1e-11)


def test_kalman_uses_the_noise_and_the_drift_that_it_is_given():
    """KAFBOX overwrites both with 0.01 and 0.1."""
    std = [ogp.Kalman(noise=n, drift=q, prior=1.0, intercept=False).predict_one([1.0], True)[1] ** 2
           for n, q in ((0.01, 0.1), (0.5, 0.1), (0.01, 3.0))]  # fmt: skip
    np.testing.assert_allclose(std, [1.11, 1.6, 4.01], rtol=1e-12)


@engines
@pytest.mark.parametrize("drift", [0.0, 1e-3])
def test_kalman_keeps_its_digits_where_a_covariance_would_lose_them(engine, drift):
    """With inputs of 1e9 and a noise of 1e-12, x P x is 1e30 times the noise: its differences have no digits left."""
    n = 2000 if engine == "native" else 200
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    X = np.column_stack([1e9 * x, x, x + 1e-6 * rng.normal(size=n)])
    y = 2.0 * x
    model = ogp.Kalman(noise=1e-12, drift=drift, intercept=False, engine=engine)
    trace = ogp.run(model, X, y)
    assert np.isfinite(trace.mean).all()
    assert (trace.std >= 1e-6).all()
    assert np.abs(y - trace.mean)[50:].max() < 1e-3


def test_many_steps():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=len(X))
    for model, far in (
        (ogp.LMS(step=1e-3), 0.02),
        (ogp.NLMS(step=1e-3), 0.02),
        (ogp.kafbox.ProbLMS(noise=0.01, drift=0.0), 0.01),
        (ogp.kafbox.ProbLMS(noise=0.01, drift=1e-8), 0.02),
        (ogp.Kalman(noise=0.01, drift=1e-8), 0.02),
    ):
        np.testing.assert_allclose(model.fit(X, y).coef_, [1.0, -2.0, 0.5], atol=far)
        assert model.predict_one(np.zeros(3), return_std=True)[1] > 0.0


@engines
def test_lms_outside_its_stable_range_says_so(engine):
    X, Y = rows(400)
    with pytest.raises(ogp.BreakdownError, match=r"Lower the step \(LMS is stable below 2 / x'x\)"):
        ogp.run(ogp.LMS(step=2.0, engine=engine), X, Y)


@engines
def test_nlms_is_stable_whatever_the_scale(engine):
    X, Y = rows(400)
    X[:200] *= 1e8
    X[50] = 0.0
    trace = ogp.run(ogp.NLMS(step=1.9, intercept=False, engine=engine), X, Y)
    assert np.isfinite(trace.mean).all()
    assert np.isfinite(trace.std).all()


def test_persistence_predicts_the_value_before():
    Y = np.random.default_rng(0).normal(size=(300, 2)).cumsum(axis=0) + 50.0
    trace = ogp.run(ogp.Persistence(), np.zeros((300, 1)), Y)
    np.testing.assert_array_equal(trace.mean, np.vstack([np.zeros(2), Y[:-1]]))
    np.testing.assert_allclose(trace.std[100:], 1.0, atol=0.35)  # not the 50 of the first row
    keep, squares, count = 0.99, np.ones(2), 1.0
    for t in range(2, 300):
        squares, count = keep * squares + (Y[t - 1] - Y[t - 2]) ** 2, keep * count + 1.0
        np.testing.assert_allclose(trace.std[t], np.sqrt(squares / count), rtol=1e-10)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ogp.LMS(step=0.0), "step must be positive"),
        (ogp.NLMS(step=-1.0), "step must be positive"),
        (ogp.NLMS(epsilon=0.0), "epsilon must be positive"),
        (ogp.kafbox.ProbLMS(noise=0.0), "noise must be positive"),
        (ogp.kafbox.ProbLMS(drift=-1.0), "drift must be zero or more"),
        (ogp.kafbox.ProbLMS(forgetting=1.1), "forgetting must be greater than 0 and at most 1"),
        (ogp.Kalman(prior=0.0), "prior must be positive"),
        (ogp.Kalman(drift=np.inf), "drift must be zero or more, and finite"),
        (ogp.Kalman(intercept="yes"), "intercept must be True or False"),
        (ogp.LMS(engine="steam"), "engine must be one of"),
    ],
)
def test_bad_parameters_are_named(model, message):
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(*rows(5))


@pytest.mark.parametrize(
    ("model", "name", "spoil", "message"),
    [
        (ogp.Kalman(), "U", lambda U: np.tril(U) + 0.1, "upper triangular"),
        (ogp.Kalman(), "U", lambda U: -U, "upper triangular"),
        (ogp.kafbox.ProbLMS(), "v", lambda v: -v, "v must be at least 0, got -"),
        (ogp.LMS(), "w", lambda w: w[:-1], "w must be float64 of shape"),
        (ogp.Persistence(), "changes.last", lambda y: y + np.nan, "not finite"),
        (ogp.Persistence(), "changes.resolution", lambda finest: -finest, "resolution must be at least 0, got -"),
    ],
)
def test_forged_contents_are_refused(model, name, spoil, message):
    contents = model.fit(*rows(20)).dump()
    contents["learned"][name] = spoil(contents["learned"][name])
    with pytest.raises(ValueError, match=message):
        type(model)().load(contents)
