"""Records: the contents of a learner as bytes, for model files, fleets, stores, Spark, copies and `step`.

All numbers are little-endian::

    "ogprec"   6 bytes
    version    uint16
    checksum   uint32, the CRC-32 of all bytes after it
    schema     uint32, the CRC-32 of the text of the schema
    integers   int64 each
    numbers    float64 each
    others     arrays and texts, padded with zeros to eight bytes; a varying length (int64) comes before the first array
               that has it

Entries are in the order of the schema, which lists their names, kinds and shapes in JSON. A file, a store or a query
stores the schema once for all records. The record of a learner begins with features, outputs, whether y has one
dimension, and the largest absolute y so far. Records are safe to read: nothing is executed, and each length is compared
with the number of bytes before memory is allocated.
"""

from __future__ import annotations

import json
import reprlib
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite, prod
from typing import Any, NamedTuple

import numpy as np

from onlinegp.files.container import ModelFileError
from onlinegp.state.contents import Contents
from onlinegp.state.fields import Size, Unencoded

MAGIC, VERSION = b"ogprec", 1
OLD_MAGIC = b"ogpstat"
HEAD = struct.Struct("<6sHII")
CHECKED = 12  # the checksum covers the bytes from here
TYPES = {name: np.dtype(name) for name in ("<f8", "<f4", "<i8", "|u1", "|b1")}
ARRAYS = ("array", "points", "integers", "flags", "triangle", "data")  # kinds with a type and a shape
FOREIGN = "contents"  # kind of a learner without fields: a described record of its dump
BYTES = ("text", "model", FOREIGN)  # kinds that are bytes with their own length
LEARNED = "learned."  # prefix of the names of fields
AGAIN = "Learn it again, or use the version of onlinegp that wrote it."
RESTORE = "Use an undamaged copy."
_LENGTH = struct.Struct("<q")
_DESCRIBED = struct.Struct("<II")


class Entry(NamedTuple):
    """A value in a record. Names in the shape are integers in the record or varying lengths."""

    name: str
    kind: str
    dtype: str = ""
    shape: tuple[Size, ...] = ()

    def plain(self) -> list[Any]:
        """Return the entry as JSON data."""
        return [self.name, self.kind, self.dtype, list(self.shape)] if self.kind in ARRAYS else [self.name, self.kind]


class Schema:
    """The entries of a record, in order. It converts contents to records and back.

    Attributes
    ----------
    text : the schema in JSON
    checksum : the CRC-32 of the text, which each record contains
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = tuple(entries)
        self.text = json.dumps([entry.plain() for entry in self.entries], separators=(",", ":"))
        self.checksum = zlib.crc32(self.text.encode())
        self._integers = [entry.name for entry in self.entries if entry.kind == "integer"]
        self._numbers = [entry.name for entry in self.entries if entry.kind == "number"]
        self._others = [entry for entry in self.entries if entry.kind not in ("integer", "number")]
        self._scalars = struct.Struct(f"<{len(self._integers)}q{len(self._numbers)}d")
        self._names = {entry.name for entry in self.entries}
        self.foreign = [entry.name for entry in self.entries if entry.kind == FOREIGN]

    @staticmethod
    def parse(found: Any) -> Schema:
        """Return the schema in JSON data or its text. Raise a ModelFileError if it is not valid."""
        return _parse_short(found) if isinstance(found, str) and len(found) < 10_000 else _parse(found)

    def to_bytes(self, contents: Contents) -> bytes:
        """Return contents, which must have the entries of the schema, as a record."""
        contents = _without_foreign(contents, self.foreign, self._names) if self.foreign else contents
        if odd := contents.keys() ^ self._names:
            raise ModelFileError(f"{min(odd)!r} cannot be stored: the learner has other fields.")
        integers, numbers = ([contents[name] for name in names] for names in (self._integers, self._numbers))
        for name, number in zip(self._numbers, numbers, strict=True):
            if not isfinite(number):
                raise ModelFileError(_not_finite(name))
        try:
            pieces = [self._scalars.pack(*integers, *numbers)]
        except struct.error as error:
            raise ModelFileError(f"a number of the state cannot be stored: {error}.") from None
        known = dict(zip(self._integers, integers, strict=True))
        for entry in self._others:
            pieces += _written(entry, contents[entry.name], known)
        body = b"".join(pieces)
        start = struct.pack("<I", self.checksum)
        return HEAD.pack(MAGIC, VERSION, zlib.crc32(body, zlib.crc32(start)), self.checksum) + body

    def from_bytes(self, data: bytes) -> Contents:
        """Return the contents of a record. Raise a ModelFileError if it is not valid."""
        if check_head(data) != self.checksum:
            raise ModelFileError(f"the state has other fields than this model. {AGAIN}")
        place = HEAD.size + self._scalars.size
        if len(data) < place:
            raise ModelFileError(f"the numbers of the state are cut short. {RESTORE}")
        values: Contents = dict(
            zip((*self._integers, *self._numbers), self._scalars.unpack_from(data, HEAD.size), strict=True)
        )
        known = {name: values[name] for name in self._integers}
        own = bytearray(data)  # a single copy for all arrays, which may be changed
        for entry in self._others:
            values[entry.name], place = _read(entry, own, place, known)
        if place != len(data):
            raise ModelFileError(f"the state has {len(data)} bytes, but its entries have {place}. {RESTORE}")
        return _with_foreign({entry.name: values[entry.name] for entry in self.entries}, self.foreign)

    def check_same(self, other: Schema) -> None:
        """Raise a ModelFileError that names the first difference between two schemas."""
        if self.text == other.text:
            return
        mine, theirs = ({entry.name: entry for entry in one.entries} for one in (self, other))
        odd = next((name for name in (*mine, *theirs) if mine.get(name) != theirs.get(name)), "order")
        found, wanted = theirs.get(odd), mine.get(odd)
        if found is None or wanted is None:
            what = f"lacks {odd!r}" if found is None else f"has the unknown entry {odd!r}"
        else:
            what = f"has {odd!r} as {found.plain()[1:]}, but such a model has it as {wanted.plain()[1:]}"
        raise ModelFileError(f"the schema {what}. {AGAIN}")


@lru_cache(maxsize=256)
def _parse_short(text: str) -> Schema:
    return _parse(text)


def _parse(found: Any) -> Schema:
    try:
        found = json.loads(found) if isinstance(found, str) else found
        schema = Schema([_entry(one) for one in found])
    except (ValueError, TypeError, RecursionError) as error:
        raise ModelFileError(f"the schema cannot be read ({str(error)[:200]}). {RESTORE}") from None
    if len({entry.name for entry in schema.entries}) < len(schema.entries):
        raise ModelFileError(f"the schema has an entry twice. {RESTORE}")
    return schema


def _written(entry: Entry, value: Any, known: dict[str, int]) -> list[bytes]:
    """Return the bytes of an array or a text: new varying lengths, the values, and zeros for padding."""
    if entry.kind in BYTES:
        data = value.encode() if isinstance(value, str) else bytes(value)
        return [_LENGTH.pack(len(data)), data, bytes(-len(data) % 8)]
    if not isinstance(value, np.ndarray) or value.dtype.str != entry.dtype or value.ndim != len(entry.shape):
        raise ModelFileError(f"{entry.name} cannot be stored: it must be {entry.dtype} with {len(entry.shape)} axes.")
    if value.dtype.kind == "f" and not np.isfinite(value).all():
        raise ModelFileError(_not_finite(entry.name))
    pieces = []
    for size, length in zip(entry.shape, value.shape, strict=True):
        if isinstance(size, str) and size not in known:
            known[size] = length
            pieces.append(_LENGTH.pack(length))
    if value.shape != _shape(entry, known):
        raise ModelFileError(f"{entry.name} cannot be stored: it must have shape {_shape(entry, known)}.")
    return [*pieces, value.tobytes(), bytes(-value.nbytes % 8)]


def _read(entry: Entry, data: bytearray, place: int, known: dict[str, int]) -> tuple[Any, int]:
    """Return a value and the position of the next value."""
    if entry.kind in BYTES:
        length, place = _length(entry, data, place)
        _check_room(entry, data, place, length)
        raw, place = bytes(data[place : place + length]), place + length + -length % 8
        return (_text(entry, raw) if entry.kind == "text" else np.frombuffer(raw, np.uint8)), place
    for size in entry.shape:
        if isinstance(size, str) and size not in known:
            known[size], place = _length(entry, data, place)
    lengths = [known[size] if isinstance(size, str) else size for size in entry.shape]
    if not all(0 <= length <= len(data) for length in lengths):
        raise ModelFileError(f"{entry.name} does not fit the state: its lengths are {lengths}. {RESTORE}")
    shape, dtype = _shape(entry, known), TYPES[entry.dtype]
    count = prod(shape)
    _check_room(entry, data, place, count * dtype.itemsize)
    array = np.frombuffer(data, dtype, count, place).reshape(shape)
    if entry.dtype == "|b1" and count and array.view(np.uint8).max() > 1:
        raise ModelFileError(f"{entry.name} must be true or false. {RESTORE}")
    return array, place + array.nbytes + -array.nbytes % 8


def _shape(entry: Entry, known: Mapping[str, int]) -> tuple[int, ...]:
    shape = tuple(known[size] if isinstance(size, str) else size for size in entry.shape)
    return (shape[0] * (shape[0] + 1) // 2,) if entry.kind == "triangle" else shape


def _length(entry: Entry, data: bytearray, place: int) -> tuple[int, int]:
    _check_room(entry, data, place, _LENGTH.size)
    return _LENGTH.unpack_from(data, place)[0], place + _LENGTH.size


def _check_room(entry: Entry, data: bytearray, place: int, wanted: int) -> None:
    if not 0 <= wanted <= len(data) - place:
        raise ModelFileError(f"{entry.name} does not fit the state: it takes {wanted} bytes. {RESTORE}")


def _text(entry: Entry, raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ModelFileError(f"{entry.name} is not valid UTF-8 text. {RESTORE}") from None


def _not_finite(name: str) -> str:
    name = name.removeprefix(LEARNED)
    return f"{name} holds a value that is not finite: the model has diverged. Start from scratch."


def check_head(data: bytes) -> int:
    """Check a record, and return the checksum of its schema. Raise a ModelFileError if the record is damaged."""
    if data[: len(OLD_MAGIC)] == OLD_MAGIC:
        raise ModelFileError(f"the state has the old format {data[:8].decode('ascii', 'replace')}. {AGAIN}")
    if len(data) < HEAD.size or data[: len(MAGIC)] != MAGIC:
        raise ModelFileError(f"these bytes are not the state of a model, or they are cut short. {RESTORE}")
    _, version, checksum, schema = HEAD.unpack_from(data)
    if version != VERSION:
        raise ModelFileError(f"the state has version {version}, but this onlinegp reads version {VERSION}. {AGAIN}")
    if zlib.crc32(memoryview(data)[CHECKED:]) != checksum:
        raise ModelFileError(f"the state is damaged (its checksum does not match). {RESTORE}")
    return schema


def _entry(found: Any) -> Entry:
    """Return an entry of a schema from JSON data. Raise an error if it is not valid."""
    name, kind, *more = found
    if not isinstance(name, str) or kind not in ("integer", "number", *ARRAYS, *BYTES):
        raise ValueError(f"{reprlib.repr(found)} is not an entry of a schema")
    if kind not in ARRAYS:
        if more:
            raise ValueError(f"{reprlib.repr(found)} has a shape")
        return Entry(name, kind)
    dtype, shape = more
    good = dtype in TYPES and isinstance(shape, list) and len(shape) == (1 if kind == "triangle" else len(shape))
    if not good or not all(isinstance(n, str) or (type(n) is int and n >= 0) for n in shape):
        raise ValueError(f"{reprlib.repr(found)} is not an array")
    return Entry(name, kind, dtype, tuple(shape))


# Records with their own schema


@dataclass(frozen=True)
class Described(Unencoded):
    """A description, a schema and contents together."""

    description: str
    schema: Schema
    contents: Contents

    def to_bytes(self) -> bytes:
        """Return the lengths of description and schema (uint32 each), the description, the schema, and the record."""
        description, schema = self.description.encode(), self.schema.text.encode()
        lengths = _DESCRIBED.pack(len(description), len(schema))
        return b"".join([lengths, description, schema, self.schema.to_bytes(self.contents)])

    @classmethod
    def from_bytes(cls, data: bytes, *, foreign: bool = True) -> Described:
        """Parse bytes of `to_bytes`. Raise a ModelFileError if not valid. `foreign` allows learners without fields."""
        first, second = _DESCRIBED.unpack_from(data) if len(data) >= _DESCRIBED.size else (len(data), 0)
        middle, end = _DESCRIBED.size + first, _DESCRIBED.size + first + second
        if end > len(data):
            raise ModelFileError(f"a described state is cut short. {RESTORE}")
        try:
            description, text = data[_DESCRIBED.size : middle].decode(), data[middle:end].decode()
        except UnicodeDecodeError:
            raise ModelFileError(f"the description of a state is not valid UTF-8 text. {RESTORE}") from None
        schema = Schema.parse(text)
        if schema.foreign and not foreign:
            raise ModelFileError(f"a learner without fields cannot contain another such learner. {RESTORE}")
        return cls(description, schema, schema.from_bytes(data[end:]))


def _without_foreign(contents: Contents, foreign: list[str], names: set[str]) -> Contents:
    """Replace the dump of each learner without fields by one entry, a described record."""
    rest = dict(contents)
    for name in sorted(foreign, key=len, reverse=True):
        prefix = name[:-1]
        own = {key: rest.pop(key) for key in contents if key.startswith(prefix) and key in rest and key not in names}
        own = {key[len(prefix) :]: value for key, value in own.items()}
        rest[name] = Described("", Schema([_entry_of(key, value) for key, value in own.items()]), own).to_bytes()
    return rest


def _with_foreign(contents: Contents, foreign: list[str]) -> Contents:
    for name in foreign:
        found = Described.from_bytes(contents.pop(name).tobytes(), foreign=False)
        more = {name[:-1] + key: value for key, value in found.contents.items()}
        if twice := more.keys() & contents.keys():
            raise ModelFileError(f"{min(twice)!r} occurs twice. {RESTORE}")
        contents |= more
    return contents


def _entry_of(name: str, value: Any) -> Entry:
    """Return the entry for a value of a learner without fields, with varying lengths."""
    if isinstance(value, np.ndarray) and value.dtype.str in TYPES:
        return Entry(name, "array", value.dtype.str, tuple(f"{name}[{axis}]" for axis in range(value.ndim)))
    kinds = {str: "text", int: "integer", float: "number", np.int64: "integer", np.float64: "number"}
    if type(value) not in kinds:
        raise ModelFileError(
            f"{name} cannot be stored: it is {reprlib.repr(value)}. Dump arrays of float64, float32, int64, uint8 or "
            f"bool, whole numbers, numbers and strings."
        )
    return Entry(name, kinds[type(value)])
