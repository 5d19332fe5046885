"""A fleet with a store is the fleet in memory, to the last bit, whatever `keep` is, and survives a killed process."""

from __future__ import annotations

import copy
import pickle
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import datetime
from itertools import islice

import numpy as np
import pytest

import onlinegp as ogp
from models import EVERY
from onlinegp.files.container import ModelFileError
from onlinegp.fleet import from_bytes, step
from onlinegp.kernels import RBF

MODEL = ogp.KRLST(RBF(0.7), noise=0.01, budget=12, forgetting=0.99)


def events(n: int, keys: int, seed: int = 0) -> tuple[list[str], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return [f"key{i}" for i in rng.integers(0, keys, n)], X, np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(n)


def in_blocks(fleet: ogp.Fleet, keys, X, y, block: int) -> np.ndarray:
    """Return the means and standard deviations of all events."""
    traces = [fleet.run(keys[i : i + block], X[i : i + block], y[i : i + block]) for i in range(0, len(y), block)]
    return np.concatenate([np.stack([trace.mean, trace.std]) for trace in traces], axis=1)


def states(fleet: ogp.Fleet) -> dict:
    return {key: fleet[key].to_bytes() for key in sorted(fleet)}


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


def changed(path, *commands: str) -> None:
    with sqlite3.connect(path) as db:
        for command in commands:
            db.execute(command)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("CREATE TABLE more (x)", "not a store of onlinegp"),
        ("CREATE TRIGGER t AFTER INSERT ON models BEGIN DELETE FROM models; END", "not a store of onlinegp"),
        (
            "CREATE TRIGGER sqlite1autoindex1x AFTER UPDATE ON models BEGIN DELETE FROM models WHERE key<>'key0'; END",
            "not a store of onlinegp",
        ),
        ("CREATE VIEW sqlite1autoindex1x AS SELECT 1", "not a store of onlinegp"),
        ("CREATE INDEX sqlite1autoindex1x ON models (last)", "not a store of onlinegp"),
        ("ALTER TABLE models ADD COLUMN more", "not a store of onlinegp"),
        ("DROP TABLE models", "not a store of onlinegp"),
        ("UPDATE about SET value = '2' WHERE name = 'format'", "has format 2, and this onlinegp reads"),
        ("UPDATE about SET value = '[' WHERE name = 'model'", "not JSON"),
        ("UPDATE about SET value = '{}' WHERE name = 'model'", "a class and parameters"),
        ("UPDATE about SET value = '{\"features\": 2}' WHERE name = 'events'", "impossible sizes"),
        ("DELETE FROM about WHERE name = 'schema'", "schema cannot be read"),
        ("UPDATE about SET value = '[[\"more\", \"integer\"]]' WHERE name = 'schema'", "the schema lacks 'features'"),
        ("UPDATE about SET value = '7' WHERE name = 'events'", "does not describe"),
        ("UPDATE about SET value = 'null' WHERE name = 'events'", "description of its models is missing"),
        ("DELETE FROM about WHERE name = 'events'", "description of its models is missing"),
        ("UPDATE models SET state = zeroblob(100)", "not the state"),
        ("UPDATE models SET state = 'text'", "is invalid"),
        ("UPDATE models SET key = 1.5 WHERE key = 'key1'", "is not a text or whole number"),
        ("UPDATE models SET key = x'00' WHERE key = 'key1'", "is not a text or whole number"),
        ("UPDATE about SET value = CAST(x'ff' AS TEXT) WHERE name = 'model'", "not UTF-8"),
        ("UPDATE models SET state = substr(state, 1, 200)", "checksum"),
    ],
)
def test_forged_stores_are_refused(tmp_path, command, message):
    path = tmp_path / "fleet.db"
    with ogp.Fleet(MODEL, store=path) as fleet:
        fleet.learn(*events(30, 3))
    changed(path, command)
    with pytest.raises(ModelFileError, match=message), ogp.Fleet.load(path) as again:
        again.predict(["key0"], np.zeros((1, 2)))


def test_files_that_are_no_stores(tmp_path):
    path = tmp_path / "fleet.db"
    path.write_bytes(b"SQLite format 3\0" + bytes(500))
    with pytest.raises((ModelFileError, OSError)):
        ogp.Fleet.load(path)
    path.write_bytes(b"text")
    with pytest.raises(ModelFileError):
        ogp.Fleet(MODEL, store=path)
    with pytest.raises(FileNotFoundError):
        ogp.Fleet.load(tmp_path / "none.db")


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


@pytest.mark.parametrize("tables", ["CREATE TABLE mine (a)", "CREATE VIEW about AS SELECT 1"])
def test_a_database_of_another_program_is_not_changed(tmp_path, tables):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute(tables)
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(ModelFileError, match="not a store of onlinegp"):
            ogp.Fleet(MODEL, store=path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


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


def test_a_device_is_no_store():
    with pytest.raises(OSError, match="it is a device or a pipe"):
        ogp.Fleet(MODEL, store="/dev/null")


def test_a_damaged_state_is_refused_with_the_name_of_the_store(tmp_path):
    path = tmp_path / "fleet.db"
    with ogp.Fleet(MODEL, store=path) as fleet:
        fleet.learn(["a"], np.zeros((1, 2)), [1.0])
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE models SET state = zeroblob(100)")
        database.commit()
    with ogp.Fleet.load(path) as fleet, pytest.raises(ModelFileError, match=r"fleet\.db: "):
        fleet.predict(["a"], np.zeros((1, 2)))


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


def test_a_store_of_both_types_goes_on(tmp_path):
    """Older versions let them in."""
    path = tmp_path / "fleet.db"
    with ogp.Fleet(MODEL, store=path) as fleet:
        fleet.learn(["0", "1"], np.zeros((2, 2)), np.ones(2))
    changed(path, "UPDATE models SET key = 1 WHERE key = '1'")
    with ogp.Fleet.load(path) as again:
        again.learn(["0", 1, 2], np.zeros((3, 2)), np.ones(3))
        assert again[1].n_samples_seen_ == 2


def test_rows_that_do_not_rise_are_no_endless_list(tmp_path):
    """The rows of a table are in order of their numbers: in a damaged file they need not be."""
    path = tmp_path / "fleet.db"
    with ogp.Fleet(MODEL, store=path) as fleet:
        fleet.learn(range(3000), np.zeros((3000, 2)), np.ones(3000))
    with closing(sqlite3.connect(path)) as database:
        page, count = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_size", "page_count"))
    data = bytearray(path.read_bytes())
    leaves = [i * page for i in range(1, count) if data[i * page] == 13]  # of a table
    assert len(leaves) > 20
    data[leaves[-1] : leaves[-1] + page] = data[leaves[10] : leaves[10] + page]  # the last has rows from the beginning
    path.write_bytes(data)
    with ogp.Fleet.load(path) as again, pytest.raises(ModelFileError, match=r"its rows are not in order\. Restore"):
        list(islice(again, 30_000))


def test_a_schema_that_is_not_text_is_refused(tmp_path):
    """SQLite then says what is wrong with letters of the file, which Python cannot decode."""
    path = tmp_path / "fleet.db"
    with ogp.Fleet(MODEL, store=path) as fleet:
        fleet.learn(*events(30, 3))
    data = path.read_bytes()
    assert data.count(b"CREATE TABLE models") == 1
    path.write_bytes(data.replace(b"CREATE TABLE models", b"CREATE TABLE m\xffdels"))
    for use in (ogp.Fleet.load, lambda path: ogp.Fleet(MODEL, store=path)):
        with pytest.raises(ModelFileError, match=r"fleet\.db: .*Restore the file"):
            use(path)


def test_after_a_full_disk_nothing_is_let_in_until_it_is_opened_again(tmp_path):
    """Keys that left memory answered from old states, and each write was a commit of its own."""
    path, (keys, X, y) = tmp_path / "fleet.db", events(400, 40)
    fleet = ogp.Fleet(MODEL, store=path, keep=3)
    fleet.learn(keys[:100], X[:100], y[:100]).commit()
    committed = states(fleet)
    database = fleet._home.store._db
    database.execute(f"PRAGMA max_page_count = {database.execute('PRAGMA page_count').fetchone()[0] + 1}")
    with pytest.raises(OSError, match=r"full\. Free some space.* Uncommitted changes are lost. Open it again"):
        fleet.learn(keys, X, y).commit()
    database.execute("PRAGMA max_page_count = 1000000")  # there is room again
    for call in (
        lambda: fleet.learn(keys, X, y),
        lambda: fleet.run(keys[:1], X[:1], y[:1]),
        lambda: fleet.predict(keys[-1:], X[-1:]),  # which is in memory still
        lambda: fleet.newer(["key0"], [1]),
        lambda: "key0" in fleet,
        lambda: fleet["key0"],
        lambda: fleet.__setitem__("key0", MODEL.unfitted().fit(X, y)),
        lambda: fleet.beside,
        lambda: list(fleet),
        fleet.to_bytes,
        fleet.commit,
    ):
        with pytest.raises(OSError, match=r"is at its last commit: .*\. Open it again, such as by Fleet\.load"):
            call()
    with pytest.raises(OSError, match="last commit"), fleet:
        pass
    with ogp.Fleet.load(path) as again:
        assert states(again) == committed


def test_after_an_interrupted_commit_nothing_changes_outside_of_a_transaction(tmp_path):
    path, (keys, X, y) = tmp_path / "fleet.db", events(200, 20)
    fleet = ogp.Fleet(MODEL, store=path, keep=3)
    fleet.learn(keys[:100], X[:100], y[:100]).commit()
    committed = states(fleet)
    fleet._home.store._db.execute("COMMIT")  # as if Ctrl-C had come before the next BEGIN
    with pytest.raises(OSError, match="a commit was interrupted"):
        fleet.learn(keys[100:], X[100:], y[100:])
    fleet.close()
    with ogp.Fleet.load(path) as again:
        assert states(again) == committed
