"""ResidualGP: its corners, its descent, its residuals; on both engines."""

from __future__ import annotations

import numpy as np
import pytest

import onlinegp as ogp
from marks import slow
from models import stream
from onlinegp.kernels import RBF, Constant, Linear, Matern12, Matern32, Matern52
from onlinegp.models.local.residual import solved
from onlinegp.recipes.pruning import Oldest

ENGINES = ["python", "native"]
engines = pytest.mark.parametrize("engine", ENGINES)
SUM = 2.0 * Matern52([0.7, 1.1]) + 0.1 * Linear()
kernels = pytest.mark.parametrize("kernel", [RBF(0.8), SUM], ids=["RBF", "sum"])


def several(y: np.ndarray) -> np.ndarray:
    return np.outer(y, [1.0, -2.0, 0.5]) + np.arange(3)


def gram(kernel, X: np.ndarray, noise: float, forgetting: float = 1.0) -> np.ndarray:
    """The covariance of y at the rows, K + noise I, whose rows are one apart in time."""
    t = np.arange(len(X))
    return kernel(X) * forgetting ** (0.5 * np.abs(t[:, None] - t)) + noise * np.eye(len(X))


# The corners


@engines
@pytest.mark.parametrize("store", [None, 40])
def test_without_neighbors_it_is_klms(engine, store):
    X, y = stream(200)
    klms = ogp.KLMS(RBF(0.8), step=1.0 / 1.05, pruning=None if store is None else Oldest(store), engine=engine)
    model = ogp.ResidualGP(RBF(0.8), noise=0.05, neighbors=0, refits=0, store=store, power="fixed", engine=engine)
    expected, found = ogp.run(klms, X, y), ogp.run(model, X, y)
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-12)
    np.testing.assert_allclose(found.std, expected.std, rtol=1e-12)


@engines
@kernels
@pytest.mark.parametrize("refits", [0, 1, 3])
def test_with_all_rows_as_neighbors_it_is_the_exact_gp(engine, kernel, refits):
    X, y = stream(120)
    for target in (y, several(y)):
        expected = ogp.run(ogp.OnlineGP(kernel, noise=0.02, engine=engine), X, target)
        model = ogp.ResidualGP(kernel, noise=0.02, neighbors=1000, refits=refits, power="fixed", engine=engine)
        found = ogp.run(model, X, target)
        np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.std, expected.std, rtol=1e-9)


@engines
@pytest.mark.parametrize("refits", [0, 2])
@pytest.mark.parametrize("settings", [{"forgetting": 0.97}, {"store": 30}, {"forgetting": 0.97, "store": 30}], ids=str)
def test_that_holds_for_rows_that_fade_and_leave(engine, refits, settings):
    """LocalGP with all rows as neighbors is the exact GP on the rows that are kept, in time too."""
    X, y = stream(120)
    expected = ogp.run(ogp.LocalGP(RBF(0.8), noise=0.02, neighbors=1000, engine=engine, **settings), X, y)
    model = ogp.ResidualGP(
        RBF(0.8), noise=0.02, neighbors=1000, refits=refits, power="fixed", engine=engine, **settings
    )
    found = ogp.run(model, X, y)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.std, expected.std, rtol=1e-9)


@engines
def test_the_linear_part_is_that_of_the_exact_gp(engine):
    """With all rows as neighbors, least squares on the errors is a linear kernel: the posterior of its weights."""
    X, y = stream(120)
    y = several(y + X @ [2.0, -1.0] + 3.0)
    exact = ogp.OnlineGP(RBF(0.8) + Linear() + Constant(1.0), noise=0.02, engine=engine)
    model = ogp.ResidualGP(RBF(0.8), noise=0.02, neighbors=1000, linear=True, power="fixed", engine=engine)
    expected, found = ogp.run(exact, X, y), ogp.run(model, X, y)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.std, expected.std, rtol=1e-8)


@engines
@kernels
@pytest.mark.parametrize("settings", [{}, {"forgetting": 0.98, "store": 40}], ids=str)
def test_its_other_mean_is_that_of_localgp(engine, kernel, settings):
    X, y = stream(150)
    options = {"noise": 0.02, "neighbors": 12, "engine": engine, **settings}
    local, residual = ogp.LocalGP(kernel, **options), ogp.ResidualGP(kernel, **options)
    expected = ogp.run(local, X, y)
    learner = residual.start(2, 1)
    _, found, size = learner.run_both(X, y[:, None])
    np.testing.assert_allclose(found.mean[:, 0], expected.mean, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found.std[:, 0], expected.std, rtol=1e-12)
    np.testing.assert_array_equal(size, expected.size)
    asked, _ = stream(20, seed=1)
    np.testing.assert_allclose(learner.predict_both(asked)[1].mean[:, 0], local.predict(asked), rtol=1e-12, atol=1e-13)


# Descent


def test_the_objective_never_rises():
    """1/2 a'(K + noise I)a - y'a over 200 random streams: kernels, noises, neighbors, refits and copies of rows."""
    rng = np.random.default_rng(0)
    for i in range(200):
        n, d = 40, int(rng.integers(1, 4))
        kernel = [RBF, Matern12, Matern32, Matern52][i % 4](rng.uniform(0.2, 3.0)) * rng.uniform(0.1, 5.0)
        noise = 10.0 ** rng.uniform(-6, 0)
        forgetting = 1.0 if i % 3 else 0.95
        X = rng.normal(size=(n, d))
        X[rng.random(n) < 0.2] = X[0]
        y = rng.normal(size=n)
        model = ogp.ResidualGP(
            kernel,
            noise=noise,
            neighbors=int(rng.integers(0, 12)),
            refits=int(rng.integers(0, 4)),
            forgetting=forgetting,
        )
        K, before = gram(kernel, X, noise, forgetting), 0.0
        for t in range(n):
            model.learn_one(X[t], y[t])
            a = model.alpha_
            value = 0.5 * a @ K[: t + 1, : t + 1] @ a - y[: t + 1] @ a
            assert value <= before + 1e-12 * (1.0 + abs(before))
            before = value


@engines
def test_a_step_solves_for_the_new_row_and_the_neighbors_that_fit_worst(engine):
    X, y = stream(60)
    model = ogp.ResidualGP(RBF(0.8), noise=0.02, neighbors=10, refits=2, engine=engine).fit(X[:-1], y[:-1])
    before, r = model.alpha_, model.residuals_
    near = np.argsort(((X[:-1] - X[-1]) ** 2).sum(axis=1))[:10]
    chosen = sorted(near[np.argsort(-np.abs(r[near]))[:2]])
    model.learn_one(X[-1], y[-1])
    changed = np.flatnonzero(model.alpha_[:-1] != before)
    assert changed.tolist() == chosen
    np.testing.assert_allclose(model.residuals_[[*chosen, -1]], 0.0, atol=1e-14)


# Residuals as they are kept


@engines
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("settings", [{}, {"store": 50, "refits": 3}, {"store": 50, "forgetting": 0.98}], ids=str)
def test_kept_residuals_are_those_of_the_weights(engine, settings, linear):
    X, y = stream(300)
    y = several(y)
    model = ogp.ResidualGP(SUM, noise=0.01, neighbors=9, linear=linear, engine=engine, **settings).fit(X, y)
    n = len(model.alpha_)
    fresh = y[-n:] - gram(SUM, X[-n:], 0.01, settings.get("forgetting", 1.0)) @ model.alpha_
    np.testing.assert_allclose(model.residuals_, fresh, atol=1e-12)


def drift(rows: int, noise: float) -> float:
    """The largest difference of kept and fresh residuals after so many rows, in long double; y is of size one."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (rows, 2))
    y = np.sin(2.0 * X[:, 0]) * X[:, 1] + np.sqrt(noise) * rng.standard_normal(rows)
    model = ogp.ResidualGP(RBF(0.7), noise=noise, neighbors=16).fit(X, y)
    alpha, kept = model.alpha_.astype(np.longdouble), model.residuals_
    worst = 0.0
    for i in rng.choice(rows, 200, replace=False):
        k = np.exp(-0.5 * (((X - X[i]).astype(np.longdouble) / 0.7) ** 2).sum(axis=1))
        worst = max(worst, abs(float(y[i] - k @ alpha - noise * alpha[i]) - kept[i]))
    return worst


@pytest.mark.parametrize("noise", [1e-2, 1e-5, 1e-8])
def test_roundings_do_not_add_up(noise):
    assert drift(4_000, noise) < 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("noise", [1e-2, 1e-8])
def test_roundings_do_not_add_up_over_a_hundred_thousand_rows(noise):
    assert drift(100_000, noise) < 1e-9


@pytest.mark.parametrize(("rows", "store", "refits"), [(20_000, 200, 1), (20_000, 100, 4), slow(1_000_000, 2_000, 1)])
def test_a_long_stream_with_a_store_stays_finite(rows, store, refits):
    """Weights that balance each other must not be left alone when one of their rows leaves."""
    rng = np.random.default_rng(0)
    model = ogp.ResidualGP(RBF(0.5), noise=1e-4, neighbors=8, store=store, refits=refits, linear=True)
    for _ in range(rows // 10_000):
        X = rng.uniform(-1.0, 1.0, (10_000, 2))
        y = np.sin(3.0 * X[:, 0]) + X[:, 1]
        trace = ogp.run(model, X, y)
    assert np.isfinite(trace.mean).all()
    assert np.isfinite(trace.std).all()
    assert np.abs(model.alpha_).max() < 1e6
    assert np.mean((trace.mean - y) ** 2) < 1e-3


# The scale of the variance


@engines
def test_the_power_is_the_mean_of_squared_errors_in_units_of_the_variance(engine):
    X, y = stream(100)
    options = {"noise": 0.01, "neighbors": 9, "engine": engine}
    fixed = ogp.run(ogp.ResidualGP(RBF(0.8), power="fixed", **options), X, y)
    learned = ogp.run(ogp.ResidualGP(RBF(0.8), **options), X, y)
    np.testing.assert_array_equal(learned.mean, fixed.mean)
    ratios = ((y - fixed.mean) / fixed.std) ** 2
    power = (1.0 + np.cumsum(ratios)) / np.arange(2, len(y) + 2)  # the prior counts as one row
    np.testing.assert_allclose((learned.std / fixed.std)[1:] ** 2, power[:-1], rtol=1e-10)


def test_the_variance_is_never_below_the_exact_one():
    X, y = stream(150)
    exact = ogp.run(ogp.OnlineGP(RBF(0.8), noise=0.01), X, y)
    model = ogp.run(ogp.ResidualGP(RBF(0.8), noise=0.01, neighbors=9, power="fixed"), X, y)
    assert np.all(model.std >= exact.std * (1.0 - 1e-12))


# As a model


def test_it_predicts_better_than_neighbors_alone():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.5, 1.5, (1500, 5))
    y = np.sin(X[:, 0] + X[:, 1]) * np.cos(X[:, 2] - X[:, 3]) + 0.3 * X[:, 4]
    kernel = RBF(1.5)
    errors = {
        name: np.mean((ogp.run(model, X, y).mean - y) ** 2)
        for name, model in {
            "KLMS": ogp.KLMS(kernel, step=1.0 / 1.001),
            "LocalGP": ogp.LocalGP(kernel, noise=1e-3, neighbors=32),
            "0": ogp.ResidualGP(kernel, noise=1e-3, neighbors=32, refits=0),
            "1": ogp.ResidualGP(kernel, noise=1e-3, neighbors=32),
            "exact": ogp.OnlineGP(kernel, noise=1e-3),
        }.items()
    }
    assert errors["exact"] < errors["1"] < 0.95 * errors["0"] < errors["0"] < 0.9 * errors["LocalGP"]
    assert errors["LocalGP"] < 0.5 * errors["KLMS"]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ogp.ResidualGP(neighbors=-1), "neighbors must be at least 0, got -1. 64 is a good start"),
        (ogp.ResidualGP(refits=-1), "refits must be at least 0"),
        (ogp.ResidualGP(refits=1.5), "refits must be a whole number"),
        (ogp.ResidualGP(noise=0.0), "noise must be positive"),
        (ogp.ResidualGP(power="none"), "power must be one of 'learned', 'fixed'"),
        (ogp.ResidualGP(linear=1), "linear must be True or False, got 1"),
        (ogp.ResidualGP(store=0), "store must be at least 1"),
        (ogp.ResidualGP(forgetting=1.5), "at most 1"),
        (ogp.ResidualGP(engine="steam"), "engine must be one of"),
    ],
)
def test_wrong_parameters_are_refused(model, message):
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(*stream(10))


@engines
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": np.zeros((39, 1))}, "alpha must be float64 of shape"),
        ({"r": np.full((40, 1), np.nan)}, "r holds a value that is not finite"),
        ({"power": 0.0}, "power must be positive"),
        ({"evidence": 0.5}, "evidence must be at least 1"),
        ({"seen": 39}, "39 stored rows after learning 39 rows, got 40"),
        ({"odd": 1}, "unknown entry 'odd'"),
    ],
)
def test_contents_that_do_not_fit_are_refused(engine, linear, change, message):
    model = ogp.ResidualGP(RBF(0.7), linear=linear, engine=engine).fit(*stream(40))
    contents, learner = model.learner.dump(), model.start(2, 1)
    learner.load(contents)
    with pytest.raises(ValueError, match=message):
        learner.load(contents | change)
    np.testing.assert_array_equal(learner.dump()["alpha"], contents["alpha"])  # as before


@engines
def test_the_linear_part_of_contents_must_fit(engine):
    plain, linear = ogp.ResidualGP(engine=engine), ogp.ResidualGP(linear=True, engine=engine)
    contents = linear.fit(*stream(40)).learner.dump()
    with pytest.raises(ValueError, match=r"unknown entry 'line\.R'"):
        plain.start(2, 1).load(contents)
    with pytest.raises(ValueError, match="must equal seen, 40, got 39"):
        linear.start(2, 1).load(contents | {"line.seen": 39})


@engines
def test_a_file_goes_on_bit_for_bit_wherever_the_store_has_wrapped(engine):
    X, y = stream(180)
    for rows in (20, 40, 41, 75, 80, 97):
        model = ogp.ResidualGP(RBF(0.7), neighbors=9, store=40, linear=True, engine=engine).fit(X[:rows], y[:rows])
        again = ogp.from_bytes(model.to_bytes())
        one, two = ogp.run(model, X[rows:], y[rows:]), ogp.run(again, X[rows:], y[rows:])
        np.testing.assert_array_equal(one.mean, two.mean)
        np.testing.assert_array_equal(one.std, two.std)


def test_a_row_that_others_make_redundant_gets_no_weight():
    A = np.array([[1.0, 1.0, 0.3], [1.0, 1.0, 0.3], [0.3, 0.3, 1.0]])
    R = np.array([[1.0], [2.0], [3.0]])
    delta = solved(A, R)
    assert delta[1] == 0.0
    np.testing.assert_allclose(A[[0, 2]][:, [0, 2]] @ delta[[0, 2]], R[[0, 2]])
