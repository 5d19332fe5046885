"""Where the models of a fleet are: all in memory, or those in use, and the others in a store on disk."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onlinegp.engine.keys import Numbers
from onlinegp.engine.members import Members, Which
from onlinegp.files.container import ModelFileError
from onlinegp.files.store import AT_ONCE, RESTORE, Key, Last, Note, Store
from onlinegp.places import checked_places, newer
from onlinegp.state import Contents
from onlinegp.state.record import RESTORE as USE_A_COPY

Keys = Sequence[Hashable]
Part = tuple[slice | Which, Which]
State = bytes | tuple[Contents, float]  # of a member: its record, or what it dumped and its largest |y|
MOST_WAITING = 256 << 20  # bytes of states in a store's log before they are committed by themselves
TYPES: dict[type[Key], str] = {str: "strings", int: "whole numbers"}  # what keys of a store may be


class Home(Protocol):
    """Members by key. `members` is None until `adopt`; a part is some events and the members that they belong to."""

    members: Members | None
    compact: bool

    def adopt(self, members: Members, about: Contents) -> None:
        """Have these members from now on; `about` says features, outputs, single and names."""

    def checked(self, keys: Keys) -> Keys:
        """Return keys that can be used, or raise an error."""
        ...

    def parts(self, keys: Keys, *, learn: bool) -> Iterator[Part]:
        """Yield all events, those of a key in one part and in order.

        To `learn`, keys that are not there get members; otherwise they must be there.
        """
        ...

    def unknown(self, keys: Keys) -> Any:
        """Return a key that is not there in a list, or an empty one."""
        ...

    def newer(self, keys: Keys, order: Sequence[Any]) -> NDArray[np.bool_]:
        """Return which events come after the last of their key, and remember these as the last."""
        ...

    def dump(self, key: Hashable) -> Contents: ...
    def largest(self, key: Hashable) -> float:
        """Return the largest |y| that a key has learned."""
        ...

    def to_bytes(self, keys: Keys, single: bool) -> Iterator[bytes]:
        """Yield the records of keys."""
        ...

    def put(self, members: Members, about: Contents, keys: Keys, states: Iterable[State]) -> None:
        """Adopt members, if there were none, and let those of keys continue from what they had learned.

        If one cannot, no key is added.
        """

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Hashable]: ...
    def __contains__(self, key: object) -> bool: ...


class Memory:
    """All members in memory, numbered as they come. If `compact`, they are rounded after each call, as in a store."""

    def __init__(self, compact: bool = False) -> None:
        self.compact = compact
        self.members: Members | None = None
        self._single = True
        self._numbers = Numbers()
        self._last: dict[Hashable, Any] = {}

    def adopt(self, members: Members, about: Contents) -> None:
        self.members, self._single = members, about["single"]

    def checked(self, keys: Keys) -> Keys:
        if self.members is None:
            set(keys)  # fails if one is no key, before anything changes; later, looking them up does
        return keys

    def parts(self, keys: Keys, *, learn: bool) -> Iterator[Part]:
        which = self._numbers.find(keys)
        if which is None:
            assert self.members is not None
            new = self._new(keys)
            self.members.grow(len(self._numbers) + len(new))
            self._numbers.add(new)
            which = self._numbers.find(keys)
        assert which is not None
        yield slice(None), which
        if learn and self.compact:
            assert self.members is not None
            rounded(self.members, np.unique(which), self._single)

    def unknown(self, keys: Keys) -> Any:
        return list(self._new(keys))[:1] if self._numbers.find(keys) is None else []

    def _new(self, keys: Keys) -> dict[Hashable, None]:
        return dict.fromkeys(key for key in keys if key not in self._numbers)

    def newer(self, keys: Keys, order: Sequence[Any]) -> NDArray[np.bool_]:
        return newer(self._last, keys, checked_places(order))

    def dump(self, key: Hashable) -> Contents:
        assert self.members is not None
        return self.members.dump(self._numbers[key])

    def largest(self, key: Hashable) -> float:
        assert self.members is not None
        return float(self.members.largest[self._numbers[key]])

    def to_bytes(self, keys: Keys, single: bool) -> Iterator[bytes]:
        for i in range(0, len(keys), AT_ONCE):
            assert self.members is not None
            which = _indices(self._numbers[key] for key in keys[i : i + AT_ONCE])
            yield from self.members.to_bytes(which, single, self.compact)

    def put(self, members: Members, about: Contents, keys: Keys, states: Iterable[State]) -> None:
        new = self._new(keys)
        number = dict(zip(new, range(len(self._numbers), len(self._numbers) + len(new)), strict=True))
        members.grow(len(self._numbers) + len(new))
        for key, state in zip(keys, states, strict=True):
            member = number[key] if key in number else self._numbers[key]
            put_state(members, member, state, about["single"])
            if self.compact and not isinstance(state, bytes):
                rounded(members, _indices([member]), about["single"])
        self._numbers.add(new)
        self.adopt(members, about)

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(list(self._numbers))  # those of now, whatever other threads add

    def __contains__(self, key: object) -> bool:
        return key in self._numbers


class Stored:
    """The `keep` members used last in memory, and all the others in a store, which has them all at a commit.

    A member that leaves memory is written if it has changed. Nothing of this is safe on disk before `commit`, so that
    a killed process leaves the models as they were between two calls. If `compact`, what a call has changed becomes a
    record after it, and goes on from there: a state at rest is its bytes, in memory as on disk.
    """

    def __init__(self, store: Store, keep: int, compact: bool = False) -> None:
        self.store, self.keep, self.compact = store, keep, compact
        self.members: Members | None = None
        self.note: Note | None = None  # what to keep at each commit, beside the states
        self._about: Contents = {}
        self._slots: OrderedDict[Key, int] = OrderedDict()  # of the keys in memory, the one used last at the end
        self._free: list[int] = []
        self._made = 0  # members; a slot that an interruption loses is never used again
        self._changed: set[Key] = set()
        self._new: set[Key] = set()  # in memory, and not in the store yet
        self._last: dict[Key, Last] = {}
        self._records: dict[Key, bytes] = {}  # of the keys in memory, if compact
        self._types: set[type[Key]] = store.types()  # of its keys: one type, but older versions let in both

    def adopt(self, members: Members, about: Contents) -> None:
        self.members, self._about = members, about
        if self.store.asked("events") != about:
            self.store.tell("events", about)
            self.store.tell("schema", json.loads(members.schemas[self.compact].text))

    def checked(self, keys: Keys) -> list[Key]:
        """Return keys of the type that the store has, or raise an error: 0 and "0" would be two models."""
        found, types = checked_keys(keys)
        if len(types | self._types) > max(1, len(self._types)):
            have = next(iter(self._types), type_of(found[0]))
            odd = next(key for key in found if type_of(key) is not have)
            raise ValueError(
                f"the keys of a store must have one type, and those of {self.store.path} are {TYPES[have]}, "
                f"got {odd!r}. Convert the keys, such as by {have.__name__}(key), or use another store."
            )
        return found

    def parts(self, keys: Keys, *, learn: bool) -> Iterator[Part]:
        self.store.check_open()
        keys = self.checked(keys)
        self._types |= {type_of(key) for key in keys[:1]}
        if self.note is None and self.store.waiting > MOST_WAITING:  # only its owner knows when a note is true
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
        states = rounded(self.members, _indices(self._slots[key] for key in keys), self._about["single"])
        self._records.update(zip(keys, states, strict=True))

    def _cut(self, keys: list[Key]) -> Iterator[tuple[slice | Which, list[Key]]]:
        """Yield the events of `keep` different keys at a time, and these; all of a key's together: it comes in once."""
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
        """Have these keys, at most `keep`, in memory; those used longest ago make room."""
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
            members.from_bytes(_indices(places[key] for key in old), records, self._about["single"])
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
        """Let keys leave memory, the changed ones for the store."""
        self._write(keys)
        for key in keys:
            self._free.append(self._slots.pop(key))
            self._records.pop(key, None)
            del self._last[key]

    def _write(self, keys: Iterable[Key]) -> None:
        """Write those of the keys that have changed to the store, within its transaction."""
        assert self.members is not None
        changed = [key for key in keys if key in self._changed]
        for i in range(0, len(changed), AT_ONCE):
            some = changed[i : i + AT_ONCE]
            loose = [key for key in some if key not in self._records]
            which = _indices(self._slots[key] for key in loose)
            fresh = dict(zip(loose, self.members.to_bytes(which, self._about["single"], self.compact), strict=True))
            rows = [(key, self._last[key], fresh.get(key) or self._records[key]) for key in some]
            self.store.put(rows, new=sum(key in self._new for key in some))
            self._changed.difference_update(some)
            self._new.difference_update(some)

    def commit(self) -> None:
        """Make the store what the models are now, and safe."""
        if self.members is not None:
            self._write(list(self._slots))
        if self.note is not None:
            self.store.tell("note", self.note())
        self.store.commit()

    def unknown(self, keys: Keys) -> Any:
        some: list[Any] = [key for key in dict.fromkeys(self.checked(keys)) if key not in self._slots]
        return [key for key in some if key not in self.store][:1]

    def newer(self, keys: Keys, order: Sequence[Any]) -> NDArray[np.bool_]:
        if self.members is None:
            raise ValueError("nothing is known of the events yet. Call begin(features), or learn some, before newer.")
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
                put_state(members, 0, state, about["single"])  # refused before anything changes
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
        yield from (key for key in new if key in self._new)  # the others came by while they left memory

    def __contains__(self, key: object) -> bool:
        self.store.check_open()
        return type(key) in TYPES and (key in self._slots or key in self.store)  # type: ignore[operator]


def taken(values: Sequence[Any], rows: slice | Which) -> Sequence[Any]:
    """Return those of a sequence that a part has."""
    return values[rows] if isinstance(rows, slice) else [values[i] for i in rows]


def rounded(members: Members, which: Which, single: bool) -> list[bytes]:
    """Let members go on from their compact states, and return these."""
    states = members.to_bytes(which, single, compact=True)
    members.from_bytes(which, states, single)
    return states


def put_state(members: Members, member: int, state: State, single: bool) -> None:
    """Let a member continue from a state."""
    if isinstance(state, bytes):
        members.from_bytes(_indices([member]), [state], single)
    else:
        members.load(member, *state)


def _indices(numbers: Iterable[int]) -> Which:
    return np.fromiter(numbers, np.int64)


def type_of(key: Key) -> type[Key]:
    return int if type(key) is int else str


def checked_keys(keys: Keys) -> tuple[list[Key], set[type[Key]]]:
    """Return keys that a store can hold, strings and whole numbers of 64 bits, and their types, or raise an error."""
    some: list[Any] = list(keys)
    different = set(some)
    for key in different:
        good = -(1 << 63) <= key < 1 << 63 if type(key) is int else type(key) is str and key.isascii()
        if not good and not (isinstance(key, str) and key.encode(errors="replace").decode() == key):
            raise ValueError(f"keys must be strings or whole numbers of 64 bits to be stored, got {key!r}. Rename it.")
    return some, set(map(type_of, different))
