"""A small picture of predictions along a stream, as SVG: no library, light or dark."""

from __future__ import annotations

import numpy as np

from onlinegp.checks import Array

WIDTH, HEIGHT = 480, 72
COLUMNS = 240  # at most; each shows the range of the rows in it
BAND, DATA, MEAN = "#56B4E9", "#D55E00", "#0072B2"


def sparkline(y: Array, mean: Array, lower: Array, upper: Array) -> str:
    """Return data, mean and interval of rows, each (n,), as ranges: nothing is averaged."""
    starts = np.unique(np.linspace(0, len(y), COLUMNS, endpoint=False).astype(int))
    low = [np.fmin.reduceat(values, starts) for values in (lower, y, mean)]
    high = [np.fmax.reduceat(values, starts) for values in (upper, y, mean)]
    known = np.concatenate([*low[1:], *high[1:]])
    known = known[np.isfinite(known)]
    bottom, top = (known.min(), known.max()) if len(known) else (0.0, 1.0)
    room = 0.1 * (top - bottom) or 1.0  # the band may go beyond
    bottom, top = bottom - room, top + room
    x = WIDTH * np.append(starts, len(y)) / len(y)
    parts = []
    for a, b, color, opacity in zip(low, high, (BAND, DATA, MEAN), (0.45, 0.6, 1.0), strict=True):
        ends = [HEIGHT * (top - np.clip(values, bottom, top)) / (top - bottom) for values in (b, a)]
        parts.append(f'<path fill="{color}" fill-opacity="{opacity}" d="{_columns(x, *ends)}"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'style="max-width:100%" role="img" aria-label="data (orange), mean (dark blue) and 95% interval (light blue) '
        f'of {len(y)} rows">{"".join(parts)}</svg>'
    )


def _columns(x: Array, high: Array, low: Array) -> str:
    """Return the path of columns from high to low, which are counted from the top; at least as thick as a line."""
    thin = np.maximum(1.0 - (low - high), 0.0) / 2.0
    drawn = []
    for left, right, a, b in zip(x[:-1], x[1:], high - thin, low + thin, strict=True):
        if np.isfinite(a) and np.isfinite(b):
            drawn.append(f"M{left:.1f} {a:.1f}H{right:.1f}V{b:.1f}H{left:.1f}z")
    return "".join(drawn)
