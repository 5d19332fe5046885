"""Find values that are probably not measurements: codes for missing values, and targets far outside the range."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.state import Values, WithFields, array, integer, number

CODES = [sign * code for code in (99.0, 999.0, 9999.0, 99999.0, 999999.0, 1e20, 1e30) for sign in (1.0, -1.0)]
FEWEST = 30  # values before anything is judged
MAX_RANGES = 3.0  # a value farther out than this many times the range so far is not plausible
IN_A_ROW = 10  # implausible values; more of them in a row that vary mean that the stream has changed


class CodeWatch:
    """Warns, once per column, of a code that is far from the other values and may mean missing."""

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
    """Finds targets that are farther from all those before them than MAX_RANGES times their range.

    One such value, or the same one again and again, is an error; more than IN_A_ROW that vary are a stream that has
    changed, and extend the range.
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
        self.n = self.count = 0  # values in the range, and implausible values
        self.low = self.high = 0.0
        self.odd: list[float] = []  # the last values, as long as they are implausible

    def add(self, y: Array) -> NDArray[np.bool_]:
        """Add targets in order (NaN if missing) and return which are not plausible."""
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
    """Whether a value is outside the range of others by more than `times` its width; never if they are constant."""
    width = high - low
    return bool(width > 0.0 and not low - times * width <= value <= high + times * width)
