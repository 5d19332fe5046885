"""A fleet with a store is the fleet in memory, to the last bit, whatever `keep` is, and survives a killed process."""

from __future__ import annotations

import copy
import pickle
import signal
import sqlite3
import subprocess
import sys
from datetime import datetime

import numpy as np
import pytest

import onlinegp as ogp
from fleets import events, states
from models import EVERY
from onlinegp.files.container import ModelFileError
from onlinegp.fleet import from_bytes, step
from onlinegp.kernels import RBF

MODEL = ogp.KRLST(RBF(0.7), noise=0.01, budget=12, forgetting=0.99)


def in_blocks(fleet: ogp.Fleet, keys, X, y, block: int) -> np.ndarray:
    """Return the means and standard deviations of all events."""
    traces = [fleet.run(keys[i : i + block], X[i : i + block], y[i : i + block]) for i in range(0, len(y), block)]
    return np.concatenate([np.stack([trace.mean, trace.std]) for trace in traces], axis=1)


@pytest.mark.parametrize("keep", [1, 3, 7, 100])
@pytest.mark.parametrize("engine", ["python", "auto"])
def test_memory_and_store_agree_to_the_last_bit(tmp_path, keep, engine):
    keys, X, y = events(300, 20)
    model = MODEL.unfitted().set_params(engine=engine)
    memory, stored = ogp.Fleet(model), ogp.Fleet(model, store=tmp_path / "fleet.db", keep=keep)
    one, two = (in_blocks(fleet, keys, X, y, 37) for fleet in (memory, stored))
    np.testing.assert_array_equal(one, two)
    assert len(stored) == len(memory) == 20
    assert states(stored) == states(memory)
    np.testing.assert_array_equal(stored.predict(keys, X, True), memory.predict(keys, X, True))
    assert states(ogp.Fleet.from_bytes(stored.to_bytes())) == states(memory)
    stored.close()


@pytest.mark.parametrize("call", ["pop", "append"])
@pytest.mark.parametrize("place", range(3))
def test_no_two_keys_share_a_model_after_an_interruption(tmp_path, call, place):
    """Wherever Ctrl-C comes while keys leave memory, each key goes on with its own model."""
    keys, X, y = [f"key{i % 9}" for i in range(90)], *events(90, 9)[1:]
    memory, count = ogp.Fleet(MODEL).learn(keys[:80], X[:80], y[:80]), -1
    with ogp.Fleet(MODEL, store=tmp_path / "fleet.db", keep=5) as stored:
        stored.learn(keys[:80], X[:80], y[:80])

        def interrupt(frame, event, argument):
            nonlocal count
            if frame.f_code.co_name == "_leave" and event == "c_return" and argument.__name__ == call:
                count += 1
                if count == place:
                    raise KeyboardInterrupt

        sys.setprofile(interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                stored.predict(keys, X)  # which changes nothing
        finally:
            sys.setprofile(None)
        for fleet in (memory, stored):
            fleet.learn(keys[80:], X[80:], y[80:])
        assert states(stored) == states(memory)


@pytest.mark.slow
@pytest.mark.parametrize("compact", [False, True])
def test_two_thousand_keys(tmp_path, compact):
    """2,000 keys of 50 events, budget 50: memory and a store that keeps 200 predict the same, and end the same."""
    rng = np.random.default_rng(0)
    X = 2.0 * rng.standard_normal((100_000, 4))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(100_000)
    keys = rng.permutation(np.repeat(np.arange(2000), 50)).tolist()
    model = ogp.KRLST(RBF(1.0), noise=0.01, budget=50)
    memory = ogp.Fleet(model, compact=compact)
    with ogp.Fleet(model, store=tmp_path / "fleet.db", keep=200, compact=compact) as stored:
        one, two = (in_blocks(fleet, keys, X, y, 5000) for fleet in (memory, stored))
        np.testing.assert_array_equal(one, two)
        assert states(stored) == states(memory)


@pytest.mark.parametrize("name", EVERY)
def test_every_model_can_leave_memory_and_come_back(tmp_path, name):
    keys, X, y = events(100, 3)
    memory = ogp.Fleet(EVERY[name])
    with ogp.Fleet(EVERY[name], store=tmp_path / "fleet.db", keep=2) as stored:
        one, two = (in_blocks(fleet, keys, X, y, 17) for fleet in (memory, stored))
    np.testing.assert_array_equal(one, two)
    with ogp.Fleet.load(tmp_path / "fleet.db", keep=3) as again:
        one, two = (in_blocks(fleet, keys, X, y, 50) for fleet in (memory, again))
        np.testing.assert_array_equal(one, two)


def test_its_states_are_those_of_step(tmp_path):
    keys, X, y = events(100, 5)
    with ogp.Fleet(MODEL, store=tmp_path / "fleet.db", keep=2) as fleet:
        fleet.learn(keys, X, y)
    with sqlite3.connect(tmp_path / "fleet.db") as db:
        found = dict(db.execute("SELECT key, state FROM models"))
    for key, state in found.items():
        mine = np.array(keys) == key
        assert step(MODEL, None, X[mine], y[mine])[0] == state
        assert from_bytes(MODEL, state).n_samples_seen_ == mine.sum()


def test_it_goes_on_where_it_was_committed(tmp_path):
    keys, X, y = events(300, 20)
    fleet = ogp.Fleet(MODEL, store=tmp_path / "fleet.db", keep=3)
    fleet.keep_beside(lambda: {"rows": 100})
    fleet.learn(keys[:100], X[:100], y[:100]).commit()
    fleet.learn(keys[100:], X[100:], y[100:]).close()  # not committed
    with ogp.Fleet(MODEL, store=tmp_path / "fleet.db", keep=5) as again:
        assert again.beside == {"rows": 100}
        assert states(again) == states(ogp.Fleet(MODEL).learn(keys[:100], X[:100], y[:100]))
        again.learn(keys[100:], X[100:], y[100:])
        with pytest.raises(OSError, match="another process"):
            ogp.Fleet(MODEL, store=tmp_path / "fleet.db")
    assert states(ogp.Fleet.load(tmp_path / "fleet.db")) == states(ogp.Fleet(MODEL).learn(keys, X, y))


@pytest.mark.parametrize("noted", [False, True])
def test_much_to_write_is_committed_by_itself_unless_there_is_a_note(tmp_path, monkeypatch, noted):
    monkeypatch.setattr("onlinegp.fleet.sqlite.MOST_WAITING", 0)
    keys, X, y = events(300, 20)
    fleet = ogp.Fleet(MODEL, store=tmp_path / "fleet.db", keep=3)
    if noted:
        fleet.keep_beside(lambda: {"rows": 100})
    fleet.learn(keys[:100], X[:100], y[:100]).commit()
    fleet.newer(keys[100:200], range(100, 200))  # of events that are not learned yet
    fleet.learn(keys[100:200], X[100:200], y[100:200])
    fleet.learn(keys[200:], X[200:], y[200:]).close()
    with ogp.Fleet.load(tmp_path / "fleet.db") as again:
        committed = 100 if noted else 200
        assert states(again) == states(ogp.Fleet(MODEL).learn(keys[:committed], X[:committed], y[:committed]))
        assert again.newer(keys[100:101], [100]).all() == noted


KILLED = """
import sys
import numpy as np
import onlinegp as ogp
from onlinegp.kernels import RBF
rng = np.random.default_rng(0)
fleet = ogp.Fleet(ogp.KRLST(RBF(0.7), noise=0.01, budget=12, forgetting=0.99), store=sys.argv[1], keep=5)
rows = fleet.beside or 0
fleet.keep_beside(lambda: rows)
while True:
    rng = np.random.default_rng(rows)
    keys, X = rng.integers(0, 30, 40).tolist(), rng.uniform(-1, 1, (40, 2))
    fleet.learn(keys, X, X.sum(axis=1))
    rows += 40
    fleet.commit()
    print(rows, flush=True)
"""


def test_a_killed_process_leaves_a_commit_point(tmp_path):
    path = tmp_path / "fleet.db"
    for kill in range(5):
        process = subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE)
        for _ in range(3 + 4 * kill):
            told = int(process.stdout.readline())
        process.kill()
        rest = process.communicate()[0].split()
        assert process.returncode == -signal.SIGKILL
        told = int(rest[-1]) if rest else told
    with ogp.Fleet.load(path) as fleet:
        rows = fleet.beside
        assert rows in (told, told + 40)  # the commit, and the word of it
        twin = ogp.Fleet(MODEL)
        for start in range(0, rows, 40):
            rng = np.random.default_rng(start)
            keys, X = rng.integers(0, 30, 40).tolist(), rng.uniform(-1, 1, (40, 2))
            twin.learn(keys, X, X.sum(axis=1))
        assert states(fleet) == states(twin)


def test_events_in_order(tmp_path):
    plain, stored = ogp.Fleet(MODEL), ogp.Fleet(MODEL, store=tmp_path / "fleet.db", keep=2)
    keys, order = ["a", "b", "a", "c", "b", "a"], [3, 1, 2, 5, 1, 4]
    for fleet in (plain, stored):
        fleet.learn(keys, np.zeros((6, 2)), np.ones(6))
        assert fleet.newer(keys, order).tolist() == [True, True, False, True, False, True]
    stored.commit()
    stored.close()
    with ogp.Fleet.load(tmp_path / "fleet.db", keep=1) as again:
        for fleet in (plain, again):
            assert fleet.newer(["a", "c", "b", "d"], [4, 6, 0, 0]).tolist() == [False, True, False, True]


def test_models_join_and_frames_are_read_by_name(tmp_path):
    pd = pytest.importorskip("pandas")
    keys, X, y = events(60, 3)
    frame = pd.DataFrame(X, columns=["a", "b"])
    with ogp.Fleet(MODEL, store=tmp_path / "fleet.db", keep=2) as fleet:
        fleet.learn(keys, frame, y)
        fleet["joined"] = MODEL.unfitted().fit(frame, y)
        with pytest.raises(ValueError, match="names"):
            fleet["other"] = MODEL.unfitted().fit(frame[["b", "a"]], y)
    memory = ogp.Fleet(MODEL).learn(keys, X, y)
    memory["joined"] = MODEL.unfitted().fit(X, y)
    with ogp.Fleet.load(tmp_path / "fleet.db", keep=2) as again:
        mine = again.predict(["joined"] * 60, frame[["b", "a"]])
        np.testing.assert_array_equal(mine, memory.predict(["joined"] * 60, X))
        assert "other" not in again
        assert sorted(again) == ["joined", "key0", "key1", "key2"]
    with ogp.Fleet(MODEL, store=tmp_path / "empty.db", keep=2) as empty:
        empty["first"] = MODEL.unfitted().fit(X, y)
        assert empty["first"].n_samples_seen_ == 60


def test_what_is_refused_changes_nothing(tmp_path):
    fleet = ogp.Fleet(MODEL, store=tmp_path / "fleet.db", keep=2)
    for odd in (1.5, None, (1, 2), 2**63, "\ud800"):
        with pytest.raises(ValueError, match="keys must be strings or whole numbers"):
            fleet.learn(["a", odd], np.zeros((2, 5)), np.ones(2))
    assert len(fleet) == 0
    for mixed in (["a", 5], [5, "5"]):
        with pytest.raises(ValueError, match="the keys of a store must have one type"):
            fleet.learn(mixed, np.zeros((2, 5)), np.ones(2))
    assert len(fleet) == 0
    fleet.learn(["a", "5", "\u00e9", ""], np.zeros((4, 2)), np.ones(4))
    assert len(fleet) == 4
    assert fleet["5"].n_samples_seen_ == 1
    with pytest.raises(KeyError, match="no model"):
        fleet.predict(["a", "none"], np.zeros((2, 2)))
    for bad in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            bad(fleet)
    fleet.commit()
    fleet.close()
    with pytest.raises(ValueError, match="other models"):
        ogp.Fleet(ogp.KRLST(budget=3), store=tmp_path / "fleet.db")
    with pytest.raises(ValueError, match="keep"):
        ogp.Fleet(MODEL, store=tmp_path / "other.db", keep=0)
    with pytest.raises(ValueError, match="no store"):
        _ = ogp.Fleet(MODEL).beside


@pytest.mark.parametrize("order", [np.arange(3), np.arange(3.0), np.array(["a", "b", "c"]), [np.int64(4), 5, 2.5]])
def test_places_of_any_type_can_be_read_again(tmp_path, order):
    for _ in range(2):
        with ogp.Fleet(MODEL, store=tmp_path / "fleet.db", keep=1) as fleet:
            fleet.begin(2)
            new = fleet.newer(["a", "b", "c"], order)
    assert not new.any()


@pytest.mark.parametrize("place", [None, np.nan, 1 << 63, datetime(2024, 1, 1), np.datetime64("2024-01-01"), b"1"])
@pytest.mark.parametrize("stored", [False, True])
def test_a_place_that_cannot_be_stored_is_refused_before_anything_changes(tmp_path, place, stored):
    fleet = ogp.Fleet(MODEL, store=tmp_path / "fleet.db" if stored else None).begin(2)
    with pytest.raises(ValueError, match="order must hold texts, or numbers"):
        fleet.newer(["a", "b"], [1, place])
    assert fleet.newer(["a"], [1]).all()
    with pytest.raises(ValueError, match="all numbers or all texts"):
        fleet.newer(["b", "a"], [1, "2"])
    assert fleet.newer(["b"], [1]).all()
    fleet.close()


def test_a_closed_fleet_learns_nothing(tmp_path):
    with ogp.Fleet(MODEL, store=tmp_path / "fleet.db") as fleet:
        fleet.learn(["a"], np.zeros((1, 2)), [1.0])
    for call in (
        lambda: fleet.learn(["a"], np.zeros((1, 2)), [1.0]),  # which is in memory still
        lambda: fleet.run(["b"], np.zeros((1, 2)), [1.0]),
        lambda: fleet.predict(["a"], np.zeros((1, 2))),
        lambda: fleet.newer(["a"], [1]),
        fleet.commit,
        lambda: list(fleet),
    ):
        with pytest.raises(ValueError, match=r"fleet\.db is closed\. Open it again") as caught:
            call()
        assert not isinstance(caught.value, ModelFileError)
    fleet.close()


@pytest.mark.parametrize(("keys", "others"), [(["0", "1"], [0]), ([0, 1], ["0"])])
def test_a_store_has_keys_of_one_type(tmp_path, keys, others):
    path = tmp_path / "fleet.db"
    with ogp.Fleet(MODEL, store=path) as fleet:
        fleet.learn(keys, np.zeros((2, 2)), np.ones(2))
    one = np.zeros((1, 2))
    with ogp.Fleet.load(path) as again:
        for call in (
            lambda: again.learn(others, one, [1.0]),
            lambda: again.run(others, one, [1.0]),
            lambda: again.predict(others, one),
            lambda: again.newer(others, [1]),
            lambda: again.__setitem__(others[0], again[keys[0]]),
        ):
            with pytest.raises(ValueError, match=r"fleet\.db are .*, got .*Convert the keys, such as by (str|int)"):
                call()
        assert others[0] not in again
        assert list(again) == keys
        again.learn(keys, np.zeros((2, 2)), np.ones(2))
