"""What in a stream is odd: surprising rows, runs of misses, a calibration that drifts; and the most surprising rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinegp.change_detection import KINDS, Cusum
from onlinegp.streams.running.plausible import PlausibleRange
from onlinegp.streams.running.score import Rows

REASONS = ("surprise", *KINDS, "implausible")
MOST = 10  # rows that are kept as the most surprising
KEPT = ("y", "mean", "std", "lower", "upper", "z", "tail")  # of each of them


class Flags:
    """Marks scored rows whose tail probability is below `rate`, and rows where a cumulative sum raises an alarm.

    On a stream that is as predicted a share `rate` of the rows is a surprise; for the alarms see `Cusum`.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.cusum = Cusum(rate)
        self.range = PlausibleRange()
        self.counts = dict.fromkeys(REASONS, 0)

    @property
    def count(self) -> int:
        """The number of flags so far; a row may have several."""
        return sum(self.counts.values())

    def add(self, rows: Rows, odd: NDArray[np.bool_] | None = None) -> list[str | None]:
        """Take rows, and return what each is flagged for: reasons with blanks between them, or None.

        Those that are `odd` have a target that is not plausible.
        """
        flags: list[str | None] = [None] * len(rows.y)
        found = [(int(i), "surprise") for i in np.flatnonzero((rows.tail < self.rate) & rows.scored)]
        found += self.cusum.add(np.where(rows.scored, rows.z, np.nan).tolist())
        found += [(int(i), "implausible") for i in ([] if odd is None else np.flatnonzero(odd))]
        for i, reason in found:
            flags[i] = reason if flags[i] is None else f"{flags[i]} {reason}"
            self.counts[reason] += 1
        return flags

    def state(self) -> dict[str, Any]:
        return {
            "rate": self.rate,
            "counts": dict(self.counts),
            "sums": list(self.cusum.sums),
            "range": self.range.state(),
        }

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Flags:
        flags = cls(state["rate"])
        flags.counts |= state["counts"]
        flags.cusum.sums = list(state["sums"])
        if "range" in state:
            flags.range = PlausibleRange.restored(state["range"])
        return flags


class Surprises:
    """The most surprising rows so far, the worst first: those with the largest |z|, earlier ones before equal ones."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def add(self, rows: Rows, before: int, keys: dict[str, Any]) -> None:
        """Take rows, of which the first is number `before` + 1 of the stream, and their key columns by name."""
        far = np.where(rows.scored, np.abs(rows.z), -1.0)
        least = abs(self.rows[-1]["z"]) if len(self.rows) == MOST else -1.0
        worst = np.flatnonzero(far > least)
        worst = np.sort(worst[np.argsort(-far[worst], kind="stable")][:MOST])
        self.rows += [self._row(rows, int(i), before, keys) for i in worst]
        self.rows = sorted(self.rows, key=lambda row: -abs(row["z"]))[:MOST]

    def _row(self, rows: Rows, i: int, before: int, keys: dict[str, Any]) -> dict[str, Any]:
        texts = {name: _text(values[i]) for name, values in keys.items()}
        return {"row": before + i + 1, "keys": texts} | {name: _bounded(getattr(rows, name)[i]) for name in KEPT}

    def state(self) -> list[dict[str, Any]]:
        return list(self.rows)

    @classmethod
    def restored(cls, state: list[dict[str, Any]]) -> Surprises:
        surprises = cls()
        surprises.rows = list(state)
        return surprises


def _text(value: Any) -> str | None:
    """Return a value of a key column as a text, whoever read it."""
    value = value.as_py() if hasattr(value, "as_py") else value
    return None if value is None else str(value)


def _bounded(value: float) -> float:
    """Return a number that JSON has: a z of infinity, where nothing was thought possible, is as large as can be."""
    return float(np.clip(value, -np.finfo(float).max, np.finfo(float).max))
