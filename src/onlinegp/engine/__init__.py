"""What runs a recipe over data: the readable Python engine, or its compiled twin where that was built."""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from onlinegp.checks import choice
from onlinegp.native import available as available

Native = TypeVar("Native")
Python = TypeVar("Python")

ENGINES = ("auto", "native", "python")
_warned = False


def info() -> dict[str, str]:
    """Return what runs here: the engine that "auto" takes, its instruction set and compiler, and versions."""
    facts = {"engine": "native" if available() else "python"}
    if available():
        from onlinegp.engine import _native

        facts |= {"instruction set": _native.instruction_set, "compiler": _native.compiler}
    return facts | {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
    }


def by_engine(name: str, native: Callable[[], Native], python: Callable[[], Python]) -> Native | Python:
    """Return what the engine of that name makes; for "auto" the compiled one, if it was built and knows every part."""
    if not is_native(name):
        return python()
    from onlinegp.engine.program import UnsupportedError

    try:
        return native()
    except UnsupportedError:
        if name == "native":
            raise
    return python()


def is_native(name: str) -> bool:
    """Return whether the engine of that name is the compiled one; warn once if "auto" would like it to be."""
    choice(ENGINES, engine=name)
    if name == "python" or available():
        return name != "python"
    if name == "native":
        raise ValueError(
            "engine must be 'auto' or 'python' here, got 'native': the compiled engine was not built. Install onlinegp "
            "with a C++17 compiler (GCC or Clang) on the path to have it."
        )
    _warn_once()
    return False


def thread_count() -> int:
    """Return how many threads a call may use: ONLINEGP_THREADS, or the cores of this process."""
    asked = os.environ.get("ONLINEGP_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return len(cores)


def _warn_once() -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "onlinegp runs on its Python engine: the compiled one was not built. Results are the same, slower. Install "
            "with a C++17 compiler (GCC or Clang) to have it, or pass engine='python' to say that this is fine.",
            stacklevel=5,
        )
