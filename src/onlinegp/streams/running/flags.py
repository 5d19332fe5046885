"""What in a stream is odd: surprising rows, runs of misses, a calibration that drifts; and the most surprising rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from onlinegp.change_detection import KINDS, Cusum
from onlinegp.checks import Array
from onlinegp.state import Values, array, integers, learner
from onlinegp.streams.running.observers import Observer, Rows, texts
from onlinegp.streams.running.plausible import PlausibleRange

REASONS = ("surprise", *KINDS, "implausible")
MOST = 10  # rows that are kept as the most surprising
KEPT = ("y", "mean", "std", "lower", "upper", "z", "tail")  # of each of them


class Flags(Observer):
    """Marks scored rows whose tail probability is below `rate`, and rows where a cumulative sum raises an alarm.

    On a stream that is as predicted a share `rate` of the rows is a surprise; for the alarms see `Cusum`.
    """

    fields = {
        "totals": integers(len(REASONS), least=0),
        "sums": array(len(KINDS), least=0.0, attribute="cusum.sums"),
        "range": learner(),
    }

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.cusum = Cusum(rate)
        self.range = PlausibleRange()
        self.totals = np.zeros(len(REASONS), dtype=np.int64)

    @property
    def counts(self) -> dict[str, int]:
        """The number of flags so far, by reason."""
        return dict(zip(REASONS, self.totals.tolist(), strict=True))

    @property
    def count(self) -> int:
        """The number of flags so far; a row may have several."""
        return int(self.totals.sum())

    def add(self, rows: Rows) -> list[str | None]:
        """Return what each row is flagged for: reasons with blanks between them, or None."""
        flags: list[str | None] = [None] * len(rows)
        found = [(int(i), "surprise") for i in np.flatnonzero((rows.tail < self.rate) & rows.scored)]
        found += self.cusum.add(np.where(rows.scored, rows.z, np.nan).tolist())
        found += [(int(i), "implausible") for i in np.flatnonzero(rows.odd)]
        for i, reason in found:
            flags[i] = reason if flags[i] is None else f"{flags[i]} {reason}"
            self.totals[REASONS.index(reason)] += 1
        return flags

    def rebuild(self) -> None:
        self.cusum.sums = list(map(float, self.cusum.sums))


class Surprises(Observer):
    """The most surprising rows so far, the worst first: those with the largest |z|, earlier ones before equal ones."""

    fields = {"row": integers("found", least=1), **{name: array("found") for name in KEPT}, "keys": texts(MOST)}
    lengths = {"found": MOST}

    def __init__(self) -> None:
        self.row = np.empty(0, dtype=np.int64)  # numbers in the stream, from 1
        self.y = self.mean = self.std = self.lower = self.upper = self.z = self.tail = np.empty(0)
        self.keys: list[str] = []  # the columns that are copied, as JSON

    def check(self, values: Values) -> None:
        if len(values["keys"]) != len(values["row"]):
            raise ValueError("keys must be as many as rows.")
        for text in values["keys"]:
            keys = json.loads(text)
            if not isinstance(keys, dict) or not {type(value) for value in keys.values()} <= {str, type(None)}:
                raise ValueError(f"keys must be texts by name, got {text}.")

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
        """The rows, each as a dictionary of plain values."""
        numbers = {name: getattr(self, name).tolist() for name in KEPT}
        return [
            {"row": row, "keys": json.loads(keys)} | {name: values[i] for name, values in numbers.items()}
            for i, (row, keys) in enumerate(zip(self.row.tolist(), self.keys, strict=True))
        ]


def _texts(columns: Mapping[str, Any], i: int) -> str:
    """Return one row of the columns that are copied, as JSON."""
    return json.dumps({name: _text(values[i]) for name, values in columns.items()})


def _text(value: Any) -> str | None:
    """Return a value of a key column as a text, whoever read it."""
    value = value.as_py() if hasattr(value, "as_py") else value
    return None if value is None else str(value)


def _bounded(values: Array) -> Array:
    """Return finite numbers: a z of infinity, where nothing was thought possible, is as large as can be."""
    return np.clip(values, -np.finfo(float).max, np.finfo(float).max)
