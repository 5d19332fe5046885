"""Where the models of a fleet are: all in memory, or those in use, and the others in a store on disk."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onlinegp.engine.keys import Numbers
from onlinegp.engine.members import Members, Which
from onlinegp.files.container import ModelFileError, as_model_file_error
from onlinegp.files.store import Key, Last, Note, Store
from onlinegp.keyed import packed, restored, unpacked
from onlinegp.learner import Contents
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.description import describe, rebuild
from onlinegp.models.saving import ABOUT, check_about, only

Keys = Sequence[Hashable]
Part = tuple[slice, Which]
MOST_WAITING = 256 << 20  # bytes of states in a store's log before they are committed by themselves


class Home(Protocol):
    """Members by key. `members` is None until `adopt`; a part is some events and the members that they belong to."""

    members: Members | None

    def adopt(self, members: Members, about: Contents) -> None:
        """Have these members from now on; `about` says features, outputs, single and names."""

    def checked(self, keys: Keys) -> Keys:
        """Return keys that can be used, or raise an error."""
        ...

    def parts(self, keys: Keys, *, learn: bool) -> Iterator[Part]:
        """Yield all events, in order. To `learn`, keys that are not there get members; otherwise they must be there."""
        ...

    def unknown(self, keys: Keys) -> Any:
        """Return a key that is not there in a list, or an empty one."""
        ...

    def newer(self, keys: Keys, order: Sequence[Any]) -> NDArray[np.bool_]:
        """Return which events come after the last of their key, and remember these as the last."""
        ...

    def dump(self, key: Hashable) -> Contents: ...
    def put(self, members: Members, about: Contents, keys: Keys, learned: Iterable[Contents]) -> None:
        """Adopt members, if there were none, and let those of keys continue from what they had learned.

        If one cannot, no key is added.
        """

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Hashable]: ...
    def __contains__(self, key: object) -> bool: ...


class Memory:
    """All members in memory, numbered as they come."""

    def __init__(self) -> None:
        self.members: Members | None = None
        self._numbers = Numbers()
        self._last: dict[Hashable, Any] = {}

    def adopt(self, members: Members, about: Contents) -> None:
        self.members = members

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

    def unknown(self, keys: Keys) -> Any:
        return list(self._new(keys))[:1] if self._numbers.find(keys) is None else []

    def _new(self, keys: Keys) -> dict[Hashable, None]:
        return dict.fromkeys(key for key in keys if key not in self._numbers)

    def newer(self, keys: Keys, order: Sequence[Any]) -> NDArray[np.bool_]:
        return _newer(self._last, keys, order)

    def dump(self, key: Hashable) -> Contents:
        assert self.members is not None
        return self.members.dump(self._numbers[key])

    def put(self, members: Members, about: Contents, keys: Keys, learned: Iterable[Contents]) -> None:
        new = self._new(keys)
        number = dict(zip(new, range(len(self._numbers), len(self._numbers) + len(new)), strict=True))
        members.grow(len(self._numbers) + len(new))
        for key, contents in zip(keys, learned, strict=True):
            members.load(number[key] if key in number else self._numbers[key], contents)
        self._numbers.add(new)
        self.members = members

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(list(self._numbers))  # those of now, whatever other threads add

    def __contains__(self, key: object) -> bool:
        return key in self._numbers


class Stored:
    """The `keep` members used last in memory, and all the others in a store, which has them all at a commit.

    A member that leaves memory is written if it has changed. Nothing of this is safe on disk before `commit`, so that
    a killed process leaves the models as they were between two calls.
    """

    def __init__(self, store: Store, keep: int) -> None:
        self.store, self.keep = store, keep
        self.members: Members | None = None
        self.note: Note | None = None  # what to keep at each commit, beside the states
        self._about: Contents = {}
        self._slots: OrderedDict[Key, int] = OrderedDict()  # of the keys in memory, the one used last at the end
        self._free: list[int] = []
        self._changed: set[Key] = set()
        self._new: set[Key] = set()  # in memory, and not in the store yet
        self._last: dict[Key, Last] = {}

    def adopt(self, members: Members, about: Contents) -> None:
        self.members, self._about = members, about
        if self.store.asked("events") != about:
            self.store.tell("events", about)

    def checked(self, keys: Keys) -> Keys:
        return checked_keys(keys)

    def parts(self, keys: Keys, *, learn: bool) -> Iterator[Part]:
        keys = checked_keys(keys)
        if self.note is None and self.store.waiting > MOST_WAITING:  # only its owner knows when a note is true
            self.commit()
        for rows, distinct in self._cut(keys):
            self._bring(distinct)
            if learn:
                self._changed.update(distinct)
            yield rows, np.fromiter(map(self._slots.__getitem__, keys[rows]), np.int64)

    def _cut(self, keys: list[Key]) -> Iterator[tuple[slice, list[Key]]]:
        """Yield stretches of events with at most `keep` different keys, and these."""
        distinct = dict.fromkeys(keys)
        if len(distinct) <= self.keep:
            yield slice(0, len(keys)), list(distinct)
            return
        start, some = 0, dict[Key, None]()
        for i, key in enumerate(keys):
            if key not in some and len(some) == self.keep:
                yield slice(start, i), list(some)
                start, some = i, {}
            some[key] = None
        yield slice(start, len(keys)), list(some)

    def _bring(self, keys: list[Key]) -> None:
        """Have these keys, at most `keep`, in memory; those used longest ago make room."""
        members, slots = self.members, self._slots
        assert members is not None
        absent = []
        for key in keys:
            if key in slots:
                slots.move_to_end(key)
            else:
                absent.append(key)
        if not absent:
            return
        free, room = len(self._free), self.keep - len(slots) - len(self._free)
        self._leave([next_key for next_key, _ in zip(slots, range(len(absent) - free - room), strict=False)])
        grown = len(slots) + len(self._free)
        more = max(0, len(absent) - len(self._free))
        members.grow(grown + more)
        self._free += range(grown, grown + more)
        found = self.store.get(absent)
        for key in absent:
            last, state = found.get(key, (None, None))
            slot = self._free[-1]
            if state is None:
                members.clear(slot)
                self._new.add(key)
            else:
                with as_model_file_error():
                    members.load(slot, unpacked(state)["learned"])
            slots[key] = self._free.pop()
            self._last[key] = last

    def _leave(self, keys: list[Key]) -> None:
        """Let keys leave memory, the changed ones for the store."""
        self._write(keys)
        for key in keys:
            self._free.append(self._slots.pop(key))
            del self._last[key]

    def _write(self, keys: Iterable[Key]) -> None:
        """Write those of the keys that have changed to the store, within its transaction."""
        assert self.members is not None
        changed = [key for key in keys if key in self._changed]
        dump, about = self.members.dump, self._about
        self.store.put(
            [(key, self._last[key], packed(about, dump(self._slots[key]))) for key in changed],
            new=sum(key in self._new for key in changed),
        )
        self._changed.difference_update(changed)
        self._new.difference_update(changed)

    def commit(self) -> None:
        """Make the store what the models are now, and safe."""
        if self.members is not None:
            self._write(list(self._slots))
        if self.note is not None:
            self.store.tell("note", self.note())
        self.store.commit()

    def unknown(self, keys: Keys) -> Any:
        some: list[Any] = [key for key in dict.fromkeys(checked_keys(keys)) if key not in self._slots]
        return [key for key in some if key not in self.store][:1]

    def newer(self, keys: Keys, order: Sequence[Any]) -> NDArray[np.bool_]:
        found = [_newer(self._last, keys[rows], order[rows]) for rows, _ in self.parts(keys, learn=True)]  # type: ignore[arg-type]
        return np.concatenate(found)

    def dump(self, key: Hashable) -> Contents:
        assert self.members is not None
        ((_, which),) = self.parts([key], learn=False)
        return self.members.dump(int(which[0]))

    def put(self, members: Members, about: Contents, keys: Keys, learned: Iterable[Contents]) -> None:
        for key, contents in zip(checked_keys(keys), learned, strict=True):
            if self.members is None:
                members.grow(1)
                members.load(0, contents)  # refused before anything changes
                self.adopt(members, about)
            self._put(key, contents)

    def _put(self, key: Key, contents: Contents) -> None:
        assert self.members is not None
        new = key not in self
        ((_, which),) = self.parts([key], learn=False)
        try:
            self.members.load(int(which[0]), contents)
        except BaseException:
            if new:
                self._leave([key])
                self._new.discard(key)
            raise
        self._changed.add(key)

    def __len__(self) -> int:
        return self.store.count + len(self._new)

    def __iter__(self) -> Iterator[Hashable]:
        new = list(self._new)
        yield from self.store
        yield from (key for key in new if key in self._new)  # the others came by while they left memory

    def __contains__(self, key: object) -> bool:
        return type(key) in (str, int) and (key in self._slots or key in self.store)  # type: ignore[operator]


def checked_keys(keys: Keys) -> list[Key]:
    """Return keys that a store can hold, or raise an error: strings, and whole numbers of 64 bits."""
    keys = list(keys)
    for key in set(keys):
        good = -(1 << 63) <= key < 1 << 63 if type(key) is int else type(key) is str and key.isascii()
        if not good and not (isinstance(key, str) and key.encode(errors="replace").decode() == key):
            raise ValueError(f"keys must be strings or whole numbers of 64 bits to be stored, got {key!r}. Rename it.")
    return keys  # type: ignore[return-value]


def _newer(last: dict[Any, Any], keys: Keys, order: Sequence[Any]) -> NDArray[np.bool_]:
    found = np.empty(len(keys), dtype=bool)
    for i, (key, place) in enumerate(zip(keys, order, strict=True)):
        before = last.get(key)
        found[i] = before is None or place > before
        if found[i]:
            last[key] = place
    return found


def opened(path: str | Path, keep: int, model: OnlineRegressor) -> tuple[Stored, Contents]:
    """Return the home of the models in a store, and what is known of their events; another model is refused."""
    store, about = Store(path), {"single": True, "names": []}
    try:
        home, known = Stored(store, keep), store.asked("model")
        if known is None:
            store.tell("model", describe(model))
        elif known != describe(model):
            raise ValueError(f"{path} holds models of another kind than {model!r}. Open it with Fleet.load.")
        elif (events := store.asked("events")) is not None:
            with as_model_file_error():
                only(events, *ABOUT)
                check_about(events, {})
                home.adopt(model.start_many(events["features"], events["outputs"]), events)
                about = events
    except BaseException:
        store.close()
        raise
    return home, about


# A store that is only read: what was committed, also while another process writes


def stored_model(path: str | Path) -> OnlineRegressor:
    """Return the model that all keys of a store started from."""
    with _read(path) as store:
        return _model(store)


def stored_one(path: str | Path, key: str) -> OnlineRegressor:
    """Return the model of one key of a store; a key of digits is found as text or as a number."""
    with _read(path) as store:
        digits = key.removeprefix("-").isdecimal() and len(key) < 20
        names: list[Key] = [key, *([int(key)] if digits and -(1 << 63) <= int(key) < 1 << 63 else [])]
        found = store.get(names)
        if not found:
            raise ValueError(f"no model in {path} has the key {key!r}.")
        (_, state), about = next(iter(found.values())), store.asked("events")
        with as_model_file_error():
            only(about, *ABOUT)
            check_about(about, {})
            return restored(_model(store), state, about["names"])


def stored_place(path: str | Path) -> tuple[OnlineRegressor, Any] | None:
    """Return the model of a store and what was kept beside the models, None if nothing was ever committed to it."""
    if not Path(path).exists():
        return None
    store = Store(path)  # which a killed process may have left empty
    try:
        return None if store.asked("model") is None else (_model(store), store.asked("note"))
    finally:
        store.close()


def stored_facts(path: str | Path) -> dict[str, Any]:
    """Return the number of keys in a store, and some of them."""
    with _read(path) as store:
        return {"models": store.count, "first keys": [key for key, _ in zip(store, range(5), strict=False)]}


@contextmanager
def _read(path: str | Path) -> Iterator[Store]:
    store = Store(path, write=False)
    try:
        yield store
    except ModelFileError as error:
        raise ModelFileError(str(error) if str(path) in str(error) else f"{path}: {error}") from None
    finally:
        store.close()


def _model(store: Store) -> OnlineRegressor:
    with as_model_file_error():
        model = rebuild(store.asked("model"))
        model.check()
    return model
