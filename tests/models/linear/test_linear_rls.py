"""LinearRLS against batch Bayesian regression, and where the numbers are hard."""

from __future__ import annotations

import copy
import signal
import threading
import tracemalloc

import numpy as np
import pytest

import onlinegp as ogp
from forging import forged_file

engines = pytest.mark.parametrize("engine", ["native", "python"])


def rows(n=80, d=3, outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, 2.0 + X @ rng.normal(size=(d, outputs)) + 0.3 * rng.normal(size=(n, outputs))


def posterior(X, Y, noise, prior, share=None, rows=None):
    """The batch posterior of the weights, mean and covariance: each row has its share, and the prior too."""
    X = np.column_stack([X, np.ones(len(X))])
    rows = np.ones(len(X)) if rows is None else rows
    share = np.ones(X.shape[1]) if share is None else share
    information = np.diag(share) / prior + (X.T * rows) @ X / noise
    cov = np.linalg.inv(information)
    return cov @ (X.T * rows) @ Y / noise, cov


def test_it_is_batch_bayesian_regression_at_every_row():
    X, Y = rows(outputs=2)
    trace = ogp.run(ogp.LinearRLS(noise=0.09, prior=4.0), X, Y)
    for i in (0, 1, 2, 5, 40, 79):
        w, cov = posterior(X[:i], Y[:i], 0.09, 4.0)
        x = np.append(X[i], 1.0)
        np.testing.assert_allclose(trace.mean[i], x @ w, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(trace.std[i], np.sqrt(x @ cov @ x + 0.09), rtol=1e-10)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9, 80])
def test_forgetting_is_batch_regression_with_shares(n):
    """Row i of n has the share lambda^(n - 1 - i), and the prior of a weight lambda^(rows since it was renewed)."""
    lam, d = 0.9, 4
    X, Y = rows()
    model = ogp.LinearRLS(noise=0.09, prior=4.0, forgetting=lam).fit(X[:n], Y[:n])
    last = [max((t for t in range(n) if t % d == i), default=-1) for i in range(d)]
    share = lam ** np.array([n if t < 0 else n - 1 - t for t in last])
    w, cov = posterior(X[:n], Y[:n], 0.09, 4.0, share, lam ** np.arange(n - 1, -1, -1))
    Z = np.column_stack([X, np.ones(len(X))])
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, Z @ w, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(std[:, 0], np.sqrt(np.einsum("ij,jk,ik->i", Z, cov, Z) + 0.09), rtol=1e-10)


@pytest.mark.parametrize("forgetting", [1.0, 0.97])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_compiled_loop_is_the_readable_one(forgetting, intercept):
    X, Y = rows(200, outputs=2)
    X[::7, 1] = 0.0
    traces, models = [], []
    for engine in ("native", "python"):
        models.append(ogp.LinearRLS(forgetting=forgetting, intercept=intercept, engine=engine))
        traces.append(ogp.run(models[-1], X, Y))
    np.testing.assert_allclose(traces[0].mean, traces[1].mean, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(traces[0].std, traces[1].std, rtol=1e-12)
    np.testing.assert_allclose(models[0].predict(X), models[1].predict(X), rtol=1e-11, atol=1e-12)


@engines
def test_weights_return_to_the_prior_where_nothing_comes(engine):
    n = 20_000 if engine == "native" else 2000
    X, Y = rows(200)
    model = ogp.LinearRLS(noise=0.09, prior=4.0, forgetting=0.99, intercept=False, engine=engine).fit(X, Y)
    silent = np.zeros((n, 3))
    silent[:, 0] = np.random.default_rng(1).normal(size=n)
    trace = ogp.run(model, silent, silent[:, :1])
    mean, std = model.predict(np.eye(3), return_std=True)
    assert mean[0, 0] == pytest.approx(1.0, abs=0.01)
    np.testing.assert_allclose(mean[1:], 0.0, atol=1e-3)
    np.testing.assert_allclose(std[1:, 0], np.sqrt(4.09), rtol=0.02)  # the prior's share is 0.99^2 at least
    assert np.isfinite(trace.std).all()


def test_collinear_and_badly_scaled_inputs():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    X = np.column_stack([x, x, x + 1e-9 * rng.normal(size=2000), 1e8 * rng.normal(size=2000), np.full(2000, 1e-8)])
    y = 3.0 * x + 1e-8 * X[:, 3]
    model = ogp.LinearRLS(noise=1e-8, prior=100.0)
    trace = ogp.run(model, X, y)
    assert np.abs(y - trace.mean)[100:].max() < 1e-4
    assert (trace.std >= 1e-4).all()
    assert model.coef_[:3].sum() == pytest.approx(3.0, abs=1e-5)


def test_a_million_steps():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_000_000, 4))
    X[:, 3] = X[:, 0] + 1e-6 * X[:, 3]
    y = X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * rng.normal(size=len(X))
    model = ogp.LinearRLS(noise=0.01)
    model.fit(X, y)
    w, cov = posterior(X, y[:, None], 0.01, 1.0)
    np.testing.assert_allclose(model.coef_[1:3], w[1:3, 0], rtol=1e-9)
    np.testing.assert_allclose(model.predict(X[:50]), np.column_stack([X[:50], np.ones(50)]) @ w[:, 0], atol=1e-8)
    inverse = np.linalg.inv(model.dump()["learned"]["R"])
    np.testing.assert_allclose(inverse @ inverse.T, cov, rtol=1e-4, atol=1e-12)
    again = ogp.LinearRLS(noise=0.01, forgetting=0.999).fit(X, y)
    np.testing.assert_allclose(again.coef_[1:3], [-2.0, 0.5], atol=0.02)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": 0.0}, "noise must be positive"),
        ({"prior": -1.0}, "prior must be positive"),
        ({"forgetting": 1.1}, "forgetting must be greater than 0 and at most 1"),
        ({"intercept": "yes"}, "intercept must be True or False"),
        ({"engine": "steam"}, "engine must be one of"),
    ],
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ogp.LinearRLS(**options).fit(*rows(5))


def test_a_forged_triangle_is_refused():
    model = ogp.LinearRLS().fit(*rows(20))
    for spoil in (lambda R: R.__setitem__((0, 0), 0.0), lambda R: R.__setitem__((2, 0), 1.0)):
        contents = model.dump()
        spoil(contents["learned"]["R"])
        with pytest.raises(ValueError, match="upper triangular"):
            ogp.LinearRLS().load(contents)


def test_merging_is_learning_both_and_can_be_taken_back():
    X, Y = rows(300, outputs=2)
    one, other, both = (ogp.LinearRLS(noise=0.09, prior=4.0) for _ in range(3))
    one.fit(X[:100], Y[:100])
    other.fit(X[100:], Y[100:])
    both.fit(X, Y)
    before = one.predict(X, return_std=True)
    merged = one.merge(other)
    assert merged.n_samples_seen_ == 300
    np.testing.assert_allclose(
        merged.predict(X, return_std=True), both.predict(X, return_std=True), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(merged.coef_, both.coef_, rtol=1e-9)
    np.testing.assert_allclose(merged.without(other).predict(X, return_std=True), before, rtol=1e-9, atol=1e-9)
    more = merged.partial_fit(X[100:], Y[100:])  # it goes on
    np.testing.assert_allclose(more.predict(X), both.predict(X), rtol=1e-9, atol=1e-9)


def rows_of_any_size(seed):
    """Two sets of rows whose columns and targets differ in size, some far from zero, and a noise and prior."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 7)), rng.integers(1, [60, 300])
    sizes = 10.0 ** rng.uniform(-3, 3, (2, d)) if seed % 2 else 10.0 ** rng.uniform(-3, 3, (2, 1)) * np.ones(d)
    far = 10.0 ** rng.uniform(0, 3, (2, d)) if seed % 3 == 0 else np.zeros((2, d))
    X = [size * (rng.standard_normal((k, d)) + offset) for k, size, offset in zip(n, sizes, far, strict=True)]
    Y = [10.0 ** rng.uniform(-3, 3) * rng.standard_normal(k) for k in n]
    return X, Y, {"noise": 10.0 ** rng.uniform(-3, 1), "prior": 10.0 ** rng.uniform(-2, 3)}


@engines
def test_merging_keeps_nine_digits_and_taking_back_keeps_six_or_is_refused(engine):
    refused = 0
    seeds = 60 if engine == "native" else 12
    for seed in range(seeds):
        X, Y, options = rows_of_any_size(seed)
        one, other = (ogp.LinearRLS(**options, engine=engine).fit(x, y) for x, y in zip(X, Y, strict=True))
        both = ogp.LinearRLS(**options, engine=engine).fit(np.vstack(X), np.concatenate(Y))

        def assert_same(model, expected, digits, X=X):
            mean, std = model.predict(np.vstack(X), True)
            right, deviation = expected.predict(np.vstack(X), True)
            unit = deviation * (1 + np.linalg.norm(expected.dump()["learned"]["z"]))
            assert np.abs(std / deviation - 1).max() < digits
            assert (np.abs(mean - right) / unit).max() < digits

        merged = copy.deepcopy(one).merge(other)
        assert_same(merged, both, 1e-9)
        for model in (merged, both):
            before = model.to_bytes()
            try:
                model.without(other)
            except ValueError:
                assert model.to_bytes() == before
                refused += 1
            else:
                assert_same(model, one, 1e-6)
    assert seeds / 6 < refused < seeds


def test_columns_of_other_names_are_not_merged():
    pd = pytest.importorskip("pandas")
    X, y = rows(20)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = ogp.LinearRLS().fit(frame, y)
    before = model.to_bytes()
    for other in (frame[["b", "a", "c"]], frame.rename(columns={"c": "d"})):
        with pytest.raises(ValueError, match="must have learned the columns"):
            model.merge(ogp.LinearRLS().fit(other, y))
        with pytest.raises(ValueError, match="must have learned the columns"):
            ogp.RandomFeatureGP(pairs=3).fit(frame, y).without(ogp.RandomFeatureGP(pairs=3).fit(other, y))
    assert model.to_bytes() == before
    assert model.merge(ogp.LinearRLS().fit(frame, y)).merge(ogp.LinearRLS().fit(X, y)).n_samples_seen_ == 60


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (ogp.LinearRLS(), "has learned data"),
        (ogp.KRLST().fit(*rows(5)), "must be a LinearRLS"),
        (ogp.LinearRLS(noise=0.5).fit(*rows(5)), "the same noise"),
        (ogp.LinearRLS().fit(*rows(5, d=2)), "3 features and 1 outputs"),
        (ogp.LinearRLS().fit(*rows(90, seed=1)), "contains more information"),
    ],
)
def test_what_cannot_be_taken_back_is_refused_and_changes_nothing(other, message):
    model = ogp.LinearRLS().fit(*rows(20))
    before = model.predict(rows()[0])
    with pytest.raises((TypeError, ValueError), match=message):
        model.without(other)
    np.testing.assert_array_equal(model.predict(rows()[0]), before)
    fading = ogp.LinearRLS(forgetting=0.9).fit(*rows(20))
    with pytest.raises(ValueError, match=r"forgetting must be 1\.0"):
        fading.merge(ogp.LinearRLS(forgetting=0.9).fit(*rows(5)))


def test_an_interrupt_leaves_the_rows_before_it_learned():
    X, y = np.random.default_rng(0).normal(size=(4_000_000, 3)), np.zeros(4_000_000)
    model = ogp.LinearRLS(forgetting=0.99)
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X, y)
    timer.join()
    seen = model.n_samples_seen_
    assert 0 < seen < len(y)
    again = ogp.LinearRLS(forgetting=0.99).fit(X[:seen], y[:seen])
    np.testing.assert_array_equal(again.dump()["learned"]["R"], model.dump()["learned"]["R"])


def test_a_file_that_only_says_that_it_has_many_features_takes_no_memory():
    good = ogp.LinearRLS().fit(*rows(20)).to_bytes()
    data = forged_file(good, lambda header, contents: contents.update(features=9_999))
    tracemalloc.start()
    with pytest.raises(ogp.ModelFileError, match="R must be float64 of shape"):
        ogp.from_bytes(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6
