"""Signals and threads on compiled leaves that are not recipes: no row is lost or learned in part, and no bit moves."""

import threading

import numpy as np
import pytest
from test_signals import N, interrupt_learning, pytestmark  # noqa: F401  (the marks of that module hold here, too)
from test_threads import at_once, quick_switches  # noqa: F401  (a fixture that all tests here use)

import onlinegp as ogp
from onlinegp.kernels import RBF, Matern32, RandomWalk
from transactions import assert_equal, contents

MODELS = {
    "ResidualGP": lambda: ogp.ResidualGP(RBF(1.0), noise=0.01, neighbors=16, store=500),
    "ResidualGP, linear": lambda: ogp.ResidualGP(RBF(1.0), noise=0.01, neighbors=16, refits=2, linear=True),
    "TemporalGP": lambda: ogp.TemporalGP(Matern32(3.0) + RandomWalk(), noise=0.1),
    "SmoothedLags": lambda: ogp.SmoothedLags((24,)),
    "Detector": lambda: ogp.Detector(ogp.SmoothedLags((24,))),
    "Detector of Auto's parts": lambda: ogp.Detector(ogp.Scaled(ogp.Calibrated(ogp.KRLST(RBF(1.0), budget=30)))),
}
each = pytest.mark.parametrize("name", MODELS)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 2))
    return X, np.sin(np.arange(N) * (2 * np.pi / 24)) + 0.3 * X[:, 0] + 0.1 * rng.standard_normal(N)


def assert_same(model, other) -> None:
    assert model.n_samples_seen_ == other.n_samples_seen_
    assert_equal(contents(model), contents(other))


@pytest.mark.parametrize("call", ["partial_fit", "run"])
@each
def test_learning_stops_between_two_rows(name, call, data):
    X, y = data
    model = MODELS[name]().fit(X[:3], y[:3])
    interrupt_learning(model, call, X, y)
    seen = model.n_samples_seen_
    assert 3 < seen < N
    assert_same(model, MODELS[name]().fit(X[:seen], y[:seen]))
    model.partial_fit(X[seen : seen + 37], y[seen : seen + 37]).learn_one(X[seen + 37], y[seen + 37])
    assert_same(model, MODELS[name]().fit(X[: seen + 38], y[: seen + 38]))


@each
def test_readers_leave_a_model_that_learns_as_it_is(name, data):
    """One thread learns, in all ways. Seven others predict, copy and save meanwhile."""
    X, y = (values[:600] for values in data)
    model, done = MODELS[name]().fit(X[:3], y[:3]), threading.Event()

    def learn():
        try:
            for i in range(3, 600, 3):
                model.learn_one(X[i], y[i])
                model.partial_fit(X[i + 1 : i + 2], y[i + 1 : i + 2])
                model.run(X[i + 2 : i + 3], y[i + 2 : i + 3])
        finally:
            done.set()

    def read(thread: int):
        while not done.is_set():
            if thread % 3 == 0:
                assert np.isfinite(model.predict_one(X[thread]))
            elif thread % 3 == 1:
                mean, std = model.predict(X[:20], return_std=True)
                assert np.isfinite(mean).all()
                assert (std > 0).all()
            else:
                copied = ogp.from_bytes(model.to_bytes())
                assert np.isfinite(copied.predict(X[:2])).all()

    at_once(learn, *(lambda thread=thread: read(thread) for thread in range(7)))
    assert_same(model, MODELS[name]().fit(X, y))
