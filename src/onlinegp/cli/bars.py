"""The progress of the tuning, on a terminal."""

from __future__ import annotations

import sys
from typing import Any


class TuningBar:
    """A bar that is called with the share of the work that is done, and goes away at the end; on a terminal only."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._bar: Any = None
        self._hidden = quiet or not sys.stderr.isatty()

    def __call__(self, share: float) -> None:
        if self._hidden:
            return
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(total=100, desc="tuning", bar_format="{l_bar}{bar}| {elapsed}", leave=False)
        self._bar.update(100.0 * share - self._bar.n)
        if share >= 1.0:
            self._bar.close()
            self._bar = None
