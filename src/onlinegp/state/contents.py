"""Dump, check and load the contents of a learner: everything that it has learned, by name.

Everything is checked, including inner learners, before loading changes anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

import numpy as np

from onlinegp.state.fields import Field, Fields, Unencoded

Contents = dict[str, Any]  # arrays, numbers and strings by name, as in files
Values = dict[str, Any]  # values by field, where an inner learner is a dictionary


class WithFields:
    """Base class of learners, and parts of learners, that declare their fields. They can define `check` and `rebuild`.

    Attributes
    ----------
    fields : the fields by name, in the order in which they are stored
    compact_fields : the fields of a compact dump, if they differ
    lengths : {name of a varying length in shapes: its bound, which is a number, an attribute, or None}
    """

    lengths: Mapping[str, int | str | None] = {}

    @property
    def fields(self) -> Fields:
        return {}

    @property
    def compact_fields(self) -> Fields | None:
        return None

    def check(self, values: Values) -> None:
        """Raise a ValueError if values of fields contradict each other."""

    def rebuild(self) -> None:
        """After loading, compute what follows from the fields."""

    def children(self) -> Mapping[str, Any]:
        """Return the inner learners and parts by the names of their fields."""
        names = [name for name, field in self.fields.items() if field.kind == "learner"]
        return {name: _attribute(self, name, self.fields[name]) for name in names}

    def dump(self) -> Contents:
        return dump_contents(self)

    def dump_compact(self) -> Contents:
        return dump_contents(self, compact=True) if self.children() else self.dump()

    def load(self, contents: Contents) -> None:
        load_contents(self, contents)

    def assign(self, values: Values) -> None:
        """Set the attributes to checked values. Override this if values are stored elsewhere."""
        for name, child in self.children().items():
            _assign(child, values[name])
        for name, field in self.fields.items():
            if field.kind != "learner":
                *path, last = (field.attribute or name).split(".")
                holder = attrgetter(".".join(path))(self) if path else self
                setattr(holder, last, field.copied(values[name]))
        self.rebuild()


def dump(learner: Any, *, compact: bool = False) -> Contents:
    """Return everything that a learner needs for the next row, by name.

    These are its fields, or the result of its method `dump`. A compact dump is rounded, and leaves out what can be
    computed again. `load` accepts both.
    """
    own = getattr(learner, "dump_compact" if compact else "dump", None)
    contents: Contents = dump_contents(learner, compact=compact) if own is None else own()
    return contents


def dump_unencoded(learner: Any) -> Contents:
    """Return what `dump` does, sooner: models that were chosen while learning are not encoded as bytes."""
    plain = getattr(type(learner), "dump", None) is WithFields.dump
    return dump_contents(learner, encoded=False) if plain else dump(learner)


def load(learner: Any, contents: Contents) -> None:
    """Continue exactly from the contents of `dump`. Raise a ValueError if they do not fit."""
    own = getattr(learner, "load", None)
    if own is None:
        load_contents(learner, contents)
    else:
        own(contents)


def dump_contents(learner: WithFields, *, compact: bool = False, encoded: bool = True) -> Contents:
    """Return copies of all fields of a learner, by name."""
    contents: Contents = {}
    children = learner.children()
    for name, field in _fields(learner).items():
        if field.kind != "learner":
            value = _attribute(learner, name, field)
            contents[name] = value if isinstance(value, Unencoded) and not encoded else field.copied(value)
            continue
        inside, prefix = children[name], _prefix(name, field)
        own = inside.dump_compact() if compact else inside.dump() if encoded else dump_unencoded(inside)
        contents |= {prefix + key: value for key, value in own.items()}
    return contents


def load_contents(learner: Any, contents: Contents) -> None:
    """Continue exactly from dumped contents. Raise a ValueError if they do not fit."""
    _assign(learner, check_contents(learner, contents))


def check_contents(learner: Any, contents: Contents, path: str = "") -> Values:
    """Return the values of the fields of a learner. Raise a ValueError that names the first invalid field.

    A compiled learner has the fields of its Python twin, `reference`. A learner without fields checks its contents in
    `load`. In messages, `path` precedes the names.
    """
    owner = getattr(learner, "reference", learner)
    fields = getattr(owner, "fields", None)
    if not fields:
        return contents
    if owner.compact_fields is not None and contents.keys() == owner.compact_fields.keys():
        fields = owner.compact_fields
    own, inside = _split(fields, contents, path)
    values, sizes = {}, _Sizes(owner)
    in_order = [name for name in fields if name in own]  # the order in a file may differ
    for name in sorted(
        in_order, key=lambda name: fields[name].kind != "integer"
    ):  # first, because shapes refer to them
        field = fields[name]
        shape = sizes.shape(path + name, field, own[name])
        values[name] = field.checked(path + name, own[name], shape, sizes.bound(field.least), sizes.bound(field.most))
        if field.kind == "integer":
            sizes.known[name] = values[name]
    children = owner.children() if inside else {}
    for name, contents_inside in inside.items():
        below = path + _prefix(name, fields[name])
        values[name] = check_contents(children[name], contents_inside, below)
    owner.check(values)
    return values


def _assign(learner: Any, values: Values) -> None:
    if getattr(getattr(learner, "reference", learner), "fields", None):
        learner.assign(values)
    else:
        learner.load(values)


def _fields(learner: WithFields) -> Fields:
    if not learner.fields:
        raise TypeError(f"{type(learner).__name__} must declare its fields or define its own dump and load.")
    return learner.fields


def _attribute(learner: WithFields, name: str, field: Field) -> Any:
    return attrgetter(field.attribute or name)(learner)


def _prefix(name: str, field: Field) -> str:
    return f"{name}." if field.prefix is None else field.prefix


def _split(fields: Fields, contents: Contents, path: str) -> tuple[Contents, dict[str, Contents]]:
    """Divide contents into fields and inner learners. Raise an error for unknown and missing names."""
    if not any(field.kind == "learner" for field in fields.values()) and contents.keys() == fields.keys():
        return contents, {}
    own = {name: contents[name] for name, field in fields.items() if name in contents and field.kind != "learner"}
    inside: dict[str, Contents] = {name: {} for name, field in fields.items() if field.kind == "learner"}
    for key, value in contents.items():
        if key in own:
            continue
        child = next((name for name in inside if key.startswith(_prefix(name, fields[name]))), None)
        if child is None:
            raise ValueError(f"the state has the unknown entry {path + key!r}. It should have: {', '.join(fields)}.")
        inside[child][key.removeprefix(_prefix(child, fields[child]))] = value
    for name in fields:
        if name not in own and name not in inside:
            raise ValueError(f"the state lacks {path + name!r}. It has: {', '.join(sorted(contents))}.")
    return own, inside


class _Sizes:
    """Resolve names in shapes and bounds: integer fields, varying lengths, or attributes of the learner."""

    def __init__(self, learner: WithFields) -> None:
        self._learner = learner
        self.known: dict[str, int] = {}  # integer fields, and the varying lengths found so far

    def bound(self, bound: Any) -> Any:
        return getattr(self._learner, bound) if isinstance(bound, str) else bound

    def shape(self, name: str, field: Field, value: Any) -> tuple[int, ...]:
        """Return the shape that a value must have."""
        found = value.shape if isinstance(value, np.ndarray) and value.ndim == len(field.shape) else (0, 0, 0, 0)
        if field.kind == "model":
            return found[:1]
        shape = tuple(
            size if isinstance(size, int) else self._size(name, size, found[axis])
            for axis, size in enumerate(field.shape)
        )
        return (shape[0] * (shape[0] + 1) // 2,) if field.kind == "triangle" else shape

    def _size(self, name: str, size: str, found: int) -> int:
        if size in self.known:
            return self.known[size]
        if size not in self._learner.lengths:
            own = getattr(self._learner, size)
            return own if isinstance(own, int) else len(own)
        most = self.bound(self._learner.lengths[size])
        if most is not None and found > most:
            raise ValueError(f"{name} must have a length of at most {most}, got {found}.")
        self.known[size] = found
        return found
