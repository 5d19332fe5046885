"""Hints: patterns that are left in the errors of a run, and the option that removes them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from onlinegp.checks import Array
from onlinegp.seasons import find_seasons
from onlinegp.streams.running.observers import Rows

LAST_ROWS = 2000  # the last rows, in which patterns are searched
FEWEST = 200
FOLLOWING = 0.25  # correlation of errors between consecutive rows
UNEVEN = 1.6  # ratio of errors in a quarter of an input to those elsewhere
MAX_Z = 4.0  # |z| is limited to this
SLOW = 0.3  # a target is slow if it changes from row to row by a smaller share of its deviation
NO_BETTER = 0.4  # the errors of a model that follows a slow target are a larger share of its changes


class Hints:
    """Keeps the last rows of a run, and looks for patterns in their errors at its end."""

    def __init__(self) -> None:
        self._pieces: deque[tuple[Rows, Array]] = deque()
        self._rows = 0

    def add(self, rows: Rows, X: Array) -> None:
        """Keep rows and their inputs."""
        self._pieces.append((rows, X))
        self._rows += len(rows)
        while self._rows - len(self._pieces[0][0]) >= LAST_ROWS:
            self._rows -= len(self._pieces.popleft()[0])

    def sentences(self, names: Sequence[str], *, lags: int | None, horizon: int = 1) -> list[str]:
        """Return a sentence for each pattern; none about lags if they are None, because the model finds its own."""
        if not self._pieces:
            return []
        parts = [(rows.z, rows.scored, X, rows.y, rows.mean) for rows, X in self._pieces]
        z, scored, X, y, mean = (np.concatenate(part)[-LAST_ROWS:] for part in zip(*parts, strict=True))
        if np.count_nonzero(scored) < FEWEST:
            return []
        z = np.where(scored, np.clip(z, -MAX_Z, MAX_Z), np.nan)
        found = [
            None if lags is None else pattern_over_rows(z, lags),
            *(uneven(z, X[:, j], name) for j, name in enumerate(names)),
            slow_target(y[scored], mean[scored]) if names and lags == 0 and horizon == 1 else None,
        ]
        return [text for text in found if text is not None]


def pattern_over_rows(z: Array, lags: int) -> str | None:
    """Return patterns of the errors z along the rows: a season, or a correlation from row to row."""
    for season in find_seasons(z, most=1):
        if season > lags:
            return f"errors repeat every {season:g} rows: try --lags {int(np.ceil(season))}"
    pairs = ~(np.isnan(z[1:]) | np.isnan(z[:-1]))
    if np.count_nonzero(pairs) < FEWEST or not np.nanstd(z) > 0.0:
        return None
    r = float(np.corrcoef(z[1:][pairs], z[:-1][pairs])[0, 1])
    if r < FOLLOWING:
        return None
    return f"errors follow each other, with a correlation of {r:.1f} from row to row: try --lags {2 * lags or 10}"


def slow_target(y: Array, mean: Array) -> str | None:
    """Return that the scores hold only while targets arrive: a slow target is followed, whatever the inputs say."""
    steps, errors, spread = (float(np.median(np.abs(e))) for e in (np.diff(y), y - mean, y - np.median(y)))
    if steps >= SLOW * spread or errors < NO_BETTER * steps:
        return None
    return (
        f"the target changes slowly, by {steps:.2g} in a typical row, and a typical error is {errors:.2g}: these "
        f"figures hold only if each target is known before the next row. If targets will come late or end, as when a "
        f"sensor is calibrated, measure that with --delay N, and try --model linearrls or --model krlst --forgetting 1"
    )


def uneven(z: Array, x: Array, name: str) -> str | None:
    """Return the input in whose lowest or highest quarter the errors are larger than elsewhere, if any."""
    known = ~(np.isnan(z) | np.isnan(x))
    low, high = np.quantile(x[known], [0.25, 0.75]) if known.any() else (0.0, 0.0)
    ends = {"low": known & (x <= low), "high": known & (x >= high)}
    if low == high or min(map(np.count_nonzero, ends.values())) < FEWEST // 4:
        return None
    sizes = {end: float(np.mean(np.abs(z[rows]))) for end, rows in ends.items()}
    large, small = ("high", "low") if sizes["high"] > sizes["low"] else ("low", "high")
    if sizes[large] < UNEVEN * max(sizes[small], 1e-9):
        return None
    times = sizes[large] / max(sizes[small], 1e-9)
    return (
        f"errors are {times:.1f} times as large where {name} is {large}, so intervals are too narrow there: "
        f"try --model auto, or predict the logarithm of the target"
    )
