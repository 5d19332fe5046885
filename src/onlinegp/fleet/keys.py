"""The numbers of the keys of a fleet."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from onlinegp.native_module import native

Who = NDArray[np.int64]


class Numbers:
    """Map each key to a number: 0, 1, ... in the order of their addition.

    All keys are in a dictionary. Small whole numbers are also in a table, which is faster and fits into the cache.
    Several threads can add and find keys. The number of a key never changes.
    """

    def __init__(self) -> None:
        self._adding = Lock()
        self._of: dict[Hashable, int] = {}
        self._table: Who = np.empty(0, dtype=np.int64)  # -1 for unknown keys
        self._native = native()

    def __len__(self) -> int:
        return len(self._of)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._of)

    def __contains__(self, key: object) -> bool:
        return key in self._of

    def __getitem__(self, key: Hashable) -> int:
        return self._of[key]

    def find(self, keys: Sequence[Hashable]) -> Who | None:
        """Return the number of each key, or None if a key is unknown."""
        if self._native is not None:
            return self._native.numbers(self._of, self._table, keys)
        try:
            return np.fromiter(map(self._of.__getitem__, keys), dtype=np.int64, count=len(keys))
        except KeyError:
            return None

    def add(self, keys: Iterable[Hashable]) -> None:
        """Add the new keys."""
        with self._adding:
            for key in keys:
                if key not in self._of:
                    self._give(key, len(self._of))

    def _give(self, key: Hashable, number: int) -> None:
        """Add a key. Memory is allocated first, so that a failure changes nothing."""
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
    """Return n keys as a list of plain Python values."""
    keys = keys.to_list() if hasattr(keys, "to_list") else keys.tolist() if hasattr(keys, "tolist") else keys
    if len(keys) != n:
        raise ValueError(f"keys must have one entry for each row of X, got {len(keys)} for {n} rows.")
    return keys


def missing(key: Hashable) -> bool:
    """Return whether a key is None, NaN or pandas' NA. NaN is not equal to itself: each would be another key."""
    return key is None or type(key).__name__ == "NAType" or key != key
