"""Named arrays and a header in one safetensors file, with a checksum: what model files and fleet files are made of.

The header is a JSON object in the file's metadata, under "onlinegp"; its entry "crc32" is the CRC-32 of the rest of it
and of every array. Any reader of safetensors can open such a file. Nothing in it is ever executed, and nothing is
allocated before the sizes that it states were compared with the size of the file.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

FORMAT = 2
OLD_MAGIC = (b"onlinegp", b"ogpfleet")  # of format 1, before the first release

Arrays = dict[str, np.ndarray]


class ModelFileError(ValueError):
    """A model file that cannot be read or written, with the reason."""


def pack(header: dict[str, Any], arrays: Arrays) -> bytes:
    """Return header and arrays as the bytes of a file."""
    from safetensors.numpy import save

    header = {"format": FORMAT, **header}
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    text = json.dumps({"crc32": _checksum(header, arrays), **header}, allow_nan=False)
    return save(arrays, metadata={"onlinegp": text})


def unpack(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """Return header and arrays of a file, or raise a ModelFileError."""
    header = _json(_metadata(data)["onlinegp"])
    checksum = header.pop("crc32", None)
    if header.get("format") != FORMAT:
        raise ModelFileError(
            f"the file has format {header.get('format')!r}, and this onlinegp reads format {FORMAT}. "
            f"Upgrade onlinegp, or save the model again."
        )
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(data)
    except (SafetensorError, ValueError, KeyError) as error:
        raise ModelFileError(f"the arrays do not fit the file ({error}).") from None
    if _checksum(header, arrays) != checksum:
        raise ModelFileError("the file is damaged (its checksum does not match).")
    return header, arrays


@contextmanager
def as_model_file_error() -> Iterator[None]:
    """Whatever a forged file can cause ends here, as a ModelFileError."""
    try:
        yield
    except ModelFileError:
        raise
    except MemoryError:
        raise ModelFileError("the file asks for more memory than there is.") from None
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ModelFileError(f"the file does not describe a model ({reason[:500]}).") from None


def _metadata(data: bytes) -> dict[str, str]:
    """Return the metadata, once the length of the header was compared with that of the file."""
    if data.startswith(OLD_MAGIC):
        raise ModelFileError("the file has format 1, of a version before the first release. Save the model again.")
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > len(data) - 8 or data[8:9] != b"{":
        raise ModelFileError("this is not an onlinegp model file, or it is cut short.")
    metadata = _json(data[8 : 8 + length]).get("__metadata__")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("onlinegp"), str):
        raise ModelFileError("this is a safetensors file, but not one of onlinegp.")
    return metadata


def _json(text: str | bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise ModelFileError("the header is not valid JSON.") from None
    if not isinstance(found, dict):
        raise ModelFileError("the header is not an object.")
    return found


def _checksum(header: dict[str, Any], arrays: Arrays) -> str:
    crc = zlib.crc32(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        crc = zlib.crc32(f"{name} {array.dtype} {array.shape}".encode(), crc)
        if array.size:  # a view without entries has no bytes
            crc = zlib.crc32(array.data.cast("B"), crc)
    return f"{crc:08x}"
