"""Interruptions of long native calls: heard at once, with the rows before them learned, and no bit moved."""

import signal
import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from processes import report, run_script

import onlinegp as ogp
from onlinegp.engine import available
from onlinegp.kernels import RBF, Matern32

pytestmark = [
    pytest.mark.skipif(not available(), reason="the compiled engine was not built"),
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that sends signals"),
]

MODELS = {
    "KLMS": ogp.KLMS(RBF(0.7), step=0.4),  # in tiles
    "BetaKLMS": ogp.BetaKLMS(Matern32([0.7, 1.0, 1.0, 1.0]), noise=0.05),  # four rows ahead
    "QKLMS": ogp.QKLMS(RBF(0.7), radius=1.5),
    "KRLST": ogp.KRLST(RBF(0.7), budget=120, forgetting=0.999),
    "OnlineGP": ogp.OnlineGP(RBF(0.7), noise=0.1),
}
N = 2_000_000  # rows: minutes of work for each of them
EVENTS = 300_000


class Interruption(Exception):
    pass


@contextmanager
def signals(handler, *, after: float, every: float = 0.0):
    """Run the handler in the main thread so many seconds from now."""
    assert threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, after, every)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def interrupt(call, *, after: float, begun=lambda: True) -> Interruption:
    """Interrupt a call after so many seconds, and once it has begun."""

    def stop(*_):
        if begun():
            signal.setitimer(signal.ITIMER_REAL, 0)  # once is enough
            raise Interruption

    with pytest.raises(Interruption) as caught, signals(stop, after=after, every=0.02):
        call()
    return caught.value


def interrupt_learning(model, call: str, X, y, *, after: float = 0.02) -> None:
    seen = model.n_samples_seen_
    interrupt(lambda: getattr(model, call)(X[seen:], y[seen:]), after=after, begun=lambda: model.n_samples_seen_ > seen)


def new(model):
    return type(model)(**model.get_params(deep=False)).set_params(engine="native")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 4))
    return X, np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(N)


def assert_learned(model, count: int, X, y) -> None:
    """The model is as `count` rows leave it, to the last bit."""
    assert model.n_samples_seen_ == count
    twin = new(model).fit(X[:count], y[:count])
    np.testing.assert_array_equal(model.centers_, twin.centers_)
    np.testing.assert_array_equal(model.alpha_, twin.alpha_)
    for one, two in zip(model.predict(X[-20:], return_std=True), twin.predict(X[-20:], return_std=True), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("call", ["partial_fit", "run"])
@pytest.mark.parametrize("name", MODELS)
def test_learning_stops_between_two_rows(name, call, data):
    X, y = data
    model = new(MODELS[name]).fit(X[:3], y[:3])
    interrupt_learning(model, call, X, y)
    seen = model.n_samples_seen_
    assert 3 < seen < N
    assert_learned(model, seen, X, y)
    model.partial_fit(X[seen : seen + 37], y[seen : seen + 37]).learn_one(X[seen + 37], y[seen + 37])
    assert_learned(model, seen + 38, X, y)


@pytest.mark.parametrize("name", ["KLMS", "KRLST", "OnlineGP"])
@pytest.mark.parametrize("threads", ["1", "3"])
def test_predicting_stops(name, threads, data, monkeypatch):
    monkeypatch.setenv("ONLINEGP_THREADS", threads)
    X, y = data
    model = new(MODELS[name]).fit(X[:1500], y[:1500])
    returned = False

    def predict():
        nonlocal returned
        model.predict(X)
        returned = True  # a signal that the call did not hear raises here
        pytest.fail("it went on to its end")

    interrupt(predict, after=0.3)
    assert not returned
    assert_learned(model, 1500, X, y)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("call", ["learn", "run"])
def test_a_fleet_stops_between_two_events(threads, call, data):
    X, y = data[0][:EVENTS], data[1][:EVENTS]
    keys = np.random.default_rng(1).integers(0, 60, EVENTS)
    fleet = ogp.Fleet(new(MODELS["KRLST"]), threads=threads).learn(range(60), X[:60], y[:60])
    error = interrupt(lambda: getattr(fleet, call)(keys, X, y), after=0.05, begun=lambda: fleet[0].n_samples_seen_ > 1)
    learned = error.learned
    assert learned.dtype == bool
    assert 0 < learned.sum() < EVENTS
    assert f"{learned.sum()} of {EVENTS} events were learned" in error.__notes__[0]
    for key in fleet:
        mine = keys == key
        rows = np.concatenate([[key], np.flatnonzero(mine & learned)])
        assert fleet[key].n_samples_seen_ == len(rows)
        assert not np.any(np.diff(learned[mine].astype(int)) > 0)  # the first of its events, and no other
        if key % 10 == 0:
            np.testing.assert_array_equal(fleet[key].alpha_, new(MODELS["KRLST"]).fit(X[rows], y[rows]).alpha_)


def test_a_fleet_stops_predicting(data):
    X = data[0]
    fleet = ogp.Fleet(ogp.OnlineGP(RBF(0.7), noise=0.1, engine="native"), threads=2)
    fleet.learn(np.arange(1000) % 2, X[:1000], data[1][:1000])
    keys = (np.arange(EVENTS) % 2).tolist()
    interrupt(lambda: fleet.predict(keys, X[:EVENTS]), after=0.3)
    assert fleet[0].n_samples_seen_ == 500


@pytest.mark.parametrize("name", MODELS)
def test_signals_that_raise_nothing_move_no_bit(name, data):
    n, heard = 1000, []
    while not any(0 < seen < n for seen in heard):  # within the call
        n, heard = 2 * n, []
        X, y = data[0][:n], data[1][:n]
        model = new(MODELS[name]).fit(X[:1], y[:1])
        with signals(lambda *_, model=model, heard=heard: heard.append(model.n_samples_seen_), after=0.01, every=0.01):
            trace = ogp.run(model, X[1:], y[1:])
    undisturbed = ogp.run(new(MODELS[name]).fit(X[:1], y[:1]), X[1:], y[1:])
    np.testing.assert_array_equal(trace.mean, undisturbed.mean)
    np.testing.assert_array_equal(trace.std, undisturbed.std)
    assert_learned(model, n, X, y)


def test_a_search_for_neighbors_stops(data, monkeypatch):
    X, y = data
    model = ogp.LocalGP(RBF(0.7), forgetting=0.999, engine="native").fit(X[:3], y[:3])
    interrupt_learning(model, "run", X, y)
    seen = model.n_samples_seen_
    assert 3 < seen < N
    stored = model.dump()["learned"]
    np.testing.assert_array_equal(stored["X"], X[:seen])
    np.testing.assert_array_equal(stored["Y"][:, 0], y[:seen])
    for threads in ("1", "3"):
        monkeypatch.setenv("ONLINEGP_THREADS", threads)
        interrupt(lambda: model.predict(X), after=0.2)
    assert model.partial_fit(X[seen : seen + 9], y[seen : seen + 9]).n_samples_seen_ == seen + 9


def test_a_handler_may_read_the_model_but_not_change_it(data):
    X, y = data
    model, found = new(MODELS["KLMS"]).fit(X[:3], y[:3]), []

    def look(*_):
        if found or model.n_samples_seen_ == 3:  # before or after the call
            return
        found.append((model.n_samples_seen_, model.centers_, model.to_bytes(), model.predict(X[:5])))
        model.learn_one(X[0], y[0])

    with pytest.raises(RuntimeError, match="Set a flag in the handler"), signals(look, after=0.05, every=0.05):
        model.partial_fit(X[3:], y[3:])
    (seen, centers, _file, mean), *more = found
    assert not more
    assert_learned(model, seen, X, y)
    np.testing.assert_array_equal(centers, X[:seen])
    np.testing.assert_array_equal(mean, model.predict(X[:5]))


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT to itself")
def test_control_c():
    run_script(
        """
        X, y = stream(1_000_000)
        model = ogp.KLMS(RBF(0.7)).fit(X[:3], y[:3])
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            model.partial_fit(X, y)
            raise AssertionError("went on to the end")
        except KeyboardInterrupt:
            assert 3 < model.n_samples_seen_ < len(X)
        """
    )


def test_waiting_for_another_thread_is_interrupted_too(data):
    X, y = data
    model = new(MODELS["KRLST"]).fit(X[:3], y[:3])
    ended = threading.Event()

    def other():
        for i in range(3, 200_000, 50_000):
            model.partial_fit(X[i : i + 50_000], y[i : i + 50_000])
        ended.set()

    worker = threading.Thread(target=other)
    worker.start()
    while model.n_samples_seen_ < 100:
        pass

    def wait():
        while not ended.is_set():
            _ = model.centers_
        pytest.fail("it was not interrupted")

    interrupt(wait, after=0.05)
    worker.join()
    assert model.n_samples_seen_ == 200_003


@pytest.mark.attack
def test_two_hundred_interruptions(data):
    """Random models, calls and moments, with a fixed seed; every one leaves a model that goes on bit for bit."""
    X, y = data
    rng = np.random.default_rng(2026)
    heard = 0
    for i in range(200):
        name = list(MODELS)[i % len(MODELS)]
        start = int(rng.integers(1, 40))
        model = new(MODELS[name]).fit(X[:start], y[:start])
        for _ in range(int(rng.integers(1, 4))):
            call = str(rng.choice(["partial_fit", "run"]))
            interrupt_learning(model, call, X, y, after=float(rng.uniform(0.001, 0.15)))
            heard += 1
        assert_learned(model, model.n_samples_seen_, X, y)
    report(f"{heard} interruptions of 200 models: none lost a row or moved a bit")
