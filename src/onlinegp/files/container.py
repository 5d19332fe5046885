"""The format of model files and fleet files: a header and named arrays in a safetensors file, with a checksum.

The header is a JSON object, stored as text in the metadata of the file under "onlinegp". Its first entry, "crc32",
contains the eight hexadecimal digits of the CRC-32 of the whole file, computed with zeros in place of the digits. All
safetensors readers can open such a file. Nothing in a file is executed, and sizes are compared with the size of the
file before memory is allocated.
"""

from __future__ import annotations

import json
import reprlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

FORMAT = 3
OLD_MAGIC = (b"onlinegp", b"ogpfleet")  # first bytes of files in format 1
BEFORE_CRC = rb"\"crc32\": \""  # quotes are escaped, because this is JSON within JSON
NO_CRC = b"00000000"

Arrays = dict[str, np.ndarray]


class ModelFileError(ValueError):
    """Raised if a model file cannot be read or written."""


def to_bytes(header: dict[str, Any], arrays: Arrays) -> bytes:
    """Return header and arrays as the bytes of a file."""
    return b"".join(chunks(header, arrays))


def chunks(header: dict[str, Any], arrays: Arrays) -> list[Any]:
    """Return header and arrays as the bytes of a file, in pieces that can be written without copying them."""
    from safetensors import SafetensorError
    from safetensors.numpy import save

    text = json.dumps({"crc32": NO_CRC.decode(), "format": FORMAT, **header}, allow_nan=False)
    try:
        data = save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, metadata={"onlinegp": text})
    except SafetensorError as error:
        raise ModelFileError(f"the model cannot be written ({error}).") from None
    place = data.index(BEFORE_CRC) + len(BEFORE_CRC)
    view = memoryview(data)
    return [view[:place], checksum(data, place), view[place + len(NO_CRC) :]]


def from_bytes(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """Return header and arrays of a file. Raise a ModelFileError if the file is not valid."""
    length = _header_length(data)
    metadata = _json(data[8 : 8 + length]).get("__metadata__")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("onlinegp"), str):
        raise ModelFileError("this is a safetensors file, but not a file of onlinegp.")
    header = _json(metadata["onlinegp"])
    found = header.get("format")
    if found != FORMAT or isinstance(found, bool):
        old = type(found) is int and found < FORMAT
        remedy = "Learn again, or use the version of onlinegp that saved it." if old else "Upgrade onlinegp."
        raise ModelFileError(
            f"the file has format {reprlib.repr(found)}, but this onlinegp reads format {FORMAT}. {remedy}"
        )
    arrays = _arrays(data)
    place = data.find(BEFORE_CRC, 8, 8 + length) + len(BEFORE_CRC)
    if data[place : place + len(NO_CRC)] != checksum(data, place):
        raise ModelFileError("the file is damaged (its checksum does not match).")
    return {name: value for name, value in header.items() if name not in ("crc32", "format")}, arrays


@contextmanager
def as_model_file_error() -> Iterator[None]:
    """Convert all errors from a damaged or forged file to a ModelFileError."""
    try:
        yield
    except ModelFileError:
        raise
    except MemoryError:
        raise ModelFileError("the file needs more memory than is available.") from None
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ModelFileError(f"the file does not describe a model ({reason[:500]}).") from None


def _header_length(data: bytes) -> int:
    """Return the length of the safetensors header, after comparing it with the size of the file."""
    if data.startswith(OLD_MAGIC):
        raise ModelFileError("the file has format 1, of a version before the first release. Learn again.")
    if data.startswith(b"SQLite format 3"):
        raise ModelFileError(
            "this is a store of many models, not a model file. Open it with onlinegp.Fleet.load, or write one of its "
            "models to a file: onlinegp inspect STORE --key K --out FILE."
        )
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > len(data) - 8 or data[8:9] != b"{":
        raise ModelFileError("this is not an onlinegp model file, or it is cut short. Use another file.")
    return length


def _arrays(data: bytes) -> Arrays:
    from safetensors.numpy import load

    try:
        return load(data)
    except Exception as error:  # errors of safetensors, and of NumPy for unknown types
        reason = f"{type(error).__name__}: {error}"
        raise ModelFileError(f"the arrays do not fit the file ({reason[:500]}).") from None


def _json(text: str | bytes) -> dict[str, Any]:
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"the header is not valid JSON ({str(error)[:200]}).") from None
    if not isinstance(found, dict):
        raise ModelFileError("the header is not an object.")
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an entry appears twice")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def checksum(data: bytes, place: int) -> bytes:
    """Return the digits of the checksum for this position in the file."""
    view = memoryview(data)
    crc = zlib.crc32(view[place + len(NO_CRC) :], zlib.crc32(NO_CRC, zlib.crc32(view[:place])))
    return b"%08x" % crc
