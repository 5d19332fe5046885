"""A file of many states by key, in SQLite: what is larger than memory, and survives a killed process.

All changes belong to a transaction until `commit`: a process that is killed leaves the file as the last commit left it.
So does one that cannot write any more: a store that lost its transaction refuses everything until it is opened again.
One process owns the file while it is open for writing; others may read what was committed. What a file holds is
checked: its tables must be ours, to the letter, so that nothing in it is executed.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from onlinegp.files.atomic import check_writable, is_special
from onlinegp.files.container import ModelFileError
from onlinegp.files.owner import OwnerLock

MAGIC = b"SQLite format 3\0"
FORMAT = 3
TABLES = {
    "about": "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "models": "CREATE TABLE models (number INTEGER PRIMARY KEY, key NOT NULL UNIQUE, last, state BLOB NOT NULL)",
}
SCHEMA = {
    *(("table", name, name, sql) for name, sql in TABLES.items()),
    ("index", "sqlite_autoindex_models_1", "models", None),  # of UNIQUE, which SQLite makes by itself
}
AT_ONCE = 100  # keys in one question, whose states a processor's cache can hold
PAGE = 8192  # bytes; a state takes several pages in a row
PATIENCE = 10.0  # seconds to wait for a reader that is just closing the file, or for another program
BEFORE_ALL = -(1 << 63)  # the least number of a row
RESTORE = "Restore the file from a copy, or use another store."

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
        The file; it is made if it is not there, and removed again if nothing is committed to it.
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
        self.path, self.waiting, self.count = Path(path), 0, 0
        self._closed = self._made = self._began = False
        self._lost, self._process = "", os.getpid()
        if is_special(path):
            raise OSError(f"cannot keep models in {path}: it is a device or a pipe. Use a file.")
        if write:
            check_writable(path)
        elif not self.path.exists():
            raise FileNotFoundError(f"there is no file {path}.")
        self._write, self._file = write, Path(os.path.realpath(path))
        self._owner = OwnerLock(self._file) if write else None
        self._db: sqlite3.Connection | None = None
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        if self._write and not self._file.exists():
            with suppress(FileExistsError):
                os.close(os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
                self._made = True
        with self._told():
            self._db = sqlite3.connect(
                f"{self._file.as_uri()}?mode={'rw' if self._write else 'ro'}", uri=True, isolation_level=None,
                check_same_thread=False, timeout=PATIENCE,
            )  # fmt: skip
            self._db.execute("PRAGMA trusted_schema = OFF")
            self._db.execute("PRAGMA cell_size_check = ON")  # of pages, as they are read
            self._refuse_others()  # before anything in it changes
            if self._write:
                self._db.execute(f"PRAGMA page_size = {PAGE}")
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = FULL")
                self._db.execute("BEGIN IMMEDIATE")
                self._began = True
                if not self._one("SELECT count(*) FROM sqlite_master"):
                    for table in TABLES.values():
                        self._db.execute(table)
                    self.tell("format", FORMAT)
            if self.asked("format") != FORMAT:
                raise ModelFileError(
                    f"it has format {self.asked('format')!r}, and this onlinegp reads format {FORMAT}. "
                    f"Use another store, or the version of onlinegp that made it."
                )
            self.count = self._counted()

    def _refuse_others(self) -> None:
        """Refuse a file that holds anything but our tables; one without any is new, if it is to be written."""
        assert self._db is not None
        found = self._db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
        if not found and not self._write:
            raise ModelFileError("nothing was committed to it yet. Learn and commit with Fleet(model, store=FILE).")
        if found and (len(found) != len(SCHEMA) or set(found) != SCHEMA):
            raise ModelFileError("it is a file of SQLite, but no store of onlinegp. Use another file.")

    def _counted(self) -> int:
        """Return the number of keys; pages of a damaged file that lead to each other would have no end of them."""
        most = self._one("PRAGMA page_count") * self._one("PRAGMA page_size") // 4  # a row takes more than four bytes
        count: int = self._one("SELECT count(*) FROM (SELECT 1 FROM models LIMIT ?)", most)
        if count == most:
            raise ModelFileError(f"it is damaged: its pages contradict each other. {RESTORE}")
        return count

    def _one(self, ask: str, *values: Any) -> Any:
        assert self._db is not None
        return self._db.execute(ask, values).fetchone()[0]

    # Facts about all

    def tell(self, name: str, value: Any) -> None:
        """Keep a fact that JSON can hold under a name."""
        text = json.dumps(value, allow_nan=False)
        with self._told(change=True) as db:
            db.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, text))

    def asked(self, name: str) -> Any:
        """Return what was told under a name, or None."""
        with self._told() as db:
            found = db.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
            try:
                return None if found is None else json.loads(found[0])
            except (ValueError, TypeError, RecursionError):
                raise ModelFileError(f"what it says under {name!r} is not JSON. {RESTORE}") from None

    # States

    def types(self) -> set[type[Key]]:
        """Return the types of its keys: one, as a rule. Numbers come before texts in its index."""
        with self._told() as db:
            ends = [db.execute(f"SELECT {end}(key) FROM models").fetchone()[0] for end in ("min", "max")]
        return {type(self._checked(key)) for key in ends if key is not None}

    def get(self, keys: Sequence[Key]) -> dict[Key, tuple[Last, bytes]]:
        """Return the last place and the state of each of the keys that are there."""
        found: dict[Key, tuple[Last, bytes]] = {}
        for i in range(0, len(keys), AT_ONCE):
            some = keys[i : i + AT_ONCE]
            marks = ",".join("?" * len(some))
            with self._told() as db:
                rows = db.execute(f"SELECT key, last, state FROM models WHERE key IN ({marks})", some).fetchall()
            for key, last, state in rows:
                if not isinstance(state, bytes) or isinstance(last, bytes):
                    raise ModelFileError(f"{self.path}: the state of the key {key!r} is none. {RESTORE}")
                found[self._checked(key)] = last, state
        return found

    def __contains__(self, key: Key) -> bool:
        with self._told() as db:
            return db.execute("SELECT 1 FROM models WHERE key = ?", (key,)).fetchone() is not None

    def __iter__(self) -> Iterator[Key]:
        """Yield the keys that are there now, a thousand at a time, so that others may be put meanwhile."""
        last, ask = BEFORE_ALL, "SELECT number, key FROM models WHERE number > ? ORDER BY number LIMIT 1000"
        while True:
            with self._told() as db:
                rows = db.execute(ask, (last,)).fetchall()
            if not rows:
                return
            for number, key in rows:
                if number <= last:  # or there might be no end of them
                    raise ModelFileError(f"{self.path}: it is damaged: its rows are not in order. {RESTORE}")
                last = number
                yield self._checked(key)

    def _checked(self, key: Any) -> Key:
        if type(key) not in (str, int):
            raise ModelFileError(f"{self.path}: it is damaged: the key {key!r} is no text or whole number. {RESTORE}")
        return key

    def put(self, rows: Sequence[Row], new: int) -> None:
        """Keep these states, of which so many have keys that were not there."""
        with self._told(change=True) as db:
            db.executemany(
                "INSERT INTO models (key, last, state) VALUES (?, ?, ?) "
                "ON CONFLICT (key) DO UPDATE SET last = excluded.last, state = excluded.state",
                rows,
            )
        self.count += new
        self.waiting += sum(len(state) for _, _, state in rows)

    def commit(self) -> None:
        """Make all changes so far safe on disk, together."""
        with self._told(change=True) as db:
            self._made = False
            db.execute("COMMIT")
            db.execute("BEGIN IMMEDIATE")
        self.waiting = 0

    def close(self) -> None:
        """Close the file; what was not committed is gone."""
        if self._closed or os.getpid() != self._process:
            return
        self._closed = True
        if self._db is not None:
            self._db.close()
        if self._made:
            for ending in ("", "-wal", "-shm"):
                Path(f"{self._file}{ending}").unlink(missing_ok=True)
        if self._owner is not None:
            self._owner.release()

    def check_open(self) -> None:
        """Refuse to go on where nothing could be kept: after `close`, in a fork, or after a transaction was lost."""
        again = f"Open it again, such as by Fleet.load({str(self.path)!r})"
        if self._closed:
            raise ValueError(f"the store {self.path} is closed. {again}.")
        if os.getpid() != self._process:
            raise ValueError(f"the store {self.path} was opened before this process was forked. Open it here alone.")
        if self._lost:
            raise OSError(f"{self.path} is as its last commit left it: later changes are lost ({self._lost}). {again}.")

    @contextmanager
    def _told(self, *, change: bool = False) -> Iterator[sqlite3.Connection]:
        """Turn the errors of SQLite into ours; with one, what was not committed is lost."""
        if change and self._db is not None and not self._closed and not self._db.in_transaction:
            self._lose("a commit was interrupted")  # and nothing may change outside of a transaction
        self.check_open()
        try:
            yield self._db  # type: ignore[misc]
        except (sqlite3.Error, UnicodeDecodeError, MemoryError) as error:
            self._lose(str(error))
            raise self._ours(error) from None
        except ModelFileError as error:
            raise ModelFileError(f"{self.path}: {error}" if str(self.path) not in str(error) else str(error)) from None

    def _lose(self, why: str) -> None:
        """Go back to the last commit, and stay there: some of a change might be there and some not."""
        if self._began and self._db is not None and not self._lost:
            self._lost = why or "out of memory"
            with suppress(sqlite3.Error):
                self._db.rollback()

    def _ours(self, error: Exception) -> Exception:
        """Return the error to raise for one of SQLite, or of Python about a text that SQLite gave it."""
        code = getattr(error, "sqlite_errorcode", None)
        kind = None if code is None else code & 0xFF
        after = " What was not committed is lost: open it again, and go on from its last commit." if self._lost else ""
        if isinstance(error, MemoryError):
            return MemoryError(f"not enough memory for {self.path}. Use a smaller keep.{after}")
        if isinstance(error, UnicodeDecodeError) or "decode" in str(error):
            return ModelFileError(f"{self.path}: it is damaged: a text in it is not UTF-8. {RESTORE}")
        if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return OSError(f"another process is writing to {self.path}. Wait for it, or use another store.{after}")
        if kind in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            return OSError(f"cannot use {self.path}: {error}. Free some space, or check the disk.{after}")
        if kind in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            return OSError(f"cannot use {self.path}: {error}. Check the permissions of the file and its folder.{after}")
        return ModelFileError(f"{self.path}: it is damaged, or no store ({error}). {RESTORE}")


Note = Callable[[], Any]  # called at a commit: what to keep beside the states, a fact that JSON can hold
