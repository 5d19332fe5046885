"""Access to the compiled module, if it was built."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

NAME = "onlinegp.engine._native"


def available() -> bool:
    """Return whether the compiled module was built."""
    return find_spec(NAME) is not None


@cache
def native() -> Any:
    """Return the compiled module, or None."""
    return import_module(NAME) if available() else None
