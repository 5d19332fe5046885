"""Choose the engine that runs a model: pure Python, or compiled if it was built."""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from onlinegp.checks import choice
from onlinegp.engine.program import UnsupportedError
from onlinegp.native_module import available, native

Native = TypeVar("Native")
Python = TypeVar("Python")

ENGINES = ("auto", "native", "python")
_warned = False


def info() -> dict[str, str]:
    """Return the engine that "auto" chooses, its instruction set and compiler, and versions."""
    facts = {"engine": "native" if available() else "python"}
    if available():
        facts |= {"instruction set": native().instruction_set, "compiler": native().compiler}
    return facts | {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
    }


def by_engine(name: str, compiled: Callable[[], Native], python: Callable[[], Python]) -> Native | Python:
    """Call `compiled` or `python`. "auto" uses the compiled engine if it was built and supports all parts."""
    if not is_native(name):
        return python()
    try:
        return compiled()
    except UnsupportedError:
        if name == "native":
            raise
    return python()


def is_native(name: str) -> bool:
    """Return whether `name` selects the compiled engine. With "auto", warn once if it was not built."""
    choice(ENGINES, engine=name)
    if name == "python" or available():
        return name != "python"
    if name == "native":
        raise ValueError(
            "engine must be 'auto' or 'python' here, got 'native': the compiled engine was not built. Install onlinegp "
            "with a C++17 compiler (GCC or Clang) on the path to build it."
        )
    _warn_once()
    return False


def thread_count() -> int:
    """Return the number of threads of a call: ONLINEGP_THREADS, or the number of cores of this process."""
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
            "onlinegp uses the Python engine, because the compiled engine was not built. It is slower. Install "
            "with a C++17 compiler (GCC or Clang) to build it, or pass engine='python' to hide this warning.",
            stacklevel=5,
        )
