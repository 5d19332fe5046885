"""Damaged and forged stores: each is used in every way, and must answer or refuse by an error that helps.

Usage: python damage.py FOLDER SEED COUNT
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import shutil
import sqlite3
import sys
import warnings
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from processes import need

import onlinegp as ogp
from onlinegp.cli import main
from onlinegp.files.container import ModelFileError
from onlinegp.kernels import RBF

MODEL = ogp.KRLST(RBF(0.7), noise=0.01, budget=6)
HANGS = 120  # seconds, where one store takes a fraction of one
REMEDIES = ("Restore", "Use another", "use another", "Open it", "Open it again", "Check the", "Learn and commit")
KNOWN = (
    "no model has the key",
    "contains other models",
    "models with",
    "the keys of a store",
    "order must be all",
    "the number of features is unknown",
)
VALUES: list[Any] = [None, 0, -1, 2**62, 1.5, float("inf"), "", "x", "\x00", "[" * 5000, "1e999", b""]
VALUES += [
    '{"features": 1}',
    b"\xff\xfe",
    b"x" * 100_000,
    "true",
    "null",
    '"' + "y" * 5000 + '"',
    "9" * 5000,
    "-1",
    "{}",
    "[]",
]
VALUES += ['{"features": 4611686018427387904, "outputs": 1, "single": true, "names": [], "largest": 0.0}']
SCHEMAS = [
    "DROP TABLE about",
    "CREATE TABLE other (x)",
    "CREATE TRIGGER sqlite1autoindex1x AFTER UPDATE ON models BEGIN DELETE FROM models; END",
    "CREATE TRIGGER sqlite_more AFTER UPDATE ON models BEGIN DELETE FROM models; END",
    "CREATE INDEX sqliteAautoindexA ON models (last)",
    "UPDATE sqlite_master SET sql = NULL WHERE name = 'models'",
    "UPDATE sqlite_master SET sql = CAST(x'ff' AS TEXT) WHERE name = 'models'",
    "UPDATE sqlite_master SET name = CAST(x'fffe' AS TEXT) WHERE name = 'about'",
    "UPDATE sqlite_master SET rootpage = 2",
    "UPDATE sqlite_master SET rootpage = 1000000 WHERE name = 'models'",
    "UPDATE sqlite_master SET rootpage = 1 WHERE type = 'index'",
    "UPDATE sqlite_master SET type = 'view' WHERE name = 'about'",
    "DELETE FROM sqlite_master WHERE type = 'index'",
    "INSERT INTO sqlite_master SELECT * FROM sqlite_master",
]


def originals(folder: Path) -> list[dict[str, bytes]]:
    """Return stores to be damaged: small, of several levels of pages, and with a log that is not merged yet."""
    found = []
    for name, n, keys, text in (("small", 60, 5, True), ("wide", 4000, 4000, True), ("numbers", 300, 40, False)):
        path, rng = folder / f"{name}.db", np.random.default_rng(0)
        which = rng.permutation(n) % keys
        X = rng.uniform(-1, 1, (n, 2))
        with ogp.Fleet(MODEL, store=path, keep=100) as fleet:
            fleet.keep_beside(lambda: {"rows": 1})
            fleet.begin(2)
            names = [f"key{i}" for i in which] if text else which.tolist()
            fleet.newer(names, [f"t{i:05d}" for i in range(n)])
            fleet.learn(names, X, X.sum(axis=1)).commit()
            fleet.learn(names[:40], X[:40], X[:40].sum(axis=1)).commit()
            wal = {end: Path(f"{path}{end}").read_bytes() for end in ("", "-wal")}
        found += [{"": path.read_bytes()}] if name == "wide" else [{"": path.read_bytes()}, wal]
    return found


def damaged(parts: dict[str, bytes], rng: np.random.Generator) -> dict[str, bytes]:
    """Return the files of a store with some of their bytes cut off, changed, exchanged or overwritten."""
    end = str(rng.choice(sorted(parts)))
    data, page = bytearray(parts[end]), 8192
    pages = len(data) // page

    def start() -> int:
        return int(rng.integers(0, max(pages, 1))) * page

    for _ in range(int(rng.choice([1, 1, 1, 2, 5, 20]))):
        kind = rng.integers(9)
        here, there = start(), start()
        if kind == 0:
            data = data[: int(rng.integers(0, len(data) + 1))]
        elif kind == 1:
            _xor(data, int(rng.integers(0, max(len(data), 1))), 1 << int(rng.integers(8)))
        elif kind == 2:
            _xor(data, here + int(rng.integers(0, 120)), int(rng.integers(1, 256)))  # where a page says what it is
        elif kind == 3:
            data[here : here + page] = bytes(len(data[here : here + page]))
        elif kind == 4:
            data[here : here + page] = rng.bytes(len(data[here : here + page]))
        elif kind == 5:
            data[here : here + page] = data[there : there + page]
        elif kind == 6:
            one, two = data[here : here + page], data[there : there + page]
            if len(one) == len(two):
                data[here : here + page], data[there : there + page] = two, one
        elif kind == 7:
            at = here + 2 * int(rng.integers(0, page // 2))  # a pointer to a page, or to a cell
            data[at : at + 4] = int(rng.integers(0, pages + 3)).to_bytes(4, "big")[: len(data[at : at + 4])]
        else:
            data += rng.bytes(int(rng.integers(1, 20_000)))
    return parts | {end: bytes(data)}


def _xor(data: bytearray, at: int, mask: int) -> None:
    if at < len(data):
        data[at] ^= mask


def forge(path: Path, rng: np.random.Generator) -> None:
    """Change rows or tables by SQL, as a program that is not this one could."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        for _ in range(rng.integers(1, 4)):
            value, text = VALUES[rng.integers(len(VALUES))], bool(rng.integers(2))
            if isinstance(value, bytes) and text:
                ask, values = "CAST(? AS TEXT)", (value,)
            else:
                ask, values = "?", (value,)
            kind = rng.integers(4)
            with contextlib.suppress(sqlite3.Error):
                if kind == 0:
                    names = ["format", "model", "compact", "events", "note"]
                    name = str(rng.choice(names))
                    db.execute(f"UPDATE about SET value = {ask} WHERE name = ?", (*values, name))
                elif kind == 1:
                    column = str(rng.choice(["key", "last", "state", "number"]))
                    where = f"number = (SELECT number FROM models LIMIT 1 OFFSET {rng.integers(5)})"
                    db.execute(f"UPDATE models SET {column} = {ask} WHERE {where}", values)
                elif kind == 2:
                    one = f"SELECT state FROM models LIMIT 1 OFFSET {rng.integers(5)}"
                    db.execute(f"UPDATE models SET state = ({one})")
                else:
                    db.execute("PRAGMA writable_schema = ON")
                    db.execute(SCHEMAS[rng.integers(len(SCHEMAS))])


def used(path: Path) -> Counter[str]:
    """Use a store in every way; return how often it answered and how often it refused."""
    fates: Counter[str] = Counter()
    X, y = np.linspace(-1, 1, 6).reshape(3, 2), np.ones(3)

    def attempt(use: Any) -> Any:
        try:
            answer = use()
            fates["answers"] += 1
            return answer
        except (ModelFileError, OSError) as error:
            fates["refusals"] += 1
            need(str(path) in str(error), f"no name: {error}")
            need(any(remedy in str(error) for remedy in REMEDIES), f"no remedy: {error}")
        except (KeyError, ValueError) as error:  # what would be said of a sound store with these contents
            need(isinstance(error, ogp.BreakdownError) or any(text in str(error) for text in KNOWN), repr(error))
            fates["other errors"] += 1
        return None

    for opened in (lambda: ogp.Fleet.load(path, keep=20), lambda: ogp.Fleet(MODEL, store=path, keep=2)):
        fleet = attempt(opened)
        if fleet is None:
            continue
        try:
            keys = attempt(lambda fleet=fleet: list(islice(fleet, 100_000))) or []
            assert len(keys) < 100_000, "no end of keys"
            some = (keys * 3)[:3] if keys else ["key0", "key1", "key2"]
            attempt(lambda fleet=fleet: (len(fleet), repr(fleet), fleet.beside))
            attempt(lambda fleet=fleet, key=some[0]: (key in fleet, "other" in fleet, 7 in fleet))
            attempt(lambda fleet=fleet, some=some: fleet.predict(some, X))
            attempt(lambda fleet=fleet, some=some: fleet[some[0]])
            attempt(lambda fleet=fleet, some=some: fleet.newer(some, ["u", "v", "w"]))
            attempt(lambda fleet=fleet, some=some: fleet.run(some, X, y))
            attempt(lambda fleet=fleet, some=some: fleet.learn([type(some[0])(8)] * 3, X, y))
            many = (keys or some)[-50:]
            attempt(lambda fleet=fleet, many=many: fleet.predict(many, np.zeros((len(many), 2))))
            attempt(fleet.commit)
        finally:
            fleet.close()
    for args in (["inspect", path], ["inspect", path, "--key", "key1"], ["inspect", path, "--key", "7", "--json"]):
        errors = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
            code = main([str(arg) for arg in args])
        assert code in (0, 1), errors.getvalue()
        assert code == 0 or errors.getvalue().startswith("onlinegp: "), errors.getvalue()
        assert "Traceback" not in errors.getvalue()
    return fates


def attack(folder: Path, seed: int, count: int) -> dict[str, int]:
    """Damage so many stores, and use what is left."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    rng, stores, total = np.random.default_rng(seed), originals(folder), Counter[str]()
    for i in range(count):
        place = folder / "one"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        path, parts = place / "fleet.db", stores[rng.integers(len(stores))]
        forged = rng.random() < 0.3
        for end, data in (parts if forged else damaged(parts, rng)).items():
            Path(f"{path}{end}").write_bytes(data)
        if forged:
            forge(path, rng)
        faulthandler.dump_traceback_later(HANGS, exit=True)
        try:
            fates = used(path)
        except BaseException as error:
            raise AssertionError(f"store {i} of seed {seed} ({'forged' if forged else 'damaged'})") from error
        faulthandler.cancel_dump_traceback_later()
        total["stores"] += 1
        total["refused" if fates["refusals"] else "usable"] += 1
        total += fates
    return dict(total)


if __name__ == "__main__":
    print(json.dumps(attack(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
