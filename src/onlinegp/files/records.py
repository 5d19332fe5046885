"""Named numbers, strings and arrays as few bytes.

A record is eight bytes of magic, the CRC-32 of all that follows and the length of a JSON header, four bytes each
(little-endian), the header, and the arrays one after the other. The header holds the numbers and strings by name, and
under "arrays" the name, type and shape of each array. Nothing in a record is ever executed.
"""

from __future__ import annotations

import json
import reprlib
import struct
import zlib
from math import prod
from typing import Any

import numpy as np

from onlinegp.files.container import ModelFileError

MAGIC = b"ogpstat1"
ARRAYS = "arrays"
TYPES = {name: np.dtype(name) for name in ("<f8", "<f4", "<i8", "|u1", "|b1")}
FEW = 10_000  # columns that a record need not prove by its arrays
_START = struct.Struct("<8sII")


def pack_record(contents: dict[str, Any]) -> bytes:
    """Return named numbers, strings and arrays as bytes."""
    header: dict[str, Any] = {}
    layout: list[tuple[str, str, tuple[int, ...]]] = []
    pieces: list[bytes] = []
    for name, value in contents.items():
        if isinstance(value, np.ndarray):
            if value.dtype.kind == "f" and not np.isfinite(value).all():
                raise ModelFileError(
                    f"{name} holds a value that is not finite: the model has broken down. Start from scratch."
                )
            if value.dtype.str not in TYPES:
                raise ModelFileError(f"{name} cannot be stored: arrays of {value.dtype} are not known.")
            layout.append((name, value.dtype.str, value.shape))
            pieces.append(value.tobytes())
        else:
            header[name] = value.item() if isinstance(value, np.generic) else value
    header[ARRAYS] = layout
    try:
        text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    except ValueError:
        raise ModelFileError("a number is not finite: the model has broken down. Start from scratch.") from None
    text += b" " * (-len(text) % 8)  # so that the arrays lie where a processor likes them
    body = b"".join([text, *pieces])
    return _START.pack(MAGIC, zlib.crc32(body), len(text)) + body


def unpack_record(data: bytes) -> dict[str, Any]:
    """Return what `pack_record` was given, or raise a ModelFileError."""
    if len(data) < _START.size or data[: len(MAGIC)] != MAGIC:
        raise ModelFileError("these bytes are not the state of a model, or they are cut short.")
    _, checksum, length = _START.unpack_from(data)
    if zlib.crc32(memoryview(data)[_START.size :]) != checksum:
        raise ModelFileError("the state is damaged (its checksum does not match).")
    try:
        contents = json.loads(data[_START.size : _START.size + length])
        layout = contents.pop(ARRAYS)
        place, own = _START.size + length, bytearray(data)  # one copy, which the arrays share and may change
        for name, kind, shape in layout:
            count, dtype = _count(shape), TYPES[kind]
            if name in contents or place + count * dtype.itemsize > len(data):
                raise ModelFileError("the arrays do not fit the state.")
            contents[name] = np.frombuffer(own, dtype, count, place).reshape(shape)
            place += count * dtype.itemsize
    except ModelFileError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"the state cannot be read ({type(error).__name__}: {str(error)[:200]}).") from None
    if place != len(data):
        raise ModelFileError("the arrays do not fit the state.")
    return contents


def _count(shape: Any) -> int:
    if not all(type(n) is int and n >= 0 for n in shape):
        raise ModelFileError("the arrays do not fit the state.")
    return prod(shape)


def check_sizes(about: dict[str, Any], proven: int) -> None:
    """Refuse features, outputs and single that make no sense; sizes above some must be proven by so many numbers."""
    for name, least in (("features", 0), ("outputs", 1)):
        value = about.get(name)
        if type(value) is not int or not least <= value <= max(FEW, proven):
            raise ModelFileError(f"impossible sizes: {name} = {reprlib.repr(value)}.")
    single = about.get("single")
    if not isinstance(single, bool) or (single and about["outputs"] != 1):
        raise ModelFileError(
            f"single must be true or false, and false for several outputs, got {reprlib.repr(single)}."
        )
