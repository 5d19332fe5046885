"""Check the events in a file. Files may be damaged or untrusted."""

from __future__ import annotations

import reprlib
from math import isfinite
from typing import Any

from onlinegp.models.alarms.constants import KINDS, STATISTICS
from onlinegp.state.fields import LARGEST_POSITION

OPTIONAL = ("end", "observed")
TEXTS = {"kind": KINDS, "statistic": STATISTICS}
COUNTED = ("number", "rows", "known", "singles", "output")  # these must be at least zero
LEAST = -10  # smallest row number: an event may begin a few rows before row 0


def check_like(name: str, value: Any, example: Any) -> None:
    """Raise a ValueError unless a value has the same structure as an example, and possible numbers and texts."""
    if isinstance(example, dict):
        good = isinstance(value, dict) and value.keys() == example.keys()
        parts = [(key, value[key], example[key]) for key in example] if good else []
    elif isinstance(example, list):
        good = isinstance(value, list) and len(value) == len(example)
        parts = [(name, *pair) for pair in zip(value, example, strict=True)] if good else []
    else:
        good, parts = (value is None and name in OPTIONAL) or _is_possible(name, value, example), []
    if not good:
        raise ValueError(f"{name} is not valid: {reprlib.repr(value)}")
    for part in parts:
        check_like(*part)


def _is_possible(name: str, value: Any, example: Any) -> bool:
    if isinstance(example, str):
        return isinstance(value, str) and value in TEXTS[name]
    if isinstance(example, float):
        return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    least, most = 0 if name in COUNTED else LEAST, LARGEST_POSITION
    if name == "statistic":
        least, most = 0, len(STATISTICS) - 1
    return type(value) is int and least <= value <= most
