"""Fleet files: a header, the keys as JSON, the records of all models, and the position where each record ends."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Hashable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from onlinegp.files import container
from onlinegp.files.container import Arrays, ModelFileError, as_model_file_error
from onlinegp.models.model_file import ABOUT, check_about, only
from onlinegp.state import Contents

KEYS, RECORDS, ENDS = "keys", "records", "ends"


def chunks(about: Contents, keys: list[Hashable], records: Iterable[bytes]) -> list[Any]:
    """Return the bytes of a file in pieces that can be written without copying them."""
    odd = next((key for key in keys if type(key) not in (str, int)), None)
    if odd is not None:
        raise ValueError(f"keys must be strings or whole numbers to be saved, got {odd!r}. Rename this key.")
    arrays: Arrays = {KEYS: np.frombuffer(json.dumps(keys).encode(), dtype=np.uint8)}
    if keys:
        states = list(records)
        arrays[RECORDS] = np.frombuffer(b"".join(states), dtype=np.uint8)
        arrays[ENDS] = np.cumsum([len(state) for state in states])
    return container.chunks({"kind": "fleet"} | about, arrays)


def read(data: bytes) -> tuple[Contents, list[Hashable], Iterator[bytes]]:
    """Return the header, the keys and the records of a file. Raise a ModelFileError if it is not valid."""
    header, arrays = container.from_bytes(data)
    if header.get("kind") != "fleet":
        what = reprlib.repr(header.get("kind"))
        raise ModelFileError(f"the file holds a {what}, not a fleet. Use onlinegp.load for a model.")
    only(header, "kind", "model", "schema", "compact", *ABOUT)
    only(arrays, KEYS, RECORDS, ENDS)
    with as_model_file_error():
        keys = _keys(arrays.get(KEYS))
        if not keys:
            return header, [], iter(())
        check_about(header, len(data) // 8)
        return header, keys, _records(arrays, len(keys))


def _keys(text: np.ndarray | None) -> list[Hashable]:
    """Return the keys in a file. Raise a ModelFileError if they are not valid."""
    keys = [] if text is None else json.loads(text.tobytes())
    if text is None or not isinstance(keys, list) or not all(type(key) in (str, int) for key in keys):
        raise ModelFileError("the keys are not strings and whole numbers.")
    if len(set(keys)) < len(keys):
        raise ModelFileError("a key appears twice.")
    return keys


def _records(arrays: Arrays, count: int) -> Iterator[bytes]:
    """Return the records one by one. Raise an error if their positions do not fit."""
    records, ends = arrays.get(RECORDS), arrays.get(ENDS)
    if records is None or records.dtype != np.uint8 or records.ndim != 1:
        raise ModelFileError("the file has no records.")
    if ends is None or ends.dtype != np.int64 or ends.shape != (count,):
        raise ModelFileError(f"the file lacks the positions where the records of its {count} models end.")
    places = [0, *ends.tolist()]
    if places[-1] != len(records) or any(first > last for first, last in pairwise(places)):
        raise ModelFileError("the records of the models do not fit the file.")
    return (records[first:last].tobytes() for first, last in pairwise(places))
