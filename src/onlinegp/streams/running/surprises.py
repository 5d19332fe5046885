"""Store the most surprising rows of a stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.state import Values, array, integers
from onlinegp.streams.running.flags import text_of
from onlinegp.streams.running.observers import Observer, Rows, texts

MOST = 10  # number of surprising rows
KEPT = ("y", "mean", "std", "lower", "upper", "z", "tail")  # stored columns


class Surprises(Observer):
    """The rows with the largest |z| so far, the largest first. Ties are in the order of the rows."""

    fields = {"row": integers("found", least=1), **{name: array("found") for name in KEPT}, "keys": texts(MOST)}
    lengths = {"found": MOST}

    def __init__(self) -> None:
        self.row = np.empty(0, dtype=np.int64)  # row numbers in the stream, from 1
        self.y = self.mean = self.std = self.lower = self.upper = self.z = self.tail = np.empty(0)
        self.keys: list[str] = []  # the copied columns of each row, as JSON

    def check(self, values: Values) -> None:
        if len(values["keys"]) != len(values["row"]):
            raise ValueError("keys must have one entry per row.")
        for text in values["keys"]:
            keys = json.loads(text)
            if not isinstance(keys, dict) or not {type(value) for value in keys.values()} <= {str, type(None)}:
                raise ValueError(f"keys must be a JSON object of texts, got {text}.")

    def add(self, rows: Rows) -> None:
        far = np.where(rows.scored, np.abs(rows.z), -1.0)
        least = abs(self.z[-1]) if len(self.row) == MOST else -1.0
        worst = np.flatnonzero(far > least)
        worst = np.sort(worst[np.argsort(-far[worst], kind="stable")][:MOST])
        if not len(worst):
            return
        z = np.append(self.z, _bounded(rows.z[worst]))
        order = np.argsort(-np.abs(z), kind="stable")[:MOST]
        self.row = np.append(self.row, rows.before + worst + 1)[order]
        keys = [*self.keys, *(_texts(rows.keys, int(i)) for i in worst)]
        self.keys = [keys[i] for i in order]
        for name in KEPT:
            setattr(self, name, np.append(getattr(self, name), _bounded(getattr(rows, name)[worst]))[order])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows as dictionaries of plain values."""
        numbers = {name: getattr(self, name).tolist() for name in KEPT}
        return [
            {"row": row, "keys": json.loads(keys)} | {name: values[i] for name, values in numbers.items()}
            for i, (row, keys) in enumerate(zip(self.row.tolist(), self.keys, strict=True))
        ]


def _texts(columns: Mapping[str, Any], i: int) -> str:
    """Return the copied columns of row i as JSON."""
    return json.dumps({name: text_of(values[i]) for name, values in columns.items()})


def _bounded(values: Array) -> Array:
    """Replace infinite numbers by the largest float."""
    return np.clip(values, -np.finfo(float).max, np.finfo(float).max)
