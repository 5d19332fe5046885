"""Check the events that a file holds, as JSON. Files may come from anywhere."""

from __future__ import annotations

import reprlib
from dataclasses import fields
from math import isfinite
from typing import Any

from onlinegp.models.alarms.constants import EVENTS, KINDS, STATISTICS
from onlinegp.state.fields import LARGEST_POSITION

LEAST = -10  # of a row: a build-up before any begins a few rows before the first one
COUNTED = ("number", "rows", "known", "singles", "statistic", "output")  # at least zero


def check_like(name: str, value: Any, example: Any) -> None:
    """Raise a ValueError unless a value has the type of an example: a whole number, a number, or a list of these."""
    if isinstance(example, list):
        if not isinstance(value, list) or len(value) != len(example):
            raise ValueError(f"{name} must be a list of {len(example)}, got {reprlib.repr(value)}")
        for one, such in zip(value, example, strict=True):
            check_like(name, one, such)
        return
    whole = isinstance(example, int)
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        raise ValueError(f"{name} must be a {'whole ' if whole else ''}number, got {reprlib.repr(value)}")
    least = 0 if name in COUNTED else LEAST
    if not (least <= value <= LARGEST_POSITION if whole else isfinite(value)):
        raise ValueError(f"{name} is out of range: {reprlib.repr(value)}")


def check_open(event: Any, example: dict[str, Any], features: int) -> None:
    """Raise a ValueError unless this is None or an open event with the fields of the example."""
    if event is None:
        return
    _check_names(event, set(example))
    if event["observed"] is not None:
        check_like("observed", event["observed"], 0.0)
    for name in example.keys() - {"observed", "unusual"}:
        check_like(name, event[name], example[name])
    if event["statistic"] >= len(STATISTICS):
        raise ValueError(f"statistic is out of range: {event['statistic']}")
    unusual = event["unusual"]
    if not isinstance(unusual, dict) or not unusual.keys() <= {str(j) for j in range(features)}:
        raise ValueError(f"unusual must be inputs by number, got {reprlib.repr(unusual)}")
    for value in unusual.values():
        check_like("unusual", value, 0.0)


def check_past(events: Any, event_class: Any, features: int) -> None:
    """Raise a ValueError unless these are the latest events, as dictionaries."""
    if not isinstance(events, list) or len(events) > EVENTS:
        raise ValueError(f"past must be a list of at most {EVENTS} events")
    names = {field.name: field.type for field in fields(event_class)}
    for event in events:
        _check_names(event, set(names))
        for name, kind in names.items():
            if kind in ("int", "float") or (kind in ("int | None", "float | None") and event[name] is not None):
                check_like(name, event[name], 0 if kind.startswith("int") else 0.0)
        for name, known in (("kind", KINDS), ("statistic", STATISTICS), ("inputs", (features,))):
            if event[name] not in known:
                raise ValueError(f"{name} must be one of {known}, got {reprlib.repr(event[name])}")
        unusual = event["unusual"]
        if not isinstance(unusual, list) or not all(type(j) is int and 0 <= j < features for j in unusual):
            raise ValueError(f"unusual must be a list of inputs, got {reprlib.repr(unusual)}")


def _check_names(event: Any, names: set[str]) -> None:
    if not isinstance(event, dict) or event.keys() != names:
        raise ValueError(f"an event must have {', '.join(sorted(names))}, got {reprlib.repr(event)}")
