"""The models of a fleet in memory, and the base class for memory and SQLite."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onlinegp.fleet.keys import Numbers, missing
from onlinegp.fleet.members import Members, Which
from onlinegp.fleet.order import checked_places, newer
from onlinegp.fleet.sqlite_file import AT_ONCE
from onlinegp.state import Contents

Keys = Sequence[Hashable]
Part = tuple[slice | Which, Which]
State = bytes | tuple[Contents, float]  # of a member: a record, or contents and the largest |y|


class Home(Protocol):
    """Base class: the members of a fleet by key. `members` is None before `adopt`."""

    members: Members | None
    compact: bool

    def adopt(self, members: Members, about: Contents) -> None:
        """Use these members from now on. `about` has features, outputs, single and names."""

    def checked(self, keys: Keys) -> Keys:
        """Return the keys. Raise an error if a key is invalid."""
        ...

    def parts(self, keys: Keys, *, learn: bool) -> Iterator[Part]:
        """Divide the events of a call into parts. Yield the indices of the events of each part, and their members.

        All events of a key are in one part, in order. With `learn`, new keys get members; otherwise all keys must be
        known.
        """
        ...

    def unknown(self, keys: Keys) -> Any:
        """Return a list with an unknown key, or an empty list."""
        ...

    def newer(self, keys: Keys, order: Sequence[Any]) -> NDArray[np.bool_]:
        """Return which events come after the last event of their key, and store their order."""
        ...

    def dump(self, key: Hashable) -> Contents: ...
    def largest(self, key: Hashable) -> float:
        """Return the largest |y| that the model of a key has learned."""
        ...

    def to_bytes(self, keys: Keys, single: bool) -> Iterator[bytes]:
        """Yield the records of keys."""
        ...

    def put(self, members: Members, about: Contents, keys: Keys, states: Iterable[State]) -> None:
        """Load the states of these keys. If the fleet has no members yet, it takes over `members`.

        If a state is invalid, no key is added.
        """

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Hashable]: ...
    def __contains__(self, key: object) -> bool: ...


class Memory:
    """All members are in memory. With `compact`, they are rounded after each call, as in a store."""

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
            self._new(keys)  # raises an error for missing or unhashable keys, before anything changes
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
        new = dict.fromkeys(key for key in keys if key not in self._numbers)
        for key in new:
            if missing(key):
                raise ValueError(f"keys must not be missing, got {key!r}. Leave out the rows without a key.")
        return new

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
            which = indices(self._numbers[key] for key in keys[i : i + AT_ONCE])
            yield from self.members.to_bytes(which, single, self.compact)

    def put(self, members: Members, about: Contents, keys: Keys, states: Iterable[State]) -> None:
        new = self._new(keys)
        number = dict(zip(new, range(len(self._numbers), len(self._numbers) + len(new)), strict=True))
        members.grow(len(self._numbers) + len(new))
        for key, state in zip(keys, states, strict=True):
            member = number[key] if key in number else self._numbers[key]
            put_state(members, member, state, about["single"])
            if self.compact and not isinstance(state, bytes):
                rounded(members, indices([member]), about["single"])
        self._numbers.add(new)
        self.adopt(members, about)

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(list(self._numbers))  # a copy, because other threads may add keys

    def __contains__(self, key: object) -> bool:
        return key in self._numbers


@contextmanager
def learning(home: Home, keys: Keys) -> Iterator[Iterator[Part]]:
    """Return the parts of a call that learns. An exception gets the attribute `learned`: which events were learned."""
    learned, current = np.zeros(len(keys), dtype=bool), None

    def parts() -> Iterator[Part]:
        nonlocal current
        for rows, which in home.parts(keys, learn=True):
            assert home.members is not None
            home.members.forget()
            current = home.members, rows, len(which)
            yield rows, which
            learned[rows] = True

    try:
        yield parts()
    except BaseException as error:
        if current is not None:
            members, rows, count = current
            learned[rows] |= members.learned(count)
        elif isinstance(error, Exception):  # an ordinary error before the first event
            raise
        with suppress(AttributeError):  # exceptions of signal handlers may not accept attributes
            error.learned = learned  # type: ignore[attr-defined]
            error.add_note(
                f"{learned.sum()} of {len(learned)} events were learned: those where the attribute `learned` of this "
                "exception is True."
            )
        raise


def taken(values: Sequence[Any], rows: slice | Which) -> Sequence[Any]:
    """Return the values at these rows."""
    return values[rows] if isinstance(rows, slice) else [values[i] for i in rows]


def rounded(members: Members, which: Which, single: bool) -> list[bytes]:
    """Round members to their compact states, and return these states."""
    states = members.to_bytes(which, single, compact=True)
    members.from_bytes(which, states, single)
    return states


def put_state(members: Members, member: int, state: State, single: bool) -> None:
    """Load the state of a member."""
    if isinstance(state, bytes):
        members.from_bytes(indices([member]), [state], single)
    else:
        members.load(member, *state)


def indices(numbers: Iterable[int]) -> Which:
    """Return member numbers as an array."""
    return np.fromiter(numbers, np.int64)
