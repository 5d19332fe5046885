"""Recursions over the errors of rows, for the models that wrap other models: scales, weights and intervals.

Each function takes its state as arrays, updates them in place, and returns the values before each row. The Python loops
are the definition; the compiled twins in native/wrappers/error_tracking.hpp give the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from statistics import NormalDist

import numpy as np

from onlinegp.checks import Array
from onlinegp.native_module import native as compiled_module

MAX_RATIO = 100.0  # limit of z^2 / scale, which bounds the effect of an outlier
TINY = 1e-12  # z^2 is clipped to [TINY, 1 / TINY], so that a scale is never zero
MEMORY = 0.5  # nats: a row changes log weights by at most MEMORY / (1 - fade)
LEAST = -1e300  # log density in place of log 0
WIDEST = 300.0  # limit of |log scale|, so that squared scales do not overflow
ODDS = 3.0  # the tests look for odds of a miss that are wrong by this factor
CONFIRMED, MOST_ROWS = 400.0, 2000.0  # rows that the initial stretch counts like, and the maximum
ALARM, SURE = 6.0, 12.0  # nats of evidence that coverage is wrong, and that there are far too few misses
WIDE_STRETCH = log(3.0)  # the log of a stretch above which the interval narrows by whole steps while nothing is missed
LIMITS = (CONFIRMED, MOST_ROWS, ALARM, WIDEST, SURE, WIDE_STRETCH)


def fading_scales(
    Z2: Array,
    degrees: float,
    keep: float,
    total: Array,
    count: Array,
    *,
    far: float = MAX_RATIO,
    tiny: float = TINY,
    native: bool = True,
) -> Array:
    """Return the squared scales of residuals, (n, p): fading means of z^2 over the rows before each row.

    scale = total / count,   total <- keep total + w z^2,   count <- keep count + 1

    For Student's t with `degrees` nu the weight is w = (nu + 1) / (nu + z^2 / scale): one step of expectation and
    maximization per row (Lange, Little and Taylor, "Robust statistical modeling using the t distribution", JASA, 1989).
    For the normal distribution (degrees = 0) the weight is one, and z^2 is clipped to `far` times the scale. z^2 is
    always clipped to [tiny, 1 / tiny].
    """
    out = np.empty(Z2.shape)
    if native and (twin := compiled_module()):
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
    """Return the weights of members before each row, (n, m), from the log densities of the rows, (n, m).

    log w <- fade log w + log p,   where log p >= best log p of the row - MEMORY / (1 - fade)

    With a fade of 0.9 the bound is 5: one outlier counts at most like ten rows that differ by half a nat. With a fade
    of one there is no bound, and Bayes' rule gives the weights.
    """
    out = np.empty(densities.shape)
    cut = weights_rule(fade)["cut"]
    if native and (twin := compiled_module()):
        twin.fading_weights(np.ascontiguousarray(densities), fade, cut, LEAST, log_weights, out)
        return out
    w = log_weights.tolist()
    for i, row in enumerate(densities.tolist()):
        shares = [exp(one) for one in w]
        whole = 0.0
        for share in shares:  # in the order of the compiled twin
            whole += share
        out[i] = [share / whole for share in shares]
        row = [min(one, -LEAST) if one > LEAST else LEAST for one in row]  # NaN counts as a density of zero
        best = max(row)
        w = [fade * old + (max(one, best - cut) - best) for old, one in zip(w, row, strict=True)]
        largest = max(w)
        w = [max(one - largest, LEAST) for one in w]
    log_weights[:] = w
    return out


def weights_rule(fade: float) -> dict[str, float]:
    """Return the constants of `fading_weights`."""
    return {"fade": fade, "cut": MEMORY / (1.0 - fade) if fade < 1.0 else np.inf, "least": LEAST}


def fading_means(V: Array, keep: float, total: Array, count: Array) -> Array:
    """Return fading means of values (n, m) over the rows before each row. The mean of the first row is its own value.

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
    """Return the weights for the prediction of the next row, (m,)."""
    return fading_weights(np.zeros((1, len(log_weights))), 1.0, log_weights.copy())[0]


def check_log_weights(log_weights: Array) -> None:
    """Raise a ValueError unless the largest stored log weight is zero."""
    if not np.all(log_weights.max(axis=-1) == 0.0):
        raise ValueError(f"the largest of log_weights must be 0, got {log_weights!r}.")


@dataclass(frozen=True)
class StretchRule:
    """The constants of `tracked_stretch` for one level."""

    outside: float  # the expected share of misses, 1 - level
    step: float  # the gain g while coverage is wrong
    slope: float  # d coverage / d log s of a normal prediction: 2 z phi(z)
    more: tuple[float, float]  # log-likelihood ratios of a miss and a hit for three times the odds of a miss
    fewer: tuple[float, float]  # the same for a third of the odds

    @classmethod
    def at(cls, level: float, step: float) -> StretchRule:
        outside, z = 1.0 - level, NormalDist().inv_cdf(0.5 * (1.0 + level))
        return cls(outside, step, 2.0 * z * NormalDist().pdf(z), _evidence(outside, ODDS), _evidence(outside, 1 / ODDS))

    @property
    def constants(self) -> Array:
        """All numbers of the rule, for the compiled twin."""
        return np.array([self.outside, self.step, self.slope, *self.more, *self.fewer, *LIMITS])


def _evidence(outside: float, odds: float) -> tuple[float, float]:
    """Return log p1 / p0 of a miss and of a hit, if the odds of a miss are multiplied by `odds`."""
    other = odds * outside / (1.0 - outside + odds * outside)
    return log(other / outside), log((1.0 - other) / (1.0 - outside))


def tracked_stretch(
    missed: Array,
    rule: StretchRule,
    log_scale: Array,
    rows: Array,
    more: Array,
    fewer: Array,
    *,
    native: bool = True,
) -> Array:
    """Return the stretch s of the interval at each row, (n, p), given the misses (1) and hits (0), (n, p).

    ::

        log s <- log s + g (missed - outside)
        g     = 1 / (slope (400 + rows)),        rows <- min(rows + 1, 2000)
        more  = max(0, more + log p1 / p0),      p1 with three times the odds of a miss;  fewer: a third of them
        where more or fewer reaches 6:           g = step,  rows <- 0
        where fewer reaches 12 and s > 3:        log s <- max(log s - step, log 3);   a miss first cuts it to 6

    The gain g makes the stretch a mean over the rows so far, which starts as if 400 rows had confirmed s = 1. So on a
    stream that does not change, the intervals converge. Page's sums `more` and `fewer` detect wrong coverage, and then
    the stretch moves by whole steps until coverage is right. So for any data, the share of misses over many rows stays
    close to `outside`. The last rule is for a model that follows a large change late: it missed many rows, and then its
    own intervals are right, while the stretch is far too wide. Many hits in a row are the evidence: 350 at 95%. Gibbs
    and Candes, "Adaptive conformal inference under distribution shift", NeurIPS, 2021, on the logarithm of the scale;
    decreasing steps as in Angelopoulos, Barber and Bates, "Online conformal prediction with decaying step sizes", ICML,
    2024.
    """
    out = np.empty(missed.shape)
    if native and (twin := compiled_module()):
        constants = rule.constants
        twin.tracked_stretch(np.ascontiguousarray(missed), constants, log_scale, rows, more, fewer, out)
        return out
    confirmed, most, alarm, widest, sure, wide = LIMITS
    for i, row in enumerate(missed.tolist()):
        for j, miss in enumerate(row):
            out[i, j] = exp(log_scale[j])
            more[j] = min(max(more[j] + rule.more[not miss], 0.0), alarm)
            fewer[j] = min(max((min(fewer[j], alarm) if miss else fewer[j]) + rule.fewer[not miss], 0.0), sure)
            off = more[j] >= alarm or fewer[j] >= alarm
            rows[j] = 0.0 if off else min(rows[j] + 1.0, most)
            gain = rule.step if off else 1.0 / (rule.slope * (confirmed + rows[j]))
            moved = log_scale[j] + gain * (miss - rule.outside)
            if fewer[j] >= sure and log_scale[j] > wide:
                moved = max(log_scale[j] - rule.step, wide)
            log_scale[j] = min(max(moved, -widest), widest)
    return out


def keep_of(half_life: float) -> float:
    """Return the factor per row that halves a weight in `half_life` rows."""
    return float(0.5 ** (1.0 / half_life))
