"""Store the rows around events for the charts of a report."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

import numpy as np

from onlinegp.models.alarms.watched import Watched
from onlinegp.state import Values
from onlinegp.streams.running.flags import text_of
from onlinegp.streams.running.observers import Observer, Rows, array_with_gaps, texts

BEFORE, AFTER = 60, 100  # rows of a scene before the event opens, and from this row on
MOST = 40  # number of scenes, for the worst events
DIGITS = 6
SHOWN = ("y", "mean", "lower", "upper")
Row = tuple[float, ...]


class Scenes(Observer):
    """The rows around the worst events: target, mean and interval.

    With keys, only rows since the start or the resumption of the run are available.
    """

    fields = {"recent": array_with_gaps("before", len(SHOWN)), "stories": texts(MOST)}
    lengths = {"before": BEFORE}

    def __init__(self, by: str | None = None) -> None:
        self.by = by
        self._recent: dict[Any, deque[Row]] = {}
        self._scenes: list[dict[str, Any]] = []

    @property
    def recent(self) -> Any:
        """The last rows of a stream without keys."""
        return np.array(list(self._recent.get(None, ()))).reshape(-1, len(SHOWN))

    @recent.setter
    def recent(self, rows: Any) -> None:
        self._recent = {None: deque(map(tuple, rows.tolist()), maxlen=BEFORE)}

    @property
    def stories(self) -> list[str]:
        """The scenes as JSON."""
        return [json.dumps(scene) for scene in self._scenes]

    @stories.setter
    def stories(self, scenes: list[str]) -> None:
        self._scenes = [json.loads(scene) for scene in scenes]

    def check(self, values: Values) -> None:
        for text in values["stories"]:
            scene = json.loads(text)
            if (
                not isinstance(scene, dict)
                or not {"event", "key", "before", "severity", "rows", "open"} <= scene.keys()
            ):
                raise ValueError(f"stories must contain scenes, got {text[:50]}.")

    def add(self, rows: Rows) -> None:
        watched = rows.predictions if isinstance(rows.predictions, Watched) else Watched.unseen(rows.predictions)
        keys = [None] * len(rows) if self.by is None else [text_of(key) for key in rows.keys[self.by]]
        table = np.stack([getattr(rows, name) for name in SHOWN], axis=1).tolist()
        for i, (key, row) in enumerate(zip(keys, table, strict=True)):
            past = self._recent.setdefault(key, deque(maxlen=BEFORE))
            for event in watched.changes[i] or ():
                if event.end is None:
                    self._open(event, key, past)
                else:
                    self._close(event, key)
            for scene in self._scenes:
                if scene["open"] and scene["key"] == key:
                    scene["rows"].append(_plain(row))
                    scene["open"] = len(scene["rows"]) < scene["before"] + AFTER
            past.append(tuple(row))

    def _open(self, event: Any, key: str | None, past: deque[Row]) -> None:
        before = [_plain(row) for row in past]
        about = {"event": event.number, "key": key, "before": len(before), "severity": event.severity}
        self._scenes.append({**about, "rows": before, "open": True})
        if len(self._scenes) > MOST:
            self._scenes.remove(min(self._scenes, key=lambda scene: scene["severity"]))

    def _close(self, event: Any, key: str | None) -> None:
        for scene in self._scenes:
            if (scene["event"], scene["key"]) == (event.number, key):
                scene["severity"] = event.severity

    def found(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """Return the scene of an event: its columns, and the number of rows before the start of the event."""
        for scene in self._scenes:
            if (scene["event"], scene["key"]) == (event["event"], event.get("key")):
                columns = {name: [row[k] for row in scene["rows"]] for k, name in enumerate(SHOWN)}
                return {"row": event["start"] - scene["before"], **columns}
        return None


def _plain(row: Any) -> list[float | None]:
    return [float(f"{value:.{DIGITS}g}") if value == value else None for value in row]
