"""Find the seasons of a series: periods that help to predict the series, with a bounded rate of false seasons.

::

    y_t = a + b t + c_1 y_(t-1) + c_2 y_(t-2) + c_3 y_(t-3) + season(t mod s) + noise

For each candidate period s, F tests compare this regression with and without the season, as free means of the phases
and as one or two harmonics. The regression contains lags, because they alone could explain a short season. The level of
the tests is divided: half of it is for a few usual periods, so that they are found in short series, the rest for all
others.

After an autoregression, the residuals of a drifting series have more power at low frequencies, where slow waves look
like seasons. So the gain of a season is compared with the spectrum of the residuals near its frequency, if this is
above the mean of the spectrum.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinegp.checks import Array

LEVEL = 0.03  # approximate upper bound on the probability of a season in a series that has none
USUAL_PERIODS = (4, 7, 12, 24, 52.18)
CALENDAR_PERIODS = (5, 6, 8, 10, 13, 14, 26, 28, 30, 48, 60, 96, 144, 168, 288, 336, 364, 365.25, 672, 1440, 2016)
SHARES = (0.5, 0.3, 0.2)  # shares of the level for usual periods, for calendar and clock periods, all others
LONGEST_OTHER = 400
FEWEST_CYCLES = 2.5  # minimum number of cycles of usual and calendar periods; other periods need eight
FEWEST_LONG_CYCLES = 4.0  # minimum for a first season longer than 24, because three slow waves look like a season
FEWEST_ROWS = 16
MAX_ROWS = 3000  # only the last rows are used
LAGS = 3
OUTLIER = 4.0  # residuals are clipped here, in robust deviations
NEAR = 8  # number of frequencies on each side for the local spectrum


def find_seasons(y: ArrayLike, *, most: int = 2) -> tuple[float, ...]:
    """Return the seasons of a series, in rows, the strongest first. Return an empty tuple if there is none.

    In a series without a season, the probability of finding one is about 3%. In series of ten cycles, a season with the
    same variance as the noise is found in nine of ten cases. A further season must be a multiple of the first, such as
    a week of days.

    Parameters
    ----------
    y : array-like of shape (n,)
        The values at equal time steps, NaN if missing. The last 3,000 values are used.
    most : int
        The largest number of seasons.

    Examples
    --------
    >>> import numpy as np
    >>> from onlinegp.seasons import find_seasons
    >>> rng = np.random.default_rng(0)
    >>> t = np.arange(240)
    >>> find_seasons(np.sin(2 * np.pi * t / 24) + 0.5 * rng.normal(size=240))
    (24.0,)
    >>> find_seasons(rng.normal(size=240).cumsum())
    ()
    """
    z = _standardized(np.asarray(y, dtype=np.float64)[-MAX_ROWS:])
    if z is None:
        return ()
    X = _regression(z)
    periods, shares = _candidates(len(X), FEWEST_LONG_CYCLES)
    found: list[float] = []
    while len(found) < most and len(periods):
        rss, log_p = _tests(X, periods, found[0] if found else None)
        i = _best(periods, log_p - np.log(LEVEL * shares / shares.sum()), rss, len(X), related=not found)
        if i is None:
            break
        s = float(periods[i])
        if len(X) / s >= 3 and _prequential_gain(_season_and_noise(X, s), s) <= 0:
            periods, shares = np.delete(periods, i), np.delete(shares, i)
            continue
        found.append(s)
        X = np.column_stack([np.ones(len(X)), _without_phase_means(X[:, 1:], s)])
        if len(found) == 1:
            periods, shares = _candidates(len(X), FEWEST_CYCLES)
        longer = (periods % found[0] == 0) & (periods > found[-1])
        periods, shares = periods[longer], shares[longer]
    return tuple(found)


def _standardized(y: Array) -> Array | None:
    """Fill gaps, and take logarithms if the series is positive and varies. Return None for too few values."""
    known = np.flatnonzero(np.isfinite(y))
    if len(known) < FEWEST_ROWS:
        return None
    y = np.interp(np.arange(len(y)), known, y[known])
    if np.ptp(y) <= 1e-9 * abs(y.mean()):
        return None
    if y.min() > 0 and y.max() > 1.5 * y.min():
        y = np.log(y)
    y = y - y.mean()
    y = y / np.abs(y).max()  # so that squares neither overflow nor underflow
    return y / y.std()


def _regression(y: Array) -> Array:
    """Return the columns 1, t, y_(t-1), ..., y_(t-LAGS), y_t, (n, LAGS + 3), with outliers of the last clipped."""
    n = len(y) - LAGS
    lags = [y[LAGS - j : n + LAGS - j] for j in range(1, LAGS + 1)]
    X = np.column_stack([np.ones(n), np.linspace(-1, 1, n), *lags, y[LAGS:]])
    e = _residuals(X)
    cut = OUTLIER * float(np.median(np.abs(e))) / 0.6745 + 4e-9
    X[:, -1] -= e - np.clip(e, -cut, cut)
    return X


def _residuals(X: Array) -> Array:
    """Return the residuals of a regression of the last column on the other columns."""
    return X[:, -1] - X[:, :-1] @ np.linalg.lstsq(X[:, :-1], X[:, -1], rcond=None)[0]


def _candidates(n: int, long_cycles: float) -> tuple[Array, Array]:
    """Return the periods to test, and the share of the level for each period."""
    named = {*USUAL_PERIODS, *CALENDAR_PERIODS, 52, 365}
    tiers = [
        [s for s in tier if s * (long_cycles if s > 24 else FEWEST_CYCLES) <= n]
        for tier in (USUAL_PERIODS, CALENDAR_PERIODS)
    ]
    tiers.append([s for s in range(4, min(n // 8, LONGEST_OTHER) + 1) if s not in named])
    shares = [share / len(tier) for share, tier in zip(SHARES, tiers, strict=True) for _ in tier]
    return np.array([s for tier in tiers for s in tier], dtype=np.float64), np.array(shares)


# Tests


def _tests(X: Array, periods: Array, first: float | None) -> tuple[Array, Array]:
    """For each period, return the residual sum of squares with phase means, and the log of the smallest p-value.

    After a first season, whose phase means were removed, there is an additional test with a mean for each of its
    cycles.
    """
    n, columns = X.shape[0], X.shape[1] - 1
    spectrum = _local_spectrum(_residuals(X), periods)
    rss0 = _rss(X.T @ X)

    phase_sums = [_phase_sums(X, s) for s in periods]
    by_phase = _rss_beside_means(X, phase_sums)
    two, one = _rss_beside_harmonics(X, periods, phase_sums)
    rss = [by_phase, np.where(periods > 6, two, rss0), np.where(periods > 4, one, rss0)]
    k = [np.ceil(periods) - 1, np.full(len(periods), 4.0), np.full(len(periods), 2.0)]  # coefficients
    if first is not None:
        rss.append(_rss_beside_means(X, [_phase_sums(X, s, first) for s in periods]))
        k.append(periods / first - 1)
    log_p = _log_p(rss0, np.array(rss), np.array(k), n - columns, *spectrum)
    return by_phase, log_p.min(axis=0) + np.log(len(rss))


def _rss(G: Array) -> Array:
    """Return the residual sum of squares of a regression of the last column, from products of columns G (..., c, c)."""
    A, b = G[..., :-1, :-1].copy(), G[..., :-1, -1]
    i = np.arange(A.shape[-1])
    A[..., i, i] += 1e-9 * (A[..., i, i] + 1e-12)
    return G[..., -1, -1] - (b * np.linalg.solve(A, b[..., None])[..., 0]).sum(axis=-1)


def _rss_beside_means(X: Array, phase_sums: list[tuple[Array, Array]]) -> Array:
    """Return the residual sums of squares with means of phases in place of the constant."""
    products = X.T @ X
    G = [products - (sums / count[:, None]).T @ sums for sums, count in phase_sums]
    return _rss(np.array(G)[:, 1:, 1:])


def _rss_beside_harmonics(X: Array, periods: Array, phase_sums: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the residual sums of squares with two harmonics of each period, and with only the first."""
    G = np.empty((len(periods), 4 + X.shape[1], 4 + X.shape[1]))  # products of the waves and the columns of X
    G[:, 4:, 4:] = X.T @ X
    for own, s, (sums, count) in zip(G, periods, phase_sums, strict=True):
        if s != int(s):  # if s is an integer, all rows of a phase have the same waves
            sums, count = X, np.ones(len(X))
        waves = _waves(s, len(sums))
        own[:4, 4:] = waves.T @ sums
        own[:4, :4] = (waves.T * count) @ waves
    G[:, 4:, :4] = G[:, :4, 4:].transpose(0, 2, 1)
    first = np.r_[:2, 4 : 4 + X.shape[1]]
    return _rss(G), _rss(G[:, first[:, None], first])


@lru_cache(maxsize=512)
def _waves(s: float, n: int) -> Array:
    """Return cos and sin of the phase and of twice the phase, for n rows of a season, (n, 4)."""
    both = np.empty((n, 2), dtype=np.complex128)
    both[:, 0] = np.exp(2j * np.pi / s * np.arange(n))
    both[:, 1] = both[:, 0] ** 2
    return both.view(np.float64)


def _local_spectrum(e: Array, periods: Array) -> tuple[Array, Array]:
    """Return the spectrum of residuals near each period, relative to its mean (at least 1), and degrees of freedom.

    The frequencies of the period itself and of its second harmonic are left out.
    """
    power = np.abs(np.fft.rfft(e)[1:]) ** 2
    f = (len(e) / periods)[:, None]
    k = np.ceil(f - NEAR) + np.arange(2 * NEAR + 1)  # frequencies
    near = (k >= 1) & (k <= np.minimum(len(power), f + NEAR)) & (np.abs(k - f) >= 1) & (np.abs(k - 2 * f) >= 1)
    count = near.sum(axis=1)
    total = np.where(near, power[np.clip(k, 1, len(power)).astype(np.int64) - 1], 0.0).sum(axis=1)
    level = np.maximum(1.0, total / np.maximum(count, 1) / (power.mean() + 1e-300))
    return np.where(count, level, 1.0), np.where(count, 2.0 * count, np.inf)


def _log_p(rss0: Array, rss: Array, k: Array, degrees: float, level: Array, level_degrees: Array) -> Array:
    """Return the log p-values of F tests with k additional coefficients, for noise above its mean at this frequency."""
    from scipy.special import betaln, fdtrc

    d = np.maximum(degrees - k, 1)
    F = np.maximum(rss0 - rss, 0) / k / (np.maximum(rss, 1e-12) / d) / level
    d = np.where(level > 1, np.minimum(d, level_degrees), d)
    p = fdtrc(k, d, F)
    # p = I_x(a, b); where it underflows, the first factor of its continued fraction
    a, b, x = d / 2, k / 2, d / (d + k * F)
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.log(np.maximum(1 - x * (a + b) / (a + 1), 1e-9))
        tail = a * np.log(x) + b * np.log1p(-x) - np.log(a) - betaln(a, b) - rest
        return np.where(p > 1e-250, np.log(np.maximum(p, 1e-300)), tail)


def _best(periods: Array, log_p: Array, rss: Array, n: int, *, related: bool) -> int | None:
    """Return the index of the most significant period, or of a significant multiple or divisor with a better BIC."""
    i = int(np.argmin(log_p))
    if log_p[i] >= 0:
        return None
    if not related:
        return i
    s = periods[i]
    family = np.flatnonzero((log_p < 0) & ((periods % s == 0) | (s % periods == 0)))
    bic = n * np.log(np.maximum(rss[family], 1e-12)) + periods[family] * np.log(n)
    return int(family[np.argmin(bic)])


# Phases


def _phases(n: int, s: float, width: float = 1.0) -> NDArray[np.int64]:
    return ((np.arange(n) % s) // width).astype(np.int64)


def _phase_sums(X: Array, s: float, width: float = 1.0) -> tuple[Array, Array]:
    """Return the sum and the number of the rows of each phase."""
    if s != int(s) or width != 1.0:
        phase = _phases(len(X), s, width)
        return np.column_stack([np.bincount(phase, x) for x in X.T]), np.bincount(phase).astype(np.float64)
    whole, rest = divmod(len(X), int(s))  # number of cycles, and of rows after them
    sums, count = X[: whole * int(s)].reshape(whole, int(s), -1).sum(axis=0), np.empty(int(s))
    sums[:rest] += X[whole * int(s) :]
    count[:rest], count[rest:] = whole + 1.0, whole
    return sums, count


def _without_phase_means(X: Array, s: float) -> Array:
    sums, count = _phase_sums(X, s)
    return X - (sums / count[:, None])[_phases(len(X), s)]


def _season_and_noise(X: Array, s: float) -> Array:
    """Return the target without trend and lags, with coefficients from the regression with phase means."""
    Z = _without_phase_means(X[:, 1:], s)
    e = X[:, -1] - X[:, 1:-1] @ np.linalg.lstsq(Z[:, :-1], Z[:, -1], rcond=None)[0]
    return e - e.mean()


def _prequential_gain(e: Array, s: float) -> float:
    """Return how much better than zero the shrunk means of earlier rows of the same phase predict e."""
    phase = _phases(len(e), s)
    order = np.argsort(phase, kind="stable")
    sizes = np.bincount(phase)
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)  # first row of each phase, in this order
    before = np.concatenate([[0.0], np.cumsum(e[order])])
    count = np.arange(len(e)) - first
    mean = (before[:-1] - before[first]) / (count + 1 + 0.02 * s)
    return float((e[order] ** 2 - (e[order] - mean) ** 2).sum())
