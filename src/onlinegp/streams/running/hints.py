"""Hints: patterns in the errors of a run, and options that may remove them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from onlinegp.checks import Array
from onlinegp.seasons import find_seasons
from onlinegp.streams.running.observers import Rows

LAST_ROWS = 2000  # patterns are searched in this number of last rows
FEWEST = 200
FOLLOWING = 0.25  # smallest correlation of consecutive errors to report
UNEVEN = 1.6  # smallest ratio to report of the errors in a quarter of an input to the other errors
MAX_Z = 4.0  # |z| is clipped here
SLOW = 0.3  # a target is slow if it changes from row to row by a smaller share of its deviation
NARROW = 0.85  # intervals of 95% are too narrow, far ahead, if they contain a smaller share of the targets
NO_BETTER = 0.4  # the errors of a model that follows a slow target are a larger share of its changes


class Hints:
    """Store the last rows of a run, and search for patterns in their errors."""

    def __init__(self) -> None:
        self._pieces: deque[tuple[Rows, Array]] = deque()
        self._rows = 0

    def add(self, rows: Rows, X: Array) -> None:
        """Store rows and their inputs."""
        self._pieces.append((rows, X))
        self._rows += len(rows)
        while self._rows - len(self._pieces[0][0]) >= LAST_ROWS:
            self._rows -= len(self._pieces.popleft()[0])

    def sentences(self, names: Sequence[str], *, lags: int | None, horizon: int = 1) -> list[str]:
        """Return a sentence for each pattern. Do not advise about lags if `lags` is None: the model chooses them.

        A horizon above 1 without lags is the delay of targets that come late.
        """
        if not self._pieces:
            return []
        parts = [(rows.z, rows.scored, X, rows.y, rows.mean, rows.pit) for rows, X in self._pieces]
        z, scored, X, y, mean, pit = (np.concatenate(part)[-LAST_ROWS:] for part in zip(*parts, strict=True))
        if np.count_nonzero(scored) < FEWEST:
            return []
        z = np.where(scored, np.clip(z, -MAX_Z, MAX_Z), np.nan)
        found = [
            None if lags is None else pattern_over_rows(z, lags, horizon),
            *(uneven(z, X[:, j], name) for j, name in enumerate(names)),
            slow_target(y[scored], mean[scored]) if names and lags == 0 and horizon == 1 else None,
            too_narrow(pit[scored], horizon, late=lags == 0) if horizon > 1 else None,
        ]
        return [text for text in found if text is not None]


def pattern_over_rows(z: Array, lags: int, horizon: int = 1) -> str | None:
    """Describe patterns of the errors z over the rows: a season, or a correlation of consecutive errors.

    Errors several rows ahead share most of what happened in between, so their correlation is no pattern.
    """
    if horizon > 1 and lags == 0:
        return None  # late targets exclude lags
    for season in find_seasons(z, most=1):
        if season > lags:
            return f"errors repeat every {season:g} rows: try --lags {int(np.ceil(season))}"
    pairs = ~(np.isnan(z[1:]) | np.isnan(z[:-1]))
    if horizon > 1 or np.count_nonzero(pairs) < FEWEST or not np.nanstd(z) > 0.0:
        return None
    r = float(np.corrcoef(z[1:][pairs], z[:-1][pairs])[0, 1])
    if r < FOLLOWING:
        return None
    return f"consecutive errors have a correlation of {r:.1f}: try --lags {2 * lags or 10}"


def slow_target(y: Array, mean: Array) -> str | None:
    """Return that the scores hold only while targets arrive: a slow target is followed, whatever the inputs say."""
    steps, errors, spread = (float(np.median(np.abs(e))) for e in (np.diff(y), y - mean, y - np.median(y)))
    if steps >= SLOW * spread or errors < NO_BETTER * steps:
        return None
    return (
        f"the target changes slowly, by {steps:.2g} in a typical row, and a typical error is {errors:.2g}: these "
        f"figures hold only if each target is known before the next row. If targets will come late or end, as when a "
        f"sensor is calibrated, measure that with --delay N, and for --model linearrls and "
        f"--model krlst --forgetting 1, too"
    )


def too_narrow(pit: Array, horizon: int, *, late: bool) -> str | None:
    """Return that intervals `horizon` rows ahead are too narrow, given the predicted probabilities of the targets."""
    inside = float(np.mean(np.abs(2.0 * pit - 1.0) <= 0.95))
    if inside >= NARROW:
        return None
    remedy = (
        "try --model linearrls or --model krlst --forgetting 1"
        if late
        else f"onlinegp forecast --steps {horizon} has intervals that widen"
    )
    return (
        f"only {inside:.0%} of the last targets are inside their 95% intervals. Errors {horizon} rows ahead are larger "
        f"than those that were known when these rows were predicted: {remedy}"
    )


def uneven(z: Array, x: Array, name: str) -> str | None:
    """Describe whether the errors z are larger for the lowest or highest quarter of the input x, or return None."""
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
