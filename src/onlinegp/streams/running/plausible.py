"""Find values that are probably errors: codes for missing values, and targets far outside their range."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.state import Values, WithFields, array, integer, number

CODES = [sign * code for code in (99.0, 999.0, 9999.0, 99999.0, 999999.0, 1e20, 1e30) for sign in (1.0, -1.0)]
FEWEST = 30  # number of values before any value counts as implausible
MAX_RANGES = 3.0  # a value is implausible if it is farther from the range so far than this multiple of the range
IN_A_ROW = 10  # after more different implausible values in a row, the stream has changed


class CodeWatch:
    """Warn once per column about a value that is far from all others and may be a code for missing."""

    def __init__(self, say: Callable[[str], None] = lambda text: None) -> None:
        self._say = say
        self._columns: dict[str, tuple[int, float, float, set[float]]] = {}  # number and range of other values; codes
        self._told: set[str] = set()

    def look(self, names: Sequence[str], columns: Sequence[Array]) -> None:
        """Check rows of columns of numbers."""
        for name, values in zip(names, columns, strict=True):
            if name in self._told:
                continue
            values = values[~np.isnan(values)]
            count, low, high, codes = self._columns.get(name, (0, np.inf, -np.inf, set()))
            found = np.isin(values, CODES)
            others = values[~found]
            codes = codes | set(values[found].tolist())
            low, high = min(low, others.min(initial=np.inf)), max(high, others.max(initial=-np.inf))
            self._columns[name] = count, low, high, codes = count + len(others), low, high, codes
            odd = [code for code in sorted(codes) if count >= FEWEST and _far(code, low, high, 1.0)]
            if odd:
                self._told.add(name)
                self._say(
                    f"the column {name!r} holds {odd[0]:g}, far from its other values, {low:g} to {high:g}. "
                    f"It is used as it is; if it means missing, add --na-values {odd[0]:g}"
                )


class PlausibleRange(WithFields):
    """Find implausible targets: farther from the range of earlier targets than MAX_RANGES times this range.

    One such value, or the same value repeatedly, is an error. More than IN_A_ROW different implausible values mean that
    the stream has changed; they extend the range.
    """

    fields = {
        "n": integer(),
        "count": integer(),
        "low": number(least=None),
        "high": number(least=None),
        "odd": array("far"),
    }
    lengths = {"far": IN_A_ROW + 1}

    def __init__(self) -> None:
        self.n = self.count = 0  # number of plausible and of implausible values
        self.low = self.high = 0.0
        self.odd: list[float] = []  # the last values, if they are implausible

    def add(self, y: Array) -> NDArray[np.bool_]:
        """Add targets in order (NaN if missing). Return which of them are implausible."""
        known = y[~np.isnan(y)]
        if len(known) and self.n >= FEWEST and not (self._far(known.min()) or self._far(known.max())):
            self._extend(len(known), float(known.min()), float(known.max()))
            return np.zeros(len(y), dtype=bool)
        return np.array([value == value and self._is_odd(value) for value in y.tolist()], dtype=bool)

    def _is_odd(self, value: float) -> bool:
        if self._far(value):
            self.odd = [*self.odd, value][-IN_A_ROW - 1 :]
            if len(self.odd) <= IN_A_ROW or len(set(self.odd)) == 1:
                self.count += 1
                return True
        self._extend(1, value, value)
        return False

    def _extend(self, n: int, low: float, high: float) -> None:
        self.low, self.high = (min(self.low, low), max(self.high, high)) if self.n else (low, high)
        self.n, self.odd = self.n + n, []

    def _far(self, value: float) -> bool:
        return self.n >= FEWEST and _far(value, self.low, self.high, MAX_RANGES)

    def check(self, values: Values) -> None:
        if values["low"] > values["high"]:
            raise ValueError(f"low must be at most high, {values['high']}, got {values['low']}.")

    def rebuild(self) -> None:
        self.odd = list(map(float, self.odd))


def _far(value: float, low: float, high: float, times: float) -> bool:
    """Whether a value is outside a range by more than `times` the width of the range. False if the width is zero."""
    width = high - low
    return bool(width > 0.0 and not low - times * width <= value <= high + times * width)
