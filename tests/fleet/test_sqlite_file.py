"""The SQLite file of a store: forged and damaged files, full disks, and interrupted commits."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import islice

import numpy as np
import pytest

import onlinegp as ogp
from fleets import events, states
from onlinegp.files.container import ModelFileError
from onlinegp.kernels import RBF

MODEL = ogp.KRLST(RBF(0.7), noise=0.01, budget=12, forgetting=0.99)


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
        ("UPDATE about SET value = '2' WHERE name = 'format'", "has format 2, but this onlinegp reads"),
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
