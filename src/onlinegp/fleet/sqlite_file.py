"""The SQLite file of a store: a table with the state of each key, and a table with facts about all keys.

All changes are part of a transaction until `commit`. If the process is killed or the disk is full, the file stays at
the last commit. After a lost transaction, all calls raise an error until the store is opened again. Only one process
can open the file for writing; others can read the last commit. Files with other tables are not opened, so that an
untrusted file cannot execute anything.
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
from onlinegp.fleet.owner_lock import OwnerLock

MAGIC = b"SQLite format 3\0"
FORMAT = 3
TABLES = {
    "about": "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "models": "CREATE TABLE models (number INTEGER PRIMARY KEY, key NOT NULL UNIQUE, last, state BLOB NOT NULL)",
}
SCHEMA = {
    *(("table", name, name, sql) for name, sql in TABLES.items()),
    ("index", "sqlite_autoindex_models_1", "models", None),  # SQLite creates this for UNIQUE
}
AT_ONCE = 100  # keys per query, so that their states fit into the cache
PAGE = 8192  # bytes; a state takes several pages
PATIENCE = 10.0  # seconds to wait for another process to release the file
BEFORE_ALL = -(1 << 63)  # the smallest row number
RESTORE = "Restore the file from a copy, or use another store."

Key = str | int
Last = str | float | None
Row = tuple[Key, Last, bytes]


def is_store(path: str | Path) -> bool:
    """Return whether a file is a SQLite file."""
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


class Store:
    """The states of all keys, the order of the last event of each key, and named facts.

    Parameters
    ----------
    path : str or Path
        The file. It is created if it does not exist, and removed again if nothing is committed.
    write : bool
        Whether to open it for writing. Otherwise it must exist.

    Attributes
    ----------
    count : int
        The number of keys.
    waiting : int
        The bytes of uncommitted states.
    """

    def __init__(self, path: str | Path, *, write: bool = True) -> None:
        self.path, self.waiting, self.count = Path(path), 0, 0
        self._closed = self._made = self._began = False
        self._lost, self._process = "", os.getpid()
        if is_special(path):
            raise OSError(f"cannot store models in {path}, because it is a device or a pipe. Use a file.")
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
                f"{self._file.as_uri()}?{self._mode()}", uri=True, isolation_level=None,
                check_same_thread=False, timeout=PATIENCE,
            )  # fmt: skip
            self._db.execute("PRAGMA trusted_schema = OFF")
            self._db.execute("PRAGMA cell_size_check = ON")  # check each page when it is read
            self._refuse_others()  # check before the file changes
            if self._write:
                self._db.execute(f"PRAGMA page_size = {PAGE}")
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = FULL")
                self._db.execute("BEGIN IMMEDIATE")
                self._began = True
                if not self._one("SELECT count(*) FROM sqlite_master"):
                    for table in TABLES.values():
                        self._db.execute(table)
                    self.set_fact("format", FORMAT)
            if self.fact("format") != FORMAT:
                raise ModelFileError(
                    f"it has format {self.fact('format')!r}, but this onlinegp reads format {FORMAT}. "
                    f"Use another store, or the version of onlinegp that made it."
                )
            self.count = self._counted()

    def _mode(self) -> str:
        """Return how SQLite opens the file. In a read-only folder it cannot make the files that readers share."""
        if self._write:
            return "mode=rw"
        complete = not Path(f"{self._file}-wal").exists()  # a closed store: everything is in the file
        return "immutable=1" if complete and not os.access(self._file.parent, os.W_OK) else "mode=ro"

    def _refuse_others(self) -> None:
        """Raise an error for a file with anything but our tables. An empty file is accepted for writing."""
        assert self._db is not None
        found = self._db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
        if not found and not self._write:
            raise ModelFileError("it has no commit yet. Learn and commit with Fleet(model, store=FILE).")
        if found and (len(found) != len(SCHEMA) or set(found) != SCHEMA):
            raise ModelFileError("it is a SQLite file, but not a store of onlinegp. Use another file.")

    def _counted(self) -> int:
        """Return the number of keys. Raise an error for impossible numbers: pages of a damaged file can form a loop."""
        most = self._one("PRAGMA page_count") * self._one("PRAGMA page_size") // 4  # a row takes at least four bytes
        count: int = self._one("SELECT count(*) FROM (SELECT 1 FROM models LIMIT ?)", most)
        if count == most:
            raise ModelFileError(f"it is damaged: its pages contradict each other. {RESTORE}")
        return count

    def _one(self, ask: str, *values: Any) -> Any:
        assert self._db is not None
        return self._db.execute(ask, values).fetchone()[0]

    # Facts about all

    def set_fact(self, name: str, value: Any) -> None:
        """Store a named JSON-compatible fact."""
        text = json.dumps(value, allow_nan=False)
        with self._told(change=True) as db:
            db.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, text))

    def fact(self, name: str) -> Any:
        """Return the fact with this name, or None."""
        with self._told() as db:
            found = db.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
            try:
                return None if found is None else json.loads(found[0])
            except (ValueError, TypeError, RecursionError):
                raise ModelFileError(f"the fact {name!r} is not JSON. {RESTORE}") from None

    # States

    def types(self) -> set[type[Key]]:
        """Return the types of the keys. Only the first and the last key are read, because numbers sort before texts."""
        with self._told() as db:
            ends = [db.execute(f"SELECT {end}(key) FROM models").fetchone()[0] for end in ("min", "max")]
        return {type(self._checked(key)) for key in ends if key is not None}

    def get(self, keys: Sequence[Key]) -> dict[Key, tuple[Last, bytes]]:
        """Return {key: (order of the last event, state)} for the existing keys."""
        found: dict[Key, tuple[Last, bytes]] = {}
        for i in range(0, len(keys), AT_ONCE):
            some = keys[i : i + AT_ONCE]
            marks = ",".join("?" * len(some))
            with self._told() as db:
                rows = db.execute(f"SELECT key, last, state FROM models WHERE key IN ({marks})", some).fetchall()
            for key, last, state in rows:
                if not isinstance(state, bytes) or isinstance(last, bytes):
                    raise ModelFileError(f"{self.path}: the state of the key {key!r} is invalid. {RESTORE}")
                found[self._checked(key)] = last, state
        return found

    def __contains__(self, key: Key) -> bool:
        with self._told() as db:
            return db.execute("SELECT 1 FROM models WHERE key = ?", (key,)).fetchone() is not None

    def __iter__(self) -> Iterator[Key]:
        """Yield the keys, in queries of a thousand keys, so that other keys can be written in the meantime."""
        last, ask = BEFORE_ALL, "SELECT number, key FROM models WHERE number > ? ORDER BY number LIMIT 1000"
        while True:
            with self._told() as db:
                rows = db.execute(ask, (last,)).fetchall()
            if not rows:
                return
            for number, key in rows:
                if number <= last:  # otherwise a damaged file could loop forever
                    raise ModelFileError(f"{self.path}: it is damaged: its rows are not in order. {RESTORE}")
                last = number
                yield self._checked(key)

    def _checked(self, key: Any) -> Key:
        if type(key) not in (str, int):
            raise ModelFileError(
                f"{self.path}: it is damaged: the key {key!r} is not a text or whole number. {RESTORE}"
            )
        return key

    def put(self, rows: Sequence[Row], new: int) -> None:
        """Write these states. `new` is the number of new keys among them."""
        with self._told(change=True) as db:
            db.executemany(
                "INSERT INTO models (key, last, state) VALUES (?, ?, ?) "
                "ON CONFLICT (key) DO UPDATE SET last = excluded.last, state = excluded.state",
                rows,
            )
        self.count += new
        self.waiting += sum(len(state) for _, _, state in rows)

    def commit(self) -> None:
        """Commit all changes so far, in one transaction."""
        with self._told(change=True) as db:
            self._made = False
            db.execute("COMMIT")
            db.execute("BEGIN IMMEDIATE")
        self.waiting = 0

    def close(self) -> None:
        """Close the file. Uncommitted changes are lost."""
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
        """Raise an error if nothing can be stored, because the store was closed, forked, or lost a transaction."""
        again = f"Open it again, such as by Fleet.load({str(self.path)!r})"
        if self._closed:
            raise ValueError(f"the store {self.path} is closed. {again}.")
        if os.getpid() != self._process:
            raise ValueError(f"the store {self.path} was opened before this process was forked. Use one process.")
        if self._lost:
            raise OSError(f"{self.path} is at its last commit: later changes are lost ({self._lost}). {again}.")

    @contextmanager
    def _told(self, *, change: bool = False) -> Iterator[sqlite3.Connection]:
        """Convert errors of SQLite to our errors. After an error, uncommitted changes are lost."""
        if change and self._db is not None and not self._closed and not self._db.in_transaction:
            self._lose("a commit was interrupted")  # nothing may change outside a transaction
        self.check_open()
        try:
            yield self._db  # type: ignore[misc]
        except (sqlite3.Error, UnicodeDecodeError, MemoryError) as error:
            self._lose(str(error))
            raise self._ours(error) from None
        except ModelFileError as error:
            raise ModelFileError(f"{self.path}: {error}" if str(self.path) not in str(error) else str(error)) from None

    def _lose(self, why: str) -> None:
        """Return to the last commit, and let further calls raise errors, because a change may be incomplete."""
        if self._began and self._db is not None and not self._lost:
            self._lost = why or "out of memory"
            with suppress(sqlite3.Error):
                self._db.rollback()

    def _ours(self, error: Exception) -> Exception:
        """Return our error for an error of SQLite, or for text in the file that cannot be decoded."""
        code = getattr(error, "sqlite_errorcode", None)
        kind = None if code is None else code & 0xFF
        after = " Uncommitted changes are lost. Open it again to continue from its last commit." if self._lost else ""
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
        return ModelFileError(f"{self.path}: it is damaged, or not a store ({error}). {RESTORE}")


Note = Callable[[], Any]  # called at each commit; its JSON-compatible result is stored
