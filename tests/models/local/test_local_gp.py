"""LocalGP: the exact GP on the nearest rows, on both engines."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import onlinegp as ogp
from models import stream
from onlinegp.batch.gp import GPRegression
from onlinegp.batch.search_space import suggested
from onlinegp.batch.tuning import Tracked
from onlinegp.kernels import RBF, Constant, Linear, Matern12, Matern32, Matern52, Periodic
from onlinegp.models.local.distance import Distance, squared

ENGINES = ["python", "native"]
engines = pytest.mark.parametrize("engine", ENGINES)


def exact(kernel, noise, forgetting, X, y, questions):
    """The batch GP over inputs and time, asked of the row after the last."""
    if forgetting == 1.0:
        return GPRegression(kernel, noise=noise).fit(X, y).predict(questions, return_std=True)
    in_time = Tracked(kernel, Matern12(-2.0 / np.log(forgetting)))
    rows = np.column_stack([X, np.arange(len(X))])
    asked = np.column_stack([questions, np.full(len(questions), len(X))])
    return GPRegression(in_time, noise=noise).fit(rows, y).predict(asked, return_std=True)


@engines
@pytest.mark.parametrize("forgetting", [1.0, 0.97])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("kernel", [RBF(0.8), 2.0 * Matern52([0.7, 1.1]) + 0.1 * Linear()], ids=["RBF", "sum"])
def test_with_enough_neighbors_it_is_the_exact_gp(engine, forgetting, outputs, kernel):
    X, y = stream(70)
    y = y if outputs == 1 else np.outer(y, [1.0, -2.0, 0.5]) + np.arange(3)
    questions, _ = stream(30, seed=1)
    model = ogp.LocalGP(kernel, noise=0.02, neighbors=70, forgetting=forgetting, engine=engine).fit(X, y)
    mean, std = exact(kernel, 0.02, forgetting, X, y, questions)
    np.testing.assert_allclose(model.predict(questions, return_std=True), (mean, std), rtol=1e-9, atol=1e-10)


@engines
def test_it_is_the_exact_gp_on_the_rows_nearest(engine):
    X, y = stream(200)
    kernel = Matern32([0.5, 2.0])
    model = ogp.LocalGP(kernel, noise=0.01, neighbors=12, engine=engine).fit(X, y)
    questions, _ = stream(20, seed=1)
    for question in questions:
        near = np.argsort((((X - question) / [0.5, 2.0]) ** 2).sum(axis=1))[:12]
        expected = GPRegression(kernel, noise=0.01).fit(X[near], y[near]).predict(question[None], return_std=True)
        found = model.predict_one(question, return_std=True)
        np.testing.assert_allclose(found, np.ravel(expected), rtol=1e-9, atol=1e-12)


@engines
def test_old_rows_count_as_far_ones(engine):
    """With an RBF, near is what has a large covariance, time included."""
    X, y = stream(200)
    lam = 0.98
    model = ogp.LocalGP(RBF(0.7), noise=0.01, neighbors=10, forgetting=lam, engine=engine).fit(X, y)
    ages = np.arange(200, 0, -1)
    for question in stream(20, seed=1)[0]:
        k = RBF(0.7).row(X, question) * lam ** (ages / 2)
        near = np.sort(np.argsort(-k)[:10])
        in_time = Tracked(RBF(0.7), Matern12(-2.0 / np.log(lam)))
        batch = GPRegression(in_time, noise=0.01).fit(np.column_stack([X, np.arange(200)])[near], y[near])
        expected = batch.predict(np.append(question, 200.0)[None], return_std=True)
        np.testing.assert_allclose(model.predict_one(question, return_std=True), np.ravel(expected), rtol=1e-9)


@engines
@pytest.mark.parametrize("forgetting", [1.0, 0.95])
def test_a_limited_store_is_the_last_rows_alone(engine, forgetting):
    X, y = stream(170)
    limited = ogp.LocalGP(RBF(0.7), store=60, neighbors=9, forgetting=forgetting, engine=engine).fit(X, y)
    alone = ogp.LocalGP(RBF(0.7), neighbors=9, forgetting=forgetting, engine=engine).fit(X[-60:], y[-60:])
    assert (limited.size_, limited.n_samples_seen_) == (60, 170)
    questions, _ = stream(40, seed=1)
    np.testing.assert_allclose(
        limited.predict(questions, return_std=True), alone.predict(questions, return_std=True), rtol=1e-9, atol=1e-12
    )


@engines
def test_of_rows_at_the_same_distance_the_newer_counts(engine):
    X = np.array([[-1.0], [1.0], [-1.0], [1.0], [2.0]])
    y = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    model = ogp.LocalGP(RBF(1.0), noise=1e-9, neighbors=1, engine=engine).fit(X, y)
    k = np.exp(-0.5)
    assert model.predict_one([0.0]) == pytest.approx(4.0 * k, rel=1e-8)
    assert model.learn_one([-1.0], 7.0).predict_one([0.0]) == pytest.approx(7.0 * k, rel=1e-8)


@engines
@pytest.mark.parametrize("noise", [1e-14, 1e-12, 1e-6])
@pytest.mark.parametrize("spread", [0.0, 1e-12, 1e-6])
def test_copies_and_near_copies_never_break_it(engine, noise, spread):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.uniform(-1, 1, (12, 2)), 10, axis=0)
    X += spread * rng.standard_normal(X.shape)
    y = np.sin(3 * X[:, 0])
    model = ogp.LocalGP(RBF(1.0), noise=noise, neighbors=64, engine=engine)
    trace = ogp.run(model, X, y)
    assert np.isfinite(trace.mean).all()
    assert (trace.std >= np.sqrt(noise) * (1 - 1e-12)).all()
    np.testing.assert_allclose(model.predict(X), y, atol=1e-3)


@engines
def test_a_copy_adds_nothing_where_there_is_no_noise(engine):
    X, y = stream(20)
    plain = ogp.LocalGP(Matern12(1.0), noise=1e-15, neighbors=40, engine=engine).fit(X, y)
    twice = ogp.LocalGP(Matern12(1.0), noise=1e-15, neighbors=40, engine=engine).fit(X, y)
    twice.partial_fit(X, y)
    questions, _ = stream(20, seed=1)
    np.testing.assert_allclose(twice.predict(questions, True), plain.predict(questions, True), rtol=1e-6, atol=1e-9)


def test_distances_are_those_of_the_kernels_own_parts():
    X, _ = stream(30)
    x = X[:1]

    def r2(kernel):
        distance = Distance.of(kernel, 2)
        return squared(distance.places(X), distance.places(x)[0])

    def of_kernel(kernel):  # k = exp(-r2 / 2)
        return -2.0 * np.log(kernel(X, x)[:, 0])

    close = {"rtol": 1e-7, "atol": 1e-12}
    np.testing.assert_allclose(r2(RBF([0.5, 2.0])), of_kernel(RBF([0.5, 2.0])), **close)
    np.testing.assert_allclose(r2(Periodic(0.7, 3.0)), of_kernel(Periodic(0.7, 3.0)), **close)
    product = RBF(0.5) * Periodic(0.7, 3.0) * RBF([1.0, 3.0])
    np.testing.assert_allclose(r2(product), of_kernel(product), **close)
    np.testing.assert_allclose(r2(Matern52(0.5) + 3.0 * Linear() + Constant(2.0)), of_kernel(RBF(0.5)), **close)
    np.testing.assert_allclose(r2(Linear([3.0, 0.1])), ((X - x) ** 2).sum(axis=1), **close)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ogp.LocalGP("rbf"), "kernel must be a kernel"),
        (ogp.LocalGP(RBF([1.0, 2.0, 3.0])), "3 value.*2 column"),
        (ogp.LocalGP(noise=0.0), "noise must be positive"),
        (ogp.LocalGP(neighbors=0), "neighbors must be at least 1, got 0"),
        (ogp.LocalGP(neighbors=2.5), "neighbors must be a whole number"),
        (ogp.LocalGP(store=0), "store must be at least 1, got 0. Use store=None"),
        (ogp.LocalGP(forgetting=0.0), "forgetting must be greater than 0"),
        (ogp.LocalGP(forgetting=1.01), "at most 1"),
        (ogp.LocalGP(engine="steam"), "engine must be one of"),
    ],
)
def test_bad_parameters_are_named(model, message):
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(*stream(5))


BAD = {
    "too few rows": {"seen": 41},
    "too many rows": {"seen": 39},
    "no count": {"seen": -1},
    "more than can be counted": {"seen": 2**60},
    "a fraction": {"seen": 40.5},
    "a value that is not finite": {"X": np.full((40, 2), np.inf)},
    "another width": {"X": np.zeros((40, 3))},
    "another number of outputs": {"Y": np.zeros((40, 2))},
    "another type": {"Y": np.zeros((40, 1), dtype=np.float32)},
    "no array": {"Y": 1.0},
    "an unknown entry": {"Z": 1},
}


@engines
@pytest.mark.parametrize("what", BAD)
def test_stored_rows_that_do_not_fit_are_refused(engine, what):
    model = ogp.LocalGP(RBF(0.7), engine=engine).fit(*stream(40))
    before = model.predict_one([0.1, 0.2])
    contents = model.dump()
    with pytest.raises(ValueError, match=r"stored rows|seen|X|Y|Z"):
        model.load(contents | {"learned": contents["learned"] | BAD[what]})
    assert model.predict_one([0.1, 0.2]) == before


def test_what_was_tuned_fits_in():
    kernel = 2.0 * RBF([1.0, 2.0])
    found = suggested(ogp.LocalGP, kernel, 0.1, budget=100)
    assert found == {"kernel": kernel, "noise": 0.1, "store": 100_000}


def test_it_learns_a_function_that_no_budget_covers():
    rng = np.random.default_rng(0)
    X = rng.uniform(-4, 4, (4000, 3))
    y = np.sin(3 * X[:, 0]) * np.cos(2 * X[:, 1]) + X[:, 2] + 0.05 * rng.standard_normal(4000)
    kernel = 2.0 * RBF([0.5, 0.7, 3.0])
    local = ogp.run(ogp.LocalGP(kernel, noise=0.0025), X, y)
    tracked = ogp.run(ogp.KRLST(kernel, noise=0.0025, budget=64), X, y)
    late = slice(3000, None)
    assert np.mean((local.mean - y)[late] ** 2) < 0.1 * np.mean((tracked.mean - y)[late] ** 2)
    assert 0.93 < np.mean(np.abs(local.mean - y)[late] < 1.96 * local.std[late]) < 0.97


def test_a_fleet_of_them():
    X, y = stream(120)
    keys = np.arange(120) % 3
    fleet = ogp.Fleet(ogp.LocalGP(RBF(0.7), neighbors=10))
    fleet.learn(keys.tolist(), X, y)
    for key in range(3):
        alone = ogp.LocalGP(RBF(0.7), neighbors=10).fit(X[keys == key], y[keys == key])
        mean = fleet.predict([key] * 5, X[:5])
        np.testing.assert_array_equal(mean, alone.predict(X[:5]))


def test_from_the_command_line(tmp_path):
    X, y = stream(150)
    data = tmp_path / "data.csv"
    np.savetxt(data, np.column_stack([X, y]), delimiter=",", header="a,b,y", comments="")
    out = tmp_path / "out.csv"
    command = [sys.executable, "-m", "onlinegp", "run", data, "--model", "localgp(neighbors=20)", "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(out.read_text().splitlines()) > 100
    shown = subprocess.run([sys.executable, "-m", "onlinegp", "models", "localgp"], capture_output=True, text=True)
    assert "neighbors" in shown.stdout
