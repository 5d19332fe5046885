"""The models of a fleet in a SQLite file, with the most recently used models in memory."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinegp.files.container import ModelFileError, as_model_file_error
from onlinegp.fleet.members import Members, Which, start_members
from onlinegp.fleet.memory import Keys, Part, State, indices, put_state, rounded, taken
from onlinegp.fleet.order import checked_places, newer
from onlinegp.fleet.sqlite_file import AT_ONCE, RESTORE, Key, Last, Note, Store
from onlinegp.fleet.step import from_bytes
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.description import describe, rebuild
from onlinegp.models.model_file import ABOUT, check_about, only
from onlinegp.state import Contents, Schema
from onlinegp.state.record import RESTORE as USE_A_COPY

MOST_WAITING = 256 << 20  # bytes of uncommitted states before a call commits
TYPES: dict[type[Key], str] = {str: "strings", int: "whole numbers"}  # the possible types of keys


class Stored:
    """The `keep` most recently used members are in memory, all others in a store.

    A member that leaves memory is written to the store if it has changed. A commit writes all members. The file changes
    only at `commit`, so a killed process leaves the models of a moment between two calls. With `compact`, each call
    replaces changed members by their rounded records, so that memory and file contain the same bytes.
    """

    def __init__(self, store: Store, keep: int, compact: bool = False) -> None:
        self.store, self.keep, self.compact = store, keep, compact
        self.members: Members | None = None
        self.note: Note | None = None  # a function that returns a value to store at each commit
        self._about: Contents = {}
        # {key in memory: member}; the most recently used key is last
        self._slots: OrderedDict[Key, int] = OrderedDict()
        self._free: list[int] = []
        self._made = 0  # number of members; a member lost by an interrupt is not used again
        self._changed: set[Key] = set()
        self._new: set[Key] = set()  # keys that are not in the store yet
        self._last: dict[Key, Last] = {}
        self._records: dict[Key, bytes] = {}  # records of the keys in memory, if compact
        self._types: set[type[Key]] = store.types()  # types of the keys: one, or two in files of older versions

    def adopt(self, members: Members, about: Contents) -> None:
        self.members, self._about = members, about
        if self.store.fact("events") != about:
            self.store.set_fact("events", about)
            self.store.set_fact("schema", json.loads(members.schemas[self.compact].text))

    def checked(self, keys: Keys) -> list[Key]:
        """Return the keys. Raise an error if they have another type than the keys of the store: 0 and "0" differ."""
        found, types = checked_keys(keys)
        if len(types | self._types) > max(1, len(self._types)):
            have = next(iter(self._types), type_of(found[0]))
            odd = next(key for key in found if type_of(key) is not have)
            raise ValueError(
                f"the keys of a store must have one type, and the keys of {self.store.path} are {TYPES[have]}, "
                f"got {odd!r}. Convert the keys, such as by {have.__name__}(key), or use another store."
            )
        return found

    def parts(self, keys: Keys, *, learn: bool) -> Iterator[Part]:
        self.store.check_open()
        keys = self.checked(keys)
        self._types |= {type_of(key) for key in keys[:1]}
        if self.note is None and self.store.waiting > MOST_WAITING:  # without a note, which must match the models
            self.commit()
        for rows, distinct in self._cut(keys):
            self._bring(distinct)
            if learn:
                self._changed.update(distinct)
                for key in distinct if self.compact else ():
                    self._records.pop(key, None)
            mine = keys if isinstance(rows, slice) else [keys[i] for i in rows]
            yield rows, np.fromiter(map(self._slots.__getitem__, mine), np.int64, len(mine))
            if learn and self.compact:
                self._round(distinct)

    def _round(self, keys: list[Key]) -> None:
        assert self.members is not None
        states = rounded(self.members, indices(self._slots[key] for key in keys), self._about["single"])
        self._records.update(zip(keys, states, strict=True))

    def _cut(self, keys: list[Key]) -> Iterator[tuple[slice | Which, list[Key]]]:
        """Yield events of at most `keep` keys, and these keys. All events of a key stay together."""
        distinct = dict.fromkeys(keys)
        if len(distinct) <= self.keep:
            yield slice(None), list(distinct)
            return
        for i, key in enumerate(distinct):
            distinct[key] = i // self.keep
        part = np.fromiter(map(distinct.__getitem__, keys), np.int64, len(keys))
        order, names = np.argsort(part, kind="stable"), list(distinct)
        for i, rows in enumerate(np.split(order, np.flatnonzero(np.diff(part[order])) + 1)):
            yield rows, names[i * self.keep : (i + 1) * self.keep]

    def _bring(self, keys: list[Key]) -> None:
        """Load at most `keep` keys into memory. The least recently used keys leave memory."""
        absent = []
        for key in keys:
            if key in self._slots:
                self._slots.move_to_end(key)
            else:
                absent.append(key)
        for i in range(0, len(absent), AT_ONCE):
            self._fetch(absent[i : i + AT_ONCE])

    def _fetch(self, absent: list[Key]) -> None:
        members, slots = self.members, self._slots
        assert members is not None
        free, room = len(self._free), self.keep - len(slots) - len(self._free)
        self._leave([next_key for next_key, _ in zip(slots, range(len(absent) - free - room), strict=False)])
        more = range(self._made, self._made + max(0, len(absent) - len(self._free)))
        members.grow(more.stop)
        self._made = more.stop
        self._free += more
        places = dict(zip(absent, self._free[len(self._free) - len(absent) :], strict=True))
        found = self.store.get(absent)
        old = [key for key in absent if key in found]
        try:
            records = [found[key][1] for key in old]
            members.from_bytes(indices(places[key] for key in old), records, self._about["single"])
        except ModelFileError as error:
            raise ModelFileError(f"{self.store.path}: {str(error).removesuffix(USE_A_COPY)}{RESTORE}") from None
        if self.compact:
            self._records.update((key, found[key][1]) for key in old)
        for key in absent:
            if key not in found:
                members.clear(places[key])
                self._new.add(key)
            self._last[key] = found[key][0] if key in found else None
        del self._free[len(self._free) - len(absent) :]
        slots.update(places)

    def _leave(self, keys: list[Key]) -> None:
        """Remove keys from memory. Before, write changed members to the store."""
        self._write(keys)
        for key in keys:
            self._free.append(self._slots.pop(key))
            self._records.pop(key, None)
            del self._last[key]

    def _write(self, keys: Iterable[Key]) -> None:
        """Write changed members to the store, in the current transaction."""
        assert self.members is not None
        changed = [key for key in keys if key in self._changed]
        for i in range(0, len(changed), AT_ONCE):
            some = changed[i : i + AT_ONCE]
            loose = [key for key in some if key not in self._records]
            which = indices(self._slots[key] for key in loose)
            fresh = dict(zip(loose, self.members.to_bytes(which, self._about["single"], self.compact), strict=True))
            rows = [(key, self._last[key], fresh.get(key) or self._records[key]) for key in some]
            self.store.put(rows, new=sum(key in self._new for key in some))
            self._changed.difference_update(some)
            self._new.difference_update(some)

    def commit(self) -> None:
        """Write all changed members to the store, and commit."""
        if self.members is not None:
            self._write(list(self._slots))
        if self.note is not None:
            self.store.set_fact("note", self.note())
        self.store.commit()

    def unknown(self, keys: Keys) -> Any:
        some: list[Any] = [key for key in dict.fromkeys(self.checked(keys)) if key not in self._slots]
        return [key for key in some if key not in self.store][:1]

    def newer(self, keys: Keys, order: Sequence[Any]) -> NDArray[np.bool_]:
        if self.members is None:
            raise ValueError("the number of features is unknown. Call begin(features) before newer.")
        found, places = np.empty(len(keys), dtype=bool), checked_places(order)
        for rows, _ in self.parts(keys, learn=False):
            found[rows] = newer(self._last, taken(keys, rows), taken(places, rows))
            self._changed.update(taken(keys, rows))
        return found

    def dump(self, key: Hashable) -> Contents:
        assert self.members is not None
        ((_, which),) = self.parts([key], learn=False)
        return self.members.dump(int(which[0]))

    def largest(self, key: Hashable) -> float:
        assert self.members is not None
        ((_, which),) = self.parts([key], learn=False)
        return float(self.members.largest[which[0]])

    def to_bytes(self, keys: Keys, single: bool) -> Iterator[bytes]:
        for i in range(0, len(keys), AT_ONCE):
            assert self.members is not None
            for _, which in self.parts(keys[i : i + AT_ONCE], learn=False):
                yield from self.members.to_bytes(which, single, self.compact)

    def put(self, members: Members, about: Contents, keys: Keys, states: Iterable[State]) -> None:
        for key, state in zip(self.checked(keys), states, strict=True):
            if self.members is None:
                members.grow(1)
                put_state(members, 0, state, about["single"])  # raises an error before anything changes
                self.adopt(members, about)
            self._put(key, state)

    def _put(self, key: Key, state: State) -> None:
        assert self.members is not None
        new = key not in self
        ((_, which),) = self.parts([key], learn=False)
        try:
            put_state(self.members, int(which[0]), state, self._about["single"])
        except BaseException:
            if new:
                self._leave([key])
                self._new.discard(key)
            raise
        self._changed.add(key)
        if self.compact:
            self._round([key])

    def __len__(self) -> int:
        return self.store.count + len(self._new)

    def __iter__(self) -> Iterator[Hashable]:
        new = list(self._new)
        yield from self.store
        yield from (key for key in new if key in self._new)  # other keys have been written to the store in the meantime

    def __contains__(self, key: object) -> bool:
        self.store.check_open()
        return type(key) in TYPES and (key in self._slots or key in self.store)  # type: ignore[operator]


def type_of(key: Key) -> type[Key]:
    return int if type(key) is int else str


def checked_keys(keys: Keys) -> tuple[list[Key], set[type[Key]]]:
    """Return the keys and their types. Raise an error if a key is not a string or a whole number of 64 bits."""
    some: list[Any] = list(keys)
    different = set(some)
    for key in different:
        good = -(1 << 63) <= key < 1 << 63 if type(key) is int else type(key) is str and key.isascii()
        if not good and not (isinstance(key, str) and key.encode(errors="replace").decode() == key):
            raise ValueError(
                f"keys must be strings or whole numbers of 64 bits to be stored, got {key!r}. Rename this key."
            )
    return some, set(map(type_of, different))


def open_store(path: str | Path | Store, keep: int, model: OnlineRegressor, compact: bool) -> tuple[Stored, Contents]:
    """Open a store. Return its members and the facts about their rows. Raise an error if it has another model."""
    store, about = path if isinstance(path, Store) else Store(path), {"single": True, "names": []}
    try:
        home, known, events = Stored(store, keep, compact), store.fact("model"), store.fact("events")
        if store.count and (known is None or events is None):
            raise ModelFileError(f"{store.path}: it is damaged: the description of its models is missing. {RESTORE}")
        if known is None:
            store.set_fact("model", describe(model))
            store.set_fact("compact", compact)
        elif known != describe(model):
            raise ValueError(f"{store.path} contains other models than {model!r}. Open it with Fleet.load.")
        elif bool(store.fact("compact")) != compact:
            raise ValueError(
                f"{store.path} has models with compact={not compact}, got compact={compact}. Open it with Fleet.load."
            )
        elif events is not None:
            with _described(store):
                only(events, *ABOUT)
                check_about(events)
                members = start_members(model, events["features"], events["outputs"])
                members.schemas[compact].check_same(Schema.parse(store.fact("schema")))
                home.adopt(members, events)
                about = events
    except BaseException:
        store.close()
        raise
    return home, about


# Read the last commit of a store, even while another process writes


def stored_model(path: str | Path) -> tuple[OnlineRegressor, bool]:
    """Return the initial model of all keys in a store, and whether its states are compact."""
    with closing(Store(path, write=False)) as store:
        return _model(store), bool(store.fact("compact"))


def stored_one(path: str | Path, key: str) -> tuple[OnlineRegressor, Any]:
    """Return the model of a key in a store, and the note of the last commit or None.

    A key of digits is searched as a text and as a number.
    """
    with closing(Store(path, write=False)) as store:
        digits = key.removeprefix("-").isdecimal() and len(key) < 20
        names: list[Key] = [key, *([int(key)] if digits and -(1 << 63) <= int(key) < 1 << 63 else [])]
        found = store.get(names)
        if not found:
            raise ValueError(f"no model in {path} has the key {key!r}.")
        (_, state), about, model = found[key if key in found else names[-1]], store.fact("events"), _model(store)
        with _described(store):
            only(about, *ABOUT)
            check_about(about)
            return from_bytes(model, state, about["names"]), store.fact("note")


def stored_place(store: Store) -> tuple[OnlineRegressor, Any] | None:
    """Return the initial model of a store and the note of its last commit, or None before the first commit."""
    return None if store.fact("model") is None else (_model(store), store.fact("note"))


def stored_facts(path: str | Path) -> dict[str, Any]:
    """Return the number of keys in a store, their type, and some examples."""
    with closing(Store(path, write=False)) as store:
        types = " and ".join(sorted(TYPES[kind] for kind in store.types()))
        first = [key for key, _ in zip(store, range(5), strict=False)]
        return {"models": store.count, "type of keys": types, "first keys": first}


def _model(store: Store) -> OnlineRegressor:
    described = store.fact("model")
    with _described(store):
        model = rebuild(described)
        model.check()
    return model


@contextmanager
def _described(store: Store) -> Iterator[None]:
    """Convert all errors from a damaged or forged store to a ModelFileError with the file name and a remedy."""
    try:
        with as_model_file_error():
            yield
    except ModelFileError as error:
        text = str(error)
        raise ModelFileError(text if str(store.path) in text else f"{store.path}: {text} {RESTORE}") from None
