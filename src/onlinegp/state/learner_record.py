"""Convert the contents of learners to records of bytes and back, with a schema from their fields."""

from __future__ import annotations

import reprlib
import struct
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from onlinegp.files.container import ModelFileError
from onlinegp.state.contents import Contents, WithFields
from onlinegp.state.fields import Size
from onlinegp.state.record import AGAIN, FOREIGN, HEAD, LEARNED, RESTORE, Described, Entry, Schema, check_head

MAX_UNPROVEN_COLUMNS = 10_000  # larger numbers of columns are accepted only with arrays of this size
ABOUT = (
    *(Entry("features", "integer"), Entry("outputs", "integer"), Entry("single", "integer")),
    Entry("largest", "number"),
)
_ABOUT = struct.Struct("<qqq")


def schema_of(learner: Any, *, compact: bool = False) -> Schema:
    """Return the schema of full or compact records of a learner."""
    return _schema((*ABOUT, *_entries(learner, compact, LEARNED)))


@lru_cache(maxsize=256)
def _schema(entries: tuple[Entry, ...]) -> Schema:
    return Schema(entries)


class Schemas:
    """The schemas of full and compact records of a learner: schemas[compact]."""

    def __init__(self, learner: Any) -> None:
        self._learner = learner

    def __getitem__(self, compact: bool) -> Schema:
        return self._compact if compact else self._full

    @cached_property
    def _full(self) -> Schema:
        return schema_of(self._learner)

    @cached_property
    def _compact(self) -> Schema:
        return schema_of(self._learner, compact=True)

    def of(self, record: bytes) -> Schema:
        """Return the schema of a record. Raise a ModelFileError if it is unknown."""
        found = check_head(record)
        for compact in (False, True):
            if self[compact].checksum == found:
                return self[compact]
        raise ModelFileError(f"the state has other fields than this model. {AGAIN}")


def _entries(learner: Any, compact: bool, path: str) -> list[Entry]:
    """Return the entries of the fields of a learner, depth first."""
    owner = getattr(learner, "reference", learner)
    fields = getattr(owner, "fields", None)
    if not fields:
        return [Entry(f"{path}*", FOREIGN)]
    if compact and owner.compact_fields is not None:
        fields = owner.compact_fields
    found: list[Entry] = []
    for name, field in fields.items():
        if field.kind == "learner":
            prefix = f"{name}." if field.prefix is None else field.prefix
            found += _entries(owner.children()[name], compact, path + prefix)
        elif field.is_array and field.kind != "model":
            shape = tuple(_size(owner, fields, size, path) for size in field.shape)
            found.append(Entry(path + name, field.kind, np.dtype(field.dtype).str, shape))
        else:
            found.append(Entry(path + name, field.kind))
    return found


def _size(owner: WithFields, fields: Mapping[str, Any], size: Size, path: str) -> Size:
    """Return a length that is equal in all records, or the name of a length that each record contains."""
    if isinstance(size, int):
        return size
    if size in owner.lengths or (size in fields and fields[size].kind == "integer"):
        return path + size
    known = getattr(owner, size)
    return known if isinstance(known, int) else len(known)


# Records of learners


def learner_to_bytes(schema: Schema, contents: Contents) -> bytes:
    """Return the contents of a model as a record."""
    return schema.to_bytes(_flat(contents))


def learner_from_bytes(schema: Schema, data: bytes) -> Contents:
    """Return features, outputs, single, largest and learned of a record. Raise a ModelFileError if it is not valid."""
    return _nested(schema.from_bytes(data))


def described(description: str, learner: Any, contents: Contents) -> Described:
    """Return the contents of a model with a description and their schema."""
    return Described(description, schema_of(learner), _flat(contents))


def described_to_bytes(description: str, learner: Any, contents: Contents) -> bytes:
    """Return the contents of a model as a record with its description and schema."""
    return described(description, learner, contents).to_bytes()


def described_from_bytes(data: bytes | Described) -> tuple[str, Contents]:
    """Return description and contents of bytes from `described_to_bytes`. Raise a ModelFileError if not valid."""
    found = data if isinstance(data, Described) else Described.from_bytes(data)
    return found.description, _nested(dict(found.contents))


def _flat(contents: Contents) -> Contents:
    about = {entry.name: contents[entry.name] for entry in ABOUT}
    return about | {LEARNED + name: value for name, value in contents["learned"].items()}


def _nested(contents: Contents) -> Contents:
    found: Contents = {entry.name: contents.pop(entry.name, None) for entry in ABOUT}
    check_largest(found["largest"])
    proven = sum(value.nbytes for value in contents.values() if isinstance(value, np.ndarray)) // 8
    found["single"] = {0: False, 1: True}.get(found["single"], found["single"])
    check_sizes(found, proven)
    if odd := next((name for name in contents if not name.startswith(LEARNED)), None):
        raise ModelFileError(f"the state has the unknown entry {odd!r}. {AGAIN}")
    return found | {"learned": {name[len(LEARNED) :]: value for name, value in contents.items()}}


def about_of(data: bytes) -> dict[str, Any]:
    """Return features, outputs and single of a record, which determine the schema. Raise a ModelFileError if cut."""
    check_head(data)
    if len(data) < HEAD.size + _ABOUT.size:
        raise ModelFileError(f"the numbers of the state are cut short. {RESTORE}")
    features, outputs, single = _ABOUT.unpack_from(data, HEAD.size)
    about = {"features": features, "outputs": outputs, "single": {0: False, 1: True}.get(single, single)}
    check_sizes(about, len(data) // 8)
    return about


def check_sizes(about: Mapping[str, Any], proven: int) -> None:
    """Raise an error for invalid features, outputs or single. Large sizes must not exceed `proven` stored numbers."""
    for name, least in (("features", 0), ("outputs", 1)):
        value = about.get(name)
        if type(value) is not int or not least <= value <= max(MAX_UNPROVEN_COLUMNS, proven):
            raise ModelFileError(f"impossible sizes: {name} = {reprlib.repr(value)}. {RESTORE}")
    single = about.get("single")
    if not isinstance(single, bool) or (single and about["outputs"] != 1):
        raise ModelFileError(
            f"single must be true or false, and false for several outputs, got {reprlib.repr(single)}. {RESTORE}"
        )


def check_largest(largest: Any) -> None:
    """Raise an error for an invalid largest |y|."""
    if isinstance(largest, bool) or not isinstance(largest, int | float) or not 0.0 <= largest < float("inf"):
        raise ModelFileError(f"largest must be a number of at least zero, got {reprlib.repr(largest)}. {RESTORE}")
