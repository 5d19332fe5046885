"""Whatever interrupts or fails, all layers of a model have learned the same rows, and count the same rows."""

from __future__ import annotations

import copy
import signal
import sys

import numpy as np
import pytest

import onlinegp as ogp
import transactions
from models import EVERY, stream
from onlinegp import state
from onlinegp.learner import RowLearner
from onlinegp.models import undo
from transactions import CASES, Events, Injected, assert_equal, assert_prefix, contents, failing, fresh, layers

cases = pytest.mark.parametrize(("name", "engine"), CASES)
SERIES = ["Lagged", "Lagged-horizon", "Forecaster", "Scaled-Robust-Lagged", "Calibrated-Lagged"]


@pytest.fixture(autouse=True)
def _small_pieces():
    with transactions.small_pieces():
        yield


@pytest.mark.parametrize(("name", "engine"), [case for case in CASES if "Auto" not in case[0]])
def test_an_exception_at_any_moment(name, engine):
    transactions.by_events(name, engine, 1, seed=sum(map(ord, name)))  # which checks what it leaves


@pytest.mark.parametrize("name", [name for name in EVERY if "Auto" not in name])
def test_an_exception_in_a_fleet(name):
    """Each key has learned the first of its rows, as many as it counts, and nothing else."""
    X, y = stream(90)
    rng, model = np.random.default_rng(sum(map(ord, name))), fresh(name, transactions.ENGINES[0])
    keys = rng.choice(["a", "b", "c"], len(X)).tolist()
    first = ogp.Fleet(model).learn(keys[:50], X[:50], y[:50])
    for call in ("learn", "run"):
        fleet, events = copy.deepcopy(first), Events()
        events.during(lambda call=call: getattr(copy.deepcopy(first), call)(keys[50:], X[50:], y[50:]))
        Events(int(rng.integers(1, events.count + 1))).during(
            lambda call=call, fleet=fleet: getattr(fleet, call)(keys[50:], X[50:], y[50:])
        )
        for key in fleet:
            rows = np.flatnonzero(np.array(keys) == key)[: fleet[key].n_samples_seen_]
            assert_equal(contents(fleet[key]), contents(copy.deepcopy(model).partial_fit(X[rows], y[rows])))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that sends signals")
@pytest.mark.parametrize("name", [name for name in EVERY if "Auto" not in name])
def test_a_signal_at_any_moment(name):
    transactions.by_signals(name, transactions.ENGINES[0], 1, seed=sum(map(ord, name)))  # which checks what it leaves


@pytest.mark.parametrize("name", ["Lagged-Scaled-Robust", "Scaled-Mixture", "KAP", "L2S"])
def test_an_exception_in_every_layer(name):
    assert transactions.by_layers(name, "python", seed=1) > 0  # compiled, they have no layers


@pytest.mark.parametrize("name", ["Scaled", "Lagged-horizon", "Mixture-named", "KAP", "RandomFeatureGP", "Forecaster"])
def test_the_undo_may_be_interrupted_too(name, monkeypatch):
    X, y = stream(80)
    first, rng, raised = fresh(name, "python").partial_fit(X[:37], y[:37]), np.random.default_rng(0), 0
    restore = undo.Undo._restore
    for _ in range(6):
        model, twin, second = copy.deepcopy(first), copy.deepcopy(first), Events(int(rng.integers(1, 60)))

        def interrupted_once(self, second=second):
            if second.count == 0:
                sys.setprofile(second)
            restore(self)

        monkeypatch.setattr(undo.Undo, "_restore", interrupted_once)
        try:
            with failing(model.learner, "run", 1, after=True):
                model.run(X[37:60], y[37:60])
        except Injected:
            pass
        finally:
            sys.setprofile(None)
        raised += second.count == second.at
        seen = assert_prefix(model, twin, X, y)
        assert assert_prefix(model.partial_fit(X[seen:], y[seen:]), twin, X, y) == 80
    assert raised > 0


@pytest.mark.parametrize("name", SERIES)
def test_skipped_rows_and_the_end_of_a_series_are_taken_back_or_not(name):
    X, y = stream(90)
    first, rng = fresh(name, "python").partial_fit(X[:40], y[:40]), np.random.default_rng(1)
    changes = {
        "rows without y": lambda model: model.skip(X[40:50]),
        "rows with y": lambda model: model.skip(X[40:50], y[40:50]),
        "another series": lambda model: model.begin_series(),
    }
    for what, change in changes.items():
        before, after = contents(first), copy.deepcopy(first)
        events = Events()
        events.during(lambda change=change, after=after: change(after))
        for _ in range(4):
            model = copy.deepcopy(first)
            assert Events(int(rng.integers(1, events.count + 1))).during(
                lambda change=change, model=model: change(model)
            )
            now = contents(model)
            whole = all(np.array_equal(value, contents(after)[key]) for key, value in now.items())
            assert_equal(now, contents(after) if whole else before)
            again = copy.deepcopy(model)
            if not whole:
                change(again)
            again.partial_fit(X[50:70], y[50:70])  # which repeats the skipped rows when it fails
            with failing(layers(again.learner)[0], "learn", 1, after=True), pytest.raises(Injected):
                again.partial_fit(X[70:], y[70:])
            assert_equal(contents(again), contents(copy.deepcopy(after).partial_fit(X[50:70], y[50:70]))), what


@pytest.mark.parametrize("name", ["LinearRLS-python", "RandomFeatureGP", "RandomFeatureGP-python"])
def test_what_was_merged_is_taken_back_or_not(name):
    X, y = stream(90)
    model = fresh(name, "python") if name.endswith("python") else fresh(name, transactions.ENGINES[0])
    if "forgetting" in model.get_params():
        model.set_params(forgetting=1.0)
    first, other = copy.deepcopy(model).fit(X[:30], y[:30]), copy.deepcopy(model).fit(X[30:50], y[30:50])
    merged = copy.deepcopy(first).merge(other)
    for at in (1, 4, 8, 12, 16):
        one = copy.deepcopy(first)
        if Events(at).during(lambda one=one: one.merge(other)):
            assert contents(one)["seen"] in (30, 50)
            assert_equal(contents(one), contents(first if contents(one)["seen"] == 30 else merged))
    one = copy.deepcopy(first).merge(other)
    if getattr(one.learner, "atomic", False):  # nothing of it can fail after a row was learned
        return
    with failing(one.learner, "run", 1, after=True), pytest.raises(Injected):
        one.run(X[50:60], y[50:60])
    assert_equal(contents(one), contents(merged))


@cases
def test_what_was_dumped_and_loaded_stays_as_it_is(name, engine):
    X, y = stream(60)
    learner = fresh(name, engine).partial_fit(X[:40], y[:40]).learner
    dump = learner.dump()
    before = copy.deepcopy(dump)
    learner.learn(X[40:], y[40:, None])
    assert_equal(dump, before)
    learner.load(dump)
    learner.learn(X[40:], y[40:, None])
    assert_equal(dump, before)


@cases
def test_what_was_dumped_for_an_undo_stays_as_it_is(name, engine):
    X, y = stream(60)
    learner = fresh(name, engine).partial_fit(X[:40], y[:40]).learner
    before, unencoded = learner.dump(), state.dump_unencoded(learner)
    learner.learn(X[40:], y[40:, None])
    after = learner.dump()
    for _ in range(2):
        learner.load(unencoded)
        assert_equal(learner.dump(), before)
        learner.learn(X[40:], y[40:, None])
        assert_equal(learner.dump(), after)


def test_rows_are_repeated_as_they_were_learned():
    X, y = stream(60)
    model, twin = fresh("Scaled", "python"), fresh("Scaled", "python").fit(X[:12], y[:12])
    buffer, target = np.empty((4, 2)), np.empty(4)
    for i in (0, 4, 8):  # one buffer for all rows, which its owner fills again
        buffer[:], target[:] = X[i : i + 4], y[i : i + 4]
        model.partial_fit(buffer, target)
    buffer[:], target[:] = 0.0, 0.0
    with failing(model.learner, "learn", 1, after=True), pytest.raises(Injected):
        model.partial_fit(X[12:14], y[12:14])
    assert_equal(contents(model), contents(twin))


def test_dumps_are_rare():
    """A dump comes after 1,024 rows, or a quarter of those that are kept, however they are learned."""
    undo.MIN_DUMP_ROWS = 1024
    X, y = stream(9000)
    model = ogp.Scaled(ogp.LocalGP(neighbors=5)).fit(X[:1], y[:1])
    learner, dumps = model.learner, []
    dump = learner.dump
    learner.dump = lambda: dumps.append(learner.seen) or dump()
    for i in range(1, 3000):
        model.learn_one(X[i], y[i])
    few = [seen for seen in dumps if seen < 3000]
    assert len(few) < 30  # on a slow machine also after 0.1 s
    for i in range(3000, 9000, 100):
        model.partial_fit(X[i : i + 100], y[i : i + 100])
    assert len(dumps) < 60


class Halves(RowLearner):
    """A learner of two parts, written without a thought of interruptions."""

    def __init__(self, features: int, outputs: int) -> None:
        self.features, self.outputs, self.rows, self.total = features, outputs, 0, 0.0

    @property
    def seen(self) -> int:  # type: ignore[override]
        return self.rows

    def learn(self, X, Y):
        for y in Y:
            self.rows += 1
            if y[0] > 1e6:
                raise ArithmeticError("too large")
            self.total += float(y[0])

    def predict(self, X):
        mean = np.full((len(X), 1), self.total / max(1, self.rows))
        return ogp.predictions.Gaussian(mean, np.ones_like(mean))

    def dump(self):
        return {"rows": self.rows, "total": self.total}

    def load(self, contents):
        self.rows, self.total = contents["rows"], contents["total"]


class Own(ogp.OnlineRegressor):
    def start(self, features, outputs):
        return Halves(features, outputs)


def test_a_model_of_your_own_that_fails_in_the_middle_of_a_row():
    y = np.arange(40.0)
    model = Own().partial_fit(y[:10, None], y[:10])
    y[30] = 1e7
    with pytest.raises(ArithmeticError, match="too large"):
        model.partial_fit(y[10:, None], y[10:])
    assert model.n_samples_seen_ == 26  # two pieces of eight rows
    assert model.learner.total == y[:26].sum()
    for i in range(26, 30):
        model.learn_one(y[i : i + 1], y[i])
    with pytest.raises(ArithmeticError, match="too large"):
        model.learn_one(y[30:31], y[30])
    assert (model.n_samples_seen_, model.learner.total) == (30, y[:30].sum())


def test_the_largest_target_is_that_of_the_rows_learned():
    X, y = stream(60)
    y[:50] *= 1000.0
    model = fresh("Scaled", "python").fit(X[:1], y[:1])
    with failing(model.learner, "learn", 3, after=True), pytest.raises(Injected):
        model.partial_fit(X[1:], y[1:])
    seen = model.n_samples_seen_
    assert 1 < seen < 60
    assert model.dump()["largest"] == np.abs(y[:seen]).max()


def test_pieces_stay_long_enough_to_pay_for_a_call(monkeypatch):
    """A call whose fixed cost is large, as on a busy machine, is not made for ever fewer rows."""
    now = [0.0]

    class Slow:
        features, outputs, size, seen, rows = 1, 1, 0, 0, ()

        def learn(self, X, Y):
            now[0] += 0.6  # seconds, however many rows there are
            self.rows = (*self.rows, len(X))

        def dump(self):
            return {}

    monkeypatch.setattr(undo, "perf_counter", lambda: now[0])
    monkeypatch.setattr(undo, "FIRST", 1024)
    slow = Slow()
    undo.Undo(slow, Slow, None, 1024).learn(np.zeros((4000, 1)), np.zeros((4000, 1)))
    assert sum(slow.rows) == 4000
    assert min(slow.rows[:-1]) == undo.FEWEST  # the last is what was left
