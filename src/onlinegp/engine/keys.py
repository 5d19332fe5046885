"""The keys of a fleet, and the numbers that its members have."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinegp.files.container import ModelFileError
from onlinegp.native import available

Who = NDArray[np.int64]


class Numbers:
    """Which number each key has, in the order in which they came.

    A dictionary knows them all; whole numbers that are not large are looked up in a table, which a cache holds longer.
    Several threads may add keys and find them: a number belongs to one key, for good.
    """

    def __init__(self) -> None:
        self._adding = Lock()
        self._of: dict[Hashable, int] = {}
        self._table: Who = np.empty(0, dtype=np.int64)  # -1: not there
        self._native: Any = None
        if available():
            from onlinegp.engine import _native

            self._native = _native

    def __len__(self) -> int:
        return len(self._of)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._of)

    def __contains__(self, key: object) -> bool:
        return key in self._of

    def __getitem__(self, key: Hashable) -> int:
        return self._of[key]

    def find(self, keys: Sequence[Hashable]) -> Who | None:
        """Return the number of each of the keys, or None if one of them has none."""
        if self._native is not None:
            return self._native.numbers(self._of, self._table, keys)
        try:
            return np.fromiter(map(self._of.__getitem__, keys), dtype=np.int64, count=len(keys))
        except KeyError:
            return None

    def add(self, keys: Iterable[Hashable]) -> None:
        """Give numbers to those of the keys that have none yet."""
        with self._adding:
            for key in keys:
                if key not in self._of:
                    self._give(key, len(self._of))

    def _give(self, key: Hashable, number: int) -> None:
        """Give a number to a key. Room is made first, so that what fails leaves nothing behind."""
        if type(key) is not int or not 0 <= key < 8 * number + 1024:
            self._of[key] = number
            return
        missing = key + 1 - len(self._table)
        if missing > 0:
            more = np.full(max(missing, len(self._table)), -1, dtype=np.int64)
            self._table = np.concatenate([self._table, more])
        self._of[key] = number
        self._table[key] = number


def listed(keys: Sequence[Hashable], n: int) -> Sequence[Hashable]:
    """Return keys as they are, those of an array or series as plain values; there must be n of them."""
    keys = keys.to_list() if hasattr(keys, "to_list") else keys.tolist() if hasattr(keys, "tolist") else keys
    if len(keys) != n:
        raise ValueError(f"keys must have one entry for each row of X, got {len(keys)} for {n} rows.")
    return keys


def keys_of_file(text: np.ndarray | None) -> list[Hashable]:
    """Return the keys that a file holds, or raise a ModelFileError."""
    keys = [] if text is None else json.loads(text.tobytes())
    if text is None or not isinstance(keys, list) or not all(type(key) in (str, int) for key in keys):
        raise ModelFileError("the keys are not strings and whole numbers.")
    if len(set(keys)) < len(keys):
        raise ModelFileError("a key is there twice.")
    return keys
