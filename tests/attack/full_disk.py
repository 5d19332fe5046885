"""A fleet with a store in a process whose files may not grow beyond a size of chance: what a full disk does.

Writes beyond RLIMIT_FSIZE fail with a real error of the system, in the middle of whatever SQLite is doing.

Usage: python full_disk.py FOLDER SEED COUNT
"""

from __future__ import annotations

import hashlib
import json
import resource
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from processes import need

import onlinegp as ogp
from onlinegp.kernels import RBF

MODEL = ogp.KRLST(RBF(0.7), noise=0.01, budget=8)
KEYS, KEEP, ROWS, COMMITS = 60, 7, 40, 12
SOFT, HARD = resource.getrlimit(resource.RLIMIT_FSIZE) if sys.platform != "win32" else (0, 0)


def events(call: int) -> tuple[list[int], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(call)
    X = rng.uniform(-1, 1, (ROWS, 2))
    return rng.integers(0, KEYS, ROWS).tolist(), X, X.sum(axis=1)


def digest(fleet: ogp.Fleet) -> str:
    """Return what tells a fleet from others: all its models."""
    found = hashlib.sha256()
    for key in sorted(fleet):
        found.update(repr(key).encode() + fleet[key].to_bytes())
    return found.hexdigest()


def commits() -> list[str]:
    """Return what the fleet is at each commit, the first of them empty."""
    fleet, found = ogp.Fleet(MODEL), []
    for call in range(2 * COMMITS + 1):
        if call % 2 == 0:
            found.append(digest(fleet))
        fleet.learn(*events(call))
    return found


def limit_files(size: int = SOFT) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, HARD))


def one(path: Path, limit: int, kept: int, room: bool, pages: int) -> tuple[int, bool]:
    """Run on a disk that becomes full, and return how many commits were told, and whether it did.

    It does so after `kept` commits, or before the store is opened if that is -1. After the first error each call must
    be refused, also if there is `room` again before the store is closed. What SQLite cannot cache in so many `pages` is
    written before the commit, as that of larger transactions is.
    """
    told, full, fleet = 0, False, None
    try:
        if kept < 0:
            limit_files(limit)
        fleet = ogp.Fleet(MODEL, store=path, keep=KEEP)
        fleet._home.store._db.execute(f"PRAGMA cache_size = {pages}")  # type: ignore[attr-defined]
        fleet.keep_beside(lambda: told + 1)
        for i in range(COMMITS):
            if i == kept:
                limit_files(limit)
            for call in (2 * i, 2 * i + 1):
                fleet.learn(*events(call))
            fleet.commit()
            told += 1
    except OSError as error:
        full = True
        need("Free some space" in str(error), error)
        if fleet is not None:
            need("Uncommitted changes are lost. Open it again" in str(error), error)
            refused(fleet)
            if room:
                limit_files()
                refused(fleet)
    finally:
        if fleet is not None:
            fleet.close()
        limit_files()
    return told, full


def refused(fleet: ogp.Fleet) -> None:
    """Refuse a fleet that answers from what was lost."""
    keys, X, y = events(0)
    for use in (
        lambda: fleet.learn(keys, X, y),
        lambda: fleet.run(keys, X, y),
        lambda: fleet.predict(keys[:1], X[:1]),
        lambda: fleet.newer(keys, range(ROWS)),
        lambda: keys[0] in fleet,
        lambda: fleet[keys[0]],
        lambda: list(fleet),
        lambda: fleet.beside,
        fleet.commit,
    ):
        try:
            use()
        except OSError as error:
            need("is at its last commit" in str(error), error)
        else:
            need(False, "a call after a lost transaction was let in")


def attack(folder: Path, seed: int, count: int) -> dict[str, int]:
    """Fill the disk at so many points, and open what is left each time: it must be one of its commits."""
    expected, rng, fates = commits(), np.random.default_rng(seed), Counter[str]()
    while fates["full"] < count:
        path, kept = folder / "fleet.db", int(rng.integers(-1, COMMITS))
        limit, room, pages = rng.integers(0, 900_000), rng.integers(2), rng.choice([4, 2000])
        told, full = one(path, int(limit), kept, bool(room), int(pages))
        fates["full" if full else "large enough"] += 1
        if not path.exists():
            assert full
            assert told == 0
            fates["before there was a file"] += 1
            continue
        with ogp.Fleet(MODEL, store=path) as again:
            found = again.beside or 0
            assert digest(again) == expected[found], f"{path} is no commit"
            assert found in (told, told + 1), f"{path} has {found} commits, and {told} were told"
            again.learn(*events(2 * found))  # and it goes on
        path.unlink()
        fates["a commit more than told"] += found - told
    return dict(fates)


if __name__ == "__main__":
    print(json.dumps(attack(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
