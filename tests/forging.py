"""Records and files that somebody could write who knows the formats: anything in them changed, all checksums right."""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np

from onlinegp.files import container
from onlinegp.state.record import CHECKED, Entry, Schema


def with_checksum(record: bytes) -> bytes:
    """Return a record with the checksum that belongs to its bytes."""
    return bytes(record[:8]) + zlib.crc32(record[CHECKED:]).to_bytes(4, "little") + bytes(record[CHECKED:])


def written(schema: Schema, contents: dict[str, Any]) -> bytes:
    """Return contents as a record, as the format says and without any check; entries that are missing are left out."""
    there = [entry for entry in schema.entries if entry.name in contents]
    integers = {entry.name: contents[entry.name] for entry in there if entry.kind == "integer"}
    numbers = [contents[entry.name] for entry in there if entry.kind == "number"]
    body = np.array(list(integers.values()), "<i8").tobytes() + np.array(numbers, "<f8").tobytes()
    known = set(integers)
    for entry in there:
        if entry.kind in ("integer", "number"):
            continue
        value = contents[entry.name]
        raw = value.encode() if isinstance(value, str) else bytes(value) if not entry.shape else value.tobytes()
        if not entry.dtype:
            body += np.int64(len(raw)).tobytes()
        for size, length in zip(entry.shape, np.shape(value), strict=False):
            if isinstance(size, str) and size not in known:
                known.add(size)
                body += np.int64(length).tobytes()
        body += raw + bytes(-len(raw) % 8)
    return with_checksum(b"ogprec\x01\x00" + bytes(4) + schema.checksum.to_bytes(4, "little") + body)


def record_of(contents: dict[str, Any]) -> tuple[Schema, bytes]:
    """Return any contents as a record, with the schema that tells what is in it."""
    kinds = {bool: "integer", int: "integer", float: "number", np.float64: "number", str: "text"}
    entries = []
    for name, value in contents.items():
        if isinstance(value, np.ndarray):
            axes = tuple(f"{name}[{axis}]" for axis in range(value.ndim))
            entries.append(Entry(name, "array", value.dtype.str, axes))
        else:
            entries.append(Entry(name, kinds[type(value)]))
    schema = Schema(entries)
    return schema, written(schema, contents)


def forged_file(data: bytes, change: Any) -> bytes:
    """Return a model file after `change(header, contents)`; contents are those of the record, as "learned.size"."""
    header, arrays = container.from_bytes(data)
    contents = Schema.parse(header["schema"]).from_bytes(arrays["record"].tobytes()) if "record" in arrays else None
    answer = change(header, contents)
    header = answer if isinstance(answer, dict) else header
    if contents is not None and header:
        schema, record = record_of(contents)
        header["schema"] = json.loads(schema.text)
        arrays = {"record": np.frombuffer(record, dtype=np.uint8)}
    return container.to_bytes(header, arrays)
