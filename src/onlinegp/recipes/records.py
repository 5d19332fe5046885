"""The state of a model made of parts as few bytes: what stores hold by the million. The compiled engine has the twin.

A record is a head of 88 bytes and the arrays of the state one after the other, all little-endian. The head is eight
bytes of magic, the CRC-32 of all that follows it, one bit for each array that is there, then features, outputs,
single, size and seen (int64) and scale, bound, power and evidence (float64). Of a matrix there is the lower triangle,
row by row. The compact form (`onlinegp.recipes.compact`) is told by its arrays. Nothing in a record is ever executed.
"""

from __future__ import annotations

import struct
import zlib
from math import prod
from typing import Any

import numpy as np

from onlinegp.files.container import ModelFileError
from onlinegp.recipes.compact import FACTOR
from onlinegp.recipes.contents import NUMBERS
from onlinegp.recipes.state import KINDS

MAGIC = b"ogpstat2"
ARRAYS = [*(name for name in KINDS if name not in NUMBERS), FACTOR]  # each has the bit of its place
_HEAD = struct.Struct("<8sIIqqqqqdddd")
_AFTER_CHECKSUM = 12


def is_state(contents: dict[str, Any]) -> bool:
    """Whether these are the contents of a state made of parts."""
    return NUMBERS.keys() <= contents.keys() <= {*KINDS, FACTOR}


def pack_state(features: int, outputs: int, single: bool, contents: dict[str, Any]) -> bytes:
    """Return the contents of a state as bytes."""
    names = [name for name in ARRAYS if name in contents]
    for name, value in contents.items():
        if not np.isfinite(value).all():
            raise ModelFileError(
                f"{name} holds a value that is not finite: the model has broken down. Start from scratch."
            )
    bits = sum(1 << ARRAYS.index(name) for name in names)
    numbers = [contents[name] for name in NUMBERS]
    head = _HEAD.pack(MAGIC, 0, bits, features, outputs, single, *numbers)[_AFTER_CHECKSUM:]
    rest = b"".join([head, *(contents[name].tobytes() for name in names)])
    return MAGIC + zlib.crc32(rest).to_bytes(4, "little") + rest


def about_state(data: bytes) -> dict[str, Any]:
    """Return features, outputs and single of what `pack_state` wrote, whatever else is in it."""
    return _head(data)[0]


def has_learned(data: bytes) -> bool:
    """Return whether what `pack_state` wrote, and whose checksum is known to be right, has learned a row."""
    return _HEAD.unpack_from(data)[7] > 0  # seen


def unpack_state(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return features, outputs and single of what `pack_state` wrote, and the contents; or raise a ModelFileError."""
    about, numbers, names = _head(data)
    d, p, m = about["features"], about["outputs"], numbers["size"]
    lower = (m * (m + 1) // 2,)
    shapes = {"points": (m, d), "outputs": (m, p), "triangular": lower, "symmetric": lower, FACTOR: lower}
    types: dict[str, np.dtype[Any]] = {"counts": np.dtype("<i8"), FACTOR: np.dtype("<f4")}
    contents, place, own = dict(numbers), _HEAD.size, bytearray(data)  # one copy, which the arrays may share
    for name in names:
        kind = KINDS.get(name, FACTOR)
        shape, dtype = shapes.get(kind, (m,)), types.get(kind, np.dtype("<f8"))
        count = prod(shape)
        if place + dtype.itemsize * count > len(data):
            raise ModelFileError(f"{name} does not fit the state of {m} centers.")
        contents[name] = np.frombuffer(own, dtype, count, place).reshape(shape)
        place += dtype.itemsize * count
    if place != len(data):
        raise ModelFileError(f"the arrays do not fit the state of {m} centers.")
    return about, contents


def _head(data: bytes) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Return features, outputs and single, the numbers, and the names of the arrays, once the checksum is right."""
    if len(data) < _HEAD.size or data[: len(MAGIC)] != MAGIC:
        raise ModelFileError("these bytes are not the state of such a model, or they are cut short.")
    _, checksum, bits, features, outputs, single, *numbers = _HEAD.unpack_from(data)
    if zlib.crc32(memoryview(data)[_AFTER_CHECKSUM:]) != checksum:
        raise ModelFileError("the state is damaged (its checksum does not match).")
    if min(features, numbers[0]) < 0 or outputs < 1 or single not in (0, 1) or bits >> len(ARRAYS):
        raise ModelFileError(f"impossible sizes: {features} features, {outputs} outputs, {numbers[0]} centers.")
    names = [name for i, name in enumerate(ARRAYS) if bits >> i & 1]
    about = {"features": features, "outputs": outputs, "single": bool(single)}
    return about, dict(zip(NUMBERS, numbers, strict=True)), names
