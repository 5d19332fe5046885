"""Fleets of models made of models: one compiled call for all events is each model on its own, to the bit."""

import copy
import signal

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.engine import available
from onlinegp.kernels import RBF
from onlinegp.models.combined.lagged_learner import LaggedLearner

pytestmark = pytest.mark.skipif(not available(), reason="the compiled engine was not built")


def krlst(budget=12):
    return ogp.KRLST(RBF(0.7), budget=budget)


MODELS = {
    "scaled": ogp.Scaled(ogp.Calibrated(krlst()), rows=20),
    "conformal": ogp.Conformal(ogp.HeavyTailed(ogp.Scaled(krlst(), rows=10))),
    "mixture": ogp.Scaled(ogp.Mixture([krlst(), ogp.LinearRLS(), ogp.Robust(ogp.KLMS(RBF(0.7)))]), rows=15),
    "lagged": ogp.Lagged(ogp.Calibrated(krlst()), lags=3),
    "growing": ogp.Scaled(ogp.Calibrated(ogp.QKLMS(RBF(0.3), radius=0.05)), rows=8),
    "stored": ogp.Scaled(ogp.LocalGP(RBF(0.7), neighbors=5), rows=8),
}
every = pytest.mark.parametrize("name", MODELS)


def events(n, outputs=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    y = 50 + np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(n)
    return X, y if outputs is None else y[:, None] * np.arange(1, outputs + 1)


def assert_same(trace, other, rows=slice(None)):
    for read in (
        lambda trace: trace.mean,
        lambda trace: trace.std,
        lambda trace: trace.size,
        lambda trace: trace.scored,
        lambda trace: trace.interval()[1],
    ):
        np.testing.assert_array_equal(read(trace)[rows], read(other))


def assert_same_contents(model, other):
    mine, theirs = model.dump()["learned"], other.dump()["learned"]
    assert mine.keys() == theirs.keys()
    for name, value in mine.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)


def are_trees(fleet):
    return fleet._home.members._is_tree


@every
@pytest.mark.parametrize("outputs", [None, 2])
def test_one_event_per_key_and_call_with_keys_at_all_stages(name, outputs):
    """A new key joins every third call. With lags, some keys are not compiled trees yet while others are."""
    fleet, alone, stages = ogp.Fleet(MODELS[name]), {}, set()
    for call in range(45):
        keys = list(range(1 + call // 3))
        X, y = events(len(keys), outputs, seed=call)
        trace = fleet.run(keys, X, y)
        stages.add((bool(are_trees(fleet).all()), bool(are_trees(fleet).any())))
        for i in keys:
            model = alone.setdefault(i, copy.deepcopy(MODELS[name]))
            assert_same(trace, model.run(X[[i]], y[[i]]), slice(i, i + 1))
    assert stages == ({(False, False), (False, True)} if name == "lagged" else {(True, True)})
    X, _ = events(len(keys), seed=99)
    np.testing.assert_array_equal(fleet.predict(keys, X), np.stack([alone[i].predict(X[[i]])[0] for i in keys]))
    for i in keys:
        assert_same_contents(fleet[i], alone[i])


@every
def test_threads_move_no_bit(name):
    """Neither does the way in which events are split into calls."""
    rng = np.random.default_rng(1)
    keys, (X, y) = (rng.integers(0, 20, 3000) ** 2 // 20).tolist(), events(3000)  # some have many more than others
    one, two = ogp.Fleet(MODELS[name], threads=1), ogp.Fleet(MODELS[name], threads=2)
    small = ogp.Fleet(MODELS[name], threads=1)
    assert_same(one.run(keys, X, y), two.run(keys, X, y))
    for i in range(0, 3000, 150):
        small.learn(keys[i : i + 150], X[i : i + 150], y[i : i + 150])
    X, y = events(3000, seed=2)
    traces = [fleet.run(keys, X, y) for fleet in (one, two, small)]
    assert all(are_trees(fleet)[: len(fleet)].all() for fleet in (one, two, small))
    assert_same(traces[0], traces[1])
    assert_same(traces[0], traces[2])
    for fleet in (two, small):
        np.testing.assert_array_equal(one.predict(keys, X), fleet.predict(keys, X))


def test_what_was_skipped_or_loaded_is_not_forgotten(tmp_path):
    model = MODELS["lagged"]
    fleet, alone, keys = ogp.Fleet(model), copy.deepcopy(model), ["a", "b"]
    X, y = events(40)
    for i in range(40):
        both = X[[i, i]]
        if i % 7 == 5:
            np.testing.assert_array_equal(fleet.skip(keys, both).mean[0], alone.skip(X[[i]]).mean[0])
        else:
            assert fleet.run(keys, both, y[[i, i]]).mean[1] == alone.run(X[[i]], y[[i]]).mean[0]
        if i == 20:
            fleet.save(tmp_path / "fleet.ogp")
            fleet = ogp.Fleet.load(tmp_path / "fleet.ogp")
        if i == 30:
            fleet["b"] = alone
    assert_same_contents(fleet["a"], alone)
    assert_same_contents(fleet["b"], alone)


@pytest.mark.parametrize("rows", [0, 3, 7, 30])
def test_a_key_without_a_python_object_is_read_when_it_is_asked_for(rows):
    """Keys are copied, skipped and replaced in the middle of learning their scales."""
    model, keys = MODELS["mixture"], ["a", "b"]
    fleet, alone, other = ogp.Fleet(model), copy.deepcopy(model), copy.deepcopy(model)
    for i in range(rows):
        fleet.learn(keys, *events(2, seed=i))
        alone.partial_fit(*(one[:1] for one in events(2, seed=i)))
        other.partial_fit(*(one[1:] for one in events(2, seed=i)))
    if rows:
        assert all(learner is None for learner in fleet._home.members._members)
        assert_same_contents(fleet["b"], other)
        assert_same_contents(fleet["a"], alone)
        fleet = ogp.Fleet.from_bytes(fleet.to_bytes())
        fleet.skip(["a"], events(1)[0])
    fleet["b"] = other.partial_fit(*events(4, seed=98))
    for i in range(40):
        X, y = events(2, seed=100 + i)
        assert_same(fleet.run(["a"], X[:1], y[:1]), alone.run(X[:1], y[:1]))
        assert_same(fleet.run(["b"], X[1:], y[1:]), other.run(X[1:], y[1:]))
    assert_same_contents(fleet["a"], alone)
    assert_same_contents(fleet["b"], other)


def test_a_store_that_holds_more_keys_than_memory(tmp_path):
    model, keys = MODELS["scaled"], list(range(12))
    memory = ogp.Fleet(model)
    with ogp.Fleet(model, store=tmp_path / "fleet.db", keep=5) as stored:
        for call in range(30):
            X, y = events(12, seed=call)
            assert_same(memory.run(keys, X, y), stored.run(keys, X, y))
    assert_same_contents(memory[3], ogp.Fleet.load(tmp_path / "fleet.db")[3])


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that sends signals")
@pytest.mark.parametrize("call", ["learn", "run"])
@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupted_call_learns_each_event_wholly_or_not(call, threads):
    model = MODELS["scaled"]
    n, keys = 400_000, list(range(50))
    fleet = ogp.Fleet(model, threads=threads).learn(20 * keys, *events(1000))
    X, y = events(n, seed=1)
    which = np.resize(keys, n)
    before, learned = signal.signal(signal.SIGALRM, signal.default_int_handler), np.ones(n, dtype=bool)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        getattr(fleet, call)(which.tolist(), X, y)
    except KeyboardInterrupt as error:  # rarely, it is lost in a callback of the garbage collector
        learned = getattr(error, "learned", np.zeros(n, dtype=bool))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    for key in keys[::7]:
        rows = np.flatnonzero(which == key)
        seen = fleet[key].n_samples_seen_ - 20
        np.testing.assert_array_equal(learned[rows], np.arange(len(rows)) < seen)
        start = np.arange(key, 1000, 50)
        first, second = events(1000), (X[rows[:seen]], y[rows[:seen]])
        alone = copy.deepcopy(model).partial_fit(first[0][start], first[1][start])
        assert_same_contents(fleet[key], alone.partial_fit(*second) if seen else alone)


def test_an_exception_says_what_was_learned_of_keys_at_all_stages(monkeypatch):
    model, run = MODELS["lagged"], LaggedLearner.run
    fleet = ogp.Fleet(model).learn(30 * ["a", "b"], *events(60)).learn(["c", "d"], *events(2))
    keys, (X, y) = ["a", "c", "b", "d", "c", "a", "d"], events(7, seed=1)

    def fails_the_second_time(self, X, Y, calls=[]):  # noqa: B006
        calls.append(self)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return run(self, X, Y)

    monkeypatch.setattr(LaggedLearner, "run", fails_the_second_time)
    with pytest.raises(KeyboardInterrupt) as caught:
        fleet.run(keys, X, y)
    monkeypatch.undo()
    assert "events were learned" in caught.value.__notes__[0]
    for key, before in {"a": 30, "b": 30, "c": 1, "d": 1}.items():
        learned = sum(one == key and done for one, done in zip(keys, caught.value.learned, strict=True))
        assert fleet[key].n_samples_seen_ == before + learned
    assert 0 < caught.value.learned.sum() < 7


class InterruptedAtItsEnd:
    """Members or a compiled fleet; after call number `last` of `learn` or `run`, a signal arrives."""

    def __init__(self, inside, last=1):
        self.inside, self.left = inside, last

    def __getattr__(self, name):
        method = getattr(self.inside, name)
        return self._interrupted(method) if name in ("learn", "run") else method

    def _interrupted(self, method):
        def call(*arguments):
            answer = method(*arguments)
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
            return answer

        return call


@pytest.mark.parametrize("call", ["learn", "run"])
@pytest.mark.parametrize("model", [MODELS["scaled"], krlst(), ogp.Scaled(ogp.KRLST(engine="python"))])
def test_a_signal_as_a_call_ends_leaves_all_events_learned(model, call):
    fleet, keys = ogp.Fleet(model).learn(["a", "b"], *events(2)), 6 * ["a", "b"]
    members = fleet._home.members
    for name in ("_core", "_trees"):
        if getattr(members, name, None) is not None:
            setattr(members, name, InterruptedAtItsEnd(getattr(members, name)))
    if "python" in repr(model):
        fleet._home.members = InterruptedAtItsEnd(members)
    with pytest.raises(KeyboardInterrupt) as caught:
        getattr(fleet, call)(keys, *events(12))
    assert caught.value.learned.all()
    assert caught.value.learned.shape == (12,)
    assert fleet["a"].n_samples_seen_ == 7
    members.forget()
    assert not members.learned(12).any()


def test_an_exception_says_what_was_learned_of_all_parts_of_a_call(tmp_path):
    """A store with fewer keys in memory than a call has."""
    with ogp.Fleet(MODELS["scaled"], store=tmp_path / "fleet.db", keep=2) as fleet:
        keys = list("abcdefab")
        fleet.learn(keys, *events(8))
        fleet._home.members = InterruptedAtItsEnd(fleet._home.members, last=2)
        with pytest.raises(KeyboardInterrupt) as caught:
            fleet.run(keys, *events(8, seed=1))
        assert caught.value.learned.tolist() == [key in "abcd" for key in keys]
        assert "6 of 8 events were learned" in caught.value.__notes__[0]
        assert [fleet[key].n_samples_seen_ for key in "abcdef"] == [4, 4, 2, 2, 1, 1]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that sends signals")
@pytest.mark.parametrize("model", [MODELS["scaled"], krlst()])
def test_a_signal_handler_that_learns_by_the_same_fleet_is_refused_and_loses_no_event(model):
    n, keys, refused, learned = 100_000, list(range(50)), [], []
    X, y = events(1000)

    def handler(*_):
        try:
            fleet.learn(keys, X[:50], y[:50])
            learned.append(50)  # before or after the compiled call
        except RuntimeError as error:
            refused.append(error)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        while not refused:
            n, learned = 2 * n, []
            fleet = ogp.Fleet(model, threads=1).learn(20 * keys, X, y)
            many = np.resize(np.arange(1000), n)
            signal.setitimer(signal.ITIMER_REAL, 0.02, 0.03)
            fleet.learn((many % 50).tolist(), X[many], y[many])
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not any(hasattr(error, "learned") for error in refused)
    assert sum(fleet[key].n_samples_seen_ for key in keys) == n + 1000 + sum(learned)
