"""The observer of the events of a detector."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from onlinegp.models.alarms.constants import KINDS
from onlinegp.models.alarms.events import Event
from onlinegp.models.alarms.reasons import sentence
from onlinegp.models.alarms.watched import Watched
from onlinegp.state import Values, integer, integers, learner
from onlinegp.streams.running.observers import Observer, Rows, texts
from onlinegp.streams.running.plausible import PlausibleRange
from onlinegp.streams.writing.sinks import Appended

DESCRIBED = ("severity", "rows", "statistic", "observed", "expected", "low", "high", "factor")
MOST_EVENTS = 200  # number of worst events to store for the report
MOST_TIMES = 256  # number of last rows with stored times
MOST_OPEN = 1_000_000  # largest number of open events, one per key


class Flags(Observer):
    """Write the events of a detector when they open and clear, count them, and store the worst events.

    Parameters
    ----------
    target, inputs : names for the reasons of events
    time, by : the copied columns of the time and of the key, if there are any
    """

    fields = {
        "totals": integers(len(KINDS), least=0),
        "written": integer(),
        "worst": texts(MOST_EVENTS),
        "times": texts(MOST_TIMES),
        "since": texts(MOST_OPEN),
        "shift": integer(),
        "range": learner(),
    }

    def __init__(
        self, *, target: str = "y", inputs: Sequence[str] = (), time: str | None = None, by: str | None = None
    ) -> None:
        self.target, self.inputs, self.time, self.by = target, list(inputs), time, by
        self.totals = np.zeros(len(KINDS), dtype=np.int64)
        self.written = 0  # number of bytes written
        self._worst: list[dict[str, Any]] = []
        self.times: list[str] = []  # times of the last rows
        self._since: dict[str | None, tuple[int, str]] = {}  # by key: a row of the open event, and its time
        self.shift = 0  # row of the stream - row of the detector
        self.range = PlausibleRange()
        self._file: Appended | None = None

    @property
    def counts(self) -> dict[str, int]:
        """The number of events so far, by kind. Open events count with their first kind."""
        return dict(zip(KINDS, self.totals.tolist(), strict=True))

    @property
    def count(self) -> int:
        """The number of events so far."""
        return int(self.totals.sum())

    @property
    def events(self) -> list[dict[str, Any]]:
        """The worst events, in the order of their rows."""
        return sorted(self._worst, key=lambda event: event["row"])

    @property
    def worst(self) -> list[str]:
        """The worst events as JSON, the worst first."""
        return [json.dumps(event) for event in self._worst]

    @worst.setter
    def worst(self, events: list[str]) -> None:
        self._worst = [json.loads(event) for event in events]

    @property
    def since(self) -> list[str]:
        """The key, a row and the time of this row for each open event, as JSON."""
        return [json.dumps([key, *began]) for key, began in self._since.items()]

    @since.setter
    def since(self, events: list[str]) -> None:
        self._since = {key: (row, time) for key, row, time in map(json.loads, events)}

    def check(self, values: Values) -> None:
        for text in values["since"]:
            entry = json.loads(text)
            kinds = [type(one) for one in entry] if isinstance(entry, list) else []
            if kinds not in ([str, int, str], [type(None), int, str]):
                raise ValueError(f"since must contain keys, rows and times, got {text}.")
        needed = {"event", "kind", "row", "severity", "reason"}
        for text in values["worst"]:
            event = json.loads(text)
            if not isinstance(event, dict) or not needed <= event.keys() or event["kind"] not in KINDS:
                raise ValueError(f"worst must contain events, got {text}.")
            if not all(isinstance(event[name], int | float) for name in ("row", "severity")):
                raise ValueError(f"worst must contain events with a row and a severity, got {text}.")

    def write_to(self, path: str | None) -> None:
        """Write events to a file, after the bytes that are known to be in the file."""
        self._file = None if path is None else Appended(path, keep=self.written)

    def add(self, rows: Rows) -> tuple[list[Any], list[str]]:
        """Return the columns `score`, `tail` and `event` of rows, and the events that open, as JSON."""
        watched = rows.predictions if isinstance(rows.predictions, Watched) else Watched.unseen(rows.predictions)
        times = [] if self.time is None else [text_of(value) or "" for value in rows.keys[self.time]]
        lines, opened = [], []
        for i in np.flatnonzero(watched.changes != None).tolist():  # noqa: E711 (an array)
            for event in watched.changes[i]:
                if event.end is not None and self._key(rows, i) not in self._since:
                    continue  # the event opened in rows that were not reported
                described = self._described(event, rows, i, times)
                self._keep(described)
                lines.append(json.dumps(described, allow_nan=False))
                opened += lines[-1:] if event.end is None else []
        self.times = [*self.times, *times][-MOST_TIMES:] if self.by is None else []
        if self._file is not None and lines:
            self._file.write("".join(f"{line}\n" for line in lines).encode())
            self.written = self._file.length
        numbers = [int(number) or None for number in watched.event]
        return [watched.score, watched.odds, numbers], opened

    def _keep(self, new: dict[str, Any]) -> None:
        """Count an event, and store it if it is among the worst. When an event clears, update the stored event."""
        same = [k for k, old in enumerate(self._worst) if all(old.get(n) == new.get(n) for n in ("event", "key"))]
        before = self._worst.pop(same[0]) if same else None
        if before is not None:
            self.totals[KINDS.index(before["kind"])] -= 1
        if before is not None or new["state"] == "open":
            self.totals[KINDS.index(new["kind"])] += 1
        self._worst = sorted([*self._worst, new], key=lambda event: -event["severity"])[:MOST_EVENTS]

    def _described(self, event: Event, rows: Rows, i: int, times: list[str]) -> dict[str, Any]:
        """Return a description of an event. With keys, its row is counted within its key."""
        opens, number, alone = event.end is None, rows.before + i + 1, self.by is None
        key = self._key(rows, i)
        if opens:
            self.shift = number - event.start if alone else 1
        shift = self.shift if alone else 1
        row = event.peak if event.kind == "spike" and event.rows <= 1 else event.since
        when = self._when(key, row, (number - shift if alone else event.start) - row, opens, times[: i + 1])
        since = when or f"{'row' if alone else 'its row'} {row + shift}"
        if not opens:
            del self._since[key]
        columns = {name: text_of(values[i]) for name, values in rows.keys.items() if name != self.by}
        return {
            "event": event.number,
            **({} if alone else {"key": key}),
            "state": "open" if opens else "clear",
            "kind": event.kind,
            "row": number,
            **{name: getattr(event, name) + shift for name in ("since", "start", "peak")},
            "end": None if event.end is None else event.end + shift,
            **{name: getattr(event, name) for name in DESCRIBED},
            "unusual": [self.inputs[j] for j in event.unusual],
            "columns": columns,
            "reason": sentence(event, self.target, self.inputs, lambda row: since),
        }

    def _key(self, rows: Rows, i: int) -> str | None:
        return None if self.by is None else text_of(rows.keys[self.by][i])

    def _when(self, key: str | None, row: int, back: int, opens: bool, times: list[str]) -> str | None:
        """Return the time of the row `row`, which is `back` rows before an event opens or clears, as text."""
        rows = [*self.times, *times] if self.by is None else times[-1:] if opens else []
        exact = rows[-1 - back] if 0 <= back < len(rows) else None
        if opens:
            self._since[key] = (row + back, times[-1] if times else "") if exact is None else (row, exact)
        began, time = self._since[key]
        if exact is not None or not time:
            return exact
        return f"{abs(row - began)} rows {'after' if row > began else 'before'} {time}" if row != began else time

    def sync(self) -> None:
        if self._file is not None:
            self._file.sync()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def text_of(value: Any) -> str | None:
    """Return a value of a key column as text, equal for all readers."""
    value = value.as_py() if hasattr(value, "as_py") else value
    return None if value is None else str(value)
