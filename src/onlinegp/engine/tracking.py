"""What the models made of models follow along the rows: scales, weights and quantiles.

The loops here are the definitions. Where the compiled module was built, its twins run (native/tracking.hpp), with the
same bits: there is nothing to choose. Each takes its state as arrays, changes them in place, and returns what was
known before each row.
"""

from __future__ import annotations

from functools import cache
from math import exp
from typing import Any

import numpy as np

from onlinegp.checks import Array, stored_array
from onlinegp.engine import available

FAR = 100.0  # z^2 / scale of a row counts up to this: an outlier widens what follows by a factor, not without bound
TINY = 1e-12  # the least z^2 that counts, and one over the most: a scale is never zero
MEMORY = (
    0.5  # nats: one row changes log weights by at most this for each of the 1 / (1 - fade) rows that are remembered
)
LEAST = -1e300  # what a density of zero counts as
WIDEST = 300.0  # of log scales: neither they nor their squares overflow
FASTER = 6.0  # steps of the quantile tracker at the first row, over those of all after some


def fading_scales(
    Z2: Array,
    degrees: float,
    keep: float,
    total: Array,
    count: Array,
    *,
    far: float = FAR,
    tiny: float = TINY,
    native: bool = True,
) -> Array:
    """Return fading means of z^2, (n, p): the squared scales of residuals, each from the rows before.

    scale = total / count,   total <- keep total + w z^2,   count <- keep count + 1

    For Student's t with `degrees` nu the weight is w = (nu + 1) / (nu + z^2 / scale): one step of expectation and
    maximization per row (Lange, Little and Taylor, "Robust statistical modeling using the t distribution", JASA, 1989).
    For the normal distribution, degrees = 0, it is one, and z^2 counts up to `far` times the scale. It counts from
    `tiny` to 1 / tiny in any case.
    """
    out = np.empty(Z2.shape)
    if native and (twin := _compiled()):
        twin.fading_scales(np.ascontiguousarray(Z2), degrees, keep, far, tiny, total, count, out)
        return out
    for i, row in enumerate(Z2.tolist()):
        for j, z2 in enumerate(row):
            scale = float(total[j]) / float(count[j])
            out[i, j] = scale
            z2 = min(z2, 1.0 / tiny)
            z2 = (degrees + 1.0) * z2 / (degrees + z2 / scale) if degrees > 0.0 else min(z2, far * scale)
            total[j] = keep * float(total[j]) + max(z2, tiny)
            count[j] = keep * float(count[j]) + 1.0
    return out


def fading_weights(densities: Array, fade: float, log_weights: Array, *, native: bool = True) -> Array:
    """Return the weights of members, (n, m), each from the log densities (n, m) of the rows before.

    log w <- fade log w + log p,   where log p >= best log p of the row - MEMORY / (1 - fade)

    The bound is 5 for a fade of 0.9: what one outlier says is worth ten rows that differ by half a nat. For a fade of
    one there is none, and the weights are those of Bayes' rule.
    """
    out = np.empty(densities.shape)
    cut = MEMORY / (1.0 - fade) if fade < 1.0 else np.inf
    if native and (twin := _compiled()):
        twin.fading_weights(np.ascontiguousarray(densities), fade, cut, LEAST, log_weights, out)
        return out
    w = log_weights.tolist()
    for i, row in enumerate(densities.tolist()):
        shares = [exp(one) for one in w]
        whole = 0.0
        for share in shares:  # in this order, whatever `sum` does
            whole += share
        out[i] = [share / whole for share in shares]
        row = [min(one, -LEAST) if one > LEAST else LEAST for one in row]  # NaN counts as none
        best = max(row)
        w = [fade * old + (max(one, best - cut) - best) for old, one in zip(w, row, strict=True)]
        largest = max(w)
        w = [max(one - largest, LEAST) for one in w]
    log_weights[:] = w
    return out


def fading_means(V: Array, keep: float, total: Array, count: Array) -> Array:
    """Return fading means of values (n, m), each from the rows before; the first row has its own.

    mean = total / count,   total <- keep total + v,   count <- keep count + 1
    """
    out = np.empty(V.shape)
    for i, row in enumerate(V):
        out[i] = total / count if count[0] > 0.0 else row
        total *= keep
        total += row
        count *= keep
        count += 1.0
    return out


def shares_of(log_weights: Array) -> Array:
    """Return the weights that the next row is predicted with, (m,)."""
    return fading_weights(np.zeros((1, len(log_weights))), 1.0, log_weights.copy())[0]


def stored_log_weights(log_weights: Any, shape: tuple[int, ...]) -> Array:
    """Return stored log weights, the largest of which must be zero, or refuse them."""
    if not np.all(stored_array("log_weights", log_weights, shape).max(axis=-1) == 0.0):
        raise ValueError(f"the largest of log_weights must be 0, got {log_weights!r}.")
    return log_weights.copy()


def tracked_quantiles(
    R: Array, level: float, step: float, seen: int, log_scale: Array, *, native: bool = True
) -> Array:
    """Return scales s, (n, p), that scores r exceed with probability 1 - level, each from the rows before.

    log s <- log s + step max(1, 6 / sqrt(1 + row / 100)) ((r > s) - (1 - level))

    The sum of misses differs from its expectation by the change of log s over the step, whatever the data are: Gibbs
    and Candes, "Adaptive conformal inference under distribution shift", NeurIPS, 2021; tracked on the scale itself as
    in Angelopoulos, Candes and Tibshirani, "Conformal PID control for time series prediction", NeurIPS, 2023, here on
    its logarithm, so that the step has no units; with steps that decrease as in Angelopoulos, Barber and Bates,
    "Online conformal prediction with decaying step sizes", ICML, 2024.
    """
    out = np.empty(R.shape)
    steps = step * np.maximum(1.0, FASTER / np.sqrt(1.0 + (seen + np.arange(len(R))) / 100.0))
    outside = 1.0 - level
    if native and (twin := _compiled()):
        twin.tracked_quantiles(np.ascontiguousarray(R), steps, outside, WIDEST, log_scale, out)
        return out
    for i, (row, move) in enumerate(zip(R.tolist(), steps.tolist(), strict=True)):
        for j, r in enumerate(row):
            s = exp(log_scale[j])
            out[i, j] = s
            moved = float(log_scale[j]) + move * ((1.0 if r > s else 0.0) - outside)
            log_scale[j] = min(max(moved, -WIDEST), WIDEST)
    return out


@cache
def _compiled() -> Any:
    """Return the compiled module, or None."""
    if not available():
        return None
    from onlinegp.engine import _native

    return _native


def keep_of(half_life: float) -> float:
    """Return the factor per row after which a half is left of a weight."""
    return float(0.5 ** (1.0 / half_life))
