"""Draw predictions along a stream as a small SVG, without a plotting library."""

from __future__ import annotations

import numpy as np

from onlinegp.checks import Array

WIDTH, HEIGHT = 480, 72
COLUMNS = 240  # largest number of columns; each shows the range of its rows
SHOWN = "data (orange), mean (dark blue) and interval (light blue)"
BAND, DATA, MEAN = "#56B4E9", "#D55E00", "#0072B2"


def sparkline(y: Array | None, mean: Array, lower: Array, upper: Array) -> str:
    """Return an SVG of data, mean and interval, each (n,). Each column shows the range of several rows.

    The data (or the intervals, without data) determine the scale. Predictions far outside are cut off. For the mean,
    the ends of the ranges are drawn.
    """
    n = len(mean)
    starts = np.unique(np.linspace(0, n, COLUMNS, endpoint=False).astype(int))
    known = np.concatenate([lower, upper]) if y is None else y
    known = known[np.isfinite(known)]
    bottom, top = (known.min(), known.max()) if len(known) else (0.0, 1.0)
    room = 0.25 * (top - bottom) or 1.0
    bottom, top = bottom - room, top + room

    def heights(values: Array) -> Array:
        return HEIGHT * (top - np.clip(values, bottom, top)) / (top - bottom)

    def ends(low: Array, high: Array) -> tuple[Array, Array]:
        return heights(np.fmax.reduceat(high, starts)), heights(np.fmin.reduceat(low, starts))

    x = WIDTH * np.append(starts, n) / n
    middle = 0.5 * (x[:-1] + x[1:])
    lines = "".join(_line(middle, end) for end in ends(mean, mean))
    data = "" if y is None else f'<path fill="{DATA}" fill-opacity="0.6" d="{_columns(x, *ends(y, y))}"/>'
    what = "mean (dark blue) and interval (light blue)" if y is None else SHOWN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'style="max-width:100%" role="img" aria-label="{what} of {n} rows">'
        f'<path fill="{BAND}" fill-opacity="0.4" d="{_columns(x, *ends(lower, upper))}"/>'
        f'{data}<path fill="none" stroke="{MEAN}" d="{lines}"/></svg>'
    )


def _columns(x: Array, high: Array, low: Array) -> str:
    """Return the path of columns from high to low (distances from the top), each at least two pixels high."""
    thin = np.maximum(2.0 - (low - high), 0.0) / 2.0
    drawn = zip(x[:-1], x[1:], high - thin, low + thin, strict=True)
    return "".join(f"M{a:.1f} {t:.1f}H{b:.1f}V{u:.1f}H{a:.1f}z" for a, b, t, u in drawn if t == t and u == u)


def _line(x: Array, height: Array) -> str:
    """Return the path through the points, with gaps at missing points."""
    known = np.isfinite(height)
    joined = known & np.append(False, known[:-1])
    drawn = zip(x[known], height[known], joined[known], strict=True)
    return "".join(f"{'L' if on else 'M'}{a:.1f} {b:.1f}" for a, b, on in drawn)
