"""A file of many states by key, in SQLite: what is larger than memory, and survives a killed process.

All changes belong to a transaction until `commit`: a process that is killed leaves the file as the last commit left it.
One process writes at a time; others may read what was committed. What a file holds is checked: its tables must be ours,
to the letter, so that nothing in it is executed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onlinegp.files.atomic import check_writable, is_special
from onlinegp.files.container import ModelFileError

MAGIC = b"SQLite format 3\0"
FORMAT = 2
TABLES = {
    "about": "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "models": "CREATE TABLE models (number INTEGER PRIMARY KEY, key NOT NULL UNIQUE, last, state BLOB NOT NULL)",
}
AT_ONCE = 100  # keys in one question, whose states a processor's cache can hold
PAGE = 8192  # bytes; a state takes several pages in a row

Key = str | int
Last = str | float | None
Row = tuple[Key, Last, bytes]


def is_store(path: str | Path) -> bool:
    """Whether a file is one of SQLite's."""
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


class Store:
    """States by key, with the last place in the order of each key, and named facts about all of them.

    Parameters
    ----------
    path : str or Path
        The file; it is made if it is not there.
    write : bool
        Whether it is to be changed; otherwise it must be there.

    Attributes
    ----------
    count : int
        How many keys it has.
    waiting : int
        The bytes of states that were put and not committed.
    """

    def __init__(self, path: str | Path, *, write: bool = True) -> None:
        self.path, self.waiting, self._closed = Path(path), 0, False
        if is_special(path):
            raise OSError(f"cannot keep models in {path}: it is a device or a pipe. Use a file.")
        if write:
            check_writable(path)
        elif not self.path.exists():
            raise FileNotFoundError(f"there is no file {path}.")
        self._write = write
        with self._told():
            how = "rwc" if write else "ro"
            self._db = sqlite3.connect(
                f"{self.path.resolve().as_uri()}?mode={how}", uri=True, isolation_level=None, check_same_thread=False,
                timeout=1.0,
            )  # fmt: skip
        try:
            with self._told():
                self._open()
        except BaseException:
            self._db.close()
            raise

    def _open(self) -> None:
        self._db.execute("PRAGMA trusted_schema = OFF")
        self._refuse_others()  # before anything in it changes
        if self._write:
            self._db.execute(f"PRAGMA page_size = {PAGE}")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._begin()
            if not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for table in TABLES.values():
                    self._db.execute(table)
                self.tell("format", FORMAT)
        if self.asked("format") != FORMAT:
            raise ModelFileError(f"it has format {self.asked('format')!r}, and this onlinegp reads format {FORMAT}.")
        self.count: int = self._db.execute("SELECT count(*) FROM models").fetchone()[0]

    def _refuse_others(self) -> None:
        """Refuse a file with other tables than ours; one without any is new, if it is to be written."""
        own = "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_autoindex_%'"
        found = dict(self._db.execute(own).fetchall())
        if found != TABLES and (found or not self._write):
            raise ModelFileError("it is a file of SQLite, but no store of onlinegp. Use another file.")

    def _begin(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    # Facts about all

    def tell(self, name: str, value: Any) -> None:
        """Keep a fact that JSON can hold under a name."""
        with self._told():
            text = json.dumps(value, allow_nan=False)
            self._db.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, text))

    def asked(self, name: str) -> Any:
        """Return what was told under a name, or None."""
        with self._told():
            found = self._db.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
            try:
                return None if found is None else json.loads(found[0])
            except (ValueError, TypeError, RecursionError):
                raise ModelFileError(f"what it says under {name!r} is not JSON.") from None

    # States

    def get(self, keys: Sequence[Key]) -> dict[Key, tuple[Last, bytes]]:
        """Return the last place and the state of each of the keys that are there."""
        found: dict[Key, tuple[Last, bytes]] = {}
        for i in range(0, len(keys), AT_ONCE):
            some = keys[i : i + AT_ONCE]
            marks = ",".join("?" * len(some))
            with self._told():
                rows = self._db.execute(f"SELECT key, last, state FROM models WHERE key IN ({marks})", some).fetchall()
            for key, last, state in rows:
                if not isinstance(state, bytes) or isinstance(last, bytes):
                    raise ModelFileError(f"{self.path}: the state of the key {key!r} is none.")
                found[key] = last, state
        return found

    def __contains__(self, key: Key) -> bool:
        with self._told():
            return self._db.execute("SELECT 1 FROM models WHERE key = ?", (key,)).fetchone() is not None

    def __iter__(self) -> Iterator[Key]:
        """Yield the keys that are there now, a thousand at a time, so that others may be put meanwhile."""
        last = -1
        while True:
            with self._told():
                ask = "SELECT number, key FROM models WHERE number > ? ORDER BY number LIMIT 1000"
                rows = self._db.execute(ask, (last,)).fetchall()
            if not rows:
                return
            yield from (key for _, key in rows)
            last = rows[-1][0]

    def put(self, rows: Sequence[Row], new: int) -> None:
        """Keep these states, of which so many have keys that were not there."""
        with self._told():
            self._db.executemany(
                "INSERT INTO models (key, last, state) VALUES (?, ?, ?) "
                "ON CONFLICT (key) DO UPDATE SET last = excluded.last, state = excluded.state",
                rows,
            )
        self.count += new
        self.waiting += sum(len(state) for _, _, state in rows)

    def commit(self) -> None:
        """Make all changes so far safe on disk, together."""
        with self._told():
            self._db.execute("COMMIT")
            self._begin()
        self.waiting = 0

    def close(self) -> None:
        """Close the file; what was not committed is gone."""
        self._db.close()
        self._closed = True

    def check_open(self) -> None:
        """Refuse to go on after `close`, where nothing could be kept."""
        if self._closed:
            raise ValueError(
                f"the store {self.path} is closed. Open it again, such as by Fleet.load({str(self.path)!r})."
            )

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn the errors of SQLite into ours."""
        self.check_open()
        try:
            yield
        except sqlite3.OperationalError as error:
            if "decode" in str(error):
                raise ModelFileError(f"{self.path}: it is damaged: a text in it is not UTF-8.") from None
            if "locked" in str(error):
                raise OSError(
                    f"another process is writing to {self.path}. Wait for it, or use another store."
                ) from None
            raise OSError(f"cannot use {self.path}: {error}.") from None
        except sqlite3.DatabaseError as error:
            raise ModelFileError(f"{self.path}: it is damaged, or no store ({error}).") from None
        except ModelFileError as error:
            raise ModelFileError(f"{self.path}: {error}" if str(self.path) not in str(error) else str(error)) from None


Note = Callable[[], Any]  # called at a commit: what to keep beside the states, a fact that JSON can hold
